"""A caller's words in, the numbers among them out: "twenty one", "21", "2.5", "two". English. Threads: pure."""

from __future__ import annotations

import re

# fmt: off
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on
_SMALL = {word: value for value, word in enumerate(_ONES)} | {
    word: 10 * value for value, word in enumerate(_TENS, start=2)
}
_LARGE = {"hundred": 100, "thousand": 1000}
_FIXED = {"dozen": 12, "couple": 2, "double": 2, "twice": 2, "once": 1}
_WORD = re.compile(r"\d+(?:\.\d+)?|[a-z]+")


def numbers_heard(text: str) -> tuple[str, ...]:
    """Each number in `text` as JSON writes it, once, in the order of speaking.

    "a" and "an" are no numbers: too many of them count nothing.
    """
    found: list[str] = []
    total, last = 0, None  # of the number being read; `last` is the value of its latest word
    for word in [*_WORD.findall(text.lower()), ""]:
        value = _SMALL.get(word)
        joins = value is not None and last is not None and (last in _LARGE.values() or (last >= 20 and value < 10))
        if last is not None and word in _LARGE:
            total, last = (total or 1) * _LARGE[word], _LARGE[word]
            continue
        if joins and value is not None:
            total, last = total + value, value
            continue
        if last is not None and word != "and":
            found.append(str(total))
            total, last = 0, None
        if value is not None:
            total, last = value, value
        elif word in _FIXED:
            found.append(str(_FIXED[word]))
        elif word[:1].isdigit():
            found.append(word.lstrip("0") or "0" if "." not in word else word)
    return tuple(dict.fromkeys(found))
