"""`conversation.item.create` in, an item and the message that it is to the language model out.

Pure. What it does not know: where in the conversation the item goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from antiphon.core.flow import Message, ToolCall
from antiphon.serve.realtime.errors import NOT_FOUND, NOT_SUPPORTED, RefusedError
from antiphon.serve.realtime.items import Item

if TYPE_CHECKING:
    from antiphon.serve.realtime.call_state import CallState
    from antiphon.serve.realtime.fields import Fields

MOST_PARTS = 100
_PARTS = {
    "user": ("input_text", "input_audio"),
    "system": ("input_text",),
    "assistant": ("output_text", "output_audio"),
}


@dataclass(frozen=True, slots=True)
class NewItem:
    """What a client wants in the conversation: a message, or what came of a call."""

    item: Item
    message: Message | None = None
    answers: ToolCall | None = None


def read_item(state: CallState, event: Fields) -> NewItem:
    """The item that an event brings.

    Raises:
        RefusedError: it is none that there can be, or its name is taken.
    """
    event.require("item")
    wanted = event.nested("item")
    assert wanted is not None
    name = wanted.name("id")
    if name is not None and state.conversation.find(name) is not None:
        raise RefusedError("there is an item of that name", code="item_exists", param=wanted.at("id"))
    wanted.choice("status", "completed", "incomplete", "in_progress")
    wanted.choice("object", "realtime.item")
    wanted.require("type")
    kind = wanted.text("type") or ""
    if kind.startswith("mcp"):
        raise RefusedError(f"{wanted.at('type')}: MCP is not supported", code=NOT_SUPPORTED, param=wanted.at("type"))
    wanted.choice("type", "message", "function_call", "function_call_output")
    name = name or state.outbox.ids.new("item")
    match kind:
        case "message":
            return _read_message(wanted, name)
        case "function_call":
            return _read_call(state, wanted, name)
        case _:
            return _read_output(state, wanted, name)


def _read_message(wanted: Fields, name: str) -> NewItem:
    wanted.require("role")
    role = cast("Literal['user', 'assistant', 'system']", wanted.choice("role", *_PARTS))
    wanted.require("content")
    texts = [_read_part(part, role) for part in wanted.objects("content", most=MOST_PARTS) or ()]
    text = "\n".join(text for text in texts if text.strip())
    if not text:
        raise RefusedError(f"{wanted.at('content')} holds no text", param=wanted.at("content"))
    part = "output_text" if role == "assistant" else "input_text"
    item = Item(id=name, kind="message", role=role, part=part, text=text, history=(name,))
    return NewItem(item, Message(role, text, item=name))


def _read_part(part: Fields, role: str) -> str:
    part.require("type")
    kind = part.text("type")
    if kind == "input_image":
        raise RefusedError(f"{part.at('type')}: images are not supported", code=NOT_SUPPORTED, param=part.at("type"))
    part.choice("type", *_PARTS[role])
    part.text("audio", most_chars=2**62)
    text, transcript = part.text("text"), part.text("transcript")
    if kind in {"input_text", "output_text"}:
        part.require("text")
        return text or ""
    if transcript is None:
        raise RefusedError(
            f"{part.path} is sound without a transcript",
            code=NOT_SUPPORTED,
            param=part.at("transcript"),
            hint="append sound to the input buffer instead",
        )
    return transcript


def _read_call(state: CallState, wanted: Fields, name: str) -> NewItem:
    wanted.require("name")
    wanted.require("arguments")
    call_id = wanted.name("call_id") or state.outbox.ids.new("call")
    if state.conversation.of_call(call_id):
        raise RefusedError("there is a call of that id", code="item_exists", param=wanted.at("call_id"))
    call = ToolCall(call_id, wanted.name("name") or "", wanted.text("arguments") or "")
    item = Item(id=name, kind="function_call", call=call, call_id=call_id, history=(name,))
    return NewItem(item, Message("assistant", "", call, name))


def _read_output(state: CallState, wanted: Fields, name: str) -> NewItem:
    wanted.require("call_id")
    call_id, output = wanted.name("call_id") or "", wanted.text("output")
    if output is None:
        wanted.require("output")
    about = state.conversation.of_call(call_id)
    call = next((item.call for item in about if item.call is not None and not item.is_ours), None)
    if call is None:
        raise RefusedError("there is no call of that id", code=NOT_FOUND, param=wanted.at("call_id"))
    if any(item.kind == "function_call_output" for item in about):
        raise RefusedError("the call has an output already", code="item_exists", param=wanted.at("call_id"))
    item = Item(id=name, kind="function_call_output", text=output, call_id=call_id)
    return NewItem(item, answers=call)
