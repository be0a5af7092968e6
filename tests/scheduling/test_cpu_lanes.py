"""The scheduler with real threads, each of which waits until the test lets it go."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.scheduling.tickets import LANES

from antiphon.core.clock import MonotonicClock
from antiphon.core.errors import EngineError
from antiphon.core.stamps import Stage
from antiphon.scheduling.cpu_lanes import CpuScheduler
from antiphon.scheduling.job import Claim, Job, Urgency, claimed
from antiphon.scheduling.settings import SchedulingSettings
from antiphon.scheduling.shares import Signs

pytestmark = pytest.mark.unit

HOP = Job(stage=Stage.RECOGNISE)
CHUNK = Job(stage=Stage.SPEAK)
WRITING = Job(stage=Stage.THINK)


class House:
    """A scheduler with the usual lanes, and gates that hold its calls."""

    def __init__(self, **rules):
        self.decisions = []
        self.scheduler = CpuScheduler(SchedulingSettings(**rules), cores=2, clock=MonotonicClock())
        self.scheduler.watchers.append(self.decisions.append)
        self.lanes = {name: self.scheduler.lane(facts) for name, facts in LANES.items()}
        self.ran = []

    def gate(self, name):
        opened, began = threading.Event(), threading.Event()

        def call():
            self.ran.append(name)
            began.set()
            assert opened.wait(10)
            return name

        call.open = opened.set
        call.has_begun = lambda: asyncio.to_thread(began.wait, 10)
        return call

    def noting(self, name):
        def call():
            self.ran.append(name)
            return name

        return call

    def start(self, lane, job, call, urgency=Urgency.DRAFT, caller=1):
        with claimed(Claim(caller=caller, urgency=urgency)):
            return asyncio.ensure_future(self.lanes[lane].run(job, call))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for lane in self.lanes.values():
            lane.close()


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20))


def test_the_more_urgent_of_those_that_wait_runs_first():
    async def story():
        async with House() as house:
            gate = house.gate("first")
            tasks = [house.start("recognizer", HOP, gate)]
            await gate.has_begun()
            tasks.append(house.start("recognizer", HOP, house.noting("ahead"), Urgency.AHEAD))
            tasks.append(house.start("recognizer", HOP, house.noting("draft"), Urgency.DRAFT))
            tasks.append(house.start("recognizer", HOP, house.noting("confirmed"), Urgency.CONFIRMED))
            await asyncio.sleep(0)
            gate.open()
            assert await asyncio.gather(*tasks) == ["first", "ahead", "draft", "confirmed"]
            assert house.ran == ["first", "confirmed", "draft", "ahead"]
            told = {decision.urgency: decision for decision in house.decisions[1:]}
            assert told["ahead"].reason == "recognizer is at work for others"
            assert told["ahead"].ahead == (house.decisions[0].number,)

    run(story())


def test_a_job_that_nobody_wants_any_more_never_runs():
    async def story():
        async with House() as house:
            gate = house.gate("first")
            first = house.start("recognizer", HOP, gate)
            await gate.has_begun()
            second = house.start("recognizer", HOP, house.noting("second"))
            await asyncio.sleep(0)
            second.cancel()
            await asyncio.sleep(0)
            gate.open()
            await first
            assert (second.cancelled(), house.ran) == (True, ["first"])
            assert [decision.dropped for decision in house.decisions] == [True, False]

    run(story())


def test_a_result_that_nobody_waits_for_any_more_is_dropped_and_the_lane_goes_on():
    async def story():
        async with House() as house:
            gate = house.gate("first")
            first = house.start("recognizer", HOP, gate)
            await gate.has_begun()
            second = house.start("recognizer", HOP, house.noting("second"))
            await asyncio.sleep(0)
            first.cancel()
            gate.open()
            assert await second == "second"
            assert first.cancelled()

    run(story())


def test_writing_stops_at_a_token_for_a_first_chunk_and_the_rest_is_asked_for_anew():
    async def story():
        async with House() as house:
            tokens, has_begun = [], threading.Event()

            def write(border):
                has_begun.set()
                while len(tokens) < 10_000_000:
                    tokens.append("a")
                    if border.reached():
                        return "made way"
                return "wrote all"

            with claimed(Claim(caller=1, urgency=Urgency.AHEAD)):
                writing = asyncio.ensure_future(house.lanes["model"].run_yielding(WRITING, write))
            await asyncio.to_thread(has_begun.wait, 10)
            chunk = house.start("prosody", Job(stage=Stage.PROSODY), house.noting("chunk"))
            assert await writing == "made way"
            assert await chunk == "chunk"
            assert [decision.made_way for decision in house.decisions] == [True, False]
            assert [decision.can_yield for decision in house.decisions] == [True, False]

    run(story())


def test_those_that_wait_for_the_same_call_share_it_and_each_has_its_own_result():
    async def story():
        async with House() as house:
            calls = []

            def double(items):
                calls.append(list(items))
                return [2 * item for item in items]

            def ask(item, kind="a"):
                return asyncio.ensure_future(house.lanes["recognizer"].run_batch(HOP, item, double, kind=kind, most=4))

            gate = house.gate("first")
            first = house.start("recognizer", HOP, gate)
            await gate.has_begun()
            asked = [ask(1), ask(2, "b"), ask(3)]
            await asyncio.sleep(0)
            gate.open()
            await first
            assert await asyncio.gather(*asked) == [2, 4, 6]
            assert calls == [[1, 3], [2]]
            assert [decision.company for decision in house.decisions] == [0, 1, 1, 0]
            assert [(d.kind, d.most) for d in house.decisions] == [("", 1), ("a", 4), ("a", 4), ("b", 4)]

    run(story())


def test_a_kind_is_written_down_without_the_engine_that_it_names():
    """What another process can compare: an object's address says nothing there."""

    async def story():
        async with House() as house:
            kind = (house, "decode", (500, 384), 4, 0)
            same = lambda items: items  # noqa: E731
            await house.lanes["recognizer"].run_batch(HOP, 1, same, kind=kind, most=4)
            assert [decision.kind for decision in house.decisions] == ["decode (500, 384) 4 0"]

    run(story())


def test_an_error_reaches_all_that_share_the_call_and_nobody_else():
    async def story():
        async with House() as house:

            def fail(items):
                raise EngineError(f"{len(items)} were in it")

            gate = house.gate("first")
            first = house.start("recognizer", HOP, gate)
            await gate.has_begun()
            run_batch = house.lanes["recognizer"].run_batch
            asked = [asyncio.ensure_future(run_batch(HOP, item, fail, kind="a", most=4)) for item in (1, 2)]
            after = house.start("recognizer", HOP, house.noting("after"))
            await asyncio.sleep(0)
            gate.open()
            results = await asyncio.gather(first, *asked, after, return_exceptions=True)
            assert [str(result) for result in results] == ["first", "2 were in it", "2 were in it", "after"]

    run(story())


def test_a_closed_lane_fails_what_waits_and_what_comes():
    async def story():
        async with House() as house:
            gate = house.gate("first")
            first = house.start("recognizer", HOP, gate)
            await gate.has_begun()
            second = house.start("recognizer", HOP, house.noting("second"))
            await asyncio.sleep(0)
            gate.open()
            house.lanes["recognizer"].close()
            assert await first == "first"
            with pytest.raises(EngineError, match="closed"):
                await second
            with pytest.raises(EngineError, match="closed"):
                await house.lanes["recognizer"].run(HOP, house.noting("third"))
            assert await house.lanes["voice"].run(CHUNK, house.noting("other lane")) == "other lane"

    run(story())


def test_tasks_started_on_behalf_of_a_claim_stay_its_own():
    async def story():
        async with House() as house:

            async def later():
                await asyncio.sleep(0)
                return await house.lanes["voice"].run(CHUNK, house.noting("chunk"))

            with claimed(Claim(caller=7, urgency=Urgency.CONFIRMED)):
                task = asyncio.ensure_future(later())
            await house.lanes["prosody"].run(Job(stage=Stage.PROSODY), house.noting("nobody's"))
            await task
            assert {(d.stage, d.caller, d.urgency) for d in house.decisions} == {
                ("text_to_speech", 7, "confirmed"),
                ("antiphon.prosody", 0, "background"),
            }

    run(story())


def test_what_is_heard_moves_the_shares_until_it_is_old():
    async def story():
        async with House() as house:
            assert house.scheduler.signs() == Signs()
            house.scheduler.hears(1, Signs(voiced_frames=3, energy_ratio=0.9))
            house.scheduler.hears(2, Signs(voiced_frames=1, energy_ratio=0.2))
            assert house.scheduler.signs() == Signs(voiced_frames=3, energy_ratio=0.9)
            house.scheduler.leaves(1)
            assert house.scheduler.signs() == Signs(voiced_frames=1, energy_ratio=0.2)

    run(story())


def test_every_job_of_a_crowd_comes_to_its_end():
    async def story():
        async with House() as house:
            tasks = [
                house.start(lane, job, house.noting(number), urgency, caller=number)
                for number in range(50)
                for lane, job in (("recognizer", HOP), ("voice", CHUNK), ("model", WRITING))
                for urgency in (Urgency.CONFIRMED, Urgency.AHEAD)
            ]
            await asyncio.gather(*tasks)
            assert len(house.ran) == len(house.decisions) == len(tasks) == 300

    run(story())
