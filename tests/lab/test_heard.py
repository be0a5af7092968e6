"""Slots found and words wrong."""

from __future__ import annotations

import pytest

from antiphon.lab.heard import slot_is_heard, word_errors

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("slot", "transcript", "is_heard"),
    [
        ("twenty ounce", "A 20oz latte, please.", True),
        ("sixteen ounce", "sixteen ounces of coffee", True),
        (" sugar", "no Sugar!", True),
        ("triple shot", "a trip will shot", False),
        ("skim milk", "milk", False),
    ],
)
def test_a_slot_is_heard_however_numbers_are_written(slot: str, transcript: str, is_heard: bool) -> None:
    """All its words must occur."""
    assert is_heard == slot_is_heard(slot, transcript)


@pytest.mark.parametrize(
    ("reference", "transcript", "errors"),
    [
        ("one small latte", "One small latte.", (0, 3)),
        ("one small latte", "1 tall latte", (1, 3)),
        ("one small latte", "latte", (2, 3)),
        ("latte", "a large latte", (2, 1)),
        ("one small latte", "", (3, 3)),
        ("", "latte", (1, 0)),
        ("don't add sugar", "don't sugar add", (2, 3)),
    ],
)
def test_word_errors_are_the_fewest_changes(reference: str, transcript: str, errors: tuple[int, int]) -> None:
    """Put in, left out, replaced; numbers and case do not matter."""
    assert errors == word_errors(reference, transcript)
