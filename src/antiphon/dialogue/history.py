"""What was said and done, as the language model reads it: the caller's words, and of ours only what was heard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.core.flow import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antiphon.core.flow import ToolCall
    from antiphon.dialogue.state import Use

History: TypeAlias = tuple[Message, ...]

LONGEST = 200  # messages kept; the language model's context is far smaller, this bounds memory alone
NOTHING_SAID = "(nothing is said)"  # to a model that is to speak although nobody has spoken to it
NO_RESULT_YET = "no result yet"


def said(history: History, role: Literal["user", "assistant"], text: str, item: str = "") -> History:
    """`history` with one more message; nothing said is no message. The oldest go when it gets too long."""
    text = text.strip()
    if not text:
        return history
    return _bounded((*history, Message(role, text, item=item)))


def told(history: History, uses: Sequence[Use], heard: Sequence[str], reply: int = 0) -> History:
    """`history` with a reply of which `heard` was heard, by passes; what was done stays done, heard or not."""
    for place in range(max([len(heard), *(use.place + 1 for use in uses)])):
        text = heard[place] if place < len(heard) else ""
        history = said(history, "assistant", text, reply_item(reply, place))
        history = _bounded((*history, *_messages(use for use in uses if use.place == place and use.started)))
    return history


def turn_item(turn: int) -> str:
    """What the owner knows a turn of the caller's by."""
    return f"turn-{turn}"


def reply_item(reply: int, place: int) -> str:
    """What the owner knows a pass of a reply by."""
    return f"reply-{reply}-{place}"


def call_item(call: ToolCall) -> str:
    """What the owner knows a call by."""
    return f"call-{call.id}"


def added(history: History, message: Message, after: str | None) -> History:
    """`history` with `message` behind the item `after`: "" is the beginning, None or an unknown one the end."""
    at = len(history)
    if after is not None:
        at = next((place + 1 for place, one in enumerate(history) if one.item == after), at) if after else 0
    return _bounded((*history[:at], message, *history[at:]))


def deleted(history: History, item: str) -> History:
    """`history` without an item; a call takes its output along."""
    calls = {
        message.call.id for message in history if message.item == item and message.role == "assistant" and message.call
    }
    return tuple(
        message for message in history if message.item != item and not (message.call and message.call.id in calls)
    )


def truncated(history: History, item: str, text: str) -> History:
    """`history` with less of an item."""
    return reworded(history, item, text) if text.strip() else deleted(history, item)


def reworded(history: History, item: str, text: str) -> History:
    """`history` with other words of an item."""
    return tuple(
        Message(message.role, text.strip(), message.call, message.item) if message.item == item else message
        for message in history
    )


def returned(history: History, call: ToolCall, output: str) -> History:
    """`history` with the late output of a call, and of what repeated it, where there is none yet."""
    answered = {message.call for message in history if message.role == "tool"}
    whole: list[Message] = []
    for message in history:
        whole.append(message)
        same = message.call and (message.call.name, message.call.arguments) == (call.name, call.arguments)
        if message.role == "assistant" and message.call and same and message.call not in answered:
            whole.append(Message("tool", output, message.call))
    return tuple(whole)


def untold_calls(history: History) -> list[Message]:
    """The calls that were made since the caller last heard something of us."""
    calls: list[Message] = []
    for message in reversed(history):
        if message.role == "assistant" and not message.call:
            break
        if message.role == "assistant":
            calls.append(message)
    return calls


def output_of(history: History, call: ToolCall) -> str | None:
    """What came of a call; None as long as nothing has."""
    return next((message.text for message in history if message.role == "tool" and message.call == call), None)


def prompt(instructions: str, history: History, words: str = "", uses: Sequence[Use] = ()) -> tuple[Message, ...]:
    """The messages for the language model: `words` are what the caller says now, `uses` what the reply did so far.

    Consecutive user messages, as a turn leaves them that went on after it had seemed to be over, become one. A call
    that has not returned is said to have no result yet, for models want one to every call.
    """
    messages: list[Message] = [Message("system", instructions)] if instructions.strip() else []
    for message in said(history, "user", words):
        if messages and message.role == "user" == messages[-1].role:
            messages[-1] = Message("user", f"{messages[-1].text} {message.text}")
        else:
            messages.append(message)
    for use in uses:
        if use.said.strip():
            messages.append(Message("assistant", use.said.strip()))
        messages += _messages([use])
    answered = {message.call for message in messages if message.role == "tool"}
    whole: list[Message] = []
    for message in messages:
        whole.append(message)
        if message.role == "assistant" and message.call and message.call not in answered:
            whole.append(Message("tool", NO_RESULT_YET, message.call))
    return tuple(whole)


def answerable(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Models answer a user or what came of a tool; the owner may want more said after our own words, or first ones."""
    if messages and messages[-1].role in {"user", "tool"}:
        return messages
    return (*messages, Message("user", NOTHING_SAID))


def unanswered(history: History) -> bool:
    """Whether the caller said something last, or something was done for them of which they have not heard."""
    return bool(history) and history[-1].role != "assistant"


def _messages(uses: Iterable[Use]) -> list[Message]:
    messages = []
    for use in uses:
        messages.append(Message("assistant", "", use.call, call_item(use.call)))
        if use.output is not None:
            messages.append(Message("tool", use.output, use.call))
    return messages


def _bounded(history: History) -> History:
    """The newest; never an output without its call."""
    kept = history[-LONGEST:]
    while kept and kept[0].role == "tool":
        kept = kept[1:]
    return kept
