"""A word of a reply in, with the words around it; the way it is said out.

Threads: pure; a reader remembers the last few words of one reply. What it does not know: streaming, and markup
other than the marks within words.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

from antiphon.think.addresses import read_address
from antiphon.think.figures import Setting, read_figures, read_phone, spoken_half, takes_magnitude
from antiphon.think.spoken_signs import OPERATORS, SHORT_MONTHS, SIGN_FRACTIONS, UNITS

_ZERO_WIDTH_JOINER = "\u200d"
_EMOJI = re.compile(
    r"[0-9#*]\ufe0f?\u20e3"
    r"|[\U0001f000-\U0001faff\u2600-\u27bf\u2300-\u23ff\u25a0-\u25ff\u2b05-\u2b55\u3030\u303d]"
    r"[\ufe0e\ufe0f\u200d\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
    r"|[\ufe0e\ufe0f]"
)
_UNSAYABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffd\ufeff]")  # no voice has a sound for these
_EMPHASIS = re.compile(r"(?<![0-9A-Za-z])\*+|\*+(?![0-9A-Za-z])|`+|~~+|(?<![^\W_])_+|_+(?![^\W_])")
_STARS = re.compile(r"(?<=[^\W\d_])\*+(?=[^\W\d_]{2})|(?<=[^\W\d_]{2})\*+(?=[^\W\d_])")
_SUM = re.compile(r"[$€£¥]?([0-9][0-9,]*(?:\.[0-9]+)?)%?")
_FOR_FIGURES = frozenset("-–/xX")  # between letters they are a dash or a pause
_RULE = re.compile(r"[=*_~#|^<>\\/+-]{3,}")
_LEADS = "\"'([{“‘«‹¿¡<"
_SOFTENERS = "\"'([{“‘«‹¿¡*_`~"
_TRAILS = ".,;:!?)]}\"'”’»›…>"
_FIGURE = re.compile(r"[0-9]")
_LETTER_SUM = re.compile(r"[A-Za-z](?:[*×÷=+^<>][A-Za-z0-9])+")
_BETWEEN_LETTERS = re.compile(
    r"(?<=[^\W\d_]{2})[/|](?=[^\W\d_])|(?<=[^\W\d_])[/|](?=[^\W\d_]{2})|(?<=[^\W_])_+(?=[^\W_])"
)
_AND = re.compile(r"(?<=[a-z])&(?=[a-z])")  # Q&A and AT&T are names, which voices know how to read
_OPERAND = re.compile(r"[-+−~$€£¥]*\.?[0-9].*|[A-Za-z]")
_CLOCK = re.compile(r"(?:.*[-–])?(?:0?[1-9]|1[0-2])(?::[0-5][0-9])?")
_AREA_CODE = re.compile(r"\+?[0-9]{1,3}")
_HALVES = frozenset(["am", "pm", "a.m", "p.m", "AM", "PM", "A.M", "P.M"])
_MEMORY = 3  # words
_LAST_LATIN = "\u024f"

# How these are said; the stop behind them is theirs.
_ABBREVIATIONS = {
    "e.g": "for example",
    "i.e": "that is",
    "vs": "versus",
    "approx": "approximately",
    "w/": "with",
    "w/o": "without",
    "etc": "et cetera",
}
# And these, where a figure follows.
_BEFORE_FIGURES = {"no": "number", "nos": "numbers", "vol": "volume", "ch": "chapter", "fig": "figure", "pp": "pages"}
_SIGNS = {"&": "and", "@": "at", "%": "percent", "→": "to", "⇒": "to", "->": "to", "=>": "to", "#": "number"}
_SHARPS = {"c#": "C sharp", "f#": "F sharp", "c++": "C plus plus", "g++": "G plus plus"}
_ADDRESS_OPENERS = ("http", "https", "ftp", "www", "mailto", "ws", "wss")
_SPECIAL = frozenset(
    [*_ABBREVIATIONS, *_BEFORE_FIGURES, *_SHARPS, *(month.lower() for month in SHORT_MONTHS), *_ADDRESS_OPENERS]
)
_SPECIAL_PREFIXES = frozenset(word[:end] for word in _SPECIAL for end in range(1, len(word) + 1))
_UNIT_PREFIXES = frozenset(
    word.lower()[:end] for word in [*UNITS, *_HALVES, "million"] for end in range(1, len(word) + 1)
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a word is said."""

    text: str
    takes_next: bool = False  # the next word is part of it
    joins: bool = False  # to the word before, without the white space


def extends(text: str, char: str) -> bool:
    """Whether `char` belongs to the last one of `text`: an accent, a vowel sign, part of a composed emoji."""
    joined = char == _ZERO_WIDTH_JOINER or text[-1] == _ZERO_WIDTH_JOINER
    return joined or unicodedata.category(char).startswith("M") or "\U0001f3fb" <= char <= "\U0001f3ff" or char in "ำຳ"


def without_marks(text: str) -> str:
    """`text` without emoji, marks of emphasis and what no voice has a sound for."""
    if text.isalnum():
        return text
    if "&" in text and ";" in text:
        text = html.unescape(text)
    return _STARS.sub("", _EMPHASIS.sub("", _EMOJI.sub("", _UNSAYABLE.sub("", text))))


def _split(text: str) -> tuple[str, str, str]:
    """The marks before a word, the word, the marks behind it."""
    core = text.lstrip(_LEADS)
    lead = text[: len(text) - len(core)]
    if lead.endswith("<") and _OPERAND.match(core) and core[0] in "0123456789$€£¥":
        lead, core = lead[:-1], f"<{core}"
    word = core.rstrip(_TRAILS)
    return lead, word, core[len(word) :]


class WordReader:
    """For one reply in one language."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._reads_figures = language == "en"
        self._before: tuple[str, ...] = ()  # the last few words, small letters, the nearest last
        self._is_foreign = False  # the latest word of letters is of another script
        self._in_phone = False

    def skip(self) -> None:
        """A run went by that is no word."""
        self._before, self._in_phone = (), False

    def plain_letters(self, text: str) -> str | None:
        """The letters of `text`, the beginning of a word, if they are all there is but for softening marks."""
        letters = text.lstrip(_SOFTENERS)
        return letters if not letters or (letters.isalpha() and max(letters) <= _LAST_LATIN) else None

    def may_be_special(self, letters: str) -> bool:
        """Whether a word that begins so may be read in a way of its own."""
        low = letters.lower()
        return low in _SPECIAL_PREFIXES or (self._follows_figure() and low in _UNIT_PREFIXES)

    def needs_next(self, text: str) -> bool:
        """Whether the word behind `text` may change how it is said."""
        if not self._reads_figures:
            return text.strip("`_~") == "*"
        core = _split(without_marks(text))[1]
        return (
            text.strip("`_~") in {*OPERATORS, "–"}
            or _FIGURE.search(core) is not None
            or core in SHORT_MONTHS
            or core.lower() in {"etc", "#", "/", *_BEFORE_FIGURES}
            or ((core in UNITS or core in {"x", "X"}) and self._follows_figure())
        )

    def read(self, text: str, following: str, *, is_glued: bool = False) -> Reading:
        """How `text` is said, with the word `following` behind it; that one may be empty."""
        plain = without_marks(text)
        lead, core, trail = _split(plain)
        if _RULE.fullmatch(core):
            return Reading(trail, joins=True)
        next_core = _split(without_marks(following))[1] if trail in {"", "."} else ""
        is_left = is_glued or (self._is_foreign and _FIGURE.search(core) is not None)
        reading = None if is_left else self._read_sign(plain or text.strip("`_~"), next_core)
        if reading is None and core and not is_left:
            reading = self._read_core(lead, core, trail, next_core, following)
        if reading is None:
            joins = plain != text and not lead and not core
            reading = Reading(self._plain(lead, core, trail), joins=joins)
        self._remember(core if not reading.takes_next else next_core)
        return reading

    def _remember(self, core: str) -> None:
        if not core:
            return
        self._before = (*self._before, SHORT_MONTHS.get(core, core).lower())[-_MEMORY:]
        if letters := [char for char in core if char.isalpha()]:
            self._is_foreign = letters[0] > _LAST_LATIN and not "\u1e00" <= letters[0] <= "\u1eff"

    def _nearest(self) -> str:
        return self._before[-1] if self._before else ""

    def _follows_figure(self) -> bool:
        return bool(_FIGURE.search(self._nearest()))

    # Kinds of words, in the order in which they are tried

    def _read_sign(self, sign: str, next_core: str) -> Reading | None:
        """A sign that stands alone. Between figures it keeps its meaning; elsewhere some are a pause, or nothing."""
        if between := self._name_between(sign, next_core):
            return Reading(between)
        if not self._reads_figures or sign in {"-", "−"}:
            return None  # a dash
        if sign in {"/", ">"}:
            return Reading(",", joins=True)
        if sign in {"*", "**", "^", "·"} or (sign == "#" and not next_core[:1].isdecimal()):
            return Reading("", joins=True)
        words = OPERATORS.get(sign) or _SIGNS.get(sign)
        return Reading(words) if words and not (sign in UNITS and self._follows_figure()) else None

    def _name_between(self, sign: str, next_core: str) -> str | None:
        """What a sign between two figures or single letters means; some mean it between figures alone."""
        figures = self._follows_figure() and _FIGURE.search(next_core) is not None
        if not (_OPERAND.fullmatch(self._nearest()) and _OPERAND.fullmatch(next_core)):
            return None
        if not self._reads_figures:
            return sign if sign == "*" else None
        if sign in _FOR_FIGURES and not figures:
            return None
        if sign in {"-", "–"}:
            return "minus" if self._falls_to(next_core) else "to"
        return "by" if sign in {"x", "X"} else OPERATORS.get(sign)

    def _falls_to(self, next_core: str) -> bool:
        """Whether the figure behind is smaller than the one before: 10 - 3 is no range."""
        sums = _SUM.fullmatch(self._nearest()), _SUM.fullmatch(next_core)
        left, right = (float(sum_[1].replace(",", "")) if sum_ else 0.0 for sum_ in sums)
        return all(sums) and left > right

    def _read_core(self, lead: str, core: str, trail: str, next_core: str, following: str) -> Reading | None:
        if address := read_address(core, self._language):
            return Reading(f"{lead}{address}{trail}")
        if not self._reads_figures:
            return None
        if phone := self._read_phone(core, trail, following):
            return Reading(phone)
        if (short := self._read_short(core, trail, next_core)) is not None:
            return Reading(lead + short)
        if _FIGURE.search(core) or core[-1] in SIGN_FRACTIONS or _LETTER_SUM.fullmatch(core):
            takes = not trail and takes_magnitude(core, next_core)
            said = read_figures(core, Setting(self._before, next_core if not trail else ""))
            end = _split(without_marks(following))[2] if takes else trail
            return Reading(lead + _closed(said, end), takes_next=takes)
        return None

    def _read_phone(self, core: str, trail: str, following: str) -> str | None:
        """Groups of a telephone number that spaces part: "(555) 123-4567", "+1 555 123 4567"."""
        groups = re.sub(r"[-.]", "", core.lstrip("+"))
        behind = without_marks(following).strip("(),.;:!?")
        goes_on = trail in {"", ")"} and re.fullmatch(r"\d{2,4}(?:[-.)]\d{2,4})*", behind, re.ASCII) is not None
        opens = goes_on and (
            core.startswith("+") or (len(groups) == 3 and re.fullmatch(r"\d{3}[-.]\d{4}|\d{3,4}", behind, re.ASCII))
        )
        if not _AREA_CODE.fullmatch(core) and not self._in_phone:
            return None
        if not (opens or self._in_phone) or not groups.isdecimal() or not groups.isascii():
            self._in_phone = False
            return None
        self._in_phone = goes_on
        return read_phone(core) + ("," if goes_on else trail.lstrip(")"))

    def _read_short(self, core: str, trail: str, next_core: str) -> str | None:
        """Units, halves of the day, months and abbreviations."""
        low, nearest = core.lower(), self._nearest()
        is_over = not next_core or not next_core[0].islower()
        meets_figure = next_core[:1].isdecimal()
        stop = trail.removeprefix(".")
        if core in _HALVES and _CLOCK.fullmatch(nearest):
            return _closed(spoken_half(core), trail)
        if low in _SHARPS:
            said, end = _SHARPS[low], trail
        elif core in UNITS and nearest[-1:].isdigit():
            is_one = nearest == "1" or "/" in nearest or self._before[-2:-1] in {("a",), ("an",)}
            said, end = UNITS[core][0 if is_one else 1], trail if is_over else stop
        elif core in SHORT_MONTHS and (meets_figure or nearest[:1].isdecimal()):
            said, end = SHORT_MONTHS[core], stop if meets_figure else trail
        elif low in _BEFORE_FIGURES and meets_figure and trail == ".":
            said, end = _BEFORE_FIGURES[low], stop
        elif low in _ABBREVIATIONS:
            said, end = _ABBREVIATIONS[low], trail if low == "etc" and is_over else stop
        else:
            return None
        return said + end

    def _plain(self, lead: str, core: str, trail: str) -> str:
        """A word that is read as it stands, but for the marks that part its words."""
        lead, trail = lead.replace("<", ""), trail.replace(">", "")
        word = _BETWEEN_LETTERS.sub(" ", core)
        if self._reads_figures:
            word = _AND.sub(" and ", word).replace("²", " squared").replace("³", " cubed")
            if word[:1] == "@" and len(word) > 1:
                word = f"at {word[1:]}"
        return lead + (word[1:] if word[:1] == "#" and word[1:2].isalpha() else word) + trail


def _closed(said: str, trail: str) -> str:
    """`said` with the marks behind it; the stop of "p.m." is not said twice."""
    return said + (trail.removeprefix(".") if said.endswith(".m.") else trail)
