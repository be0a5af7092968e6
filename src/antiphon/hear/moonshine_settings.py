"""What Moonshine's decoder is asked for, as values that a user may change.

Apart from the engine that uses them, so that reading settings loads no array library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from antiphon.core.errors import check_range


@dataclass(frozen=True, slots=True, kw_only=True)
class MoonshineSettings:
    """How far the decoder leans towards the caller's vocabulary. A nat is a factor of 2.7 of probability.

    The defaults are the best of seven on half of 160 orders with a cafe's menu of 32 phrases; around them it is flat.

    Raises:
        CallerError: a value is out of its range.
    """

    beginning_bonus: Annotated[float, "nats for a token that begins a phrase of the vocabulary; 0: none"] = 4.0
    inside_bonus: Annotated[float, "nats for a token that goes on with such a phrase; 0: none"] = 5.0
    ending_bonus: Annotated[float, "nats taken from a token that lengthens its last word; 0: none"] = 2.0
    vocabulary_characters: Annotated[int, "of phrases that are looked for; of more, the first are kept"] = 16_000

    def __post_init__(self) -> None:
        check_range("beginning_bonus", self.beginning_bonus, 0.0, 20.0)
        check_range("inside_bonus", self.inside_bonus, 0.0, 20.0)
        check_range("ending_bonus", self.ending_bonus, 0.0, 20.0)
        check_range("vocabulary_characters", self.vocabulary_characters, 0, 100_000)
