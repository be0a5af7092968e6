"""Outcomes of simulations in, a picture out: how late replies were and how busy the cores, over the callers.

Units: points on paper, ms on the axis. Threads: blocks for some 0.1 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log10
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.observe.canvas import Canvas, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from antiphon.scheduling.outcome import Outcome

WIDTH = 1000
PANEL_HEIGHT = 230
TOP, BOTTOM, LEFT, RIGHT, BETWEEN = 84, 56, 84, 40, 52
PAPER, INK, FAINT, GRID = "#ffffff", "#1f2328", "#6b7280", "#e7e9ee"
COLOURS = {"none": "#8a919e", "fifo": "#E69F00", "static": "#56B4E9", "edf": "#CC79A7", "laxity": "#009E73"}
SLOWEST_MS = 20_000.0  # what took longer, or never came, is drawn at the top


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    title: str
    value: Callable[[Outcome], float]  # from 0, at the bottom, to 1
    ticks: tuple[tuple[float, str], ...]


def _height(ms: float) -> float:
    """From 100 ms to 20 s, by ratio."""
    return log10(min(max(ms, 100.0), SLOWEST_MS) / 100.0) / log10(SLOWEST_MS / 100.0)


PERCENT = ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %"))
TIMES = ((100, "0.1 s"), (200, "0.2 s"), (500, "0.5 s"), (1000, "1 s"), (2000, "2 s"), (5000, "5 s"), (20_000, "never"))
PANELS = (
    _Panel(
        title="From the pause to the first sound, P95",
        value=lambda one: _height(one.ready_p95_ms if one.ready_p95_ms is not None else inf),
        ticks=tuple((_height(ms), words) for ms, words in TIMES),
    ),
    _Panel(title="Jobs after their deadline", value=lambda one: one.late, ticks=PERCENT),
    _Panel(title="Cores busy", value=lambda one: min(1.0, one.busy), ticks=PERCENT),
)


def draw(outcomes: Sequence[Outcome], path: Path, *, title: str) -> None:
    """Draw a panel for each figure, with a line for each order.

    Raises:
        CallerError: there is nothing to draw, or the file cannot be written.
    """
    if not outcomes:
        raise CallerError("there is no outcome to draw", hint="simulate at least one number of callers")
    callers = sorted({one.callers for one in outcomes})
    height = TOP + len(PANELS) * (PANEL_HEIGHT + BETWEEN) + BOTTOM
    canvas = Canvas(WIDTH, height, PAPER)
    canvas.words((LEFT, 26), title, size=20, fill=INK)
    _legend(canvas, list(dict.fromkeys(one.order for one in outcomes)))
    for place, panel in enumerate(PANELS):
        _draw(canvas, panel, TOP + place * (PANEL_HEIGHT + BETWEEN) + 30, outcomes, callers)
    canvas.words((WIDTH / 2, height - 24), "callers", size=13, fill=FAINT, anchor="mm")
    try:
        canvas.image().save(path, "PNG")
    except OSError as error:
        raise CallerError(
            f"{path} cannot be written: {error.strerror or error}", hint="name a file in a folder that you may write to"
        ) from error


def _legend(canvas: Canvas, orders: Sequence[str]) -> None:
    left = float(LEFT)
    for order in orders:
        words = "no scheduler" if order == "none" else order
        canvas.line([(left, 58), (left + 24, 58)], fill=COLOURS.get(order, INK), width=3)
        canvas.words((left + 32, 58), words, size=14, fill=INK)
        left += 56 + width_of(words, 14)


def _draw(canvas: Canvas, panel: _Panel, top: float, outcomes: Sequence[Outcome], callers: Sequence[int]) -> None:
    bottom = top + PANEL_HEIGHT
    step = (WIDTH - LEFT - RIGHT) / max(1, len(callers) - 1)
    x = {number: LEFT + place * step for place, number in enumerate(callers)}
    canvas.words((LEFT, top - 16), panel.title, size=15, fill=INK)
    for value, words in panel.ticks:
        y = bottom - value * PANEL_HEIGHT
        canvas.line([(LEFT, y), (WIDTH - RIGHT, y)], fill=GRID)
        canvas.words((LEFT - 10, y), words, size=12, fill=FAINT, anchor="rm")
    for number in callers:
        canvas.words((x[number], bottom + 14), str(number), size=12, fill=FAINT, anchor="mm")
    for order in dict.fromkeys(one.order for one in outcomes):
        mine = sorted((one for one in outcomes if one.order == order), key=lambda one: one.callers)
        points = [(x[one.callers], bottom - panel.value(one) * PANEL_HEIGHT) for one in mine]
        colour = COLOURS.get(order, INK)
        if len(points) > 1:
            canvas.line(points, fill=colour, width=2)
        for left, y in points:
            canvas.box(left - 3, y - 3, left + 3, y + 3, fill=colour, radius=3)
