"""Runs of `antiphon bench` over the corpus in; the tables of docs/latency.md out: by kind, by half, by stage.

Settings are chosen on half 0 of the clips (bench/halves.py), so what counts is half 1. A turn without a reply counts as
infinite; one with a cut-in has no latency.

Usage: python bench/corpus_report.py RESULT.json...
"""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.lab.result import Outcome
from antiphon.lab.statistics import percentile, wilson
from antiphon.lab.store import read_run
from antiphon.lab.validity import sentence
from halves import half_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antiphon.lab.result import Turn

COMPLETE = ("clean", "noisy")
STAGES = (  # of the server's own stamps, each from when the one before was reached
    ("noticing the pause", "antiphon.pause.noticed"),
    ("hearing the last words", "antiphon.transcribed"),
    ("the first token", "antiphon.reply.first_token"),
    ("the first chunk", "antiphon.reply.chunk_ready"),
    ("voicing it", "antiphon.reply.voiced"),
    ("being sure", "antiphon.turn.confirmed"),
    ("handing over", "antiphon.reply.first_sound"),
)


def shown(ms: float | None) -> str:
    return "-" if ms is None else "none" if ms == inf else f"{ms:.0f}"


def row(name: str, turns: Sequence[Turn]) -> str:
    heard = [turn for turn in turns if turn.outcome is not Outcome.CUT_IN]
    latencies = [inf if turn.v2v_ms is None else turn.v2v_ms for turn in heard]
    cut_ins = len(turns) - len(heard)
    between = wilson(cut_ins, len(turns))
    slots = sum(len(turn.slots) for turn in turns)
    cells = [
        name,
        str(len(turns)),
        *(shown(percentile(latencies, percent)) for percent in (50, 90, 95, 100)),
        f"{cut_ins} ({between.low:.1%} to {between.high:.1%})",
        str(sum(turn.v2v_ms is None for turn in heard)),
        f"{sum(turn.slots_heard for turn in turns) / slots:.3f}" if slots else "-",
    ]
    return f"| {' | '.join(cells)} |"


def by_kind(turns: Sequence[Turn]) -> Iterable[str]:
    yield "| turns | n | P50 ms | P90 | P95 | max | cut-ins (95 % Wilson) | no reply | slots heard |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for half in (None, 0, 1):
        mine = [turn for turn in turns if half is None or half_of(turn.clip) == half]
        suffix = "" if half is None else f", half {half}"
        for kind in sorted({turn.kind for turn in mine}):
            yield row(f"`{kind}`{suffix}", [turn for turn in mine if turn.kind == kind])
        yield row(f"complete{suffix}", [turn for turn in mine if turn.kind in COMPLETE])


def by_stage(turns: Sequence[Turn]) -> Iterable[str]:
    """What each stage adds to the one before, where all stages are known; a stage that was reached earlier adds 0."""
    added: dict[str, list[float]] = {name: [] for name, _ in STAGES}
    for turn in turns:
        reached = 0.0
        for name, stamp in STAGES:
            at_ms = max(reached, turn.stages_ms.get(stamp, reached))
            added[name].append(at_ms - reached)
            reached = at_ms
    yield "| stage | P50 ms | P95 |"
    yield "|---|---|---|"
    for name, values in added.items():
        yield f"| {name} | {shown(percentile(values, 50))} | {shown(percentile(values, 95))} |"


def slowest(turns: Sequence[Turn]) -> Iterable[str]:
    """The slowest twentieth, and when each stage was reached, in ms since what the server took for the end."""
    ranked = sorted((turn for turn in turns if turn.v2v_ms is not None), key=lambda turn: -(turn.v2v_ms or 0))
    for turn in ranked[: max(1, round(len(ranked) / 20))]:
        stages = ", ".join(f"{name} {turn.stages_ms[stamp]:.0f}" for name, stamp in STAGES if stamp in turn.stages_ms)
        yield f"{turn.clip} ({turn.v2v_ms:.0f} ms): {stages}; heard {turn.transcript!r}"


def main() -> None:
    runs = [read_run(Path(name)) for name in sys.argv[1:]]
    for run in runs:
        print(f"\n{run.machine.get('taken', '')}, commit {run.machine.get('commit', '')}: {sentence(run)}")
        print("\n".join(by_kind(run.turns)))
    turns = [turn for run in runs for turn in run.turns]
    complete = [turn for turn in turns if turn.kind in COMPLETE and turn.outcome is Outcome.ANSWERED]
    print(f"\nStages of {len(complete)} complete turns of {len(runs)} runs")
    print("\n".join(by_stage(complete)))
    print("\nThe slowest twentieth")
    print("\n".join(slowest(complete)))


if __name__ == "__main__":
    main()
