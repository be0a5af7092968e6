"""What the scheduler takes of the event loop for each job, in parts: deciding, handing over, telling.

Regime: the real scheduler with the lanes that the plan has for two cores, and callers whose turns are scripted as real
ones go: looks ahead, a draft (recognised, judged, written while chunks are voiced), all as often as they can. Calls do
no engine's work but leave the caches as engines do: each walks through so many MiB, with the interpreter's lock
released, on a thread of its lane; with 0 MiB the caches stay warm. `told` is with the counters of /metrics, as a server
has them, and `traced` with a file of decisions too.

Times are the loop thread's own processor time (`Overhead`), which other threads cannot lengthen but whose caches they
can empty. Deciding: taking a job in, choosing what begins, noting why others wait, what is learned at its end. Handing:
giving the call to a thread and waking whoever waits for its result. Telling: what became of it, for counters and
traces. A decision is charged to those that wait in equal parts, so a job that waits for long pays for many.
It would be wrong if live jobs met more others than here: how many waited at turns' ends is told.

    python bench/deciding.py [--callers 1,4,16] [--seconds 5] [--out results/deciding.json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.clock import MonotonicClock
from antiphon.core.stamps import Stage
from antiphon.lab.machine import Load, fingerprint
from antiphon.lab.statistics import percentile
from antiphon.scheduling.cpu_lanes import CpuScheduler
from antiphon.scheduling.decisions import DecisionLog
from antiphon.scheduling.job import Claim, Job, Urgency, claimed
from antiphon.scheduling.overhead import PARTS
from antiphon.scheduling.settings import SchedulingSettings
from antiphon.scheduling.ticket import LaneFacts
from antiphon.serve.job_metrics import JobMetrics
from antiphon.serve.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.scheduling.border import Border
    from antiphon.scheduling.cpu_lanes import CpuLane

ROOT = Path(__file__).parents[1]
CORES = 2
MIB = 2**20
TOKENS = 6  # that one call writes
WARM_UP = 200  # jobs


class Engines:
    """Calls that compute nothing, on the lanes of two cores."""

    def __init__(self, scheduler: CpuScheduler, callers: int, mib: float) -> None:
        facts = (
            LaneFacts(name="recognizer", cores=2, nice=5),
            LaneFacts(name="quick_recognizer", cores=1, nice=2),
            LaneFacts(name="prosody", cores=1, nice=5),
            LaneFacts(name="language_model", cores=2, width=2 * callers, shares_cores=True, nice=3),
            LaneFacts(name="voice", cores=1, nice=1),
        )
        self.lanes: dict[str, CpuLane] = {each.name: scheduler.lane(each) for each in facts}
        self._field = np.ones(max(1, round(mib * MIB / 8)))
        self._is_still = mib == 0

    def step(self) -> None:
        """As long as the memory takes: about 0.3 ms for 4 MiB."""
        if not self._is_still:
            self._field.sum()

    def steps(self, count: int) -> Callable[[], None]:
        def call() -> None:
            for _ in range(count):
                self.step()

        return call

    def writing(self, left: list[int]) -> Callable[[Border], bool]:
        """Some tokens; True once all are written."""

        def call(border: Border) -> bool:
            while left[0]:
                self.step()
                left[0] -= 1
                if border.reached():
                    break
            return left[0] == 0

        return call

    def close(self) -> None:
        for lane in self.lanes.values():
            lane.close()


async def hold_turn(engines: Engines, caller: int) -> None:
    """Looks ahead, then a draft that becomes a reply."""
    lanes = engines.lanes
    with claimed(Claim(caller=caller, urgency=Urgency.AHEAD)):
        for _ in range(2):
            await lanes["quick_recognizer"].run(Job(stage=Stage.RECOGNISE, size=40), engines.steps(3))
            await read(engines, Stage.PREFILL)
    draft = Claim(caller=caller, urgency=Urgency.DRAFT)
    with claimed(draft):
        words = lanes["quick_recognizer"].run(Job(stage=Stage.RECOGNISE, size=40), engines.steps(3))
        tone = lanes["prosody"].run(Job(stage=Stage.PROSODY), engines.steps(3))
        await asyncio.gather(words, tone)
        await read(engines, Stage.JUDGE)
        again = engines.lanes["recognizer"].run_batch(
            Job(stage=Stage.RECOGNISE, size=12),
            None,
            lambda items: [engines.step() for _ in items],
            kind="decode",
            most=4,
        )
        await asyncio.gather(reply(engines, draft), again)


async def read(engines: Engines, stage: Stage) -> None:
    left = [2]
    while not await engines.lanes["language_model"].run_yielding(Job(stage=stage, size=16), engines.writing(left)):
        pass


async def reply(engines: Engines, claim: Claim) -> None:
    """Three chunks; each is voiced while the next one is written."""
    voicing: list[asyncio.Task[None]] = []
    for _ in range(3):
        left = [TOKENS]
        while not await engines.lanes["language_model"].run_yielding(
            Job(stage=Stage.THINK, size=TOKENS), engines.writing(left)
        ):
            pass
        chunk = engines.lanes["voice"].run(Job(stage=Stage.SPEAK, size=30), engines.steps(2))
        voicing.append(asyncio.ensure_future(chunk))
        claim.urgency = Urgency.CONFIRMED
    await asyncio.gather(*voicing)


async def measure(callers: int, mib: float, watched: str, seconds: float) -> dict[str, object]:
    """One cell."""
    scheduler = CpuScheduler(SchedulingSettings(), cores=CORES, clock=MonotonicClock())
    engines = Engines(scheduler, callers, mib)
    crowd: list[int] = []
    with tempfile.TemporaryDirectory() as folder, DecisionLog(Path(folder) / "jobs.jsonl") as log:
        if watched != "alone":
            JobMetrics(Metrics()).follow(scheduler)
        if watched == "traced":
            scheduler.watchers.append(log.write)
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds

        async def talk(caller: int) -> None:
            while loop.time() < ends:
                await hold_turn(engines, caller)
                crowd.append(len(scheduler._waiting))  # noqa: SLF001 - it tells nobody else

        load = Load()
        await asyncio.gather(*(talk(number + 1) for number in range(callers)))
        report = load.report()
    engines.close()
    overhead = scheduler.overhead
    found = {part: told(overhead.part(part).times_ns) for part in PARTS}
    return {
        "callers": callers,
        "mib_a_step": mib,
        "watched": watched,
        "jobs": overhead.jobs,
        "waiting": {"mean": round(float(np.mean(crowd)), 1), "max": max(crowd)},
        "load": report,
        "us_a_job": found,
    }


def told(times_ns: object) -> dict[str, float | int]:
    """Of the latest jobs."""
    times = [time_ns / 1000 for time_ns in times_ns][WARM_UP:]  # type: ignore[attr-defined]
    return {
        "n": len(times),
        "mean": round(float(np.mean(times)), 1),
        **{f"p{percent}": round(percentile(times, percent), 1) for percent in (50, 95, 99)},
        "max": round(max(times), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", default="1,4,16", help="a comma list")
    parser.add_argument("--mib", default="0,4", help="that each step of a call walks through; 0: still")
    parser.add_argument("--watched", default="alone,told,traced")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each cell")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "deciding.json")
    arguments = parser.parse_args()
    cells = []
    for mib in arguments.mib.split(","):
        for count in arguments.callers.split(","):
            for watched in arguments.watched.split(","):
                cell = asyncio.run(measure(int(count), float(mib), watched, arguments.seconds))
                print(json.dumps(cell), file=sys.stderr, flush=True)
                cells.append(cell)
    result = {
        "schema": "antiphon.deciding/1",
        "command": " ".join(sys.argv),
        "machine": fingerprint(),
        "cells": cells,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
