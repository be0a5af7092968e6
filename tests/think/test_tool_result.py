"""What is read and heard of a tool."""

from __future__ import annotations

import pytest

from antiphon.core.flow import Message, ToolCall
from antiphon.think.tool_result import FAILED, said_result, told_as_text

pytestmark = pytest.mark.unit

CALL = ToolCall("1", "get_price", "{}")


def test_a_result_stands_behind_the_words_that_asked_for_it():
    """The call itself is left out: the model did not write it in words."""
    messages = [Message("user", "How much?"), Message("assistant", "", CALL), Message("tool", "4 euros", CALL)]

    assert [Message("user", "How much?"), Message("user", "(get price: 4 euros)")] == told_as_text(messages)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4 euros", "4 euros."),
        ("it is on!", "It is on!"),
        ("done", "Done."),
        ("", "Done."),
        ('{"sky": "grey", "in_degrees": [1, null], "rain": false}', "Sky: grey, in degrees: 1, nothing, rain: no."),
        ("error: ValueError: key expired", FAILED),
        ("x" * 1000, "X" + "x" * 599 + "."),
    ],
)
def test_a_result_can_be_said(text, said):
    """Text as it is, JSON as names and values, and no error's insides."""
    assert said == said_result(text)
