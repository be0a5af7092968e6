"""What was said over a reply in, whether it says anything out.

Who listens says "mhm", coughs, or drops something; none of that asks for the floor. The words tell, as far as a
recognizer can hear them: what consists of backchannels alone, or of no words at all, says nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOISE = re.compile(r"\([^)]*\)|\[[^\]]*\]|\*[^*]*\*")  # "(coughs)", as recognizers call what is no speech
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def says_something(text: str, backchannels: Sequence[str]) -> bool:
    """Whether `text` holds more than words and phrases of `backchannels`, in any order and case."""
    words = _words(_NOISE.sub(" ", text))
    phrases = _phrases(tuple(backchannels))
    at = 0
    while at < len(words):
        length = next((len(one) for one in phrases if words[at : at + len(one)] == one), 0)
        if not length:
            return True
        at += length
    return False


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))


@lru_cache(maxsize=8)
def _phrases(backchannels: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """As words, the longest first."""
    return tuple(sorted((words for each in backchannels if (words := _words(each))), key=len, reverse=True))
