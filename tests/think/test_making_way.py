"""A completion that is interrupted at every border is the one that nobody interrupted."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from antiphon.core.flow import Message, ToolCall, ToolSpec
from antiphon.scheduling.border import Border
from antiphon.scheduling.lanes import ThreadLane
from antiphon.think.llama import LlamaModel

pytestmark = pytest.mark.model

SYSTEM = Message("system", "You take coffee orders. Answer in one short sentence.")
ORDER = Message("user", "I would like a large cappuccino with two sugars, please.")
PRICE = ToolSpec(
    name="look_up_price",
    description="The price of a drink.",
    parameters={"type": "object", "properties": {"drink": {"type": "string"}}, "required": ["drink"]},
)


class ImpatientLane(ThreadLane):
    """Somebody more urgent waits all the time."""

    def __init__(self, name: str, *, threads: int) -> None:
        super().__init__(name, threads=threads)
        self.stretches = 0

    async def run_yielding(self, job, call):
        self.stretches += 1
        border = Border()
        border.ask()
        return await self.run(job, lambda: call(border))


@pytest.fixture(scope="module", params=[ThreadLane, ImpatientLane])
def house(request, smollm2_file):
    lane = request.param("test-way", threads=4)
    model = LlamaModel.load(smollm2_file, lane=lane, threads=1, conversations=2, context_tokens=1024)
    yield model, lane
    model.close()
    lane.close()


async def written(thinking, messages, **what):
    async with aclosing(thinking.write(messages, max_tokens=40, **what)) as reply:
        return [piece async for piece in reply]


REPLIES: dict[type, object] = {}


def test_the_reply_is_the_same_to_the_letter(house):
    model, lane = house

    async def story():
        thinking = model.open()
        reply = "".join(await written(thinking, [SYSTEM, ORDER]))
        usage = thinking.usage
        thinking.close()
        return reply, usage.input_tokens, usage.output_tokens

    reply = asyncio.run(asyncio.wait_for(story(), 60))
    assert len(reply[0].split()) > 5
    if isinstance(lane, ImpatientLane):
        assert lane.stretches > 8
        assert REPLIES[ThreadLane] == reply
    else:
        REPLIES[ThreadLane] = reply


def test_what_it_goes_on_with_is_the_same_as_well(house):
    model, _ = house

    async def story():
        thinking = model.open()
        whole = await written(thinking, [SYSTEM, ORDER])
        begun = "".join(whole[:6])
        rest = await written(thinking, [SYSTEM, ORDER], begins_with=begun)
        thinking.close()
        return "".join(whole), begun + "".join(rest)

    whole, joined = asyncio.run(asyncio.wait_for(story(), 60))
    assert len(whole) > 20
    assert joined.startswith(whole)


def test_a_tools_arguments_obey_their_grammar(house):
    model, _ = house

    async def story():
        thinking = model.open()
        called = await written(thinking, [SYSTEM, ORDER], tools=[PRICE], tool_choice="look_up_price")
        thinking.close()
        return called

    (call,) = asyncio.run(asyncio.wait_for(story(), 60))
    assert isinstance(call, ToolCall)
    assert set(json.loads(call.arguments)) == {"drink"}


def test_a_prompt_is_read_to_its_end_in_stretches(house):
    model, lane = house

    async def story():
        thinking = model.open()
        order = Message("user", " ".join(f"And then a coffee with {number} sugars, please." for number in range(30)))
        await thinking.prefill([SYSTEM, order])
        before = lane.stretches if isinstance(lane, ImpatientLane) else 0
        reply = "".join(await written(thinking, [SYSTEM, order]))
        usage = thinking.usage
        thinking.close()
        return reply, before, usage

    reply, stretches, usage = asyncio.run(asyncio.wait_for(story(), 60))
    assert reply
    assert usage.cached_tokens > 0.9 * usage.input_tokens
    if isinstance(lane, ImpatientLane):
        assert stretches > 5
