"""What of a long conversation is still read."""

from __future__ import annotations

import pytest

from antiphon.core.flow import Message
from antiphon.think.context_window import Window, choose_window, last_words

pytestmark = pytest.mark.unit

TALK = [
    Message("system", "s"),
    *(Message(role, str(index)) for index in range(4) for role in ("user", "assistant")),
    Message("user", "last"),
]
SIZES = [10] * len(TALK)


def test_all_of_it_if_it_fits():
    """Nothing is left out for nothing."""
    assert Window(0, fits=True) == choose_window(TALK, SIZES, room=100, dropped=0)


def test_the_oldest_exchanges_go_whole():
    """A quarter of the room is made free, beginning with a user's message."""
    assert Window(4, fits=True) == choose_window(TALK, SIZES, room=80, dropped=0)


def test_what_was_left_out_stays_out():
    """The prompt's beginning stays the same until room is short again."""
    assert Window(4, fits=True) == choose_window(TALK, SIZES, room=80, dropped=4)


def test_another_conversation_starts_afresh():
    """A history shorter than what was left out is a new one."""
    assert Window(0, fits=True) == choose_window(TALK[:2], SIZES[:2], room=80, dropped=6)


def test_a_last_message_too_long_by_itself_is_reported():
    """It is kept, and said not to fit."""
    assert Window(8, fits=False) == choose_window(TALK, [10] * 9 + [500], room=80, dropped=0)


def test_last_words_are_whole():
    """The cut falls between words where there are any."""
    assert last_words("one two three", share=0.6) == "three"
    assert last_words("abcdefghij", share=0.3) == "hij"
