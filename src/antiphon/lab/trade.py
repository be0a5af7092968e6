"""Runs at several settings -> the trade between latency and cut-ins: their frontier, a table, JSON and a picture.

Trials of one family differ in settings alone and share a frontier; families stand side by side, one policy each.
Units: ms; shares from 0 to 1. Threads: writing blocks. It does not know how a trial was made, live or replayed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from math import isinf
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from antiphon.lab import charts
from antiphon.lab.frontier import Frontier, Point, frontier
from antiphon.lab.statistics import shown_ms
from antiphon.lab.store import write_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from antiphon.lab.summary import Summary

SCHEMA = "antiphon.trade/1"
FILE_NAME = "trade.json"
MOST_ROWS = 30  # of a table on a terminal; the file has all


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One setting of something, and what came of it."""

    name: str
    settings: Mapping[str, object]
    summary: Summary

    @property
    def point(self) -> Point | None:
        """In the plane of cut-ins and latency; None if nothing was measured."""
        p95_ms = self.summary.p95_ms
        return None if p95_ms is None else Point(self.summary.cut_in_share, p95_ms, self.name)


@dataclass(frozen=True, kw_only=True)
class Family:
    """Trials that differ in settings alone."""

    name: str
    trials: tuple[Trial, ...]

    @property
    def points(self) -> list[Point]:
        """Of all trials that measured something."""
        return [point for trial in self.trials if (point := trial.point) is not None]

    @cached_property
    def frontier(self) -> Frontier:
        """What no other trial, and no mixture of two, beats."""
        return frontier(self.points)

    @property
    def best(self) -> tuple[Trial, ...]:
        """The trials on the frontier, from few cut-ins to many."""
        by_point = {id_of(point): trial for trial in self.trials if (point := trial.point) is not None}
        return tuple(by_point[id_of(point)] for point in self.frontier.hull)


def id_of(point: Point) -> tuple[float, float, str]:
    """What tells points apart."""
    return point.cut_in_share, point.p95_ms, point.name


def as_json(families: Sequence[Family], about: Mapping[str, object]) -> dict[str, Any]:
    """For programs; `about` says what the trials have in common. An infinity is null."""
    return {"schema": SCHEMA, **about, "families": [_family_json(family) for family in families]}


def _family_json(family: Family) -> dict[str, Any]:
    found = family.frontier
    return {
        "name": family.name,
        "area": found.area,
        "mean_p95_ms": found.mean_p95_ms,
        "frontier": [trial.name for trial in family.best],
        "trials": [_trial_json(trial) for trial in family.trials],
    }


def _trial_json(trial: Trial) -> dict[str, Any]:
    summary = trial.summary
    return {
        "name": trial.name,
        "settings": dict(trial.settings),
        "turns": summary.turns,
        "measured": summary.measured,
        "cut_ins": summary.cut_ins,
        "cut_in_share": summary.cut_in_share,
        "cut_in_interval": [summary.cut_in_interval.low, summary.cut_in_interval.high],
        "lost": summary.lost,
        "p50_ms": _finite(summary.p50_ms),
        "p95_ms": _finite(summary.p95_ms),
        "p95_interval": [_finite(summary.p95_interval.low), _finite(summary.p95_interval.high)]
        if summary.p95_interval
        else None,
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or isinf(value) else value


def write_trade(families: Sequence[Family], folder: Path, about: Mapping[str, object]) -> list[Path]:
    """Write trade.json, and its picture as PNG if matplotlib is here; return their paths.

    Raises:
        MachineError: they cannot be written.
    """
    written = {FILE_NAME: (json.dumps(as_json(families, about), indent=2, allow_nan=False) + "\n").encode()}
    if charts.can_draw() and any(family.frontier.hull for family in families):
        picture = charts.families({family.name: (family.points, family.frontier) for family in families})
        written[f"{picture.name}.png"] = picture.png
    return write_files(written, folder)


def show_trade(families: Sequence[Family], console: Console) -> None:
    """Each family's frontier, or all of its trials where they are few, and its number."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("policy", no_wrap=True)
    table.add_column("settings", no_wrap=True)
    for heading in ("cut-ins", "P50", "P95", "no reply"):
        table.add_column(heading, justify="right", no_wrap=True)
    for family in families:
        best = set(map(id, family.best))
        shown = family.trials if len(family.trials) <= MOST_ROWS else family.best
        for trial in shown:
            summary = trial.summary
            table.add_row(
                family.name,
                trial.name,
                f"{summary.cut_ins} of {summary.turns}",
                shown_ms(summary.p50_ms),
                shown_ms(summary.p95_ms),
                str(summary.lost),
                style="bold" if id(trial) in best else "dim",
            )
    console.print(table)
    for family in families:
        console.print(Text(words(family)), soft_wrap=True)


def words(family: Family) -> str:
    """A family's frontier in a sentence."""
    found = family.frontier
    count = f"{len(family.trials)} trials, {len(found.hull)} on the frontier"
    if found.mean_p95_ms is None:
        return f"{family.name}: {count}; no area, for none cuts in on 1 % of turns or fewer."
    return f"{family.name}: {count}; P95 {found.mean_p95_ms:.0f} ms on the average from 1 to 20 % of cut-ins."
