"""Text in, its words out: what each is compared by, and where it lies.

Where a script puts spaces between words, they part them. Chinese, Japanese, Thai, Lao, Khmer, Burmese and Tibetan do
not: there each character is a word, together with the signs that are written on it. Texts may mix both.
Units: characters. Threads: pure. What it does not know: models, tokens, and which language is spoken.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCKS_WITH_SIGNS = (
    *((0x0E00, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF)),  # Thai, Lao, Tibetan, Burmese, Khmer
    *((0x3041, 0x3096), (0x3099, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)),
)
_IDEOGRAPHS = "\u3005-\u3007\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"  # which form of the character before it is meant
_STACKERS = "\u1039\u17d2"  # Burmese and Khmer: the next consonant is written below
_BEHIND = "\u0e33\u0eb3"  # Thai and Lao am: a sign, though a letter by its category
_IN_FRONT = "\u0e40-\u0e44\u0ec0-\u0ec4"  # Thai and Lao vowels that are written before their consonant


def _of_kind(kind: str) -> str:
    """The characters of those blocks whose category begins with the letter."""
    characters = (chr(code) for first, last in _BLOCKS_WITH_SIGNS for code in range(first, last + 1))
    return "".join(character for character in characters if unicodedata.category(character).startswith(kind))


_LETTERS = re.sub(f"[{_BEHIND}]", "", _of_kind("L")) + _IDEOGRAPHS
_SIGNS = f"[{_STACKERS}][{_LETTERS}]|[{_of_kind('M')}{_BEHIND}{_SELECTORS}]"
_CHARACTER = re.compile(f"[{_LETTERS}]")
_PIECE = re.compile(rf"[{_IN_FRONT}]?[{_LETTERS}](?:{_SIGNS})*|[^\s{_LETTERS}]+")
_MARKS_WITHOUT_SPACE = "。、，！？：；」』）》"


class Word(NamedTuple):
    """One word as it is compared, and its place."""

    key: str  # without letter case and punctuation
    start: int
    end: int  # behind its last letter, digit or sign
    is_character: bool  # of a script without spaces


def words(text: str) -> Iterator[Word]:
    """Every word of the text in order; marks alone are no words."""
    for match in _PIECE.finditer(text):
        piece = match[0]
        length = len(piece)
        while length and not _counts(piece[length - 1]):
            length -= 1
        key = "".join(letter for letter in piece.casefold() if _counts(letter))
        if key:
            yield Word(key, match.start(), match.start() + length, _CHARACTER.match(piece) is not None)


def is_spelled(text: str) -> bool:
    """Whether there is a letter, a digit, or a sign that belongs to one."""
    return any(letter.isalnum() or unicodedata.category(letter).startswith("M") for letter in text)


def needs_no_space(text: str) -> bool:
    """Whether the text begins in a script without spaces, so that it follows another text directly."""
    return _CHARACTER.match(text) is not None


def joined(before: str, after: str) -> str:
    """One text behind the other, with a space between them where their scripts put one."""
    if not before or not after:
        return before or after
    ends_without = before[-1] in _MARKS_WITHOUT_SPACE or _CHARACTER.match(_last_character(before)) is not None
    return before + after if ends_without or needs_no_space(after) else f"{before} {after}"


def tail(text: str, chars: int) -> str:
    """The last whole words of the text, in at most so many characters."""
    if len(text) <= chars:
        return text
    rest = text[-chars:]
    # A word at the very beginning may be half a word.
    return rest[next((word.start for word in words(rest) if word.start), len(rest)) :]


def _counts(letter: str) -> bool:
    return letter.isalnum() or letter in "%％" or unicodedata.category(letter).startswith("M")


def _last_character(text: str) -> str:
    """The last character that is no sign on another one."""
    return next((letter for letter in reversed(text) if not unicodedata.category(letter).startswith("M")), " ")
