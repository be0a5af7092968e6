"""A sentence becomes utterances that a voice can say in one go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.speak.reading import Utterance, Word, utterances

pytestmark = pytest.mark.unit

SPACE = 0


def word(ids: int, said: int | None, *, marks: int = 0, ends_clause: bool = False) -> Word:
    """A word of `ids` phonemes, the last `marks` of which are marks."""
    return Word(ids=(7,) * ids, sounding=ids - marks, said=said, ends_clause=ends_clause)


def test_a_short_sentence_is_one_utterance() -> None:
    """Three sounds, a space, two sounds and a full stop: words end after 3 and after 6 ids."""
    assert [Utterance(start=5, ids=(7, 7, 7, SPACE, 7, 7, 7), ends=((3, 9), (6, 14)))] == utterances(
        [word(3, 9), word(3, 14, marks=1)], start=5, space_id=SPACE, longest=400
    )


def test_words_without_a_place_of_their_own_have_no_end() -> None:
    (utterance,) = utterances([word(2, None), word(2, 4)], start=0, space_id=SPACE, longest=400)

    assert ((5, 4),) == utterance.ends


def test_a_long_sentence_breaks_after_its_last_clause_that_fits() -> None:
    """Room for three words: the break is after the second, which ends a clause; the rest follows it."""
    words = [word(3, 3), word(3, 7, marks=1, ends_clause=True), word(3, 11), word(3, 15), word(3, 19)]

    parts = utterances(words, start=0, space_id=SPACE, longest=11)

    assert [(0, 7), (7, 11)] == [(part.start, len(part.ids)) for part in parts]


def test_without_a_clause_it_breaks_between_words_but_not_within_a_reading() -> None:
    """The second and third word are one written word: the break goes before them."""
    words = [word(3, 3), word(3, None), word(3, 7), word(3, 11)]

    parts = utterances(words, start=0, space_id=SPACE, longest=8)

    assert [(0, 3), (3, 7), (7, 3)] == [(part.start, len(part.ids)) for part in parts]


def test_what_cannot_be_broken_stays_whole() -> None:
    assert [900] == [len(part.ids) for part in utterances([word(900, 3)], start=0, space_id=SPACE, longest=400)]


def test_marks_alone_are_no_utterance() -> None:
    assert [] == utterances([word(1, 1, marks=1)], start=0, space_id=SPACE, longest=400)
    assert [] == utterances([], start=0, space_id=SPACE, longest=400)


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans(), st.booleans()), max_size=40), st.integers(10, 60))
def test_all_words_are_said_once_and_within_the_bound(shape: list[tuple[int, bool, bool]], longest: int) -> None:
    """However a sentence is broken, its phonemes come out in order; words that fit are in utterances that fit."""
    words = [word(ids, place, ends_clause=clause) for place, (ids, _, clause) in enumerate(shape, 1)]

    parts = utterances(words, start=0, space_id=SPACE, longest=longest)

    assert sum(ids for ids, _, _ in shape) == sum(1 for part in parts for one in part.ids if one != SPACE)
    assert list(range(1, len(words) + 1)) == [said for part in parts for _, said in part.ends]
    assert all(len(part.ids) <= max(longest, *(ids for ids, _, _ in shape)) for part in parts)
