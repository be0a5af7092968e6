"""Did it hear the order? A slot counts as heard when its words occur in the transcript, however numbers are written."""

from __future__ import annotations

import re

NUMBERS = {
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "twelve": "12",
    "sixteen": "16",
    "twenty": "20",
}
UNITS = {"oz": "ounce", "ounces": "ounce"}


def words(text: str) -> list[str]:
    """Lower-case words, numbers as digits, units in one spelling."""
    text = re.sub(r"(\d)([a-z])", r"\1 \2", text.lower())
    found = re.findall(r"[a-z0-9]+", text)
    return [UNITS.get(word, NUMBERS.get(word, word)) for word in found]


def slot_is_heard(slot: str, transcript: str) -> bool:
    """Whether every word of the slot's value occurs in the transcript."""
    heard = set(words(transcript))
    return all(word in heard for word in words(slot))
