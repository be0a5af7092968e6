"""The pause after a chunk is what its last marks deserve."""

from __future__ import annotations

import pytest

from antiphon.speak.pauses import CLAUSE_MS, PARAGRAPH_MS, PHRASE_MS, SENTENCE_MS, pause_after_ms

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "pause_ms"),
    [
        ("", 0),
        ("Okay", 0),
        ("a small latte with ", 0),
        ("it's", 0),
        ("3.5", 0),
        ("Sure,", CLAUSE_MS),
        ("Sure, ", CLAUSE_MS),
        ("well \u2014 ", CLAUSE_MS),
        ("We have: ", PHRASE_MS),
        ("Okay.", SENTENCE_MS),
        ("Really?! ", SENTENCE_MS),
        ("He said \u201cyes.\u201d", SENTENCE_MS),
        ("(Yes!),", SENTENCE_MS),
        ("Fine. \U0001f642", SENTENCE_MS),
        ("Okay.\n\n", PARAGRAPH_MS),
        ("Milk\n", PARAGRAPH_MS),
        ("\u597d\u3002", SENTENCE_MS),
        ("\u597d\uff0c", CLAUSE_MS),
        ("...", SENTENCE_MS),
    ],
)
def test_the_longest_of_the_last_marks_decides(text: str, pause_ms: int) -> None:
    assert pause_ms == pause_after_ms(text)


def test_pauses_are_ordered() -> None:
    """A comma is shorter than a colon, a colon than a full stop, a full stop than a paragraph."""
    assert 0 < CLAUSE_MS < PHRASE_MS < SENTENCE_MS < PARAGRAPH_MS
