"""What a conversation looks like to a server."""

from __future__ import annotations

import pytest

from antiphon.core.errors import CallerError
from antiphon.core.flow import Message, ToolCall, ToolSpec
from antiphon.think.chat_messages import NO_RESULT, render_messages, render_open, render_tools, swapped, used_ids

pytestmark = pytest.mark.unit

SYSTEM = Message("system", "Be brief.")
ASK = Message("user", "A room and a taxi, please.")
ROOM, TAXI = ToolCall("a1", "book_room", '{"beds": 2}'), ToolCall("b2", "call_taxi", "{}")
SPEC = ToolSpec(name="book_room", description="Books.", parameters={"type": "object", "properties": {}})


def made(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def result(call: ToolCall, text: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def test_calls_of_one_moment_are_one_message_with_the_words_before_them():
    """And what came of each stands right behind, in their order."""
    messages = [
        SYSTEM,
        ASK,
        Message("assistant", "One moment."),
        Message("assistant", "", ROOM),
        Message("assistant", "", TAXI),
        Message("tool", "at 8", TAXI),
        Message("tool", "room 5", ROOM),
    ]

    assert [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "A room and a taxi, please."},
        {"role": "assistant", "content": "One moment.", "tool_calls": [made(ROOM), made(TAXI)]},
        result(ROOM, "room 5"),
        result(TAXI, "at 8"),
    ] == render_messages(messages)
    assert {"a1", "b2"} == used_ids(messages)


def test_calls_of_two_moments_are_two_messages():
    """Each with its own result; there are no words before the first."""
    messages = [
        ASK,
        Message("assistant", "", ROOM),
        Message("tool", "room 5", ROOM),
        Message("assistant", "", TAXI),
        Message("tool", "at 8", TAXI),
    ]

    assert [
        {"role": "user", "content": ASK.text},
        {"role": "assistant", "content": None, "tool_calls": [made(ROOM)]},
        result(ROOM, "room 5"),
        {"role": "assistant", "content": None, "tool_calls": [made(TAXI)]},
        result(TAXI, "at 8"),
    ] == render_messages(messages)


def test_a_result_that_came_late_or_never_stands_where_the_protocol_wants_it():
    """Behind its call, whoever spoke in between; a dropped call's result is that there is none."""
    messages = [
        ASK,
        Message("assistant", "", ROOM),
        Message("assistant", "", TAXI),
        Message("user", "Hello?"),
        Message("tool", "room 5", ROOM),
        Message("user", "Are you there?"),
    ]

    assert [
        {"role": "user", "content": ASK.text},
        {"role": "assistant", "content": None, "tool_calls": [made(ROOM), made(TAXI)]},
        result(ROOM, "room 5"),
        result(TAXI, NO_RESULT),
        {"role": "user", "content": "Hello? Are you there?"},
    ] == render_messages(messages)


def test_neighbours_of_one_role_are_one_message_and_empty_ones_none():
    """Many templates want the roles to take turns; control markers are broken up."""
    messages = [Message("system", " "), Message("user", "I would"), Message("user", "like<|im_end|> tea.\x00\ud800")]

    assert [{"role": "user", "content": "I would like< |im_end|> tea."}] == render_messages(messages)


@pytest.mark.parametrize(
    "messages",
    [[], [SYSTEM], [ASK, Message("assistant", "Yes.")], [Message("user", "  ")], [ASK, Message("tool", "x", ROOM)]],
)
def test_messages_that_cannot_be_answered_are_refused(messages):
    with pytest.raises(CallerError):
        render_messages(messages)


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ("auto", {}),
        ("none", {"tool_choice": "none"}),
        ("required", {"tool_choice": "required"}),
        ("book_room", {"tool_choice": {"type": "function", "function": {"name": "book_room"}}}),
    ],
)
def test_tools_and_choices(choice, field):
    """The tools go along even where none may be used, so that the prompt's beginning stays the same."""
    function = {"name": "book_room", "description": "Books.", "parameters": SPEC.parameters}

    assert {"tools": [{"type": "function", "function": function}], **field} == render_tools([SPEC], choice)


@pytest.mark.parametrize(("tools", "choice"), [([], "required"), ([], "book_room"), ([SPEC], "call_taxi")])
def test_a_choice_without_its_tool_is_refused(tools, choice):
    with pytest.raises(CallerError):
        render_tools(tools, choice)


def test_nothing_is_said_of_tools_without_any():
    assert {} == render_tools([], "auto") == render_tools([], "none")


def test_the_other_side_speaks_the_users_words():
    """Without calls, which only one side can make."""
    messages = [SYSTEM, ASK, Message("assistant", "", ROOM), Message("tool", "x", ROOM), Message("assistant", "Done.")]

    assert [
        {"role": "system", "content": SYSTEM.text},
        {"role": "assistant", "content": ASK.text},
        {"role": "user", "content": "Done."},
        {"role": "assistant", "content": "Thanks"},
    ] == render_open(swapped([*messages, Message("user", "Thanks")]))
