"""What runs when on a lane's threads, and with whom."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from antiphon.core.errors import EngineError
from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Job
from antiphon.scheduling.lanes import CLOSED, ThreadLane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from antiphon.scheduling.border import Border

pytestmark = pytest.mark.unit

JOB = Job(stage=Stage.RECOGNISE)


@pytest.fixture
def lane() -> Iterator[ThreadLane]:
    lane = ThreadLane("test")
    yield lane
    lane.close()


class Engine:
    """Doubles numbers, and notes which it was given together."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def double(self, numbers: Sequence[int]) -> list[int]:
        self.calls.append(list(numbers))
        return [2 * number for number in numbers]

    def one(self, number: int) -> int:
        return self.double([number])[0]


@asynccontextmanager
async def busy(lane: ThreadLane) -> AsyncIterator[None]:
    """One of the lane's threads is at work as long as this lasts."""
    loop, begun, go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def work() -> bool:
        loop.call_soon_threadsafe(begun.set)
        return go.wait(10)

    async with asyncio.TaskGroup() as tasks:
        call = tasks.create_task(lane.run(JOB, work))
        await begun.wait()
        try:
            yield
        finally:
            go.set()
        assert await call


async def asked() -> None:
    """Whatever was started before this has asked the lane."""
    await asyncio.sleep(0)


def test_jobs_keep_their_order_and_take_their_kind_along(lane: ThreadLane) -> None:
    """Of a kind at most two go together; the third waits for its own turn, as single calls do."""

    async def main() -> tuple[list[list[int]], list[int]]:
        engine = Engine()

        def batched(number: int, kind: str) -> asyncio.Task[int]:
            return tasks.create_task(lane.run_batch(JOB, number, engine.double, kind=kind, most=2))

        async with asyncio.TaskGroup() as tasks, busy(lane):
            results = [batched(1, "odd"), batched(2, "even")]
            results.append(tasks.create_task(lane.run(JOB, lambda: engine.one(10))))
            results += [batched(3, "odd"), batched(5, "odd"), batched(4, "even")]
            await asked()
        return engine.calls, [result.result() for result in results]

    calls, results = asyncio.run(main())
    assert [[1, 3], [2, 4], [10], [5]] == calls
    assert [2, 4, 20, 6, 10, 8] == results


def test_nobody_waits_for_company(lane: ThreadLane) -> None:
    """Who finds the lane free runs alone; who comes then, afterwards."""

    async def main() -> list[list[int]]:
        engine, loop, begun, go = Engine(), asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def held(numbers: Sequence[int]) -> list[int]:
            loop.call_soon_threadsafe(begun.set)
            go.wait(10)
            return engine.double(numbers)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(lane.run_batch(JOB, 1, held, kind="a", most=8))
            await begun.wait()
            tasks.create_task(lane.run_batch(JOB, 2, held, kind="a", most=8))
            await asked()
            go.set()
        return engine.calls

    assert [[1], [2]] == asyncio.run(main())


@pytest.mark.parametrize(("most", "first"), [(1, [[1], [2]]), (2, [[1, 2]])])
def test_who_waited_together_goes_on_together(lane: ThreadLane, most: int, first: list[list[int]]) -> None:
    """Two callers' second calls run as one, whether their first ones did or ran one after the other."""

    async def main() -> list[list[int]]:
        engine = Engine()

        async def caller(number: int) -> int:
            once = await lane.run_batch(JOB, number, engine.double, kind="first", most=most)
            return await lane.run_batch(JOB, once * 10, engine.double, kind="second", most=8)

        assert [40, 80] == await asyncio.gather(caller(1), caller(2))
        return engine.calls

    assert [*first, [20, 40]] == asyncio.run(main())


def test_who_gives_up_while_waiting_is_left_out(lane: ThreadLane) -> None:
    """Even where the thread comes free in the same moment; a single call is then never made either."""

    async def main() -> tuple[list[list[int]], list[int]]:
        engine = Engine()
        async with busy(lane):
            calls = [
                asyncio.create_task(lane.run_batch(JOB, number, engine.double, kind="a", most=8))
                for number in (1, 2, 3)
            ]
            single = asyncio.create_task(lane.run(JOB, lambda: engine.one(10)))
            await asked()
            calls[1].cancel()
            single.cancel()
        ended = await asyncio.gather(*calls, single, return_exceptions=True)
        assert [False, True, False, True] == [isinstance(each, asyncio.CancelledError) for each in ended]
        return engine.calls, [await lane.run(JOB, lambda: engine.one(7))]

    calls, after = asyncio.run(main())
    assert ([[1, 3], [7]], [14]) == (calls, after)


def test_who_gives_up_during_the_call_harms_nobody(lane: ThreadLane) -> None:
    """The others get their results, and the lane goes on."""

    async def main() -> list[int]:
        loop, begun, go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def held(numbers: Sequence[int]) -> Sequence[int]:
            loop.call_soon_threadsafe(begun.set)
            go.wait(10)
            return numbers

        calls = [asyncio.create_task(lane.run_batch(JOB, n, held, kind="a", most=8)) for n in (1, 2)]
        await begun.wait()
        calls[0].cancel()
        await asked()
        go.set()
        return [await calls[1], await lane.run(JOB, lambda: 3)]

    assert [2, 3] == asyncio.run(main())


def test_only_who_gives_up_asks_a_call_to_make_way(lane: ThreadLane) -> None:
    """Others that wait do not; a call whose caller is gone ends at its next border."""

    async def main() -> list[bool]:
        loop, begun, go, ended = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), asyncio.Event()
        found = [await lane.run_yielding(JOB, lambda border: border.reached())]

        def held(border: Border) -> None:
            loop.call_soon_threadsafe(begun.set)
            go.wait(10)
            found.append(border.reached())
            loop.call_soon_threadsafe(ended.set)

        call = asyncio.create_task(lane.run_yielding(JOB, held))
        await begun.wait()
        call.cancel()
        await asyncio.wait({call})
        go.set()
        await ended.wait()
        return found

    assert [False, True] == asyncio.run(main())


def test_an_error_reaches_all_of_its_batch(lane: ThreadLane) -> None:
    """And nobody else; so does a call that has not one result for each."""

    def fail(numbers: Sequence[int]) -> list[int]:
        raise EngineError(f"failed on {len(numbers)}")

    async def main() -> list[object]:
        async with busy(lane):
            calls = [asyncio.create_task(lane.run_batch(JOB, n, fail, kind="a", most=8)) for n in (1, 2)]
            calls.append(asyncio.create_task(lane.run_batch(JOB, 3, list, kind="b", most=8)))
            calls += [asyncio.create_task(lane.run_batch(JOB, n, lambda _: [0], kind="c", most=8)) for n in (4, 5)]
            await asked()
        return list(await asyncio.gather(*calls, return_exceptions=True))

    first, second, alone, *short = asyncio.run(main())
    assert "failed on 2" == str(first) == str(second)
    assert alone == 3
    assert [AssertionError, AssertionError] == [type(each) for each in short]


def test_closing_refuses_who_waits_and_waits_for_who_runs() -> None:
    """A batch in progress gets its results; those queued, and later ones, an engine's error."""
    lane = ThreadLane("test")

    async def main() -> list[object]:
        loop, begun, go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def held(numbers: Sequence[int]) -> Sequence[int]:
            loop.call_soon_threadsafe(begun.set)
            go.wait(10)
            return numbers

        running = [asyncio.create_task(lane.run_batch(JOB, n, held, kind="a", most=8)) for n in (1, 2)]
        await begun.wait()
        queued = [asyncio.create_task(lane.run_batch(JOB, 3, held, kind="a", most=8))]
        queued.append(asyncio.create_task(lane.run(JOB, lambda: 4)))
        await asked()
        closing = asyncio.create_task(asyncio.to_thread(lane.close))
        refused = await asyncio.gather(*queued, return_exceptions=True)
        assert not closing.done()
        go.set()
        await closing
        late = await asyncio.gather(lane.run(JOB, lambda: 5), return_exceptions=True)
        return [*await asyncio.gather(*running), *refused, *late]

    first, second, *refused = asyncio.run(main())
    assert (1, 2) == (first, second)
    assert [CLOSED] * 3 == [each.message for each in refused if isinstance(each, EngineError)]
    lane.close()


def test_a_loop_that_ends_leaves_the_lane_to_the_next(lane: ThreadLane) -> None:
    """A call that its loop did not wait for keeps the thread; whoever asks on another loop has it afterwards."""
    begun, go = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(10)

    async def leave() -> None:
        call = asyncio.create_task(lane.run(JOB, work))
        await asyncio.to_thread(begun.wait, 10)
        call.cancel()

    async def come() -> int:
        call = asyncio.create_task(lane.run(JOB, lambda: 7))
        await asked()
        go.set()
        return await call

    asyncio.run(leave())
    assert asyncio.run(come()) == 7


def test_each_thread_has_a_call_of_its_own() -> None:
    """Two threads, two calls that need one another."""
    lane = ThreadLane("test", threads=2)
    both = threading.Barrier(2)

    async def main() -> list[int]:
        return sorted(await asyncio.gather(*(lane.run(JOB, lambda: both.wait(10)) for _ in range(2))))

    assert [0, 1] == asyncio.run(main())
    lane.close()
