"""What the client does to the conversation's items: create, delete, retrieve, truncate.

The client's picture changes at once; the session's history follows, in the same order. Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.serve.realtime.errors import NOT_RETRIEVED, RefusedError
from antiphon.serve.realtime.item_create import read_item

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.flow import Message
    from antiphon.serve.realtime.answers import Answers
    from antiphon.serve.realtime.call_state import CallState
    from antiphon.serve.realtime.fields import Fields
    from antiphon.serve.realtime.items import Item

MOST_MS = 2**40


class ItemEdits:
    """Of one call."""

    def __init__(self, state: CallState, answers: Answers, later: Callable[[Callable[[], None]], None]) -> None:
        self._state = state
        self._answers = answers
        self._later = later  # do something once the turns that were committed before are known
        self._cut: tuple[Item, str] | None = None  # of the response that is still under way

    def create(self, event: Fields) -> None:
        """`conversation.item.create`.

        Raises:
            RefusedError: the item cannot be, or the one it is to follow is not there.
        """
        after = event.name("previous_item_id")
        if after is not None and after != "root":
            self._state.conversation.get(after, "previous_item_id")
        new = read_item(self._state, event)
        is_last = after is None or after == self._state.conversation.last()
        before = self._state.add_item(new.item, after)
        session = self._state.session
        call, message = new.answers, new.message
        if call is not None:
            self._later(lambda: session.return_tool(call, new.item.text or ""))
        elif message is not None:
            self._later(lambda: session.add_item(message, after=None if is_last else self._place(before)))

    def delete(self, event: Fields) -> None:
        """`conversation.item.delete`; a call takes its output along.

        Raises:
            RefusedError: there is no such item, or it is still being made.
        """
        item = self._state.conversation.get(_name(event), "item_id")
        if item.status == "in_progress":
            raise RefusedError("the item is still being made", param="item_id", hint="wait for conversation.item.done")
        self._later(lambda: self._forget(item))
        self._state.remove_item(item)
        if item.kind == "function_call":
            for output in self._state.conversation.of_call(item.call_id):
                self._state.remove_item(output)

    def retrieve(self, event: Fields) -> None:
        """`conversation.item.retrieve`: the item as it is now, with its sound if that is kept.

        Raises:
            RefusedError: there is no such item.
        """
        item = self._state.conversation.get(_name(event), "item_id", code=NOT_RETRIEVED)
        fields = self._state.fields
        wire_format = fields.output_format if item.role == "assistant" else fields.input_format
        sound = self._state.recordings.read(item.id, wire_format)
        self._state.outbox.put("conversation.item.retrieved", {"item": item.wire(sound)})

    def truncate(self, event: Fields) -> None:
        """`conversation.item.truncate`: the history keeps what had been said by then.

        Raises:
            RefusedError: there is no such item, it is no sound of ours, or it is shorter.
        """
        name = _name(event)
        event.require("content_index")
        event.require("audio_end_ms")
        index, end_ms = event.whole("content_index", 0, MOST_MS), event.whole("audio_end_ms", 0, MOST_MS)
        assert end_ms is not None
        if not self._answers.was_retracted(name):  # of that nothing was heard anyway
            self._truncate(self._state.conversation.get(name, "item_id"), index or 0, end_ms)
        self._state.outbox.put(
            "conversation.item.truncated", {"item_id": name, "content_index": index, "audio_end_ms": end_ms}
        )

    def reply_ended(self) -> None:
        """The history holds the reply now; what the client has cut of it meanwhile goes."""
        cut, self._cut = self._cut, None
        if cut is not None:
            self._cut_history(*cut)

    def _truncate(self, item: Item, index: int, end_ms: int) -> None:
        if item.output is None:
            raise RefusedError("only an assistant's sound can be truncated", param="item_id")
        if index != 0:
            raise RefusedError("the item has one part of content", param="content_index", hint="use 0")
        if end_ms > item.output.duration_ms:
            raise RefusedError(
                f"audio_end_ms is {end_ms}, but the item lasts {item.output.duration_ms} ms",
                param="audio_end_ms",
                hint="count from the beginning of the item",
            )
        item.text = item.output.truncate(end_ms)
        self._state.recordings.truncate(item.id, end_ms)
        self._cut_history(item, item.text)
        active = self._answers.active
        if active is not None and active.message is item:
            self._cut = item, item.text

    def _cut_history(self, item: Item, text: str) -> None:
        """A reply has a message for each of its passes: keep the first ones whole, and of one a part."""
        passes = [message for message in self._messages(item) if message.role == "assistant" and not message.call]
        rest = text.strip()
        for message in passes:
            if message is not passes[-1] and rest.startswith(message.text):
                rest = rest[len(message.text) :].lstrip()
                continue
            self._state.session.truncate_item(message.item, rest)
            rest = ""

    def _forget(self, item: Item) -> None:
        for message in self._messages(item):
            self._state.session.delete_item(message.item)

    def _messages(self, item: Item) -> list[Message]:
        """What the session's history holds of an item."""
        return [message for message in self._state.session.messages if item.stands_for(message.item)]

    def _place(self, before: str | None) -> str:
        """The history's name for the place behind an item: that of the nearest item which the history holds."""
        for item in self._state.conversation.up_to(before) if before else ():
            if messages := self._messages(item):
                return messages[-1].item
        return ""


def _name(event: Fields) -> str:
    event.require("item_id")
    return event.name("item_id") or ""
