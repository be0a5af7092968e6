"""The numbers that a caller says."""

from __future__ import annotations

import pytest

from antiphon.think.numbers_heard import numbers_heard

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Set it to twenty-one degrees.", ("21",)),
        ("21.5 or 007", ("21.5", "7")),
        ("two hundred and five", ("205",)),
        ("one hundred thousand", ("100000",)),
        ("ten minutes, then five, then ten", ("10", "5")),
        ("four twenty", ("4", "20")),
        ("a dozen rolls and a double espresso", ("12", "2")),
        ("a tea for me", ()),
        ("", ()),
    ],
)
def test_numbers_are_found(text, numbers):
    """Digits and words, each once, in the order of speaking."""
    assert numbers == numbers_heard(text)
