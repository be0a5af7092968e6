"""Hypotheses of growing sound in, the words that will not be taken back out.

A word is stable once two hypotheses in a row agree on it and on all words before it, letter case and punctuation
aside, and the newer one has gone on beyond it: at the edge of the sound a word may still be half a word. While the
caller speaks, a hypothesis that contradicts stable words is passed over; after a pause it corrects them, for it has
heard more, and is what will be answered.
In scripts without spaces a word is one character. The last one alone is the edge of the sound: in 15 clips of synthetic
Chinese, holding back two or three made no fewer be taken back. For repetitions two of them count as one word.
Units: characters. Threads: pure; one caller's.
What it does not know: models, tokens, and why a hypothesis is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.hear.words import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.hear.words import Word

_PHRASE_WORDS = 4  # said before: a repetition
_LONGEST_ECHO_WORDS = 3  # said twice at once: one as well
_CHARACTERS_A_WORD = 2
_FEWEST_WORDS_STUCK = 6
_TIMES_STUCK = 3


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
        newer = list(words(text))
        end = 0
        for earlier, word in zip(words(self.previous), newer[:-1], strict=False):
            if earlier.key != word.key:
                break
            end = word.end
        if end > len(self.stable):
            self.stable = text[:end]
        self.previous = text

    def conclude(self, text: str) -> None:
        """Take the hypothesis after a pause, whatever was stable before; what it confirms stays so."""
        end = 0
        for stable, word in zip(words(self.stable), words(text), strict=False):
            if stable.key != word.key:
                break
            end = word.end
        self.stable = text[:end]
        self.previous = text

    def _merged(self, text: str) -> str | None:
        """`text` with the stable words as they were written; None if it does not begin with them."""
        keys = [word.key for word in words(self.stable)]
        found = list(words(text))
        if keys != [word.key for word in found[: len(keys)]]:
            return None
        return self.stable + text[found[len(keys) - 1].end :] if keys else text

    def after(self, chars: int) -> Agreement:
        """The same, seen from `chars` characters further on; what lies before is settled."""
        return Agreement(stable=self.stable[chars:].lstrip(), previous=self.previous[chars:].lstrip())


def said_again_at(text: str) -> int | None:
    """Where a phrase of four words begins that was said before, in characters; None if there is none such."""
    found = list(words(text))
    size = _PHRASE_WORDS * _scale(found)
    seen = set()
    for start in range(len(found) - size + 1):
        phrase = tuple(word.key for word in found[start : start + size])
        if phrase in seen:
            return found[start - 1].end
        seen.add(phrase)
    return None


def repeats(text: str) -> bool:
    """Whether words come twice as in a repetition loop: at once, as "no, no" does too, or four in a row anywhere.

    A single character that comes twice is none: many words are written so.
    """
    found = list(words(text))
    scale = _scale(found)
    keys = [word.key for word in found]
    return said_again_at(text) is not None or any(
        keys[start : start + size] == keys[start + size : start + 2 * size]
        for size in range(scale, _LONGEST_ECHO_WORDS * scale + 1)
        for start in range(len(keys) - 2 * size + 1)
    )


def is_monotonous(text: str) -> bool:
    """Whether at least six words are the same few, each said three times and more: a decoder that got stuck."""
    keys = [word.key for word in words(text)]
    return len(keys) >= _FEWEST_WORDS_STUCK and len(keys) >= _TIMES_STUCK * len(set(keys))


def _scale(found: Sequence[Word]) -> int:
    """How many of these words make up what a word is elsewhere."""
    return _CHARACTERS_A_WORD if 2 * sum(word.is_character for word in found) > len(found) else 1
