"""Runs of the lab over the blocks of one server -> one run; and runs of several servers -> a table.

Blocks are said minutes apart, with other servers between them, so that what the machine does over time is everybody's.
Pure. Units: as lab/result.py has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antiphon.lab.compare import ALL, compare
from antiphon.lab.result import Outcome
from antiphon.lab.statistics import shown_ms
from antiphon.lab.summary import by_kind, summarise
from antiphon.lab.validity import is_void, reasons

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antiphon.lab.result import Run, Turn
    from antiphon.lab.summary import Summary

SHORTEST_REPLY_MS = 500  # of sound: a sentence is longer
HEADINGS = (
    "server",
    "turns",
    "kind",
    "P50",
    "P95",
    "max",
    "cut-ins",
    "no reply",
    "splits",
    "broken off",
    "slots",
    "P95 against the first",
)


def merged(runs: Sequence[Run], *, name: str, settings: Mapping[str, Any], notes: Sequence[str] = ()) -> Run:
    """All blocks as one run: turns in a row, load by its time, the ruler at its worst."""
    turns: list[Turn] = []
    began_s = 0.0
    for block in runs:
        turns += [
            replace(turn, number=len(turns) + place, started_s=turn.started_s + began_s)
            for place, turn in enumerate(block.turns)
        ]
        began_s = turns[-1].started_s + 1.0 if turns else 0.0
    load = merged_load([run.load for run in runs])
    ruler = {key: max(run.ruler[key] for run in runs if key in run.ruler) for key in runs[0].ruler}
    told = dict.fromkeys(note for run in runs for note in run.notes)
    return replace(
        runs[0], name=name, settings=dict(settings), load=load, ruler=ruler, turns=tuple(turns), notes=(*told, *notes)
    )


def merged_load(loads: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of each share over all blocks' time, each of them holding `ticks`, how long it was.

    One block that is void makes the whole void: a mean over the others would hide it, and its turns are in the figures.
    """
    total = sum(load["ticks"] for load in loads) or 1
    load = {
        key: round(sum(each[key] * each["ticks"] for each in loads) / total, 4) for key in ("steal", "busy_by_others")
    }
    return {**load, "void_blocks": sum(map(bool, map(reasons, loads))), "is_valid": not any(map(reasons, loads))}


def table(runs: Sequence[Run]) -> str:
    """Everybody's figures in Markdown, a line for each kind; the last column sets its P95 against the first run's."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    for run in runs:
        said = {turn.kind for turn in run.turns}
        kinds = [summary for summary in by_kind(run) if summary.label in said]
        summaries = [*kinds, *([summarise(run.turns)] if len(kinds) > 1 else [])]
        lines += ["| " + " | ".join(_cells(run, summary, runs[0])) + " |" for summary in summaries]
    void = [run.name for run in runs if is_void(run)]
    if void:
        lines += ["", f"**Void by the load of the machine: {', '.join(void)}.** Measure again on a quiet machine."]
    lines += ["", *(f"- {run.name}: {note}" for run in runs for note in run.notes)]
    return "\n".join(lines) + "\n"


def broken_off(turns: Sequence[Turn], label: str) -> int:
    """Answers that fell silent as soon as they had begun; their latency is that of an answer nobody got."""
    return sum(
        turn.outcome is Outcome.ANSWERED and (turn.reply_ms or 0) < SHORTEST_REPLY_MS
        for turn in turns
        if label in (turn.kind, ALL)
    )


def _cells(run: Run, summary: Summary, first: Run) -> list[str]:
    figures = [shown_ms(summary.percentiles_ms[percent]) for percent in (50, 95, 100)]
    slots = "" if summary.slot_share is None else f"{summary.slot_share:.2f}"
    return [
        run.name,
        str(summary.turns),
        summary.label,
        *figures,
        f"{summary.cut_ins} of {summary.turns}",
        str(summary.lost),
        str(summary.splits),
        str(broken_off(run.turns, summary.label)),
        slots,
        "" if run is first else against(run, first, summary.label),
    ]


def against(run: Run, first: Run, label: str) -> str:
    """How many times the first one's P95 this one's is, as the lab compares, with its interval; empty if unknown."""
    report = compare(run, first)
    found = [each for each in report.comparisons if each.label == label]
    chosen = found[0] if found else report.comparisons[0]
    ratio = chosen.ratios[95]
    if ratio is None:
        return ""
    return f"{ratio.value:.2f} ({ratio.interval.low:.2f}-{ratio.interval.high:.2f})"
