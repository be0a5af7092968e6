"""What the scheduler is worth, live: servers with and without each of its parts, the same callers, blocks in turn.

Regime: `antiphon serve examples/barista.py` as a process of its own for each block, real models, loopback, callers on
the same cores, everybody admitted. A block is so many callers who each speak TURNS turns, a turn due every PERIOD_S (an
open loop, docs/lab.md), after one turn that is thrown away. Blocks of one number of callers are held with one server
after the other, in an order that turns from round to round, so that whatever the machine does is everybody's.

`draft_ready_ms`: from when the pause was noticed to when the reply's first sound was there, by the server's own stamps
of turns that were answered; `v2v_ms` is measured from outside. `voice_late_ms` is the event loop's lag, where voice
detection and playout run: how late a frame is looked at; upper edges of buckets. `gaps_per_minute` are silences in a
reply at the caller. `overhead`: what the scheduler costs the event loop for each job, in parts. Percentiles are nearest
ranks over the turns of all rounds; ratios to the server that has everything come with a bootstrap over clips.

A block is void as any run of the lab is, and one void block makes the whole row void. What would falsify it: lag that
grows with the lab's own work; so the lab's share of a core is written down.

Usage: python bench/scheduling.py [--callers 1,2,4] [--parts scheduling,laxity,...] [--rounds N] [--turns N] [--out F]
       python bench/scheduling.py --overload [--out F]     4 callers, then 16, on a server that admits as planned
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.core.stamps import Mark
from antiphon.lab.compare import compare
from antiphon.lab.machine import Load, fingerprint
from antiphon.lab.measure import measure
from antiphon.lab.plan import BenchPlan
from antiphon.lab.result import Outcome, Run
from antiphon.lab.schedule import CALLERS, Habits
from antiphon.lab.statistics import percentile
from antiphon.lab.summary import summarise
from antiphon.scheduling import overhead as costs
from peers.merging import merged
from server_process import Lag, ServerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.lab.result import Turn
    from antiphon.lab.statistics import Ratio

ROOT = Path(__file__).parents[1]
PERIOD_S = 14.0  # a clip of 3 to 6 s, the wait, and most of a reply
ALL_PARTS = "everything"
PARTS = ("scheduling", "laxity", "yielding", "overtaking", "shares", "batching", "one-thread")
NOTICED, VOICED, FIRST_SOUND = str(Mark.PAUSE_NOTICED), str(Mark.VOICED), str(Mark.FIRST_SOUND)
FEW, MANY = 4, 16
# No part that can be left out, but what the plan chose otherwise: how calls of two threads get on.
ONE_THREAD = "one-thread"
FLAGS = {
    ALL_PARTS: (),
    ONE_THREAD: ("--set", "cpu.language_model_threads=2", "--set", "cpu.recognizer_threads=2"),
}


@dataclass(slots=True)
class Cell:
    """One server's blocks with one number of callers."""

    name: str
    callers: int
    runs: list[Run] = field(default_factory=list)
    pages: list[tuple[dict[str, float], dict[str, float]]] = field(default_factory=list)  # of metrics, before and after
    seconds: float = 0.0

    @property
    def run(self) -> Run:
        """All its blocks."""
        return merged(self.runs, name=self.name, settings=self.runs[0].settings)

    @property
    def turns(self) -> Sequence[Turn]:
        return self.run.turns

    def report(self, base: Run | None) -> dict[str, object]:
        """Its figures, and its P95 against the server that has everything."""
        whole = self.run
        summary = summarise(whole.turns)
        minutes = self.seconds / 60
        gaps = [gap for turn in whole.turns for gap in turn.gaps_ms]
        lags = [Lag.between(before, after) for before, after in self.pages]
        figures: dict[str, object] = {
            "server": self.name,
            "callers": self.callers,
            "is_valid": whole.load.get("is_valid"),
            "load": dict(whole.load),
            "turns": summary.turns,
            "answered": summary.answered,
            "cut_ins": summary.cut_ins,
            "refused": sum(turn.outcome is Outcome.REFUSED for turn in whole.turns),
            "draft_ready_ms": spread(between(whole.turns, NOTICED, VOICED)),
            "pause_to_sound_ms": spread(between(whole.turns, NOTICED, FIRST_SOUND)),
            "v2v_ms": spread([turn.v2v_ms for turn in whole.turns if turn.v2v_ms is not None]),
            "voice_late_p999_ms": max((lag.p999_ms or 0.0 for lag in lags), default=None),
            "voice_late_max_ms": max((lag.longest_ms or 0.0 for lag in lags), default=None),
            "gaps_per_minute": len(gaps) / minutes,
            "gap_max_ms": max(gaps, default=0.0),
            "lab_core_share": max(run.ruler.get("run_cpu_share", 0.0) for run in self.runs) * self.callers,
            "overhead": overhead(self.pages, self.seconds),
        }
        if base is not None:
            ratios = compare(whole, base).comparisons[0].ratios
            figures["against_everything"] = {f"p{percent}": told(ratios[percent]) for percent in (50, 95)}
        return figures


def told(found: Ratio | None) -> dict[str, float | bool] | None:
    """A ratio with its interval, as JSON takes it."""
    if found is None:
        return None
    return {"ratio": found.value, "low": found.interval.low, "high": found.interval.high, "is_noise": found.is_noise}


def between(turns: Sequence[Turn], start: str, end: str) -> list[float]:
    """From one stamp of the server's to another, of turns that were answered and have both."""
    return [
        turn.stages_ms[end] - turn.stages_ms[start]
        for turn in turns
        if turn.outcome is Outcome.ANSWERED and start in turn.stages_ms and end in turn.stages_ms
    ]


def spread(values: Sequence[float]) -> dict[str, float | int | None]:
    """What is said of a list of times."""
    if not values:
        return {"n": 0, "p50": None, "p95": None, "max": None}
    return {
        "n": len(values),
        "p50": round(percentile(values, 50), 1),
        "p95": round(percentile(values, 95), 1),
        "max": round(max(values), 1),
    }


def overhead(pages: Sequence[tuple[dict[str, float], dict[str, float]]], seconds: float) -> dict[str, object] | None:
    """Of the scheduler on the event loop, by what for: mean and P99 for each job in us; and its share of a core."""
    jobs = sum(
        after.get("antiphon_scheduler_jobs", 0) - before.get("antiphon_scheduler_jobs", 0) for before, after in pages
    )
    if not jobs:
        return None
    found: dict[str, object] = {"jobs": jobs}
    whole_s = 0.0
    for part in costs.PARTS:
        total = f'antiphon_scheduler_seconds{{part="{part}"}}'
        p99 = f'antiphon_scheduler_job_p99_seconds{{part="{part}"}}'
        took_s = sum(after[total] - before[total] for before, after in pages)
        whole_s += took_s
        found[part] = {
            "mean_us": took_s / jobs * 1e6,
            "p99_us": max(after.get(p99, 0.0) for _, after in pages) * 1e6,
        }
    return {**found, "core_share": whole_s / seconds}


async def hold(
    cell: Cell, arguments: argparse.Namespace, *, flags: Sequence[str], seed: int, trace: Path | None
) -> None:
    """One block of one server."""
    sets = [str(arguments.agent), *flags, *(word for one in arguments.set for word in ("--set", one))]
    if trace is not None:
        sets += ["--trace-decisions", str(trace)]
    async with ServerProcess(sets) as server:
        plan = BenchPlan(
            url=server.url,
            name=cell.name,
            corpus=arguments.corpus,
            kinds=tuple(arguments.kinds.split(",")),
            callers=cell.callers,
            turns=cell.callers * arguments.turns,
            scenario=CALLERS,
            seed=seed,
        )
        habits = Habits(period_s=PERIOD_S, warm_up=1, ruler_turns=0)
        before = await server.metrics()

        async def tell(turn: Turn) -> None:
            took = f"{turn.v2v_ms:.0f} ms" if turn.v2v_ms is not None else str(turn.outcome)
            print(f"{cell.name}, {cell.callers} callers: {turn.clip} {took}", file=sys.stderr, flush=True)

        load = Load(server.pid)
        run = await measure(plan, on_turn=tell, habits=habits)
        cell.runs.append(replace(run, load={**load.report(), "ticks": 1}))  # the server's own work is no others' load
        cell.pages.append((before, await server.metrics()))
    cell.seconds += max((turn.started_s for turn in run.turns), default=0.0) + PERIOD_S


def turned(names: Sequence[str], number: int) -> list[str]:
    """Another one begins each round, and every second round goes backwards."""
    first = number % len(names)
    order = [*names[first:], *names[:first]]
    return order[::-1] if number % 2 else order


async def compare_parts(arguments: argparse.Namespace) -> dict[str, object]:
    """Every part left out in turn, for each number of callers."""
    cells: list[Cell] = []
    traces = Path(tempfile.mkdtemp(prefix="decisions-")) if arguments.traces is None else arguments.traces
    traces.mkdir(parents=True, exist_ok=True)
    for word in arguments.callers.split(","):
        count = int(word)
        parts = [part for part in arguments.parts.split(",") if part]
        if count < arguments.all_parts_from and parts:
            parts = ["scheduling", ONE_THREAD]
        names = [ALL_PARTS, *parts]
        row = {name: Cell(name if name == ALL_PARTS else f"without {name}", count) for name in names}
        for number in range(arguments.rounds):
            for name in turned(names, number):
                flags = ["--set", f"capacity.conversations={max(4, count)}", "--without", "admission"]
                flags += FLAGS.get(name, ("--without", name))
                trace = traces / f"{count}-callers.jsonl" if name == ALL_PARTS else None
                await hold(row[name], arguments, flags=flags, seed=arguments.seed + number, trace=trace)
        cells += row.values()
        for cell in row.values():
            print(json.dumps(cell.report(None if cell.name == ALL_PARTS else row[ALL_PARTS].run)), flush=True)
    bases = {cell.callers: cell.run for cell in cells if cell.name == ALL_PARTS}
    return {
        "cells": [cell.report(None if cell.name == ALL_PARTS else bases[cell.callers]) for cell in cells],
        "each": [each(cell) for cell in cells],
    }


async def overload(arguments: argparse.Namespace) -> dict[str, object]:
    """As many callers as are admitted, then four times as many."""
    cells = [Cell(ALL_PARTS, FEW), Cell(ALL_PARTS, MANY)]
    for number in range(arguments.rounds):
        for cell in cells:
            await hold(cell, arguments, flags=[], seed=arguments.seed + number, trace=None)
    few, many = cells
    return {
        "cells": [few.report(None), many.report(few.run)],
        "each": [each(cell) for cell in cells],
    }


def each(cell: Cell) -> dict[str, object]:
    """Every turn's times, without what was said."""
    return {
        "server": cell.name,
        "callers": cell.callers,
        "turns": [
            {
                "clip": turn.clip,
                "outcome": str(turn.outcome),
                "v2v_ms": turn.v2v_ms,
                "gaps_ms": list(turn.gaps_ms),
                "stages_ms": dict(turn.stages_ms),
            }
            for turn in cell.turns
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--agent", type=Path, default=ROOT / "examples" / "barista.py")
    parser.add_argument("--callers", default="1,2,4", help="how many at once, a comma list")
    parser.add_argument("--parts", default=",".join(PARTS), help="left out in turn; '' for none")
    parser.add_argument(
        "--all-parts-from",
        type=int,
        default=4,
        help="with fewer callers only `scheduling` and `one-thread` are left out",
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5, help="of each caller in a block")
    parser.add_argument("--kinds", default="clean,noisy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--traces", type=Path, help="folder that keeps the decisions of the server that has everything")
    parser.add_argument("--overload", action="store_true", help="4 callers, then 16")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    arguments.out = arguments.out or ROOT / "results" / ("overload.json" if arguments.overload else "scheduling.json")
    found = asyncio.run(overload(arguments) if arguments.overload else compare_parts(arguments))
    result = {
        "schema": "antiphon.scheduling/1",
        "command": " ".join(sys.argv),
        "machine": fingerprint(),
        "period_s": PERIOD_S,
        "rounds": arguments.rounds,
        "turns_of_each": arguments.turns,
        **found,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
