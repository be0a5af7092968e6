"""A conversation in, what of it fits into the model's context out; lengths are counted only when it gets tight.

Units: tokens. Threads: the event loop; counting waits for the model's server in a thread, and takes next to no time of
the cores, so it does not queue for them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.core.flow import Message
from antiphon.think.context_window import choose_window, head_length, last_words

if TYPE_CHECKING:
    from antiphon.think.completion_server import CompletionServer

_AROUND_MESSAGE_TOKENS = 8  # the markers of one message; chatml has 5
_LEAST_ROOM_TOKENS = 32  # for the user's words; less is no conversation
_SIZES_KEPT = 512  # messages


class MessageSizes:
    """How long messages are; shared by all conversations of a model."""

    def __init__(self, server: CompletionServer) -> None:
        self._server = server
        self._known: dict[Message, int] = {}  # those counted lately

    async def of(self, message: Message) -> int:
        """How many tokens `message` takes.

        Raises:
            EngineError: the model failed.
        """
        known = self._known.get(message)
        if known is None:
            known = await asyncio.to_thread(self._server.count_tokens, message.text)
            known += _AROUND_MESSAGE_TOKENS
            if len(self._known) >= _SIZES_KEPT:
                self._known.clear()
            self._known[message] = known
        return known


class Fitting:
    """Of one conversation; what it left out once stays out, so that the prompt's beginning stays the same."""

    def __init__(self, sizes: MessageSizes) -> None:
        self._sizes = sizes
        self._dropped = 0

    async def fit(self, messages: list[Message], room: int) -> list[Message]:
        """`messages` without the oldest exchanges, if all of them are more than `room`.

        Raises:
            CallerError: the user's words do not come last, or the instructions fill the room.
            EngineError: the model failed.
        """
        if not messages or messages[-1].role != "user":
            raise CallerError("there are no words of the user to answer", hint="let the user's message come last")
        # a token is at least one byte, and this spares the counting as long as a conversation is short
        if sum(len(message.text.encode()) + _AROUND_MESSAGE_TOKENS for message in messages) <= room:
            self._dropped = 0
            return messages
        sizes = [await self._sizes.of(message) for message in messages]
        window = choose_window(messages, sizes, room=room, dropped=self._dropped)
        self._dropped = window.dropped
        head = head_length(messages)
        kept = messages[:head] + messages[head + window.dropped :]
        if window.fits:
            return kept
        return [*kept[:-1], await self._shortened(kept[-1], room - sum(sizes[:head]), sizes[-1])]

    async def _shortened(self, message: Message, room: int, size: int) -> Message:
        """The end of a message that is too long by itself."""
        if room < _LEAST_ROOM_TOKENS:
            raise CallerError(
                f"the instructions leave {max(0, room)} tokens of the context to the conversation",
                hint="shorten the instructions or raise the language model's context",
            )
        text = last_words(message.text, share=0.9 * room / size)
        if await self._sizes.of(Message(message.role, text)) > room:
            text = text.encode()[-(room - _AROUND_MESSAGE_TOKENS) :].decode("utf-8", "ignore")
        return Message(message.role, text)
