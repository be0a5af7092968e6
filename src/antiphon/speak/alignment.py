"""Text as written and words as the voice reads them in, how far the written text is said after each of them out.

A voice rewrites before it speaks: "$5" becomes five dollars, "Dr." becomes doctor. What it rewrote keeps its written
span: it counts as said when the last word of its reading is said, and not before.
Units: int characters of the written text.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WORD = re.compile(r"\S+")


def chars_said(written: str, spoken: Sequence[str]) -> list[int | None]:
    """For each of the `spoken` words, the end of the written text that is said with it; rising.

    None where a word is in the midst of a longer reading, or is not to be found in the text at all. Written words
    that nobody speaks, such as an emoji, count as said with the next word that is.
    """
    words = [(_key(match.group()), match.end()) for match in _WORD.finditer(written)]
    keys = [_key(word) for word in spoken]
    said: list[int | None] = [None] * len(spoken)
    matcher = SequenceMatcher(None, [key for key, _ in words], keys, autojunk=False)
    for kind, first, last, spoken_first, spoken_last in matcher.get_opcodes():
        if kind == "equal":
            said[spoken_first:spoken_last] = [end for _, end in words[first:last]]
        elif kind == "replace":
            said[spoken_last - 1] = words[last - 1][1]
    return said


def rising(marks: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """`marks` without those that do not rise in both numbers over the ones before; of two at one place the later."""
    kept: list[tuple[int, int]] = []
    for at_samples, chars in marks:
        while kept and kept[-1][0] >= at_samples and kept[-1][1] < chars:
            kept.pop()
        if not kept or (kept[-1][0] < at_samples and kept[-1][1] < chars):
            kept.append((at_samples, chars))
    return tuple(kept)


def _key(word: str) -> str:
    """What two spellings of one word have in common: its letters and digits, or its marks if it has neither."""
    return "".join(filter(str.isalnum, word)).casefold() or word
