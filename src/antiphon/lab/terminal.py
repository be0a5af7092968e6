"""Turns as they come, summaries and comparisons -> what a terminal shows of them.

The progress bar shares the process with the ruler, so it draws itself only when a turn is over, and not more than twice
a second: a thread that redraws would make frames late. Threads: the one that measures.
"""

from __future__ import annotations

import time
from bisect import insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from antiphon.lab import validity
from antiphon.lab.compare import ALL, COMPARED, Verdict, words
from antiphon.lab.result import Outcome
from antiphon.lab.statistics import rank, shown_ms
from antiphon.lab.summary import by_callers, by_kind, by_scenario, capacity, latency_ms, summarise

if TYPE_CHECKING:
    from types import TracebackType

    from antiphon.lab.compare import Comparison, Report
    from antiphon.lab.requirements import Finding
    from antiphon.lab.result import Run, Turn
    from antiphon.lab.summary import Summary

REDRAWN_S = 0.5
LABEL = 12  # columns that a narrow terminal leaves to a row's name
HEADINGS = ("n", "P50 ms", "P95 ms", "max ms", "cut-ins, 95 %", "no reply", "slots")
STYLES = {Verdict.FASTER: "green", Verdict.SLOWER: "red", Verdict.NOISE: "dim", Verdict.UNKNOWN: "dim"}


@dataclass(slots=True)
class Running:
    """The figures of the turns so far, kept in order so that each further turn costs next to nothing."""

    turns: int = 0
    cut_ins: int = 0
    lost: int = 0  # silent, failed or refused
    ordered_ms: list[float] = field(default_factory=list)

    def take(self, turn: Turn) -> None:
        self.turns += 1
        self.cut_ins += turn.outcome is Outcome.CUT_IN
        self.lost += turn.outcome in (Outcome.SILENT, Outcome.FAILED, Outcome.REFUSED)
        if (latency := latency_ms(turn)) is not None:
            insort(self.ordered_ms, latency)

    def __str__(self) -> str:
        if not self.ordered_ms:
            return f"{self.cut_ins} cut-ins" if self.turns else "getting ready"
        p50, p95 = (self.ordered_ms[rank(len(self.ordered_ms), percent) - 1] for percent in (50, 95))
        lost = f", {self.lost} lost" if self.lost else ""
        return f"P50 {shown_ms(p50)}, P95 {shown_ms(p95)}, {self.cut_ins} cut-ins{lost}"


class Bar:
    """A bar on stderr while a run goes on; nothing where stderr is no terminal. Use it as a context manager."""

    def __init__(self, total: int | None, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._running = Running()
        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
        is_shown = self._console.is_terminal
        self._progress = Progress(
            *columns,
            TimeElapsedColumn(),
            console=self._console,
            auto_refresh=False,
            transient=True,
            disable=not is_shown,
        )
        self._task = self._progress.add_task(str(self._running), total=total)
        self._drawn_s = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        self._progress.refresh()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    async def take(self, turn: Turn) -> None:
        """A turn is over."""
        self._running.take(turn)
        self._progress.update(self._task, advance=1, description=str(self._running))
        now_s = time.monotonic()
        if now_s - self._drawn_s >= REDRAWN_S:
            self._drawn_s = now_s
            self._progress.refresh()


def show_run(run: Run, console: Console) -> None:
    """The run's figures as a table, and whether they can be believed."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", min_width=LABEL, overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    kinds, scenarios = by_kind(run), by_scenario(run)
    summaries = [*kinds, *(scenarios if len(scenarios) > 1 else ())]
    levels = by_callers(run)
    summaries += levels.values() if len(levels) > 1 else ()
    if len(kinds) != 1:
        summaries.append(summarise(run.turns, label="all turns"))
    for summary in summaries:
        table.add_row(Text(summary.label), *_cells(summary))
    console.print(table)
    if len(levels) > 1:
        held = capacity(levels)
        ended = f": {held.ended_by}" if held.ended_by else ", and no more were tried"
        console.print(f"holds {held.callers} callers{ended}", markup=False)
    is_void = validity.is_void(run)
    console.print(Text(validity.sentence(run), "bold red" if is_void else "dim"), soft_wrap=True)
    for line in (validity.ruler_sentence(run), *run.notes):
        if line:
            console.print(Text(line, "dim"), soft_wrap=True)


def _cells(summary: Summary) -> list[str]:
    ends = summary.cut_in_interval
    cut_ins = f"{summary.cut_ins} of {summary.turns} ({100 * ends.low:.0f}-{100 * ends.high:.0f})"
    slots = summary.slot_share
    return [
        str(summary.measured),
        *(shown_ms(summary.percentiles_ms[percent]).removesuffix(" ms") for percent in (50, 95, 100)),
        cut_ins if summary.turns else "",
        str(summary.lost),
        "" if slots is None else f"{slots:.1%}",
    ]


def show_findings(findings: list[Finding], *, is_void: bool, console: Console) -> None:
    """Which requirements are met."""
    for finding in findings:
        mark, style = ("met", "green") if finding.is_met else ("not met", "bold red")
        console.print(Text(f"{finding.requirement}: {mark} ({finding.seen})", style))
    if is_void:
        console.print(Text("The run is void, so this says little; measure again on a quiet machine.", "bold red"))


def show_comparison(report: Report, console: Console) -> None:
    """Ratios as a table, then the same in words."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", min_width=LABEL, overflow="fold")
    for heading in ("n", *(f"P{percent} ratio" for percent in COMPARED), "cut-ins"):
        table.add_column(heading, no_wrap=True)
    for comparison in report.comparisons:
        label = "all turns" if comparison.label == ALL else comparison.label
        count = f"{comparison.a.measured}, {comparison.b.measured}"
        cells = [_ratio_cell(comparison, percent) for percent in COMPARED]
        cut_ins = f"{comparison.a.cut_ins}, {comparison.b.cut_ins}"
        table.add_row(Text(label), count, *cells, cut_ins)
    console.print(Text(f"{report.a} against {report.b}", "bold"))
    console.print(table)
    for line in words(report):
        console.print(Text(line, "yellow" if line.startswith("Beware") else ""), soft_wrap=True)


def _ratio_cell(comparison: Comparison, percent: int) -> Text:
    found, verdict = comparison.ratios[percent], comparison.verdict(percent)
    if found is None:
        return Text("unknown", STYLES[verdict])
    ends = "noise" if verdict is Verdict.NOISE else f"({found.interval.low:.2f}-{found.interval.high:.2f})"
    return Text(f"{found.value:.2f} {ends}", STYLES[verdict])
