"""What the parts of a call share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.serve.realtime.items import Conversation
from antiphon.serve.realtime.recordings import Recordings

if TYPE_CHECKING:
    from antiphon.core.clock import Clock
    from antiphon.core.flow import ToolSpec
    from antiphon.serve.realtime.items import Item
    from antiphon.serve.realtime.outbox import Outbox
    from antiphon.serve.realtime.output_buffer import OutputBuffer
    from antiphon.serve.realtime.session_fields import CallSetup, SessionFields
    from antiphon.session import Session, SessionSettings


@dataclass(slots=True, kw_only=True)
class CallState:
    """Of one call."""

    session: Session
    agent: SessionSettings  # how the conversation was held before the client changed anything
    setup: CallSetup
    clock: Clock
    outbox: Outbox
    fields: SessionFields
    track: OutputBuffer | None = None  # that replies sound on; None: their sound goes inside events
    lent_tools: tuple[ToolSpec, ...] = ()  # of the present response alone
    heard_voice: str = ""  # of the first response that has sounded
    conversation_id: str = ""
    conversation: Conversation = field(default_factory=Conversation)
    recordings: Recordings = field(default_factory=Recordings)
    heard_samples: int = 0  # of the caller's turns since the last response, at HEARING_RATE_HZ

    @property
    def own_tools(self) -> frozenset[str]:
        """The names of the agent's own tools."""
        return frozenset(tool.spec.name for tool in self.agent.tools)

    def add_item(self, item: Item, after: str | None = None, *, is_done: bool = True) -> str | None:
        """Put an item into the conversation and tell the client; return the name of the one before it."""
        before = self.conversation.add(item, after)
        self.outbox.put("conversation.item.added", {"item": item.wire(), "previous_item_id": before})
        if is_done:
            self.item_done(item)
        return before

    def item_done(self, item: Item) -> None:
        """Tell the client that the item is as it will stay."""
        before = self.conversation.before(item)
        self.outbox.put("conversation.item.done", {"item": item.wire(), "previous_item_id": before})

    def remove_item(self, item: Item) -> None:
        """Take an item out of the conversation and tell the client."""
        self.conversation.remove(item)
        self.recordings.drop(item.id)
        self.outbox.put("conversation.item.deleted", {"item_id": item.id})
