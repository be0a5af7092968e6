"""A waterfall in -> coloured lines of text for a terminal out.

Bars on the critical path are solid, the others thin lines, so that nothing is lost without colour.
Threads: call it where the console is used. It knows nothing of stamps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from antiphon.observe.palette import PALETTE, ticks_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from antiphon.observe.waterfall import Bar, Row, Waterfall

NARROWEST = 40  # columns; below, lines are as long as here and the terminal cuts them
LABEL_SHARE = 0.34  # of the width at most goes to the labels
TICK_COLUMNS = 8  # "│-1200" and some air
VALUE_COLUMNS = 9  # " 1234 ms"
FEWEST_LETTERS = 5  # of a model's name that are worth showing
PATH_LABEL = "what it waited for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glyphs:
    """The characters that bars are made of."""

    solid: str
    shaded: str  # every other part of the critical path, so that parts are told apart without colour
    line: str
    eighths: str  # a cell filled from the left by 1/8, 2/8 ... 7/8; empty if there are no such glyphs
    right_half: str  # a cell filled in its right half
    upright: str  # marks the last speech sample and the first sound
    ellipsis: str

    @property
    def all(self) -> str:
        return self.solid + self.shaded + self.line + self.eighths + self.right_half + self.upright + self.ellipsis


BLOCKS = Glyphs(solid="█", shaded="▓", line="━", eighths="▏▎▍▌▋▊▉", right_half="▐", upright="│", ellipsis="…")
ASCII = Glyphs(solid="#", shaded="=", line="-", eighths="", right_half="#", upright="|", ellipsis="~")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chart:
    """Where a moment lies in the columns right of the labels."""

    start_ms: float
    end_ms: float
    columns: int
    glyphs: Glyphs

    def column(self, at_ms: float) -> float:
        share = (at_ms - self.start_ms) / (self.end_ms - self.start_ms)
        return min(max(share, 0.0), 1.0) * self.columns


def show(waterfall: Waterfall, console: Console) -> None:
    """Print a waterfall as wide as the console, in colour and fine glyphs as far as it has them."""
    lines = render(waterfall, width=console.width, glyphs=glyphs_for(console.encoding))
    console.print(lines, no_wrap=True, overflow="crop", crop=True, highlight=False)


def glyphs_for(encoding: str) -> Glyphs:
    """The finest glyphs that `encoding` can carry."""
    try:
        BLOCKS.all.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def render(waterfall: Waterfall, *, width: int, glyphs: Glyphs = BLOCKS) -> Text:
    """The title, an axis in ms, the critical path, a line for each row, and the parts that add up."""
    width = max(width, NARROWEST)
    margin = _margin(waterfall, int(width * LABEL_SHARE))
    columns = max(width - margin - VALUE_COLUMNS, 8)
    chart = _Chart(start_ms=waterfall.start_ms, end_ms=waterfall.end_ms, columns=columns, glyphs=glyphs)
    lines = _title(waterfall, width)
    if waterfall.rows or waterfall.parts:
        lines.append(Text(" " * margin) + _axis(chart))
    if waterfall.parts:
        lines.append(_label(PATH_LABEL, "", margin, glyphs) + _path(waterfall, chart))
    lines.extend(_label(row.label, row.model, margin, glyphs) + _row(row, waterfall, chart) for row in waterfall.rows)
    lines.extend(_sum(waterfall, width))
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def sum_of_parts(waterfall: Waterfall) -> str:
    """The parts in one line, "96 noticing + 180 hearing = 276 ms"; whole milliseconds that do add up."""
    return "".join(text for text, _ in _terms(waterfall))


def _terms(waterfall: Waterfall) -> list[tuple[str, str]]:
    """The pieces of the sum with their styles; parts below half a millisecond are left out."""
    if not waterfall.parts:
        return []
    parts = [part for part in waterfall.parts if part.rounded_ms]
    terms = [
        (f"{' + ' if index else ''}{part.rounded_ms} {part.word}", PALETTE[part.colour])
        for index, part in enumerate(parts)
    ]
    return [*terms, (f" = {waterfall.rounded_total_ms} ms" if terms else "0 ms", "bold")]


def _title(waterfall: Waterfall, width: int) -> list[Text]:
    turn = f"turn {waterfall.turn}  "
    if waterfall.total_ns is None:
        indent = " " * len(turn)
        wrapped = wrap(waterfall.note, width, initial_indent=indent, subsequent_indent=indent)
        lines = [Text(line, style="bold red" if waterfall.warning else "italic") for line in wrapped]
        return [Text(turn, style="bold") + lines[0][len(turn) :], *lines[1:]]
    return [Text.assemble((f"{turn}{waterfall.rounded_total_ms} ms", "bold"), " from the last word to the first sound")]


def _margin(waterfall: Waterfall, most: int) -> int:
    """The labels' columns: all of the plain labels, and of the models as much as `most` allows."""
    labels = [row.label for row in waterfall.rows] + ([PATH_LABEL] if waterfall.parts else [])
    full = [f"{row.label} {row.model}" for row in waterfall.rows if row.model]
    shortest = max((cell_len(label) for label in labels), default=0)
    longest = max((cell_len(label) for label in [*labels, *full]), default=0)
    return max(shortest, min(longest, most)) + 1


def _label(label: str, model: str, margin: int, glyphs: Glyphs) -> Text:
    """The label, and its model unless less than a few letters of that would be left."""
    room = margin - 2 - cell_len(label)
    if cell_len(model) > room:
        cut = Text(model)
        cut.truncate(max(room - 1, 0), overflow="crop")
        model = cut.plain + glyphs.ellipsis if room > FEWEST_LETTERS else ""
    text = Text.assemble(label, " ", (model, "dim"))
    text.pad_right(margin - text.cell_len)
    return text


def _axis(chart: _Chart) -> Text:
    """Tick labels, each beginning at its moment; those without room are left out."""
    cells = [" "] * (chart.columns + VALUE_COLUMNS)
    free = 0
    for tick in ticks_ms(chart.start_ms, chart.end_ms, most=max(chart.columns // TICK_COLUMNS, 2)):
        at = min(int(chart.column(tick)), chart.columns - 1)
        text = f"{chart.glyphs.upright}{tick}{' ms' if tick == 0 else ''}"
        if at >= free and at + len(text) <= len(cells):
            cells[at : at + len(text)] = text
            free = at + len(text) + 1
    return Text("".join(cells), style="dim")


def _canvas(waterfall: Waterfall, chart: _Chart) -> list[tuple[str, str]]:
    """An empty line of cells, each a glyph and a style, with the two ends of the latency marked."""
    cells = [(" ", "")] * chart.columns
    if waterfall.total_ns is not None:
        for at_ms in (0.0, waterfall.parts[-1].end_ms if waterfall.parts else 0.0):
            cells[min(int(chart.column(at_ms)), chart.columns - 1)] = (chart.glyphs.upright, "dim")
    return cells


def _path(waterfall: Waterfall, chart: _Chart) -> Text:
    """The parts one after another, to the nearest column: what is too short for one is still named in the sum."""
    cells = _canvas(waterfall, chart)
    shades = cycle((chart.glyphs.solid, chart.glyphs.shaded))
    for part in waterfall.parts:
        columns = range(round(chart.column(part.start_ms)), round(chart.column(part.end_ms)))
        if columns:
            shade = next(shades)
            for column in columns:
                cells[column] = (shade, PALETTE[part.colour])
    return _joined(cells) + Text(f" {f'{waterfall.rounded_total_ms} ms':>8}", style="bold")


def _row(row: Row, waterfall: Waterfall, chart: _Chart) -> Text:
    cells = _canvas(waterfall, chart)
    for bar in row.bars:
        if bar.on_critical_path:
            _fill(cells, chart, (bar.start_ms, bar.end_ms), PALETTE[row.colour])
        else:
            _draw_line(cells, chart, bar, PALETTE[row.colour])
    spent_ms = sum(bar.duration_ms for bar in row.bars)
    return _joined(cells) + Text(f" {_milliseconds(spent_ms):>8}", style="dim")


def _fill(cells: list[tuple[str, str]], chart: _Chart, between_ms: tuple[float, float], colour: str) -> None:
    """Draw a solid bar; its end is exact to an eighth of a cell, its start to half a cell."""
    glyphs = chart.glyphs
    start = min(round(chart.column(between_ms[0]) * 2) / 2, chart.columns - 0.5)
    end = max(round(chart.column(between_ms[1]) * 8) / 8, start + 0.125)
    first = int(start)
    if start > first:
        cells[first] = (glyphs.right_half, colour)
        first += 1
    for column in range(first, min(int(end), chart.columns)):
        cells[column] = (glyphs.solid, colour)
    rest = int((end - int(end)) * 8)
    if rest and first <= int(end) < chart.columns:
        if glyphs.eighths:
            cells[int(end)] = (glyphs.eighths[rest - 1], colour)
        elif rest >= 4 or int(end) == first:
            cells[int(end)] = (glyphs.solid, colour)


def _draw_line(cells: list[tuple[str, str]], chart: _Chart, bar: Bar, colour: str) -> None:
    first = min(int(chart.column(bar.start_ms)), chart.columns - 1)
    last = max(round(chart.column(bar.end_ms)), first + 1)
    for column in range(first, min(last, chart.columns)):
        cells[column] = (chart.glyphs.line, colour)


def _milliseconds(ms: float) -> str:
    return f"{ms:.0f} ms" if ms >= 1 or ms == 0 else "<1 ms"


def _joined(cells: Sequence[tuple[str, str]]) -> Text:
    line = Text()
    for glyph, style in cells:
        line.append(glyph, style=style)
    return line


def _sum(waterfall: Waterfall, width: int) -> list[Text]:
    """The sum of the parts, broken between its terms if it is wider than the terminal."""
    lines: list[Text] = []
    for text, style in _terms(waterfall):
        if not lines or cell_len(lines[-1].plain) + cell_len(text) > width:
            lines.append(Text("  " if lines else ""))
            text = text.lstrip() if len(lines) > 1 else text  # noqa: PLW2901
        lines[-1].append(text, style=style)
    return lines
