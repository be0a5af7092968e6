"""What Whisper's decoder is asked for, as values that a user may change, and how a folder of one's own is named.

Apart from the engine that uses them, so that reading settings loads no array library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from antiphon.core.errors import CallerError, check_range

AskedComputeType: TypeAlias = Literal[
    "auto", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperSettings:
    """How the recognizer listens.

    The language is always given, never guessed: replies and voice are in one language anyway, and a wrong guess costs
    the whole turn. Of ten short Chinese turns whisper-base takes one for another language, at 30 to 80 ms a guess.

    Raises:
        CallerError: the language is no code, or a value is out of its range.
    """

    language: Annotated[str, "callers speak, by Whisper's code: en, zh, de"] = "en"
    vocabulary_tokens: Annotated[int, "of hints, 0.4 ms of decoding each; of more, the first are kept"] = 100
    compute_type: Annotated[AskedComputeType, "numbers to compute in; auto: the fastest that the device has"] = "auto"

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-z]{2,3}", self.language):
            raise CallerError(
                f"language is {self.language!r}", hint="write Whisper's code of two or three letters: en, zh, de"
            )
        check_range("vocabulary_tokens", self.vocabulary_tokens, 0, 160)  # text needs room beside them


def own_folder(recognizer: str) -> Path | None:
    """The folder whose path names the recognizer; None where it is a name of the catalogue, for these hold no slash."""
    is_path = "/" in recognizer or "\\" in recognizer or recognizer.startswith("~")
    return Path(recognizer).expanduser() if is_path else None
