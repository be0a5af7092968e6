"""A whole conversation in -> one strip of paper: who spoke when, what was heard of it, and how the turns changed hands.

Two lanes over time, the caller's and ours. Between them each silence from the caller's last word to our first sound;
under them the tools that were used. A reply that was cut shows where, and what nobody heard of it in grey.
Units: ms since the conversation began, points on paper (two pixels each). Threads: blocks for some 0.1 s a row; keep it
off the event loop. It knows nothing of stamps and events.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite
from typing import TYPE_CHECKING

from PIL import Image

from antiphon.core.errors import CallerError
from antiphon.observe.canvas import SCALE, Canvas, mixed, shortened, width_of
from antiphon.observe.palette import PALETTE, ticks_ms
from antiphon.observe.picture import CALLER, FAINT, GAP, GRID, INK, MARGIN, PAPER, TITLE_HEIGHT, WARNING, WIDTH
from antiphon.observe.waterfall import Colour

if TYPE_CHECKING:
    from collections.abc import Sequence

ROW_MS = 30_000.0  # a longer conversation gets several rows: a second is then never less than 34 points wide
MOST_ROWS = 8  # 13 million pixels; of a longer conversation the last minutes are drawn
LEFT = MARGIN + 84  # the lanes' names
RIGHT = WIDTH - MARGIN

LINE = 17
LINES = 3  # of a turn's or a reply's text
TEXT = 13.0
SMALL = 12.0
LANE = 46
BETWEEN = 26  # the silences
TOOL_ROW = 22
TOOL_ROWS = 3
AXIS = 30
LEGEND = 36

OURS = PALETTE[Colour.PLAY]
TOOL = PALETTE[Colour.THINK]
DECIDED = PALETTE[Colour.JUDGE]
UNHEARD = "#a3aab5"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerTurn:
    """What the caller said, and when it was taken to be over."""

    start_ms: float
    end_ms: float  # the last speech sample
    text: str
    decided_ms: float | None = None  # None: it never was
    sound_ms: float | None = None  # our first sound; None: there was none


@dataclass(frozen=True, slots=True, kw_only=True)
class OurReply:
    """What we said."""

    start_ms: float
    end_ms: float
    heard: str
    unheard: str = ""  # what was written and never heard, as far as that is known
    is_cut: bool = False  # the caller took the turn
    soft: tuple[tuple[float, float], ...] = ()  # when it sounded softer for a voice over it
    silent: tuple[tuple[float, float], ...] = ()  # when it was held


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool at work."""

    start_ms: float
    end_ms: float
    name: str
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """All that the strip shows, each by time; levels are (ms, 0 to 1)."""

    length_ms: float
    turns: Sequence[CallerTurn] = ()
    replies: Sequence[OurReply] = ()
    tools: Sequence[ToolUse] = ()
    caller: Sequence[tuple[float, float]] = ()
    ours: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class _Window:
    """The stretch of time that one row shows."""

    start_ms: float
    end_ms: float

    def x(self, at_ms: float) -> float:
        share = (at_ms - self.start_ms) / (self.end_ms - self.start_ms)
        return LEFT + min(max(share, 0.0), 1.0) * (RIGHT - LEFT)

    def shows(self, start_ms: float, end_ms: float) -> bool:
        return start_ms < self.end_ms and end_ms >= self.start_ms


def draw_conversation(conversation: Conversation, *, title: str = "Who spoke when") -> Image.Image:
    """The strip, as wide as the waterfalls' picture.

    Raises:
        CallerError: it has no length.
    """
    if not (isfinite(conversation.length_ms) and conversation.length_ms > 0):
        raise CallerError("there is no conversation to draw", hint="it needs sound of some length")
    count = max(1, ceil(conversation.length_ms / ROW_MS))
    long_ms = conversation.length_ms / count
    windows = [_Window(number * long_ms, (number + 1) * long_ms) for number in range(count)][-MOST_ROWS:]
    if len(windows) < count:
        title += f" (from {windows[0].start_ms / 1000:.0f} s on)"
    pieces = [_title(title), *(_row(conversation, window) for window in windows), _legend(conversation)]
    page = Image.new("RGB", (WIDTH * SCALE, sum(piece.height for piece in pieces)), PAPER)
    top = 0
    for piece in pieces:
        page.paste(piece, (0, top))
        top += piece.height
    return page


def _title(title: str) -> Image.Image:
    canvas = Canvas(WIDTH, TITLE_HEIGHT - 8, PAPER)
    canvas.words((MARGIN, 36), shortened(title, 24, WIDTH - 2 * MARGIN), size=24, fill=INK)
    return canvas.image()


def _row(conversation: Conversation, window: _Window) -> Image.Image:
    turns = [turn for turn in conversation.turns if window.shows(turn.start_ms, turn.end_ms)]
    replies = [reply for reply in conversation.replies if window.shows(reply.start_ms, reply.end_ms)]
    tools = _stacked([tool for tool in conversation.tools if window.shows(tool.start_ms, tool.end_ms)], window)
    said = _texts([(turn.start_ms, turn.text, "") for turn in turns], window)
    answered = _texts([(reply.start_ms, reply.heard, reply.unheard) for reply in replies], window)
    above, below = (max((len(lines) for _, lines in texts), default=1) * LINE for texts in (said, answered))
    tool_rows = max((row for row, _ in tools), default=-1) + 1
    caller_top = 8.0 + above + 4
    ours_top = caller_top + LANE + BETWEEN
    tools_top = ours_top + LANE + 4 + below + 4
    bottom = tools_top + tool_rows * TOOL_ROW
    canvas = Canvas(WIDTH, round(bottom + AXIS), PAPER)
    _grid(canvas, window, (caller_top, bottom))
    _silences(canvas, conversation.turns, window, (caller_top, ours_top))
    for name, top, levels, colour in (
        ("caller", caller_top, conversation.caller, CALLER),
        ("Antiphon", ours_top, conversation.ours, OURS),
    ):
        canvas.words((MARGIN, top + LANE / 2), name, size=TEXT, fill=INK)
        _wave(canvas, window, levels, top, colour)
    for reply in replies:
        _quieter(canvas, window, reply, ours_top)
    _write(canvas, said, 8.0 + above, upwards=True)
    _write(canvas, answered, ours_top + LANE + 4, upwards=False)
    for row, tool in tools:
        _tool(canvas, window, tool, tools_top + row * TOOL_ROW)
    if tools:
        canvas.words((MARGIN, tools_top + TOOL_ROW / 2), "tools", size=TEXT, fill=INK)
    return canvas.image()


def _grid(canvas: Canvas, window: _Window, between: tuple[float, float]) -> None:
    top, bottom = between
    for tick in ticks_ms(window.start_ms, window.end_ms, most=16):
        x = window.x(tick)
        canvas.line([(x, top), (x, bottom + 4)], fill=GRID)
        canvas.words((x, bottom + 14), f"{tick / 1000:g} s", size=SMALL, fill=FAINT, anchor="mm")
    canvas.line([(LEFT, bottom), (RIGHT, bottom)], fill=FAINT)


def _wave(canvas: Canvas, window: _Window, levels: Sequence[tuple[float, float]], top: float, colour: str) -> None:
    """One side's level as a shape around a middle line."""
    middle, half = top + LANE / 2, LANE / 2 - 3
    canvas.line([(LEFT, middle), (RIGHT, middle)], fill=mixed(colour, PAPER, 0.5))
    shown = [
        (window.x(at_ms), half * (min(max(level, 0.0), 1.0) if isfinite(level) else 0.0))
        for at_ms, level in levels
        if window.start_ms <= at_ms <= window.end_ms
    ]
    upper = [(x, middle - height) for x, height in shown]
    lower = [(x, middle + height) for x, height in reversed(shown)]
    canvas.polygon(upper + lower, fill=colour)


def _silences(canvas: Canvas, turns: Sequence[CallerTurn], window: _Window, tops: tuple[float, float]) -> None:
    """From the last word to the first sound, with its length; the decision is a mark inside."""
    caller_top, ours_top = tops
    for turn in turns:
        end_ms = turn.sound_ms if turn.sound_ms is not None else turn.decided_ms
        if end_ms is None or not window.shows(turn.end_ms, end_ms):
            continue
        left, right = window.x(turn.end_ms), window.x(end_ms)
        middle = caller_top + LANE + BETWEEN / 2
        canvas.box(left, caller_top + 2, right, ours_top + LANE - 2, fill=GAP)
        for x in (left, right):
            canvas.line([(x, middle - 6), (x, middle + 6)], fill=INK, width=1.25)
        canvas.line([(left, middle), (right, middle)], fill=INK, width=1.25)
        if turn.decided_ms is not None:
            x = window.x(turn.decided_ms)
            canvas.polygon([(x - 4, middle - 5), (x + 4, middle - 5), (x, middle + 4)], fill=DECIDED)
        if turn.sound_ms is not None and turn.sound_ms <= window.end_ms:
            told = f"{turn.sound_ms - turn.end_ms:.0f} ms"
        else:
            told = "no reply"
        room = right + 8 + width_of(told, SMALL) < RIGHT
        x = right + 7 if room else left - 7
        canvas.words((x, middle), told, size=SMALL, fill=INK, anchor="lm" if room else "rm")


def _quieter(canvas: Canvas, window: _Window, reply: OurReply, top: float) -> None:
    """Where it sounded softer, was held, or was cut."""
    for spans, fill in ((reply.soft, DECIDED), (reply.silent, WARNING)):
        for start_ms, end_ms in spans:
            if window.shows(start_ms, end_ms):
                left, right = window.x(start_ms), max(window.x(end_ms), window.x(start_ms) + 3)
                canvas.box(left, top + LANE - 5, right, top + LANE - 1, fill=fill, radius=2)
    if reply.is_cut and window.shows(reply.end_ms, reply.end_ms):
        x = window.x(reply.end_ms)
        canvas.line([(x, top - 2), (x, top + LANE)], fill=WARNING, width=2)
        canvas.words((x + 6, top + 7), "cut", size=SMALL, fill=WARNING)


def _tool(canvas: Canvas, window: _Window, tool: ToolUse, top: float) -> None:
    left, right = window.x(tool.start_ms), max(window.x(tool.end_ms), window.x(tool.start_ms) + 4)
    canvas.box(left, top + 5, right, top + TOOL_ROW - 5, fill=WARNING if tool.failed else TOOL, radius=3)
    room = right + 6 + width_of(_named(tool), SMALL) < RIGHT
    x = right + 6 if room else left - 6
    canvas.words((x, top + TOOL_ROW / 2), _named(tool), size=SMALL, fill=INK, anchor="lm" if room else "rm")


def _named(tool: ToolUse) -> str:
    told = f"{shortened(tool.name, SMALL, 260)}, {tool.end_ms - tool.start_ms:.0f} ms"
    return f"{told}, failed" if tool.failed else told


def _stacked(tools: Sequence[ToolUse], window: _Window) -> list[tuple[int, ToolUse]]:
    """Each tool with the first row in which it and its words touch no other; past TOOL_ROWS they share the last."""
    ends = [float("-inf")] * TOOL_ROWS
    placed = []
    for tool in sorted(tools, key=lambda tool: tool.start_ms):
        left = window.x(tool.start_ms)
        row = next((row for row, end in enumerate(ends) if end < left), TOOL_ROWS - 1)
        ends[row] = max(window.x(tool.end_ms), left + 4) + 6 + width_of(_named(tool), SMALL) + 12
        placed.append((row, tool))
    return placed


# Words.

_Lines = list[list[tuple[str, str]]]  # of each line the runs: (words, colour)


def _texts(texts: Sequence[tuple[float, str, str]], window: _Window) -> list[tuple[float, _Lines]]:
    """Where each text begins, and its lines; each has the room up to the next."""
    lefts = [window.x(start_ms) for start_ms, _, _ in texts]
    placed = []
    for place, (_, plain, grey) in enumerate(texts):
        right = lefts[place + 1] - 12 if place + 1 < len(texts) else RIGHT
        left = min(lefts[place], RIGHT - 160.0) if place + 1 == len(texts) else lefts[place]
        placed.append((left, _wrapped(plain, grey, max(right - left, 30.0))))
    return placed


def _wrapped(plain: str, grey: str, room: float) -> _Lines:
    """The words in at most LINES lines of `room` points; what does not fit is an ellipsis."""
    coloured = [(word, INK) for word in plain.split()] + [(word, UNHEARD) for word in grey.split()]
    lines: list[list[tuple[str, str]]] = [[]]
    for word, colour in coloured:
        so_far = " ".join(each for each, _ in lines[-1])
        if lines[-1] and width_of(f"{so_far} {word}", TEXT) > room:
            if len(lines) == LINES:
                lines[-1][-1] = (lines[-1][-1][0] + "...", lines[-1][-1][1])
                break
            lines.append([])
        lines[-1].append((shortened(word, TEXT, room), colour))
    return [_runs(line) for line in lines]


def _runs(line: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbours of one colour joined, so that their spaces are the font's."""
    runs: list[tuple[str, str]] = []
    for word, colour in line:
        if runs and runs[-1][1] == colour:
            runs[-1] = (f"{runs[-1][0]} {word}", colour)
        else:
            runs.append((f" {word}" if runs else word, colour))
    return runs


def _write(canvas: Canvas, texts: Sequence[tuple[float, _Lines]], edge: float, *, upwards: bool) -> None:
    """The lines below `edge`, or the last of them just above it."""
    for left, lines in texts:
        top = edge - len(lines) * LINE if upwards else edge
        for number, runs in enumerate(lines):
            x = left
            for words, colour in runs:
                canvas.words((x, top + (number + 0.5) * LINE), words, size=TEXT, fill=colour)
                x += width_of(words, TEXT)


def _legend(conversation: Conversation) -> Image.Image:
    """What marks and colours mean, as far as they were used."""
    canvas = Canvas(WIDTH, LEGEND, PAPER)
    x, middle = float(LEFT), 14.0
    canvas.polygon([(x, middle - 5), (x + 8, middle - 5), (x + 4, middle + 4)], fill=DECIDED)
    x = _meaning(canvas, x + 14, middle, "taken to be over")
    canvas.box(x, middle - 6, x + 14, middle + 6, fill=GAP)
    x = _meaning(canvas, x + 20, middle, "silence up to our first sound")
    replies = conversation.replies
    for used, fill, meaning in (
        (any(reply.soft for reply in replies), DECIDED, "softer: a voice over it"),
        (any(reply.silent for reply in replies), WARNING, "held until it was clear what that voice said"),
    ):
        if used:
            canvas.box(x, middle - 2, x + 18, middle + 2, fill=fill, radius=2)
            x = _meaning(canvas, x + 24, middle, meaning)
    if any(reply.is_cut for reply in replies):
        canvas.line([(x, middle - 7), (x, middle + 7)], fill=WARNING, width=2)
        x = _meaning(canvas, x + 8, middle, "the caller took the turn")
    if any(reply.unheard for reply in replies):
        canvas.words((x, middle), "grey", size=SMALL, fill=UNHEARD)
        _meaning(canvas, x + width_of("grey ", SMALL) + 4, middle, "words that were never heard")
    return canvas.image()


def _meaning(canvas: Canvas, x: float, middle: float, words: str) -> float:
    """Write what a mark means; where the next mark begins."""
    canvas.words((x, middle), words, size=SMALL, fill=INK)
    return x + width_of(words, SMALL) + 22
