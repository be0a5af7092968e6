"""A word with figures in, the way it is said in English out: sums of money, times, dates, telephone numbers.

A reading is tried after the other, the most particular first; what none of them knows has its figures read one
group after the other, so that nothing with a figure in it is ever left to chance. The words before and behind are
asked where figures alone do not tell a year from a count or a date from a fraction.
American English. Threads: pure. What it does not know: markup and punctuation around the word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from antiphon.think import spoken_number as say
from antiphon.think.spoken_signs import (
    BETWEEN_CUE_AND_CODE,
    CODE_CUES,
    CODES,
    FORESIGNS,
    FRACTIONS,
    MAGNITUDE_WORDS,
    MAGNITUDES,
    MONEY,
    MONTHS,
    OPERATORS,
    RATES,
    SHORT_MONTHS,
    SIGN_FRACTIONS,
    UNITS,
    VERSION_CUES,
    YEAR_CUES,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
_DASHES = "-–—"


@dataclass(frozen=True, slots=True)
class Setting:
    """What stands around a word with figures."""

    before: tuple[str, ...] = ()  # up to three words, the nearest last, small letters
    next_word: str = ""  # without the marks around it; empty if unknown


@dataclass(frozen=True, slots=True)
class _Reader:
    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], Setting], str | None]


def read_figures(word: str, setting: Setting | None = None) -> str:
    """How `word` is said, which holds an ASCII digit and no marks around it."""
    setting = setting or Setting()
    if word.endswith(("'s", "’s")) and not _read(word, setting):
        return f"{read_figures(word[:-2], setting)}{word[-2:]}"
    return _read(word, setting) or _read_mixed(word)


def _read(word: str, setting: Setting) -> str | None:
    for reader in _READERS:
        if (match := reader.pattern.fullmatch(word)) and (said := reader.read(match, setting)):
            return said
    return None


# Counts


def _read_count(match: re.Match[str], setting: Setting) -> str:
    figures = match[0]
    if figures.isdecimal():
        if _is_code(figures, setting):
            return say.in_groups(figures)
        if _is_year(figures, setting):
            return say.year(int(figures))
    if "," not in figures and "." in figures and setting.before[-1:] and setting.before[-1] in VERSION_CUES:
        return _dotted(figures)
    return say.number(figures)


def _is_code(figures: str, setting: Setting) -> bool:
    """Whether figures name something rather than count it: long, with a zero first, or behind "order"."""
    if len(figures) >= 7 or (len(figures) > 1 and figures.startswith("0")):
        return True
    before = [word for word in setting.before if word not in BETWEEN_CUE_AND_CODE] or list(setting.before[-1:])
    return len(figures) >= 3 and bool(setting.before) and (before[-1] in CODE_CUES or setting.before[-1] in CODE_CUES)


def _is_year(figures: str, setting: Setting) -> bool:
    if len(figures) != 4 or not "1100" <= figures <= "2099":
        return False
    near = setting.before[-1] if setting.before else ""
    behind_a_day = len(setting.before) > 1 and setting.before[-2] in YEAR_CUES and near[:1].isdigit()
    following = setting.next_word
    counts = following in UNITS or (len(following) > 3 and following.islower() and following.endswith("s"))
    return near in YEAR_CUES or behind_a_day or (figures >= "1900" and not counts)


def _read_ordinal(match: re.Match[str], _: Setting) -> str:
    return say.ordinal(int(match[1].replace(",", "")))


def _read_decade(match: re.Match[str], _: Setting) -> str:
    tens = int(match[1])
    words = say.year(tens) if tens > 99 else say.cardinal(tens)
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def _read_unit(match: re.Match[str], _: Setting) -> str:
    figures, hyphen, sign = match.groups()
    one, many = UNITS[sign]
    return f"{say.number(figures)} {one if figures == '1' or hyphen else many}"


def takes_magnitude(word: str, next_word: str) -> bool:
    """Whether `word` is money whose sum goes on in `next_word`: "$1.2", "million"."""
    return next_word in MAGNITUDE_WORDS and word[-1:].isdigit() and any(sign in word for sign in MONEY)


def _read_money(match: re.Match[str], setting: Setting) -> str:
    sign, figures, letters = match.groups()
    one, many, cent, cents = MONEY[sign]
    magnitude = MAGNITUDES.get(letters or "", setting.next_word if setting.next_word in MAGNITUDE_WORDS else "")
    if magnitude:
        return f"{say.number(figures)} {magnitude} {many}"
    whole, point, hundredths = figures.replace(",", "").partition(".")
    if not point or len(hundredths) != 2 or not cent:
        return f"{say.number(figures)} {one if figures == '1' else many}"
    coins = f"{say.cardinal(int(hundredths))} {cent if hundredths == '01' else cents}"
    if not int(whole or 0):
        return coins if int(hundredths) else f"zero {many}"
    notes = f"{say.number(whole)} {one if whole == '1' else many}"
    return f"{notes} and {coins}" if int(hundredths) else notes


def _read_money_behind(match: re.Match[str], setting: Setting) -> str | None:
    sign = CODES.get(match[2], match[2])
    return _read(f"{sign}{match[1]}", setting)


# Times and dates


def _read_time(match: re.Match[str], setting: Setting) -> str | None:
    hour, minute, second, half = int(match[1]), int(match[2]), match[3], match[4]
    if hour > 24:
        return None
    with_half = half or setting.next_word.lower().replace(".", "") in {"am", "pm", "oclock", "o'clock"}
    words = say.cardinal(hour)
    if second:
        words = f"{words} {say.minutes(minute)} and {say.cardinal(int(second))} seconds"
    elif minute:
        words = f"{words} {say.minutes(minute)}"
    elif not with_half:
        words = f"{words} o'clock" if 1 <= hour <= 12 else f"{words} hundred"
    return f"{words} {spoken_half(half)}" if half else words


def _read_hour(match: re.Match[str], _: Setting) -> str | None:
    return f"{say.cardinal(int(match[1]))} {spoken_half(match[2])}" if 1 <= int(match[1]) <= 12 else None


def spoken_half(half: str) -> str:
    """ "PM" -> "p.m."."""
    return f"{half[0].lower()}.m."


def _read_ratio(match: re.Match[str], _: Setting) -> str:
    return f"{say.part(match[1])} to {say.part(match[2])}"


def _read_iso_date(match: re.Match[str], _: Setting) -> str | None:
    return _date(int(match[1]), int(match[2]), int(match[3]))


def _read_slash_date(match: re.Match[str], _: Setting) -> str | None:
    """In words where only one reading makes sense; else figure by figure, for Americans put the month first."""
    first, second = int(match[1]), int(match[2])
    year = int(match[3]) if len(match[3]) == 4 else 2000 + int(match[3])
    if first == second or second > 12:
        return _date(year, first, second)
    if first > 12:
        return _date(year, second, first)
    return f"{say.cardinal(first)}, {say.cardinal(second)}, {say.year(year)}" if first and second else None


def _date(year: int, month: int, day: int) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{MONTHS[month - 1]} {say.ordinal(day)}, {say.year(year)}"


def _read_day(match: re.Match[str], setting: Setting) -> str | None:
    """A day beside its month: "Dec 2", "2 December"."""
    day = int(match[0])
    if not 1 <= day <= 31:
        return None
    if setting.before[-1:] and setting.before[-1].capitalize() in MONTHS:
        return say.ordinal(day)
    if setting.next_word in MONTHS or setting.next_word in SHORT_MONTHS:
        the = "" if setting.before[-1:] == ("the",) else "the "
        return f"{the}{say.ordinal(day)} of"
    return None


# What is composed


def read_phone(word: str) -> str:
    """ "+1-555-0100": digit by digit, with a small pause between groups."""
    said = ", ".join(say.in_groups(group) for group in re.findall("[0-9]+", word))
    return f"plus {said}" if word.startswith("+") else said


def _read_dotted(match: re.Match[str], _: Setting) -> str:
    parts = match[2].split(".")
    if not match[1] and len(parts) == 4 and all(len(one) <= 3 and int(one) < 256 for one in parts):
        return " dot ".join(map(say.digits, parts))  # a machine's address
    return f"version {_dotted(match[2])}" if match[1] else _dotted(match[2])


def _dotted(figures: str) -> str:
    return " point ".join(map(say.part, figures.split(".")))


def _read_fraction(match: re.Match[str], setting: Setting) -> str | None:
    upper, lower = float(match[1]), int(match[2])
    if (upper, lower) == (24, 7):
        return "twenty-four seven"
    is_mark = lower in {10, 100} or "." in match[1] or setting.next_word in {"star", "stars", "points"}
    if is_mark and upper <= lower:
        return f"{say.number(match[1])} out of {say.cardinal(lower)}"
    if lower not in FRACTIONS or not 0 < upper < lower:
        return f"{say.number(match[1])} over {say.number(match[2])}"
    words = f"{say.number(match[1])} {FRACTIONS[lower][upper > 1]}"
    return f"and {words}" if setting.before[-1:] and setting.before[-1].isdecimal() else words


def _read_sign_fraction(match: re.Match[str], _: Setting) -> str | None:
    fraction = _read(SIGN_FRACTIONS[match[2]], Setting())
    return f"{say.number(match[1])} and {fraction}" if match[1] else fraction


def _read_range(match: re.Match[str], setting: Setting) -> str | None:
    """ "3-5", "$5-10", "10-20%", "9am-5pm", "1990-95": both sides are read on their own."""
    left, right = match.groups()
    if left == right:
        return f"{say.number(left)} {say.number(right)}" if left.isdecimal() else None  # fifty-fifty
    inner = replace(setting, next_word="")
    money = next((sign for sign in sorted(MONEY, key=len, reverse=True) if left.startswith(sign)), "")
    if money and right.startswith(money):
        left = left[len(money) :]
    elif money and re.fullmatch(rf"{_NUMBER}[a-zA-Z]*", right):
        left, right = left[len(money) :], money + right
    if re.fullmatch(r"1[1-9]\d\d|20\d\d", left) and re.fullmatch(r"\d\d|1[1-9]\d\d|20\d\d", right):
        return f"{say.year(int(left))} to {say.year(int(right)) if len(right) == 4 else say.cardinal(int(right))}"
    said = _read(left, inner), _read(right, replace(inner, next_word=setting.next_word))
    return f"{said[0]} to {said[1]}" if all(said) else None


def _read_sum(match: re.Match[str], _: Setting) -> str | None:
    """ "2+2=4", "x=5", "1920x1080"."""
    pieces = _SUM_PIECES.findall(match[0])  # (operand, operator), the last operator empty
    if {operator for _, operator in pieces} <= {"-", "/", ""}:
        return None  # I-95, a/b
    said = []
    for operand, operator in pieces:
        figures = operand.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        said += [say.number(figures)] if figures else []
        said += [operand[len(figures) :], "by" if operator == "x" else OPERATORS.get(operator, "")]
    return " ".join(filter(None, said))


def _read_signed(match: re.Match[str], setting: Setting) -> str | None:
    said = _read(match[2], replace(setting, before=()))
    return f"{FORESIGNS[match[1]]} {said}" if said else None


def _read_more(match: re.Match[str], setting: Setting) -> str | None:
    said = _read(match[1], setting)
    return f"{said} plus" if said else None


def _read_hash(match: re.Match[str], _: Setting) -> str:
    return f"number {say.number(match[1]) if len(match[1]) < 4 else say.in_groups(match[1])}"


def _read_compound(match: re.Match[str], _: Setting) -> str:
    """ "3-year-old": the figures are a word of a longer one."""
    rest = _read_mixed(match[2]) if re.search("[0-9]", match[2]) else match[2]
    first = say.ordinal(int(match[1][:-2])) if match[1][-1].isalpha() else say.number(match[1])
    return f"{first}-{rest}"


def _read_prefixed(match: re.Match[str], setting: Setting) -> str | None:
    """ "mid-1990s", "sub-$10"."""
    said = _read(match[2], setting)
    return f"{match[1]} {said}" if said else None


def _read_compound_range(match: re.Match[str], _: Setting) -> str:
    return f"{say.number(match[1])}-to-{say.number(match[2])}-{match[3]}"


def _read_rate(match: re.Match[str], setting: Setting) -> str | None:
    """ "$20/month"."""
    said = _read(match[1], setting)
    per = UNITS.get(match[2], (RATES.get(match[2], match[2]), ""))[0]
    return f"{said} per {per}" if said else None


def _read_height(match: re.Match[str], _: Setting) -> str:
    return f"{say.number(match[1])} foot {say.number(match[2])}"


def _read_times(match: re.Match[str], _: Setting) -> str:
    return f"{say.number(match[1])} times"


def _read_mixed(word: str) -> str:
    """Letters and figures: each group of figures as a word, the marks between them as spaces."""
    groups = re.findall(r"[0-9]+|[^0-9]+", word)
    figures = [group for group in groups if group[0] in "0123456789"]
    is_code = len(figures) > 1 and len(word) > 4 and word.isalnum()
    said = []
    for group in groups:
        if group in figures:
            is_year = len(group) == 4 and "1900" <= group <= "2099"
            said.append(say.digits(group) if is_code else say.year(int(group)) if is_year else say.part(group))
        elif plain := re.sub(r"[-–—_/.:+#()\[\]{}<>=*^|;,]+", " ", group).strip():
            said.append(plain)
        elif said and set(group) & {",", ";", ":"}:
            said[-1] += ","
    return " ".join(said)


_LETTER = r"[A-Za-z](?![A-Za-z0-9])"
_SUM_OPERAND = rf"(?:{_NUMBER}(?:{_LETTER})?|{_LETTER})"
_SUM_OPERATOR = r"(?:\*\*|==|!=|<=|>=|[*×·x÷/=+^<>≤≥≠−-])"
_SUM_PIECES = re.compile(rf"({_SUM_OPERAND})({_SUM_OPERATOR}|$)", re.ASCII)
_MONEY_SIGNS = "|".join(re.escape(sign) for sign in sorted(MONEY, key=len, reverse=True))
_UNIT_SIGNS = "|".join(re.escape(sign) for sign in sorted(UNITS, key=len, reverse=True))
_HALF = r"(am|pm|a\.m\.?|p\.m\.?|AM|PM|A\.M\.?|P\.M\.?)"


def _reader(pattern: str, read: Callable[[re.Match[str], Setting], str | None]) -> _Reader:
    return _Reader(re.compile(pattern, re.ASCII), read)


_READERS = (
    _reader(r"(\d{4})[-/](\d\d)[-/](\d\d)", _read_iso_date),
    _reader(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})", _read_slash_date),
    _reader(r"(\d{1,2})/(\d{1,2})/(\d\d)", _read_slash_date),
    _reader(
        r"(?:\+?\d{1,3}[-. ])?\(?\d{3}\)?[-. ]\d{3}[-.]\d{4}|\d{3}-\d{4}|\+\d{7,15}|\d+(?:-\d+){2,}",
        lambda m, _: read_phone(m[0]),
    ),
    _reader(r"(v|V)?(\d+(?:\.\d+){2,})", _read_dotted),
    _reader(r"(v|V)(\d+(?:\.\d+)?)", _read_dotted),
    _reader(rf"(\d{{1,2}}):([0-5]\d)(?::([0-5]\d))?{_HALF}?", _read_time),
    _reader(rf"(\d{{1,2}}){_HALF}", _read_hour),
    _reader(r"(\d+):(\d+)", _read_ratio),
    _reader(r"\d{1,2}", _read_day),
    _reader(_NUMBER, _read_count),
    _reader(r"(\d{1,3}(?:,\d{3})+|\d{1,15})(?i:st|nd|rd|th)", _read_ordinal),
    _reader(r"((?:1[1-9]|20)\d0)['’]?s", _read_decade),
    _reader(r"['’]?([2-9]0)['’]?s", _read_decade),
    _reader(rf"({_MONEY_SIGNS})({_NUMBER})(k|K|m|M|bn|B|b|tn|T)?", _read_money),
    _reader(rf"({_NUMBER})({_MONEY_SIGNS}|{'|'.join(CODES)})", _read_money_behind),
    _reader(rf"({_NUMBER})(-?)({_UNIT_SIGNS})", _read_unit),
    _reader(r"(\d{1,9}(?:\.\d{1,2})?)/(\d{1,9})", _read_fraction),
    _reader(r"([^/]*\d[^/]*)/([A-Za-z]+)", _read_rate),
    _reader(r"(\d)['’′](\d{1,2})", _read_height),
    _reader(rf"(\d*)([{''.join(SIGN_FRACTIONS)}])", _read_sign_fraction),
    _reader(rf"([^{_DASHES}]+)[{_DASHES}]([^{_DASHES}]+)", _read_range),
    _reader(rf"{_SUM_OPERAND}(?:{_SUM_OPERATOR}{_SUM_OPERAND})+", _read_sum),
    _reader(rf"([-−+~≈±<>≤≥])((?:{_MONEY_SIGNS})?[\d.].*)", _read_signed),
    _reader(r"(\d[^+]*)\+", _read_more),
    _reader(r"#(\d+)", _read_hash),
    _reader(rf"({_NUMBER})[xX×]", _read_times),
    _reader(rf"({_NUMBER}|\d{{1,6}}(?:st|nd|rd|th))-([A-Za-z].*)", _read_compound),
    _reader(rf"([A-Za-z]+)-((?:{_MONEY_SIGNS})?\d.*)", _read_prefixed),
    _reader(rf"({_NUMBER})[{_DASHES}]({_NUMBER})-([A-Za-z].*)", _read_compound_range),
)
