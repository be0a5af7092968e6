"""Decisions of a running server in, a picture out: what each engine computed for whom, and who waited meanwhile.

A row for each engine, or several where it computes for several callers at once; a caller keeps a colour. A bar is a
call, an outline behind it the time that it waited, a notch at its end that it made way for somebody more urgent.
Units: points on paper, ms on the axis. Threads: blocks for some 0.1 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.observe.canvas import Canvas, ink_on, mixed, shortened, width_of
from antiphon.observe.palette import ticks_ms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from antiphon.scheduling.decisions import Decision

WIDTH = 1400
ROW, GAP, TOP, BOTTOM, LEFT, RIGHT = 26, 5, 88, 44, 150, 30
PAPER, INK, FAINT, GRID = "#ffffff", "#1f2328", "#6b7280", "#e7e9ee"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8a919e", "#7b6d00")  # Okabe and Ito's
MOST_ROWS = 24
NAMES = {
    "quick_recognizer": "quick recognizer",
    "recognizer": "recognizer",
    "language_model": "language model",
    "voice": "voice",
    "prosody": "tone of voice",
}
SHORT = {"speech_to_text": "hear", "antiphon.prefill": "read", "antiphon.turn_end": "judge", "chat": "write"}


@dataclass(frozen=True, slots=True)
class _Scale:
    from_ns: int
    to_ns: int

    def x(self, at_ns: int) -> float:
        share = (min(max(at_ns, self.from_ns), self.to_ns) - self.from_ns) / (self.to_ns - self.from_ns)
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def draw(decisions: Sequence[Decision], path: Path, *, from_ns: int, to_ns: int) -> None:
    """Draw what was asked for or computed in that stretch.

    Raises:
        CallerError: nothing was, the stretch is empty, or the file cannot be written.
    """
    shown = [one for one in decisions if one.asked_ns < to_ns and one.ended_ns > from_ns and not one.dropped]
    if not shown or to_ns <= from_ns:
        raise CallerError("nothing was decided in that stretch", hint="choose another with --from and --for")
    rows = _rows(shown)
    scale = _Scale(from_ns, to_ns)
    height = TOP + len(rows) * (ROW + GAP) + BOTTOM
    canvas = Canvas(WIDTH, height, PAPER)
    canvas.words((LEFT, 24), "Who computed, and who waited", size=20, fill=INK)
    callers = sorted({one.caller for one in shown})
    colours = {caller: COLOURS[place % len(COLOURS)] for place, caller in enumerate(callers)}
    _legend(canvas, colours)
    _axis(canvas, scale, height - BOTTOM)
    named = ""
    for place, (lane, row) in enumerate(rows):
        top = TOP + place * (ROW + GAP)
        if lane != named:
            canvas.words((LEFT - 12, top + ROW / 2), NAMES.get(lane, lane), size=14, fill=INK, anchor="rm")
            named = lane
        for one in row:
            _bar(canvas, one, scale, top, colours[one.caller])
    try:
        canvas.image().save(path, "PNG")
    except OSError as error:
        raise CallerError(
            f"{path} cannot be written: {error.strerror or error}", hint="name a file in a folder that you may write to"
        ) from error


def _rows(shown: Sequence[Decision]) -> list[tuple[str, list[Decision]]]:
    """Lanes in the order of the flow, each with as many rows as its calls need to lie beside each other."""
    lanes = [lane for lane in NAMES if any(one.lane == lane for one in shown)]
    lanes += sorted({one.lane for one in shown} - set(lanes))
    rows: list[tuple[str, list[Decision]]] = []
    for lane in lanes:
        mine: list[list[Decision]] = []
        for one in sorted((each for each in shown if each.lane == lane), key=lambda each: each.asked_ns):
            free = next((row for row in mine if row[-1].ended_ns <= one.asked_ns), None)
            if free is None:
                mine.append([one])
            else:
                free.append(one)
        rows += [(lane, row) for row in mine]
    return rows[:MOST_ROWS]


def _legend(canvas: Canvas, colours: dict[int, str]) -> None:
    left = float(LEFT)
    for caller, colour in list(colours.items())[: len(COLOURS)]:
        words = f"caller {caller}"
        canvas.box(left, 47, left + 22, 59, fill=colour, radius=2)
        canvas.words((left + 28, 53), words, size=13, fill=INK)
        left += 46 + width_of(words, 13)
    canvas.box(left + 8, 47, left + 30, 59, fill=mixed(INK, PAPER, 0.8), radius=2)
    canvas.words((left + 36, 53), "waits", size=13, fill=INK)
    canvas.box(left + 90, 47, left + 94, 59, fill=INK)
    canvas.words((left + 100, 53), "made way", size=13, fill=INK)


def _axis(canvas: Canvas, scale: _Scale, bottom: float) -> None:
    length_ms = (scale.to_ns - scale.from_ns) / MILLISECOND_NS
    for ms in ticks_ms(0, length_ms, most=10):
        x = scale.x(scale.from_ns + round(ms * MILLISECOND_NS))
        canvas.line([(x, TOP - 8), (x, bottom)], fill=GRID)
        canvas.words((x, bottom + 14), f"{ms:g} ms", size=12, fill=FAINT, anchor="mm")


def _bar(canvas: Canvas, one: Decision, scale: _Scale, top: float, colour: str) -> None:
    asked, began, ended = scale.x(one.asked_ns), scale.x(one.began_ns), scale.x(one.ended_ns)
    if began - asked > 1:
        canvas.box(asked, top + ROW * 0.35, began, top + ROW * 0.65, fill=mixed(colour, PAPER, 0.75))
    canvas.box(began, top, max(ended, began + 1.5), top + ROW, fill=colour, radius=2)
    if one.made_way:
        canvas.box(ended - 3, top, ended, top + ROW, fill=INK)
    words = shortened(SHORT.get(one.stage, "speak" if one.lane == "voice" else "judge"), 11, ended - began - 8)
    if words and not words.startswith("."):
        canvas.words((began + 4, top + ROW / 2), words, size=11, fill=ink_on(colour))
