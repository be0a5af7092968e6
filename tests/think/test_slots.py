"""Who gets which place in the cache."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.think.slots import SlotTable

pytestmark = pytest.mark.unit


def test_a_conversation_keeps_its_slot():
    """Its cache is there the next time, and a free slot is taken before anybody else's."""

    async def scenario():
        table = SlotTable(2)
        first = await table.acquire("a")
        table.release(first)
        second = await table.acquire("b")
        table.release(second)
        return first, second, await table.acquire("a")

    first, second, again = asyncio.run(scenario())

    assert first == again != second


def test_the_slot_unused_for_longest_changes_hands():
    """A third conversation takes the slot of the one that was silent for longest."""

    async def scenario():
        table = SlotTable(2)
        slots = {}
        for name in ("a", "b", "a"):
            slots[name] = await table.acquire(name)
            table.release(slots[name])
        return slots["b"], await table.acquire("c")

    of_b, of_c = asyncio.run(scenario())

    assert of_b == of_c


def test_a_slot_at_work_is_waited_for_in_order():
    """Who comes first gets it first; one who gave up gets nothing."""

    async def scenario():
        table = SlotTable(1)
        slot = await table.acquire("a")
        got = []

        async def want(name):
            mine = await table.acquire(name)
            got.append(name)
            table.release(mine)

        tasks = [asyncio.ensure_future(want(name)) for name in ("b", "c", "d")]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        assert got == []
        table.release(slot)
        await asyncio.gather(*tasks, return_exceptions=True)
        return got, await table.acquire("e")

    assert (["b", "d"], 0) == asyncio.run(scenario())


def test_giving_up_in_the_moment_of_the_hand_over_loses_no_slot():
    """The slot goes back."""

    async def scenario():
        table = SlotTable(1)
        slot = await table.acquire("a")
        task = asyncio.ensure_future(table.acquire("b"))
        await asyncio.sleep(0)
        table.release(slot)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return await asyncio.wait_for(table.acquire("c"), 1)

    assert asyncio.run(scenario()) == 0


def test_a_forgotten_conversations_slot_goes_first():
    """It is handed out before one that is still somebody's."""

    async def scenario():
        table = SlotTable(2)
        for name in ("a", "b"):
            table.release(await table.acquire(name))
        table.forget("b")
        return await table.acquire("c")

    assert asyncio.run(scenario()) == 1
