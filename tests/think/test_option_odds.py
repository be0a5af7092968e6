"""How likely each of a few texts is, with as few questions as can be."""

from __future__ import annotations

import pytest

from antiphon.think.option_odds import option_odds

pytestmark = pytest.mark.unit


def ask(options, answers):
    """The odds, and behind which tokens was asked."""
    asking, asked = option_odds(options), []
    try:
        begun = next(asking)
        while True:
            asked.append(begun)
            begun = asking.send(answers[begun])
    except StopIteration as done:
        return done.value, asked


def test_texts_that_begin_differently_need_one_question():
    """What follows the first token is certain; a token that was not told is no likelier than the last that was."""
    assert ([-1.0, -2.0, -9.0], [()]) == ask([(1, 7), (2,), (3, 8)], {(): {1: -1.0, 2: -2.0, 5: -9.0}})


def test_texts_that_begin_alike_are_asked_where_they_part():
    """The shared beginning counts for each, and a certain middle is not asked."""
    answers = {(): {1: -1.0, 2: -3.0}, (1, 4): {5: -0.5, 6: -2.0}}

    assert ([-1.5, -3.0, -3.0], [(), (1, 4)]) == ask([(1, 4, 5), (1, 4, 6, 7), (2,)], answers)


def test_a_text_that_another_goes_on_from_ends_where_that_goes_on():
    """Its end is none of the told tokens."""
    assert ([-4.0, -1.0], [(1,)]) == ask([(1,), (1, 2)], {(1,): {2: -1.0, 3: -4.0}})


@pytest.mark.parametrize("options", [[], [(1, 2)]])
def test_without_a_choice_nothing_is_asked(options):
    """One text is certain."""
    assert ([0.0] * len(options), []) == ask(options, {})
