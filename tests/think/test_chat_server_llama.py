"""The engine for servers of others at a real one: llama.cpp's, with the default model."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from antiphon.core.flow import Message, ToolSpec
from antiphon.think.chat_server import ChatServer
from antiphon.think.chat_settings import ChatServerSettings
from antiphon.think.llama_server import LlamaServer, ServerPlan

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.model

SYSTEM = Message("system", "You are the barista of a coffee shop. Answer in one short sentence.")
ASK = (SYSTEM, Message("user", "I would like a large latte with oat milk, please."))
TOOL = ToolSpec(
    name="order",
    description="Places an order.",
    parameters={"type": "object", "properties": {"what": {"type": "string"}}},
)


@pytest.fixture(scope="module")
def server(smollm2_file) -> Iterator[LlamaServer]:
    server = LlamaServer(smollm2_file, ServerPlan(threads=2, conversations=2, context_tokens=1024, batch_tokens=32))
    yield server
    server.close()


def chat(server: LlamaServer, **settings: object) -> ChatServer:
    values = {"api_key": server._key, "end_mass_ms": 5000, **settings}
    return ChatServer.load(server.address, settings=ChatServerSettings(**values))


async def written(model: ChatServer, *, max_tokens: int = 24, **tools: object) -> list[object]:
    async with aclosing(model.open().write(ASK, max_tokens=max_tokens, **tools)) as pieces:
        return [piece async for piece in pieces]


def test_a_reply_is_streamed(server):
    """Token by token, found by asking for the model, the same each time."""

    async def twice() -> tuple[list[object], list[object], str]:
        model = chat(server)
        await model.warm_up()
        return await written(model), await written(model), model.name

    first, second, name = asyncio.run(twice())

    assert 4 < len(first) <= 24
    assert first == second
    assert name.endswith(".gguf")
    assert "/" not in name


def test_a_reply_that_is_closed_gives_its_place_back(server):
    """Both of the server's places are taken by endless replies, closed, and free again."""

    async def cut() -> list[object]:
        model = chat(server, first_token_s=20.0)
        for _ in range(4):
            pieces = model.open().write(ASK, max_tokens=900)
            await anext(pieces)
            await pieces.aclose()
        return await written(model)

    assert asyncio.run(asyncio.wait_for(cut(), 60))


def test_reading_ahead_changes_no_reply(server):
    """And can be cut off by the reply."""

    async def ahead() -> tuple[list[object], list[object]]:
        model = chat(server)
        plain = await written(model)
        thinking = model.open()
        await thinking.prefill((SYSTEM, Message("user", "I would like a large")))
        reading = asyncio.ensure_future(thinking.prefill(ASK))
        await asyncio.sleep(0)
        async with aclosing(thinking.write(ASK, max_tokens=24)) as pieces:
            after = [piece async for piece in pieces]
        await reading
        return plain, after

    plain, after = asyncio.run(ahead())

    assert plain == after


def test_the_end_of_a_sentence_is_measured(server):
    """Higher behind a whole order than behind a preposition."""

    async def masses() -> tuple[str, list[float | None]]:
        model = chat(server)
        await model.warm_up()
        texts = ("I would like a large latte with", "I would like a large latte with oat milk please")
        return model.end_mass_form, [
            await model.open().sentence_end_mass((SYSTEM, Message("user", text))) for text in texts
        ]

    form, (cut, end) = asyncio.run(masses())

    assert form
    assert cut is not None
    assert end is not None
    assert 0 <= cut < 0.1 < end <= 1


def test_tools_do_no_harm_to_a_model_that_knows_none(server):
    """The server takes them along, and the reply is text."""
    reply = asyncio.run(written(chat(server), tools=[TOOL], tool_choice="required"))

    assert reply
    assert all(isinstance(piece, str) for piece in reply)


def test_a_wrong_key_and_a_conversation_that_is_too_long_are_told(server):
    """With their remedies."""
    from antiphon.core.errors import PeerError

    with pytest.raises(PeerError, match="does not accept the key"):
        asyncio.run(written(chat(server, api_key="wrong")))

    async def long() -> None:
        async with aclosing(chat(server).open().write((Message("user", "word " * 3000),), max_tokens=9)) as pieces:
            async for _ in pieces:
                pass

    with pytest.raises(PeerError, match="too long for the model"):
        asyncio.run(long())
