"""What counts as a sentence's end."""

from __future__ import annotations

import pytest

from antiphon.think.sentence_end import end_mass, ends_sentence, without_final_mark

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("token", [".", "!", "?", " .", '."', ".)", "?!", "。", "।", "؟", "", "\n", "\n\n", " \n"])
def test_final_marks_new_lines_and_the_messages_end_count(token):
    """With each of them the sentence is over."""
    assert ends_sentence(token)


@pytest.mark.parametrize("token", [" with", ",", "...", "…", ".com", " ", "-", "'", '"', "5"])
def test_all_else_goes_on(token):
    """An ellipsis trails off, a lone quote may open."""
    assert not ends_sentence(token)


def test_the_mass_is_the_sum_of_the_ends():
    """Probabilities of ends add up, and never to more than one."""
    assert pytest.approx(0.7) == end_mass([(".", 0.5), (" and", 0.3), ("?", 0.2)])
    assert end_mass([(".", 0.9), ("?", 0.2)]) == 1.0
    assert end_mass([]) == 0.0


@pytest.mark.parametrize(
    "text",
    ["A latte.", "A latte?", "A latte...", "A latte… ", 'A latte."', "A latte", "A latte,", "A latte -", 'A latte?",'],
)
def test_the_recognizers_mark_is_left_out(text):
    """The model is asked behind the last word."""
    assert without_final_mark(text) == "A latte"
