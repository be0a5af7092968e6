"""The llama.cpp engine goes on with a reply that has begun: what it reads, where it ends, and what joins."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import Message, ToolCall
from antiphon.scheduling.lanes import ThreadLane
from antiphon.think.chat_template import ChatTemplate
from antiphon.think.llama import LlamaModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from antiphon.think.llama import LlamaThinking

pytestmark = pytest.mark.model

SYSTEM = Message("system", "You are the barista of a coffee shop. Answer in one short sentence.")
LATTE = (SYSTEM, Message("user", "I would like a large latte with oat milk, please."))
COUNT = (Message("system", "Count."), Message("user", "Write 1 2 3 4 5 6 7 8 9 10 11 12."))
CONTEXT_TOKENS = 512


@pytest.fixture(scope="module")
def model(smollm2_file) -> Iterator[LlamaModel]:
    lane = ThreadLane("test-going-on", threads=2)
    model = LlamaModel.load(smollm2_file, lane=lane, threads=1, conversations=2, context_tokens=CONTEXT_TOKENS)
    yield model
    model.close()
    lane.close()


async def read(
    thinking: LlamaThinking, messages: Sequence[Message], *, max_tokens: int = 24, begins_with: str = ""
) -> list[str]:
    async with aclosing(thinking.write(messages, max_tokens=max_tokens, begins_with=begins_with)) as reply:
        return [piece async for piece in reply]


@pytest.mark.parametrize("taken", [3, 24])
def test_what_was_read_and_written_is_not_read_again(model, taken):
    """Whether the write before came to its end or was stopped; the last token alone is computed twice."""

    async def scenario() -> tuple[int, int]:
        thinking = model.open()
        begun = ""
        async with aclosing(thinking.write(LATTE, max_tokens=24)) as reply:
            for _ in range(taken):
                begun += await anext(reply)
        await read(thinking, LATTE, max_tokens=4, begins_with=begun)
        usage = thinking.usage
        thinking.close()
        return usage.input_tokens, usage.cached_tokens

    input_tokens, cached_tokens = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert input_tokens - 1 == cached_tokens


def test_for_other_words_only_these_and_the_reply_are_read(model):
    """Up to the first word that differs all is in the cache."""
    heard = (SYSTEM, Message("user", "I would like a large latte with oat milk, please, and a spoon."))

    async def scenario() -> tuple[int, int]:
        thinking = model.open()
        begun = "".join((await read(thinking, LATTE))[:5])
        await read(thinking, heard, max_tokens=2, begins_with=begun)
        usage = thinking.usage
        thinking.close()
        return usage.input_tokens, usage.cached_tokens

    input_tokens, cached_tokens = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert 0 < input_tokens - cached_tokens < 20


@pytest.mark.parametrize("messages", [LATTE, COUNT])
def test_behind_every_token_the_same_tokens_come(model, messages):
    """Inside words and behind a space of its own as well, and no more of them than asked."""

    async def scenario() -> tuple[list[str], list[list[str]]]:
        thinking = model.open()
        whole = await read(thinking, messages, max_tokens=30)
        places = range(1, len(whole) - 3)
        rests = [await read(thinking, messages, max_tokens=3, begins_with="".join(whole[:place])) for place in places]
        thinking.close()
        return whole, rests

    whole, rests = asyncio.run(asyncio.wait_for(scenario(), 100))

    assert len(whole) > 8
    assert [whole[place : place + 3] for place in range(1, len(whole) - 3)] == rests


def test_a_stop_ends_what_comes(model, monkeypatch):
    """A text at which a reply is cut cuts the rest of it, and does not come out."""
    monkeypatch.setattr(ChatTemplate, "stops", property(lambda template: (*template.markers, " large")))

    async def scenario() -> tuple[str, str, bool]:
        thinking = model.open()
        whole = await read(thinking, LATTE)
        begun = "".join(whole[:5])
        rest = await read(thinking, LATTE, begins_with=begun)
        return "".join(whole), begun + "".join(rest), thinking.reached_limit

    whole, joined, reached_limit = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert (whole, False) == (joined, reached_limit)
    assert "large" not in whole


def test_it_tells_whether_what_came_was_cut(model):
    """The limit is the rest's own."""

    async def scenario() -> list[bool]:
        thinking, found = model.open(), []
        whole = await read(thinking, LATTE, max_tokens=100)
        assert not thinking.reached_limit
        for most in (3, 100):
            await read(thinking, LATTE, max_tokens=most, begins_with="".join(whole[:5]))
            found.append(thinking.reached_limit)
        return found

    assert [True, False] == asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_beginning_that_fills_the_replys_half_of_the_context_is_all(model):
    """It ended at its limit; one token less, and one more is written."""
    long = "one " * (CONTEXT_TOKENS // 2)

    async def scenario(begun: str) -> tuple[int, bool]:
        thinking = model.open()
        return len(await read(thinking, LATTE, max_tokens=100, begins_with=begun)), thinking.reached_limit

    assert (0, True) == asyncio.run(asyncio.wait_for(scenario(long), 60))
    assert (1, True) == asyncio.run(asyncio.wait_for(scenario(long[: -len(" one ")]), 60))


def test_where_another_word_would_follow_all_that_was_written_stands(model):
    """Behind a space the model would not have written it goes on nevertheless, at the next word."""

    async def scenario() -> list[str]:
        return await read(model.open(), LATTE, begins_with="That 's a great idea, we have some cappuc ")

    rest = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert rest
    assert not rest[0].isspace()


def test_what_a_tool_found_is_said_to_its_end(model):
    """A small model's reply is the result itself; what of it was said already is not said again."""
    call = ToolCall("call_1", "get_price", "{}")
    then = (*LATTE, Message("assistant", "", call), Message("tool", "a latte is 4 euros", call))

    async def scenario() -> list[list[str]]:
        thinking = model.open()
        beginnings = ("", "A latte is ", "A latte is 4 euros.")
        found = [await read(thinking, then, begins_with=begun) for begun in beginnings]
        return [*found, await read(thinking, then, begins_with="One", max_tokens=2)]

    *found, other = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert [["A latte is 4 euros."], ["4 euros."], []] == found
    assert 1 <= len(other) <= 2


def test_what_cannot_be_asked_is_refused_as_ever(model):
    """No words to answer, no token allowed, a conversation that is closed."""
    closed = model.open()
    closed.close()

    with pytest.raises(CallerError, match="no words"):
        asyncio.run(read(model.open(), (SYSTEM,), begins_with="Sure"))
    with pytest.raises(CallerError, match="max_tokens"):
        asyncio.run(read(model.open(), LATTE, max_tokens=0, begins_with="Sure"))
    with pytest.raises(EngineError, match="closed"):
        asyncio.run(read(closed, LATTE, begins_with="Sure"))
