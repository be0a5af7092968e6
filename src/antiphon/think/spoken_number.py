"""Figures in, English words out: counts, ranks, years, digits one by one.

Figures are texts of ASCII digits, for a leading zero and the zeros behind a point are said. American English:
no "and" within a number. Threads: pure. What it does not know: what a figure stands for.
"""

from __future__ import annotations

_ONE_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_ONES = tuple(_ONE_WORDS.split())
_TENS = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_LARGEST = 10**15  # from here on a count says less than its digits
_IRREGULAR_RANKS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def cardinal(number: int) -> str:
    """48213 -> "forty-eight thousand two hundred thirteen"; from 10**15 on its digits."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return f"{_TENS[tens]}-{_ONES[ones]}" if ones else _TENS[tens]
    if number >= _LARGEST:
        return digits(str(number))
    size, name = next(scale for scale in _SCALES if number >= scale[0])
    many, rest = divmod(number, size)
    return f"{cardinal(many)} {name} {cardinal(rest)}" if rest else f"{cardinal(many)} {name}"


def ordinal(number: int) -> str:
    """21 -> "twenty-first"."""
    words = cardinal(number)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    last = words[cut:]
    if last in _IRREGULAR_RANKS:
        last = _IRREGULAR_RANKS[last]
    else:
        last = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return words[:cut] + last


def year(number: int) -> str:
    """1999 -> "nineteen ninety-nine", 1905 -> "nineteen oh five", 2009 -> "two thousand nine"."""
    century, rest = divmod(number, 100)
    if not 1000 <= number <= 9999 or (number % 1000 < 10):
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {minutes(rest)}"


def minutes(number: int) -> str:
    """5 -> "oh five", 30 -> "thirty": two figures behind an hour or a century."""
    return f"oh {_ONES[number]}" if number < 10 else cardinal(number)


def digits(figures: str) -> str:
    """ "4821" -> "four eight two one"; whatever is no digit is left out."""
    return " ".join(_ONES[int(figure)] for figure in figures if figure in "0123456789")


def in_groups(figures: str) -> str:
    """ "48213077" -> "four eight two, one three, zero seven seven": digits with a small pause every few.

    Groups of three; four that are left over stay together, or become two and two before another group.
    """
    groups = []
    while len(figures) > 4:
        size = 3 if len(figures) != 5 else 2
        groups.append(figures[:size])
        figures = figures[size:]
    return ", ".join(map(digits, [*groups, figures]))


def number(figures: str) -> str:
    """ "1,234" -> a count, "3.05" -> "three point zero five", "007" -> digits, ".5" -> "point five"."""
    whole, point, decimals = figures.replace(",", "").partition(".")
    said = _whole(whole) if whole else ""
    return f"{said} point {digits(decimals)}".lstrip() if point else said


def _whole(whole: str) -> str:
    if len(whole) > 1 and whole.startswith("0"):
        return digits(whole)
    return cardinal(int(whole)) if len(whole) <= 15 else in_groups(whole)


def part(figures: str) -> str:
    """ "11" -> "eleven", "04" -> "zero four": one part of a version or a code, too long a one by its digits."""
    return digits(figures) if figures.startswith("0") or len(figures) > 3 else cardinal(int(figures))
