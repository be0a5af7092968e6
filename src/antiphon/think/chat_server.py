"""Messages in, reply text and tool calls out: a model behind any OpenAI-compatible HTTP server.

vLLM, SGLang, TensorRT-LLM, Ollama, llama-server and hosted services all speak this protocol; docs/language-models.md
says what is used of each, and what each failure leads to. Nothing is computed here, and nothing is kept but the
connections: a conversation's prompt cache is the server's own, found again by the prompt's beginning.

Each `write` is a request, a draft that is dropped included; closing it closes the connection, which is how servers of
this kind are told to stop.

Threads: everything on the event loop.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError, EngineError, PeerError, check_range
from antiphon.core.flow import Message
from antiphon.think.chat_address import read_address
from antiphon.think.chat_end_mass import EndOpinion
from antiphon.think.chat_failure import ServerFailure
from antiphon.think.chat_line import CLOSED, ChatLine
from antiphon.think.chat_messages import render_messages, render_tools, used_ids
from antiphon.think.chat_reply import ReplyReader
from antiphon.think.chat_requests import REFUSED, ChatRequests
from antiphon.think.chat_settings import ChatServerSettings
from antiphon.think.chat_usage import UsageWish
from antiphon.think.language_model import AUTO, NONE
from antiphon.think.sentence_end import without_final_mark

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    import httpx2

    from antiphon.core.flow import ToolSpec, Usage
    from antiphon.think.chat_settings import Switch
    from antiphon.think.language_model import Written

MOST_TOKENS = 1 << 20
WARM_UP_S = 120.0  # some servers load a model at its first request
_GREETING = (Message("user", "Hello."),)


class ChatServer:
    """The server, seen as a loaded model."""

    longest_slice_ns = 0  # it computes elsewhere
    can_go_on = False  # the protocol has no word for it; of the servers that find one, each means something else

    def __init__(self, line: ChatLine, settings: ChatServerSettings) -> None:
        self._requests = ChatRequests(line, settings)
        self._opinion = EndOpinion(self._requests)
        self._counting = UsageWish(settings.extra_fields())
        self._is_own = line.address.is_own
        self.name = _short(settings.model) or line.address.host
        self._reads_ahead = self._is_on(settings.read_ahead)

    @classmethod
    def load(
        cls,
        address: str,
        *,
        settings: ChatServerSettings | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> ChatServer:
        """The server at an http:// or https:// address; nothing is asked of it yet.

        Raises:
            CallerError: it is no address, or holds credentials, or the key would travel in the clear.
        """
        settings = settings or ChatServerSettings()
        return cls(ChatLine(read_address(address), settings, transport=transport), settings)

    @property
    def end_mass_form(self) -> str:
        """Whose open message the server can go on with: "user", "assistant", or "" if it cannot; for reports."""
        return self._opinion.form

    def open(self) -> ChatThinking:
        return ChatThinking(self._requests, self._opinion, self._counting, reads_ahead=self._reads_ahead)

    async def warm_up(self) -> None:
        """Make the connection, find the model, have one token written, and see what the server can do.

        Raises:
            CallerError: the server has several models, and one must be chosen.
            EngineError: the model is closed.
            PeerError: there is no such server, or it cannot write; the message names its address.
        """
        base = self._requests.line.address.base
        reading = ReplyReader(max_tokens=1)
        fields = {"messages": render_messages(_GREETING)}
        try:
            async with aclosing(
                self._requests.reply(fields, lambda: reading, max_tokens=1, within_s=WARM_UP_S)
            ) as pieces:
                async for _ in pieces:
                    pass
        except PeerError as error:
            if not reading.began:  # else it writes, and a single token need make no sense
                message = error.message if base in error.message else f"{error.message} ({base})"
                raise PeerError(message, hint=error.hint, retryable=error.retryable) from error
        self.name = _short(self._requests.model)
        if self._is_on(self._requests.settings.end_mass):
            await self._opinion.probe(asyncio.get_running_loop().time() + self._requests.settings.first_token_s)

    def close(self) -> None:
        """Refuse everything from here on, and end what is at work."""
        self._requests.line.close()

    def _is_on(self, switch: Switch) -> bool:
        return switch == "on" or (switch == "auto" and self._is_own)


def _short(model: str) -> str:
    """A model's name; of a file's path the last part."""
    return model.rpartition("/")[2] if model.startswith("/") else model


class ChatThinking:
    """One conversation. A prompt read ahead makes way for any later call."""

    def __init__(self, requests: ChatRequests, opinion: EndOpinion, counting: UsageWish, *, reads_ahead: bool) -> None:
        self.usage: Usage | None = None  # servers count behind the last word; None until then, and of a reply cut off
        self.reached_limit = False
        self._requests = requests
        self._opinion = opinion
        self._counting = counting
        self._reads_ahead = reads_ahead
        self._ahead: asyncio.Timeout | None = None
        self._is_closed = False

    async def prefill(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> None:
        """Have one token written behind `messages` and throw it away: the server keeps what it read.

        Does nothing where that is switched off. A server that refuses is not asked again.

        Raises:
            CallerError: the last message is not the user's, or the tools are not such.
            EngineError: the conversation or the model is closed.
            PeerError: the server failed in a way that may pass.
        """
        self._begin()
        if not self._reads_ahead:
            return
        fields = {"messages": render_messages(messages), **render_tools(tools, AUTO)}
        limit_s = self._requests.settings.first_token_s
        reading = ReplyReader(max_tokens=1)
        scope = asyncio.timeout(limit_s)
        self._ahead = scope
        try:
            async with scope:
                deadline = asyncio.get_running_loop().time() + 2 * limit_s
                async for _ in self._requests.attempt(fields, reading, max_tokens=1, deadline=deadline):
                    pass
        except TimeoutError:
            pass  # a later call wants the server, or reading ahead takes too long to be worth it
        except ServerFailure as failure:
            if failure.status in REFUSED:
                self._reads_ahead = False
            elif not reading.began:
                raise
        except PeerError:
            pass  # a single token need make no sense
        finally:
            if self._ahead is scope:
                self._ahead = None

    async def sentence_end_mass(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> float | None:
        """As the contract says; a final mark of the last message is left out first. None without any words.

        Raises:
            CallerError: the tools are not such.
            EngineError: the conversation or the model is closed.
            PeerError: the server failed in a way that may pass.
        """
        self._begin()
        words = without_final_mark(messages[-1].text) if messages and messages[-1].role == "user" else ""
        if not words:
            return None
        return await self._opinion.mass([*messages[:-1], Message("user", words)], tools)

    async def write(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        tools: Sequence[ToolSpec] = (),
        tool_choice: str = AUTO,
        begins_with: str = "",
    ) -> AsyncGenerator[Written, None]:
        """As the contract says. What had come of a reply before it failed is whole as far as it goes.

        Raises:
            CallerError: there are no words to answer, or tools and choice do not fit together, or there is
                `begins_with`.
            EngineError: the conversation or the model is closed, before or in the middle of the reply.
            PeerError: the server failed; without `retryable` another try is of no use.
        """
        check_range("max_tokens", max_tokens, 1, MOST_TOKENS)
        if begins_with:
            raise CallerError(
                "a language model behind a server cannot go on with a reply that has begun",
                hint="leave begins_with out and have the whole reply written anew, or load the model in this process",
            )
        self._begin()
        fields = {"messages": render_messages(messages), **render_tools(tools, tool_choice)}
        offered = frozenset(tool.name for tool in tools) if tool_choice != NONE else frozenset()
        used = used_ids(messages)
        readers: list[ReplyReader] = []  # one for each try

        def reader() -> ReplyReader:
            readers.append(ReplyReader(offered=offered, used_ids=used, max_tokens=max_tokens))
            return readers[-1]

        self.usage, self.reached_limit = None, False
        try:
            async with aclosing(self._reply(fields, reader, max_tokens)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            if readers:
                self.usage, self.reached_limit = readers[-1].usage, readers[-1].reached_limit

    async def _reply(
        self, fields: dict[str, object], reader: Callable[[], ReplyReader], max_tokens: int
    ) -> AsyncGenerator[Written, None]:
        """A reply with its count, or once more without, if the server refuses to count."""
        within_s = self._requests.settings.first_token_s
        while True:
            asked = {**fields, **self._counting.fields()}
            reply = self._requests.reply(asked, reader, max_tokens=max_tokens, within_s=within_s)
            try:
                async with aclosing(reply) as pieces:
                    async for piece in pieces:
                        yield piece
            except ServerFailure as failure:
                if not self._counting.is_refused(failure):
                    raise
            else:
                return

    def close(self) -> None:
        self._stop_reading_ahead()
        self._is_closed = True

    def _begin(self) -> None:
        if self._requests.line.is_closed:
            raise EngineError(CLOSED)
        if self._is_closed:
            raise EngineError("the conversation is closed")
        self._stop_reading_ahead()

    def _stop_reading_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.reschedule(asyncio.get_running_loop().time())
