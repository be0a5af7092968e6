"""Messages and tools in -> what a request of the chat completions protocol says of them out.

The protocol wants the calls of one moment in one message, together with what was said before them, and what came of
each call right behind. Many models' templates want user and assistant to take turns, so that neighbours of one role
become one message. Control markers in a text are broken up: most servers would read them as their own.
Threads: pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from antiphon.core.errors import CallerError
from antiphon.core.flow import Message
from antiphon.think.chat_template import harmless
from antiphon.think.language_model import AUTO, NONE, REQUIRED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import ToolCall, ToolSpec

Json: TypeAlias = dict[str, object]

NO_RESULT = "no result"  # of a call that was dropped in the middle; the protocol wants a word about each call


def render_messages(messages: Sequence[Message]) -> list[Json]:
    """The whole conversation.

    Raises:
        CallerError: there is nothing to answer at its end, or a result has no call.
    """
    last = messages[-1] if messages else None
    if last is None or last.role not in {"user", "tool"} or (last.role == "user" and not last.text.strip()):
        raise CallerError("there are no words of the user to answer", hint="let the user's message come last")
    results = _results(messages)
    rendered: list[Json] = []
    calls: list[ToolCall] = []
    for message in messages:
        if message.role == "assistant" and message.call is not None:
            calls.append(message.call)
            continue
        _close_calls(rendered, calls, results)
        if message.role != "tool":
            _say(rendered, message)
    _close_calls(rendered, calls, results)
    return rendered


def swapped(messages: Sequence[Message]) -> list[Message]:
    """The conversation seen from its other side, without calls: the user's words are the assistant's."""
    other = {"user": "assistant", "assistant": "user"}
    kept = (message for message in messages if message.call is None and message.role != "tool")
    return [Message(other.get(message.role, message.role), message.text) for message in kept]  # type: ignore[arg-type]


def render_open(messages: Sequence[Message]) -> list[Json]:
    """A conversation whose last message, anybody's, is open."""
    if messages[-1].role == "user":
        return render_messages(messages)
    rendered: list[Json] = []
    for message in messages:
        _say(rendered, message)
    return rendered


def render_tools(tools: Sequence[ToolSpec], tool_choice: str) -> Json:
    """The fields that offer `tools`; none without any.

    Raises:
        CallerError: the choice and the tools do not fit together.
    """
    names = [tool.name for tool in tools]
    if tool_choice not in {AUTO, NONE, REQUIRED, *names}:
        raise CallerError(f"the tool choice {tool_choice!r} is not among the tools", hint="offer the tool as well")
    if not tools:
        if tool_choice == REQUIRED:
            raise CallerError("a tool is required, but none is offered", hint="offer tools, or choose auto")
        return {}
    fields: Json = {"tools": [_tool(tool) for tool in tools]}
    if tool_choice in {NONE, REQUIRED}:
        fields["tool_choice"] = tool_choice
    elif tool_choice != AUTO:  # auto is what tools mean without a word, and some servers know no such word
        fields["tool_choice"] = {"type": "function", "function": {"name": tool_choice}}
    return fields


def used_ids(messages: Sequence[Message]) -> set[str]:
    """The ids of all calls so far."""
    return {message.call.id for message in messages if message.call is not None}


def _results(messages: Sequence[Message]) -> dict[str, str]:
    """What came of each call, by its id."""
    made: set[str] = set()
    results: dict[str, str] = {}
    for message in messages:
        if message.call is not None and message.role == "assistant":
            made.add(message.call.id)
        if message.role == "tool":
            if message.call is None or message.call.id not in made:
                raise CallerError("a tool's message answers no call", hint="let the assistant's call come before it")
            results[message.call.id] = message.text
    return results


def _close_calls(rendered: list[Json], calls: list[ToolCall], results: dict[str, str]) -> None:
    """Add the calls of one moment and their results; `calls` is empty then."""
    if not calls:
        return
    made = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    said = rendered.pop()["content"] if _speaks(rendered, "assistant") else None
    rendered.append({"role": "assistant", "content": said, "tool_calls": made})
    for call in calls:
        text = harmless(results.get(call.id, NO_RESULT))
        rendered.append({"role": "tool", "tool_call_id": call.id, "content": text})
    calls.clear()


def _say(rendered: list[Json], message: Message) -> None:
    text = harmless(message.text).strip()
    if not text:
        return
    if _speaks(rendered, message.role):
        text = f"{rendered.pop()['content']} {text}"
    rendered.append({"role": message.role, "content": text})


def _speaks(rendered: list[Json], role: str) -> bool:
    """Whether the last message is `role`'s and nothing but text."""
    return bool(rendered) and rendered[-1]["role"] == role and "tool_calls" not in rendered[-1]


def _tool(tool: ToolSpec) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
