"""Positions in what is said and in what was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.session.reply_text import ReplyText
from antiphon.think.spoken_form import Spoken, SpokenForm

pytestmark = pytest.mark.unit


def text_of(*runs: tuple[str, str]) -> ReplyText:
    """(written, said) run by run."""
    text = ReplyText()
    end = 0
    for written, said in runs:
        text.write(written)
        end += len(written)
        text.say([Spoken(said, end)])
    return text


def test_literal_text_is_found_letter_by_letter() -> None:
    """What is said as it was written."""
    text = text_of(("Hello ", "Hello "), ("there.", "there."))
    assert [text.written_at(said) for said in (0, 3, 6, 9, 12, 99)] == [0, 3, 6, 9, 12, 12]


def test_a_figure_counts_once_all_of_it_was_said() -> None:
    """ "$4" is two characters that take eleven to say."""
    text = text_of(("It is ", "It is "), ("$4", "four dollars"), (".", "."))
    assert [text.written_at(said) for said in (6, 10, 17, 18, 19)] == [6, 6, 6, 8, 9]
    assert text.between(0, 18) == "It is $4"


def test_what_is_left_out_counts_with_what_follows_it() -> None:
    """Markup, or a block of code, has been heard only when something behind it has, or all of the reply."""
    text = text_of(("See: ", "See: "), ("```code```", ""), ("Done.", "Done."), ("**", ""))
    assert [text.written_at(said) for said in (5, 6, 9, 10)] == [5, 16, 19, 22]


def test_passes_are_told_apart() -> None:
    """A preamble belongs to the pass before it; the answer is one of its own, and a space is between."""
    text = text_of(("Well.", "Well."))
    text.begin(is_pass=False)
    text.write("One moment.")
    text.say([Spoken("One moment.", 11)])
    text.begin(is_pass=True)
    text.write("Here.")
    text.say([Spoken("Here.", 5)])
    assert text.written == "Well. One moment. Here."
    assert text.passes(text.said_chars) == ("Well. One moment. ", "Here.")
    assert text.passes(8) == ("Well. On",)


def test_what_could_not_be_voiced_was_not_heard() -> None:
    """It is missing from every part that spans it."""
    text = text_of(("One. ", "One. "), ("Two. ", "Two. "), ("Three.", "Three."))
    text.leave_out(5, 10)
    assert text.between(0, 16) == "One. Three."
    assert text.passes(16) == ("One. Three.",)


@given(st.text(st.sampled_from("ab 12.$*`_"), max_size=40), st.integers(0, 60))
def test_what_was_heard_is_a_prefix_of_what_was_written(written: str, said: int) -> None:
    """At any moment, and all of it in the end; it never shrinks."""
    text, form = ReplyText(), SpokenForm()
    text.write(written)
    text.say([*form.feed(written), *form.finish()])
    ends = [text.written_at(at) for at in range(text.said_chars + 1)]
    assert ends == sorted(ends)
    assert written.startswith("".join(text.passes(said)))
    assert text.written_at(text.said_chars) == len(written)
