"""The text of a reply so far in, the kind of border before its newest character out.

One character of lookahead decides: a full stop, a comma or a digit is judged when the next character that is not a
space has come. White space and closing marks belong to what stands before the border.
What it does not know: how long a chunk should be.
"""

from __future__ import annotations

import re
import unicodedata
from enum import IntEnum

_WIDE_TERMINALS = frozenset("。！？｡।॥؟۔።፧፨։།༎༏༐༑။។៕᠃")  # end a sentence without a space after them
_WIDE_PAUSES = frozenset("，、；：،؛፣፤፥፦၊᠂")
_TERMINALS = frozenset(".!?．") | _WIDE_TERMINALS
_ELLIPSES = frozenset("…⋯")
_PAUSES = frozenset(",;:")
_DASHES = frozenset("—―")
_CLOSERS = frozenset("\"')]}”’»›」』】》〉）］*_`~")  # marks of emphasis close as well as open
_MARKS = _TERMINALS | _ELLIPSES | _PAUSES | _WIDE_PAUSES | _CLOSERS  # belong to what they follow without a space
_ZERO_WIDTH_JOINER = "\u200d"


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Never the end of a sentence when another word follows.
_TITLES = _words(
    "dr mr mrs ms mx messrs prof rev hon gen col maj capt cmdr lt sgt cpl pvt gov sen rep pres st ste mt ft "
    "vs cf approx ca al viz resp incl excl esp max min avg tel ext bldg apt rd ave blvd hwy dept univ assn "
    "jan feb mar apr jun jul aug sep sept oct nov dec bzw z.b u.a d.h sr sra srta mme mlle z d h u डॉ"
)
_NUMBERED = _words("no nos nr fig figs eq eqs vol ch sec art p pp para v ver op cap")  # before a digit
_MAY_END = _words("etc inc ltd co corp jr bros llc oz lb lbs hr hrs mins secs a.m p.m ph.d m.sc b.sc")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")  # U.S, e.g, a.m: the last stop is the one judged
_WORD_SOFTENERS = "\"'([{“‘«‹「『【《〈（［*_`~#-"

# What follows these belongs to them.
_TIGHT = _words(
    "a an the this these those my your his her its our their some any no each every all both "
    "of in on at to for with from by as into about over under than between through without within per "
    "very too more most less and or but"
)
_LEANING = _words(
    "that nor so if when while because which who whose where how what just not "
    "i you he she it we they is are am was were be been do does did have has had "
    "can could will would shall should may might must let's i'm i'll i'd i've you're you'll we're we'll it's "
    "that's there's here's don't can't won't"
)


class Border(IntEnum):
    """What stands between two characters, the better place for a cut the higher."""

    NONE = 0
    LETTER = 1  # between two letters of a script without spaces
    TIGHT = 2  # between an article, a preposition, a number or an abbreviation and its word
    LEANING = 3  # between other words that belong together
    WORD = 4
    CLAUSE = 5
    SENTENCE = 6


def border_before(text: str, at: int) -> Border:
    """The border between `text[:at]` and the character at `at`, which is the last one looked at."""
    new = text[at]
    last = _last_solid(text, at)
    if new.isspace() or last < 0 or _extends(text, at):
        return Border.NONE
    spaced = last + 1 < at
    if not spaced and new in _MARKS:
        return Border.NONE
    if "\n" in text[last + 1 : at]:
        return Border.SENTENCE
    mark = last
    while mark > 0 and _is_trailing(text[mark]):
        mark -= 1
    kind = _after_mark(text, mark, at, spaced=spaced)
    if kind is not None:
        return kind
    if spaced:
        return _pull(text[: last + 1])
    return Border.LETTER if is_unspaced(new) and is_unspaced(text[last]) else Border.NONE


def is_unspaced(char: str) -> bool:
    """Whether `char` is of a script that writes no spaces between words: Han, kana, Thai, Tibetan, Burmese, Khmer."""
    code = ord(char)
    return (
        0x2E80 <= code <= 0x9FFF
        or 0x0E00 <= code <= 0x0FFF
        or 0x1000 <= code <= 0x109F
        or 0x1780 <= code <= 0x17FF
        or 0x20000 <= code <= 0x3FFFF
    )


def is_speakable(char: str) -> bool:
    """Whether there is something to say: a letter or a digit of any script."""
    return char.isalnum()


def _last_solid(text: str, at: int) -> int:
    last = at - 1
    while last >= 0 and text[last].isspace():
        last -= 1
    return last


def _extends(text: str, at: int) -> bool:
    """Whether the character belongs to the one before: an accent, a vowel sign, part of a composed emoji."""
    new = text[at]
    joined = new == _ZERO_WIDTH_JOINER or text[at - 1] == _ZERO_WIDTH_JOINER
    return joined or unicodedata.category(new).startswith("M") or "\U0001f3fb" <= new <= "\U0001f3ff"


def _is_trailing(char: str) -> bool:
    """Whether a mark may stand before `char` and still be the last of its sentence: a bracket, a quote, an emoji."""
    return char in _CLOSERS or unicodedata.category(char) in {"So", "Sk", "Cf", "Mn"}


def _after_mark(text: str, mark: int, at: int, *, spaced: bool) -> Border | None:
    """The border that the mark at `mark` makes; None if it makes none of its own."""
    char, new = text[mark], text[at]
    if char in _WIDE_TERMINALS:
        return Border.SENTENCE
    if char in _WIDE_PAUSES:
        between_digits = not spaced and text[mark - 1 : mark].isdigit() and new.isdigit()
        return None if between_digits else Border.CLAUSE
    if spaced or is_unspaced(new):
        return _after_loose_mark(text, mark, at)
    within_words = char in _DASHES and new.isalpha() and text[mark - 1 : mark].isalpha()
    return Border.CLAUSE if within_words else None


def _after_loose_mark(text: str, mark: int, at: int) -> Border | None:
    """The border behind a mark that counts only because a space follows, or a letter of a script without spaces."""
    char, new = text[mark], text[at]
    kind = None
    if char in _ELLIPSES or text[max(0, mark - 1) : mark + 1] == "..":
        kind = Border.SENTENCE if new.isupper() else Border.CLAUSE
    elif char in "!?":
        quoted = text[mark + 1 : at].strip() != ""
        kind = Border.CLAUSE if quoted and new.islower() else Border.SENTENCE
    elif char in ".．":
        kind = _after_stop(text, mark, at)
    elif char in _PAUSES or char in _DASHES or (char in "–-" and text[mark - 1 : mark].isspace()):
        kind = Border.CLAUSE
    return kind


def _after_stop(text: str, mark: int, at: int) -> Border:
    """The border behind a full stop that a space follows."""
    word, before = _word_before(text, mark)
    plain, new = word.lower(), text[at]
    if plain in _MAY_END:
        return Border.SENTENCE if new.isupper() else Border.TIGHT
    abbreviated = plain in _TITLES or (plain in _NUMBERED and new.isdigit()) or _DOTTED.fullmatch(word) is not None
    initial = len(word) == 1 and word.isupper() and new.isalpha() and not (word == "I" and _ends_lower(before))
    counted = (
        word.isdigit() and len(word) <= 3 and (not before.strip() or before.rstrip(" \t").endswith("\n"))
    )  # 1. Tea
    if abbreviated or initial or counted:
        return Border.NONE
    quoted = text[mark + 1 : at].strip() != ""
    return Border.CLAUSE if quoted and new.islower() else Border.SENTENCE  # "Done." he said


def _word_before(text: str, mark: int) -> tuple[str, str]:
    start = mark
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    return text[start:mark].lstrip(_WORD_SOFTENERS), text[:start]


def _ends_lower(text: str) -> bool:
    return text.rstrip()[-1:].islower()


def _pull(text: str) -> Border:
    """How much the last word of `text` wants the next one."""
    word = text.rsplit(maxsplit=1)[-1].strip(_WORD_SOFTENERS).lower().replace("’", "'")
    if word in _TIGHT or not any(map(str.isalpha, word)):  # a number, a lone sign
        return Border.TIGHT
    return Border.LEANING if word in _LEANING else Border.WORD
