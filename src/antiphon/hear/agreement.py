"""Hypotheses of growing sound in, the words that will not be taken back out.

A word is stable once two hypotheses in a row agree on it and on all words before it, letter case and punctuation
aside, and the newer one has gone on beyond it: at the edge of the sound a word may still be half a word. While the
caller speaks, a hypothesis that contradicts stable words is passed over; after a pause it corrects them, for it has
heard more, and is what will be answered.
Units: characters. Threads: pure; one caller's.
What it does not know: models, tokens, and why a hypothesis is asked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Agreement:
    """What was agreed on so far, and the hypothesis that the next one is compared with."""

    def __init__(self, *, stable: str = "", previous: str = "") -> None:
        self.stable = stable  # never ends in white space or punctuation
        self.previous = previous  # begins with `stable`

    def offer(self, text: str) -> None:
        """Take the next hypothesis, unless it contradicts `stable`."""
        merged = self._merged(text)
        if merged is None:
            return
        text = merged
        earlier = [key for key, _ in _words(self.previous)]
        newer = list(_words(text))
        end = 0
        for index, (key, key_end) in enumerate(newer[:-1]):
            if index >= len(earlier) or earlier[index] != key:
                break
            end = key_end
        if end > len(self.stable):
            self.stable = text[:end]
        self.previous = text

    def conclude(self, text: str) -> None:
        """Take the hypothesis after a pause, whatever was stable before; what it confirms stays so."""
        keys = [key for key, _ in _words(self.stable)]
        end = 0
        for key, (heard, heard_end) in zip(keys, _words(text), strict=False):
            if key != heard:
                break
            end = heard_end
        self.stable = text[:end]
        self.previous = text

    def _merged(self, text: str) -> str | None:
        """`text` with the stable words as they were written; None if it does not begin with them."""
        keys = [key for key, _ in _words(self.stable)]
        words = list(_words(text))
        if keys != [key for key, _ in words[: len(keys)]]:
            return None
        return self.stable + text[words[len(keys) - 1][1] :] if keys else text

    def after(self, chars: int) -> Agreement:
        """The same, seen from `chars` characters further on; what lies before is settled."""
        return Agreement(stable=self.stable[chars:].lstrip(), previous=self.previous[chars:].lstrip())


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Each word as it is compared, and where its last letter or digit ends; marks alone are no words."""
    for match in re.finditer(r"\S+", text):
        marks = len(match[0])
        while marks and not match[0][marks - 1].isalnum() and match[0][marks - 1] != "%":
            marks -= 1
        key = "".join(letter for letter in match[0].casefold() if letter.isalnum() or letter == "%")
        if key:
            yield key, match.start() + marks


def said_again_at(text: str) -> int | None:
    """Where four words in a row begin that were said before, in characters; None if there are none such."""
    words = list(_words(text))
    seen = set()
    for start in range(len(words) - 3):
        four = tuple(key for key, _ in words[start : start + 4])
        if four in seen:
            return words[start - 1][1]
        seen.add(four)
    return None


def repeats(text: str) -> bool:
    """Whether words come twice as in a repetition loop: at once, as "no, no" does too, or four in a row anywhere."""
    keys = [key for key, _ in _words(text)]
    fours = [tuple(keys[start : start + 4]) for start in range(len(keys) - 3)]
    return len(set(fours)) < len(fours) or any(
        keys[start : start + size] == keys[start + size : start + 2 * size]
        for size in (1, 2, 3)
        for start in range(len(keys) - 2 * size + 1)
    )
