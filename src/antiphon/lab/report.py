"""A run -> report.html, which can be read by itself, and its pictures as PNG beside it.

The page holds every figure with the number of turns it rests on, P95 never without cut-ins, and first of all whether
the run can be believed. Pictures need the extra `lab`; without it the page has its tables and says how to get them.
It holds what callers said and what they were answered. Threads: blocks for some seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lab import charts, sections
from antiphon.lab.charts import Spot
from antiphon.lab.frontier import Point, frontier
from antiphon.lab.page import Markup, element, page, section
from antiphon.lab.store import write_files
from antiphon.lab.summary import by_kind, summarise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from antiphon.lab.charts import Chart
    from antiphon.lab.frontier import Frontier
    from antiphon.lab.result import Run
    from antiphon.lab.summary import CapacityLimits

FILE_NAME = "report.html"


def write_report(
    run: Run, folder: Path, *, others: Sequence[Run] = (), limits: CapacityLimits | None = None
) -> list[Path]:
    """Write the page and its pictures into `folder` and return their paths, the page's first.

    `others` are runs to stand beside this one where latency is shown against cut-ins.

    Raises:
        MachineError: a file cannot be written.
    """
    pictures, hull = _pictures(run, others) if charts.can_draw() else [], _hull((run, *others))
    written = {FILE_NAME: render(run, pictures, others=others, hull=hull, limits=limits).encode()}
    written |= {f"{picture.name}.png": picture.png for picture in pictures}
    return write_files(written, folder)


def _spots(run: Run, others: Sequence[Run]) -> list[Spot]:
    """Several runs each as a whole; one run by its kinds."""
    if others:
        return [Spot(name=other.name, summary=summarise(other.turns, label=other.name)) for other in (run, *others)]
    kinds = {turn.kind for turn in run.turns}  # without the line that holds several of them
    return [Spot(name=summary.label, summary=summary) for summary in by_kind(run) if summary.label in kinds]


def _hull(runs: Sequence[Run]) -> Frontier | None:
    if len(runs) == 1:
        return None
    summaries = [(other.name, summarise(other.turns)) for other in runs]
    return frontier(
        Point(summary.cut_in_share, summary.p95_ms, name) for name, summary in summaries if summary.p95_ms is not None
    )


def _pictures(run: Run, others: Sequence[Run]) -> list[Chart]:
    found = charts.of_run(run)
    return [*found, charts.trade(_spots(run, others), _hull((run, *others)))] if found else found


def render(
    run: Run,
    pictures: Sequence[Chart] = (),
    *,
    others: Sequence[Run] = (),
    hull: Frontier | None = None,
    limits: CapacityLimits | None = None,
) -> str:
    """The page's text."""
    parts = [
        sections.head(run),
        sections.banner(run),
        sections.headline(run),
        sections.capacity_line(run, limits),
        sections.groups(run),
        _runs(run, others, hull),
        _charts(run, pictures),
        sections.waterfalls(run),
        sections.more(run),
        sections.circumstances(run),
        sections.every_turn(run),
        sections.definitions_of_terms(),
    ]
    return page(f"{run.name}: voice-to-voice latency", [part for part in parts if part])


def _runs(run: Run, others: Sequence[Run], hull: Frontier | None) -> Markup:
    if not others:
        return Markup("")
    return section("Latency against cut-ins, run by run", sections.run_table((run, *others)), sections.hull_words(hull))


def _charts(run: Run, pictures: Sequence[Chart]) -> Markup:
    if not pictures:
        drawn = charts.can_draw()
        why = "No turn was answered, so there is nothing to draw." if drawn else (
            f"The pictures need matplotlib, which is not installed: {charts.INSTALL}, then `antiphon bench report` "
            "on the folder of this page makes it again with pictures."
        )  # fmt: skip
        return section("Pictures", element("p", why))
    figures = [
        Markup(
            "<figure>"
            + element("figcaption", picture.title)
            + f'<div role="img" aria-label="{picture.title}. {picture.note}">{picture.svg}</div>'
            + element("p", picture.note, kind="note")
            + "</figure>"
        )
        for picture in pictures
    ]
    no_gaps = "" if any(turn.gaps_ms for turn in run.turns) else "No reply had a gap in it."
    return section("Pictures", element("div", *figures, kind="charts"), element("p", no_gaps) if no_gaps else "")
