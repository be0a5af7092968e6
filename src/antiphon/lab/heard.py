"""What a caller said and what the server heard of it -> slots found, and words wrong.

A slot counts as heard when all its words occur in the transcript, however numbers and units are written. Word errors
are the fewest words to put in, leave out and replace (Levenshtein), after the same spelling of both sides.
Pure. Its words for numbers and units are English; other languages are compared as they are written.
"""

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
    text = re.sub(r"(\d)([^\W\d_])", r"\1 \2", text.lower())
    found = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text)
    return [UNITS.get(word, NUMBERS.get(word, word)) for word in found]


def slot_is_heard(slot: str, transcript: str) -> bool:
    """Whether every word of the slot's value occurs in the transcript."""
    return set(words(slot)) <= set(words(transcript))


def word_errors(reference: str, transcript: str) -> tuple[int, int]:
    """How many words are wrong, and how many the reference has."""
    said, heard = words(reference), words(transcript)
    errors = list(range(len(heard) + 1))  # between the words of `said` so far and each beginning of `heard`
    for row, word in enumerate(said, 1):
        diagonal, errors[0] = errors[0], row
        for column, other in enumerate(heard, 1):
            cost = min(errors[column] + 1, errors[column - 1] + 1, diagonal + (word != other))
            diagonal, errors[column] = errors[column], cost
    return errors[-1], len(said)
