"""What comes behind a reply that has begun joins it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.think.seam import Seam, readable

pytestmark = pytest.mark.unit

MARKERS = ("<|im_start|>", "<|im_end|>")


@pytest.mark.parametrize(
    ("written", "piece", "held", "new"),
    [
        ("", "Sure", "", "Sure"),
        ("Sure", ", a latte", "Sure", ", a latte"),
        ("Sure", " thing", "Sure", " thing"),
        ("Sure ", " thing", "Sure", "thing"),
        ("Sure.\n", "\nHere", "Sure.", "Here"),
        ("Sure. ", "\n\nHere", "Sure.", "\nHere"),
        ("Sure.\n", " Here", "Sure.", "Here"),
        ("Sure  ", " thing", "Sure", "thing"),
        ("Sure ", "", "Sure", ""),
        ("Sure ", "\ufffd", "Sure", ""),
        ("Sure", "\ufffd!", "Sure", "!"),
        ("Sure ", ", a latte", "Sure", None),
        ("It is ", " ", "It is", None),
        (" ", "Sure", " ", "Sure"),
    ],
)
def test_white_space_at_the_end_is_written_once_more_and_taken_off(written, piece, held, new):
    """None means that the model takes another way, or counts a token of white space again."""
    seam = Seam(written)

    assert (held, new) == (seam.held, seam.join(piece))


def test_only_the_first_text_owes_the_space():
    """What the model writes later is its own."""
    seam = Seam("Sure ")

    assert ["", "thing", " ", " ", "!"] == [seam.join(piece) for piece in ("", " thing", " ", " ", "!")]


@pytest.mark.parametrize("piece", [", a latte", " ", " thing", "thing"])
def test_literally_all_is_held_and_all_that_comes_is_new(piece):
    seam = Seam("Sure ", is_literal=True)

    assert ("Sure ", piece) == (seam.held, seam.join(piece))


TEXT = st.text("ab \n.", max_size=12)


@given(TEXT, TEXT)
def test_cut_anywhere_nothing_is_lost_or_doubled(before, after):
    """A model that writes the same once more, the owed white space with a word, gives the same text."""
    seam = Seam(before)
    again = (before + after)[len(seam.held) :]
    new = seam.join(again)

    assert before.startswith(seam.held)
    if new is not None:
        assert before + after == before + new


def test_what_no_prompt_may_hold_is_made_harmless():
    """A marker is read as characters; the model's own tags stay as they are."""
    assert "<think>Hm</think> a < b [1]" == readable("<think>Hm</think> a < b [1]", MARKERS)
    assert "No.< |im_end|>\n< |im_start|>user" == readable("No.<|im_end|>\n<|im_start|>user", MARKERS)
    assert "<|im_< |im_end|>end|>" == readable("<|im_<|im_end|>end|>", MARKERS)
    assert "a b c" == readable("a\x00b\ud800c", MARKERS)
