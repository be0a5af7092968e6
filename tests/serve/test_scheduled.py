"""A server whose runtime has a scheduler: whom it refuses, what it counts, what it reads anew."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import replace

import pytest
from tests.scheduling.tickets import LANES
from tests.serve.doubles import engines, house, running
from websockets.asyncio.client import connect

from antiphon.config import Config
from antiphon.core.clock import MonotonicClock
from antiphon.core.stamps import Stage
from antiphon.loading import Lanes
from antiphon.runtime import Runtime
from antiphon.scheduling.admission import Pressure
from antiphon.scheduling.cpu_lanes import CpuScheduler
from antiphon.scheduling.decisions import Decision
from antiphon.scheduling.job import Job
from antiphon.scheduling.settings import SchedulingSettings

pytestmark = pytest.mark.unit


class Pressed(CpuScheduler):
    """Its cores are as busy as it is told."""

    busy = 0.1

    def pressure(self, callers: int) -> Pressure:
        return Pressure(callers=callers, busy=self.busy, wait_p95_ms=0)


def scheduled(settings: SchedulingSettings | None = None) -> tuple[Runtime, Pressed]:
    scheduler = Pressed(settings or SchedulingSettings(), cores=2, clock=MonotonicClock())
    runtime = Runtime(engines().engines, conversations=4)
    runtime._lanes = Lanes(scheduler=scheduler)
    return runtime, scheduler


async def loaded(runtime: Runtime) -> Runtime:
    return runtime


def test_a_caller_for_whom_there_is_no_time_is_told_to_come_again():
    """The present one stays; the server's words name no figures, its log does."""

    async def story():
        runtime, scheduler = scheduled()
        async with running(house(load=lambda: loaded(runtime))) as place:
            async with connect(place.url) as present:
                while not runtime.seated:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                scheduler.busy = 0.6
                async with connect(place.url) as late:
                    told = json.loads(await late.recv())
                    await late.wait_closed()
                    refused = (told["error"]["code"], told["error"]["message"], late.close_code)
                assert present.close_code is None
                scheduler.adjust(replace(scheduler.rules, admission=False))
                async with connect(place.url):
                    async with asyncio.timeout(5):
                        while len(runtime.seated) < 2:  # noqa: ASYNC110
                            await asyncio.sleep(0)
            return refused, place.sample("antiphon_sessions_refused_total", reason="busy")

    refused, count = asyncio.run(story())
    words = "the server is too busy for one more conversation; try again later"
    assert ("session_limit_reached", words, 1013) == refused
    assert count == 1


def test_jobs_are_counted_by_stage_and_class():
    async def story():
        runtime, scheduler = scheduled()
        lane = scheduler.lane(LANES["voice"])
        async with running(house(load=lambda: loaded(runtime))) as place:
            await lane.run(Job(stage=Stage.SPEAK, estimate_ns=1_000_000), lambda: None)
            counts = (
                place.sample("antiphon_job_wait_seconds_count", stage="text_to_speech", urgency="background"),
                place.sample("antiphon_job_seconds_count", stage="text_to_speech"),
                place.sample("antiphon_job_estimate_ratio_count", stage="text_to_speech"),
                place.sample("antiphon_scheduler_jobs"),
                place.sample("antiphon_cores_busy_ratio"),
            )
        lane.close()
        return counts

    assert asyncio.run(story()) == (1, 1, 1, 1, 0.1)


def test_a_hangup_signal_brings_the_thresholds_that_the_settings_have_now():
    async def story():
        runtime, scheduler = scheduled()
        anew = [Config(scheduling=SchedulingSettings(hear_share=0.7))]
        async with running(replace(house(load=lambda: loaded(runtime)), reread=anew.pop)):
            os.kill(os.getpid(), signal.SIGHUP)
            async with asyncio.timeout(5):
                while anew:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            return scheduler.rules.hear_share

    assert asyncio.run(story()) == 0.7


def test_a_decision_says_in_words_what_became_of_a_job():
    decision = Decision(
        number=7,
        caller=2,
        stage="chat",
        lane="language_model",
        size=0,
        urgency="draft",
        asked_ns=0,
        began_ns=12_000_000,
        ended_ns=20_000_000,
        deadline_ns=150_000_000,
        estimate_ns=0,
        reason="2 of 2 cores are taken, it needs 2",
    )
    assert str(decision) == (
        "chat for caller 2 waited 12.0 ms, because 2 of 2 cores are taken, it needs 2; it took 8.0 ms"
    )
