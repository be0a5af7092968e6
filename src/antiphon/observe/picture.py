"""Waterfalls in -> a PNG out: every turn on the same scale, the silence between the speakers marked.

Units: points on paper (two pixels each), ms on the axis. Threads: blocks for some 0.1 s a turn; keep it off the
event loop. It knows nothing of stamps, and of sound only its level over time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from PIL import Image

from antiphon.core.errors import CallerError
from antiphon.observe.canvas import SCALE, Canvas, ink_on, mixed, shortened, width_of
from antiphon.observe.palette import MEANINGS, PALETTE, ticks_ms
from antiphon.observe.waterfall import Colour, rounded_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from antiphon.observe.waterfall import Bar, Part, Row, Waterfall

WIDTH = 1200  # points
MARGIN = 36
LABELS_MOST = 330  # the left column takes this at most, longer labels are cut
VALUES = 84  # the right column, "12345 ms"
MOST_TURNS = 24  # some 20 million pixels; of a longer conversation the last turns are drawn

TITLE_HEIGHT = 58
LEGEND_HEIGHT = 44
HEADER_HEIGHT = 34
GAP_HEIGHT = 26
STRIP_HEIGHT = 38
PATH_HEIGHT = 34
ROW_HEIGHT = 25
AXIS_HEIGHT = 26
SUM_HEIGHT = 34
BLOCK_SPACE = 20

PAPER = "#ffffff"
INK = "#1f2328"
FAINT = "#6b7280"
GRID = "#e7e9ee"
GAP = "#f3f1e7"
CALLER = "#8a919e"
WARNING = "#b3261e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """How loud the two sides were: (ms from the caller's last speech sample, level from 0 to 1), by time."""

    caller: Sequence[tuple[float, float]] = ()
    reply: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Where a moment lies on paper."""

    start_ms: float
    end_ms: float
    left: float
    right: float

    def x(self, at_ms: float) -> float:
        share = (at_ms - self.start_ms) / (self.end_ms - self.start_ms)
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)

    def shows(self, bar: Bar) -> bool:
        return bar.end_ms >= self.start_ms and bar.start_ms <= self.end_ms


def draw(
    waterfalls: Sequence[Waterfall],
    path: Path,
    *,
    title: str = "From the last word to the first sound",
    sounds: Mapping[int, Sound] | None = None,
) -> None:
    """Draw one or several turns of a conversation, with the level of the sound above the bars for turns in `sounds`.

    Raises:
        CallerError: there is no turn to draw, or the file cannot be written.
    """
    if not waterfalls:
        raise CallerError("there is no turn to draw", hint="a conversation needs at least one turn")
    shown = waterfalls[-MOST_TURNS:]
    if len(shown) < len(waterfalls):
        title += f" (the last {len(shown)} of {len(waterfalls)} turns)"
    axis = _axis(shown)
    pieces = [_title(title)]
    pieces += [_turn(waterfall, axis, (sounds or {}).get(waterfall.turn)) for waterfall in shown]
    pieces.append(_legend())
    page = Image.new("RGB", (WIDTH * SCALE, sum(piece.height for piece in pieces)), PAPER)
    top = 0
    for piece in pieces:
        page.paste(piece, (0, top))
        top += piece.height
    try:
        page.save(path, "PNG")
    except OSError as error:
        raise CallerError(
            f"{path} cannot be written: {error.strerror or error}", hint="name a file in a folder that you may write to"
        ) from error


def _axis(waterfalls: Sequence[Waterfall]) -> _Axis:
    """One scale for all turns; turns without a reply do not stretch it if there are others."""
    answered = [waterfall for waterfall in waterfalls if waterfall.total_ns is not None] or waterfalls
    longest = max((_label_width(row) for waterfall in waterfalls for row in waterfall.rows), default=0.0)
    return _Axis(
        start_ms=min(waterfall.start_ms for waterfall in answered),
        end_ms=max(waterfall.end_ms for waterfall in answered),
        left=MARGIN + max(min(longest, LABELS_MOST), 150) + 16,
        right=WIDTH - MARGIN - VALUES,
    )


def _label_width(row: Row) -> float:
    return width_of(f"{row.label}  {row.model}", 13)


def _title(title: str) -> Image.Image:
    canvas = Canvas(WIDTH, TITLE_HEIGHT, PAPER)
    canvas.words((MARGIN, 36), shortened(title, 24, WIDTH - 2 * MARGIN), size=24, fill=INK)
    return canvas.image()


def _turn(waterfall: Waterfall, axis: _Axis, sound: Sound | None) -> Image.Image:
    """One turn's block, from its header to the sum of its parts."""
    strips = STRIP_HEIGHT * 2 + 8 if sound else 0
    path = PATH_HEIGHT if waterfall.parts else 0
    chart = GAP_HEIGHT + strips + path + ROW_HEIGHT * len(waterfall.rows)
    tail = AXIS_HEIGHT + (SUM_HEIGHT if waterfall.parts else 0) + BLOCK_SPACE
    canvas = Canvas(WIDTH, HEADER_HEIGHT + chart + tail, PAPER)
    _header(canvas, waterfall)
    bottom = HEADER_HEIGHT + chart
    _grid(canvas, axis, HEADER_HEIGHT + GAP_HEIGHT, bottom, waterfall)
    top: float = HEADER_HEIGHT + GAP_HEIGHT
    if sound:
        _strip(canvas, axis, "caller", (sound.caller, CALLER), top)
        _strip(canvas, axis, "Antiphon", (sound.reply, PALETTE[Colour.PLAY]), top + STRIP_HEIGHT)
        top += strips
    if waterfall.parts:
        _path(canvas, axis, waterfall.parts, top)
        top += path
    for row in waterfall.rows:
        _row(canvas, axis, row, top)
        top += ROW_HEIGHT
    if waterfall.parts:
        _sum(canvas, waterfall.parts, bottom + AXIS_HEIGHT + SUM_HEIGHT / 2)
    return canvas.image()


def _header(canvas: Canvas, waterfall: Waterfall) -> None:
    turn = f"turn {waterfall.turn}"
    canvas.line([(MARGIN, 0.5), (WIDTH - MARGIN, 0.5)], fill=GRID)
    canvas.words((MARGIN, 20), turn, size=17, fill=INK)
    left = MARGIN + width_of(turn, 17) + 14
    if waterfall.total_ns is not None:
        canvas.words((left, 20), f"{waterfall.rounded_total_ms} ms", size=17, fill=INK)
        return
    note = shortened(waterfall.note, 15, WIDTH - MARGIN - left)
    canvas.words((left, 20), note, size=15, fill=WARNING if waterfall.warning else FAINT)


def _grid(canvas: Canvas, axis: _Axis, top: float, bottom: float, waterfall: Waterfall) -> None:
    """Ticks, their names below, and the gap as a band behind everything."""
    if waterfall.total_ns is not None:
        sound_ms = waterfall.parts[-1].end_ms
        canvas.box(axis.x(0), top, axis.x(sound_ms), bottom, fill=GAP)
    ticks = ticks_ms(axis.start_ms, axis.end_ms, most=12)
    for tick in ticks:
        canvas.line([(axis.x(tick), top), (axis.x(tick), bottom + 4)], fill=GRID)
        canvas.words((axis.x(tick), bottom + 14), f"{tick}", size=12, fill=FAINT, anchor="mm")
    canvas.words((axis.right + 22, bottom + 14), "ms", size=12, fill=FAINT)
    canvas.line([(axis.left, bottom), (axis.right, bottom)], fill=FAINT)
    if waterfall.total_ns is not None:
        _gap(canvas, axis, waterfall.parts[-1], (top, bottom))


def _gap(canvas: Canvas, axis: _Axis, last: Part, between: tuple[float, float]) -> None:
    """The two moments that latency lies between, and how far they are apart."""
    top, bottom = between
    start, end = axis.x(0), axis.x(last.end_ms)
    for x in (start, end):
        canvas.line([(x, top - 10), (x, bottom)], fill=INK, width=1.25)
    canvas.line([(start, top - 10), (end, top - 10)], fill=INK, width=1.25)
    silence = f"{rounded_ms(last.end_ns)} ms of silence"
    fits = width_of(silence, 13) + 20 < end - start
    line = top - 11
    if fits:
        middle, half = (start + end) / 2, width_of(silence, 13) / 2 + 8
        canvas.box(middle - half, line - 8, middle + half, line + 9, fill=PAPER)
        canvas.words((middle, line), silence, size=13, fill=INK, anchor="mm")
    canvas.words((start - 8, line), "last word", size=12, fill=FAINT, anchor="rm")
    canvas.words((end + 8, line), "first sound" if fits else f"first sound, after {silence}", size=12, fill=FAINT)


def _strip(
    canvas: Canvas, axis: _Axis, name: str, sound: tuple[Sequence[tuple[float, float]], str], top: float
) -> None:
    """One side's level as a shape around a middle line."""
    levels, colour = sound
    middle, half = top + STRIP_HEIGHT / 2, STRIP_HEIGHT / 2 - 3
    canvas.words((MARGIN, middle), name, size=13, fill=INK)
    canvas.line([(axis.left, middle), (axis.right, middle)], fill=mixed(colour, PAPER, 0.5))
    shown = [
        (axis.x(at_ms), half * (min(max(level, 0.0), 1.0) if isfinite(level) else 0.0))
        for at_ms, level in levels
        if axis.start_ms <= at_ms <= axis.end_ms
    ]
    upper = [(x, middle - height) for x, height in shown]
    lower = [(x, middle + height) for x, height in reversed(shown)]
    canvas.polygon(upper + lower, fill=colour)


def _path(canvas: Canvas, axis: _Axis, parts: Sequence[Part], top: float) -> None:
    """The parts end to end, each with its ms where they fit."""
    middle = top + PATH_HEIGHT / 2
    canvas.words((MARGIN, middle), "what it waited for", size=14, fill=INK)
    canvas.words((WIDTH - MARGIN, middle), f"{rounded_ms(parts[-1].end_ns)} ms", size=14, fill=INK, anchor="rm")
    for part in parts:
        left, right = axis.x(part.start_ms), axis.x(part.end_ms)
        fill = PALETTE[part.colour]
        canvas.box(left, top + 4, right - (0.75 if right - left > 2 else 0), top + PATH_HEIGHT - 4, fill=fill)
        value = f"{part.rounded_ms}"
        size = next((size for size in (13, 12, 11) if width_of(value, size) + 5 < right - left), None)
        if size and part.rounded_ms:
            canvas.words(((left + right) / 2, middle), value, size=size, fill=ink_on(fill), anchor="mm")


def _row(canvas: Canvas, axis: _Axis, row: Row, top: float) -> None:
    middle = top + ROW_HEIGHT / 2
    room = axis.left - 16 - MARGIN
    label = shortened(row.label, 13, room)
    canvas.words((MARGIN, middle), label, size=13, fill=INK)
    used = width_of(label + "  ", 13)
    canvas.words((MARGIN + used, middle), shortened(row.model, 13, room - used), size=13, fill=FAINT)
    spent_ms = sum(bar.duration_ms for bar in row.bars)
    value = f"{spent_ms:.0f} ms" if spent_ms >= 1 else "<1 ms"
    canvas.words((WIDTH - MARGIN, middle), value, size=13, fill=FAINT, anchor="rm")
    for bar in row.bars:
        if axis.shows(bar):
            _bar(canvas, axis, bar, PALETTE[row.colour], middle)


def _bar(canvas: Canvas, axis: _Axis, bar: Bar, colour: str, middle: float) -> None:
    """Tall and full on the critical path, low and pale beside it; pointed where it goes on outside the chart."""
    left, right = axis.x(bar.start_ms), axis.x(bar.end_ms)
    right = max(right, left + 2.5)  # never too short to be seen
    half, fill = (8.0, colour) if bar.on_critical_path else (4.5, mixed(colour, PAPER, 0.55))
    canvas.box(left, middle - half, right, middle + half, fill=fill, radius=2.5)
    for goes_on, edge, tip in (
        (bar.goes_on_before and left == axis.left, left, -7.0),
        (right == axis.right and (bar.goes_on_after or bar.end_ms > axis.end_ms), right, 7.0),
    ):
        if goes_on:
            inside = edge - tip / 2  # covers the box's round corners
            sides = ((inside, -half), (edge, -half), (edge + tip, 0.0), (edge, half), (inside, half))
            canvas.polygon([(x, middle + y) for x, y in sides], fill=fill)


def _sum(canvas: Canvas, parts: Sequence[Part], middle: float) -> None:
    """ "96 noticing + 180 hearing = 276 ms", each with its colour, in the size that fits the page."""
    shown = [part for part in parts if part.rounded_ms]
    terms = [f"{part.rounded_ms} {part.word}" for part in shown]
    result = f"=  {rounded_ms(parts[-1].end_ns)} ms"
    for size in (14.0, 12.0, 10.0):
        needed = sum(width_of(term, size) + 16 for term in terms) + width_of("  +  ", size) * len(terms)
        if needed + width_of(result, size) <= WIDTH - 2 * MARGIN:
            break
    x = float(MARGIN)
    for index, (part, term) in enumerate(zip(shown, terms, strict=True)):
        if index:
            canvas.words((x, middle), "  +  ", size=size, fill=FAINT)
            x += width_of("  +  ", size)
        canvas.box(x, middle - 5, x + 10, middle + 5, fill=PALETTE[part.colour], radius=2)
        canvas.words((x + 16, middle), term, size=size, fill=INK)
        x += 16 + width_of(term, size)
    canvas.words((x + (10 if terms else 0), middle), result, size=size, fill=INK)


def _legend() -> Image.Image:
    """What colours and heights mean."""
    canvas = Canvas(WIDTH, LEGEND_HEIGHT, PAPER)
    canvas.line([(MARGIN, 0.5), (WIDTH - MARGIN, 0.5)], fill=GRID)
    x, middle = float(MARGIN), 20.0
    for colour, meaning in MEANINGS.items():
        canvas.box(x, middle - 6, x + 12, middle + 6, fill=PALETTE[colour], radius=2)
        canvas.words((x + 18, middle), meaning, size=12, fill=INK)
        x += 18 + width_of(meaning, 12) + 22
    x += 8
    for half, fill, meaning in (
        (8.0, FAINT, "the reply waited for it"),
        (4.5, mixed(FAINT, PAPER, 0.55), "done meanwhile"),
    ):
        canvas.box(x, middle - half, x + 26, middle + half, fill=fill, radius=2.5)
        canvas.words((x + 33, middle), meaning, size=12, fill=INK)
        x += 33 + width_of(meaning, 12) + 22
    return canvas.image()
