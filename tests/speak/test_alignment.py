"""What a voice makes of a text is traced back to how the text was written."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.speak.alignment import chars_said, rising

pytestmark = pytest.mark.unit


def said(written: str, spoken: list[str]) -> list[str | None]:
    return [None if chars is None else written[:chars] for chars in chars_said(written, spoken)]


def test_words_read_as_written_end_where_they_are_written() -> None:
    assert ["Okay,", "Okay, a", "Okay, a mug."] == said("Okay, a mug.", ["Okay,", "a", "mug."])


def test_an_expansion_keeps_its_written_span() -> None:
    """Half past seven is not said before its last word is; what follows is traced again."""
    text = "See you at 7:30pm, Dr. Smith."
    spoken = ["See", "you", "at", "seven", "thirty", "P.M.,", "Doctor", "Smith."]

    assert ["See", "See you", "See you at", None, None, None, text[:22], text] == said(text, spoken)


def test_one_expansion_among_words() -> None:
    assert ["It", "It is", None, None, None, "It is $5.20", "It is $5.20 now"] == said(
        "It is $5.20 now", ["It", "is", "five", "dollars", "and", "twenty", "now"]
    )


def test_what_is_not_spoken_is_said_with_the_next_word() -> None:
    """A picture between two words has no moment of its own."""
    assert ["Hello", "Hello \U0001f642 there"] == said("Hello \U0001f642 there", ["Hello", "there"])


def test_spelling_and_quotes_do_not_matter() -> None:
    assert ["\u201cDon\u2019t", "\u201cDon\u2019t GO!\u201d"] == said("\u201cDon\u2019t GO!\u201d", ["don't", "go"])


def test_repeated_words_stay_in_order() -> None:
    assert ["no", "no no", "no no no"] == said("no no no", ["no", "no", "no"])


def test_words_from_nowhere_have_no_place() -> None:
    assert [None, "a"] == said("a", ["surely", "a"])
    assert [None] == said("", ["surely"])
    assert [] == said("a b", [])


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=8), max_size=12))
def test_places_rise_and_lie_in_the_text(written: str, spoken: list[str]) -> None:
    """Whatever a voice reads out, places are within the text and never go back."""
    places = [chars for chars in chars_said(written, spoken) if chars is not None]

    assert places == sorted(set(places))
    assert all(0 < chars <= len(written) for chars in places)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50))))
def test_marks_rise_in_both_numbers(marks: list[tuple[int, int]]) -> None:
    kept = rising(sorted(marks))

    assert set(kept) <= set(marks)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(kept))


def test_of_two_marks_at_one_place_the_later_text_counts() -> None:
    assert ((5, 3), (9, 4)) == rising([(5, 2), (5, 3), (9, 3), (9, 4)])
