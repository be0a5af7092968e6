"""The conversation as the client sees it: items in their order, as the protocol writes them.

An item of ours stands for messages of the session's history; `history_prefix` and `history` say which.
Pure but for the list. What it does not know: how items come about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.serve.realtime.errors import NOT_FOUND, RefusedError

if TYPE_CHECKING:
    from antiphon.core.flow import ToolCall
    from antiphon.serve.realtime.outbox import Json
    from antiphon.serve.realtime.output_audio import OutputAudio

MOST_ITEMS = 1000  # the session's history is shorter; the oldest items are forgotten first

Kind: TypeAlias = Literal["message", "function_call", "function_call_output"]
Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]


@dataclass(slots=True, kw_only=True, eq=False)
class Item:
    """One entry of the conversation."""

    id: str
    kind: Kind
    role: Literal["user", "assistant", "system"] = "user"  # of a message
    status: Status = "completed"
    part: str = ""  # of a message: input_text, input_audio, output_text or output_audio
    text: str | None = None  # of the only part, its transcript where it is sound; or what came of a call
    call: ToolCall | None = None
    call_id: str = ""  # as the client knows the call
    history: tuple[str, ...] = ()  # names in the session's history
    history_prefix: str = ""  # of such names: a reply has one for each of its passes
    is_ours: bool = False  # a tool of the agent's own: no client runs it, or answers for it
    output: OutputAudio | None = field(default=None, repr=False)

    def stands_for(self, name: str) -> bool:
        """Whether a message of the session's history belongs to it."""
        return bool(name) and (
            name in self.history or bool(self.history_prefix and name.startswith(self.history_prefix))
        )

    def wire(self, audio: str | None = None) -> Json:
        """As the protocol has it, with its sound if that is given."""
        item: Json = {"id": self.id, "object": "realtime.item", "type": self.kind, "status": self.status}
        match self.kind:
            case "message":
                item |= {"role": self.role, "content": self._content(audio)}
            case "function_call":
                assert self.call is not None
                item |= {"call_id": self.call_id, "name": self.call.name, "arguments": self.call.arguments}
            case "function_call_output":
                item |= {"call_id": self.call_id, "output": self.text or ""}
        return item

    def _content(self, audio: str | None) -> list[Json]:
        if not self.part:
            return []
        if self.part in {"input_text", "output_text"}:
            return [{"type": self.part, "text": self.text or ""}]
        part: Json = {"type": self.part, "transcript": self.text}
        return [part if audio is None else {**part, "audio": audio}]


class Conversation:
    """Items in their order."""

    def __init__(self) -> None:
        self._items: list[Item] = []

    def find(self, name: str) -> Item | None:
        return next((item for item in self._items if item.id == name), None)

    def get(self, name: str | None, param: str, *, code: str = NOT_FOUND) -> Item:
        """The item of that name.

        Raises:
            RefusedError: there is none.
        """
        item = self.find(name) if name is not None else None
        if item is None:
            raise RefusedError("there is no item of that name", code=code, param=param)
        return item

    def add(self, item: Item, after: str | None = None) -> str | None:
        """Put an item behind another, "root" is the beginning, None the end; return the name of the one before it."""
        at = len(self._items)
        if after == "root":
            at = 0
        elif after is not None:
            at = next((place + 1 for place, one in enumerate(self._items) if one.id == after), at)
        self._items.insert(at, item)
        before = self._items[at - 1].id if at else None
        if len(self._items) > MOST_ITEMS:
            del self._items[0]
        return before

    def before(self, item: Item) -> str | None:
        """The name of the one before an item."""
        place = next((place for place, one in enumerate(self._items) if one is item), 0)
        return self._items[place - 1].id if place else None

    def standing_for(self, name: str) -> Item | None:
        """The latest item to which a message of the session's history belongs."""
        return next((item for item in reversed(self._items) if item.stands_for(name)), None)

    def last(self) -> str | None:
        """The name of the last item."""
        return self._items[-1].id if self._items else None

    def up_to(self, name: str) -> list[Item]:
        """The items up to that one, the latest first."""
        place = next((place for place, one in enumerate(self._items) if one.id == name), -1)
        return self._items[place::-1] if place >= 0 else []

    def remove(self, item: Item) -> None:
        self._items = [one for one in self._items if one is not item]

    def of_call(self, call_id: str) -> list[Item]:
        """The items about a call: the call itself, and what came of it."""
        return [item for item in self._items if item.call_id == call_id]
