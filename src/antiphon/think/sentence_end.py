"""A model's guesses at the next token in, the probability that the sentence ends here out."""

from __future__ import annotations

import math
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TERMINALS = ".!?。！？｡।॥؟۔…"
_PAUSES = ",;:-\u2013\u2014\u3001\uff0c\uff1b\uff1a\u060c\u061b"  # commas, colons and dashes of several scripts
_CLOSERS = "\"')]}”’»」』"


def without_final_mark(text: str) -> str:
    """`text` up to its last word.

    A recognizer puts a mark after whatever it heard last; behind a full stop the model would be asked how the next
    sentence begins, and behind a comma no sentence ever ends. The mark is evidence of its own, and not this one's.
    """
    return text.rstrip(_TERMINALS + _CLOSERS + _PAUSES + string.whitespace)


def ends_sentence(token: str) -> bool:
    """Whether the sentence is over with `token`: a final mark, a new line, or no text, the end of the message.

    Not so an ellipsis, which people write where a speaker trails off and may go on, nor a mark within a word
    such as the one of `.com`.
    """
    if not token or token.lstrip(" ").startswith("\n"):
        return True
    mark = token.strip().rstrip(_CLOSERS)
    return mark in {*_TERMINALS} - {"…"} or mark in {"?!", "!!", "!?", "??"}


def end_mass(candidates: Iterable[tuple[str, float]]) -> float:
    """The share of the candidates (text, probability) that end the sentence.

    The tail beyond the candidates counts as going on.
    """
    return min(1.0, math.fsum(probability for token, probability in candidates if ends_sentence(token)))
