"""One turn's stamps in -> its waterfall out: rows of bars on one axis, and the parts that its latency adds up from.

Units: parts are int ns and add up exactly; bars are ms from the caller's last speech sample, made for drawing.
Threads: pure, call it from any. It does not know how anything is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.stamps import Mark, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antiphon.core.stamps import Span, TurnTimeline

BEFORE_MS = 400.0  # of the work done while the caller still spoke: enough to see that it was, without dwarfing the gap
AFTER_SHARE = 0.3  # of the latency is shown after the first sound, where the reply goes on and nobody waits


class Colour(StrEnum):
    """What a bar's colour says; the renderers own the palette."""

    NOTICE = "notice"
    HEAR = "hear"
    THINK = "think"
    SPEAK = "speak"
    JUDGE = "judge"
    PLAY = "play"


COLOURS: Mapping[Stage, Colour] = {  # in the order of the rows
    Stage.VAD: Colour.NOTICE,
    Stage.RECOGNISE: Colour.HEAR,
    Stage.PREFILL: Colour.THINK,
    Stage.OPENING: Colour.THINK,
    Stage.PROSODY: Colour.JUDGE,
    Stage.JUDGE: Colour.JUDGE,
    Stage.THINK: Colour.THINK,
    Stage.ACT: Colour.THINK,
    Stage.SPEAK: Colour.SPEAK,
    Stage.PLAY: Colour.PLAY,
}

ORDER: Sequence[Stage] = tuple(COLOURS)

LABELS: Mapping[Stage, str] = {
    Stage.VAD: "voice detection",
    Stage.RECOGNISE: "recognition",
    Stage.PREFILL: "reading ahead",
    Stage.OPENING: "an opening",
    Stage.PROSODY: "tone of voice",
    Stage.JUDGE: "turn end",
    Stage.THINK: "language model",
    Stage.ACT: "tool",
    Stage.SPEAK: "voice",
    Stage.PLAY: "playout",
}

# How a critical path reads when every piece of work was started as early as it could be.
PATH: Sequence[Mark] = (
    Mark.PAUSE_NOTICED,
    Mark.TRANSCRIBED,
    Mark.FIRST_TOKEN,
    Mark.CHUNK_READY,
    Mark.VOICED,
    Mark.CONFIRMED,
    Mark.FIRST_SOUND,
)

PARTS: Mapping[Mark, tuple[str, str, Stage]] = {  # what the time up to a mark was spent on: name, one word, stage
    Mark.PAUSE_NOTICED: ("noticing the pause", "noticing", Stage.VAD),
    Mark.TRANSCRIBED: ("hearing the last words", "hearing", Stage.RECOGNISE),
    Mark.FIRST_TOKEN: ("thinking of the first words", "thinking", Stage.THINK),
    Mark.CHUNK_READY: ("finishing the first chunk", "finishing", Stage.THINK),
    Mark.VOICED: ("voicing it", "voicing", Stage.SPEAK),
    Mark.CONFIRMED: ("waiting to be sure", "waiting", Stage.JUDGE),
    Mark.FIRST_SOUND: ("handing over", "handing over", Stage.PLAY),
}

REACHED: Mapping[Mark, str] = {
    Mark.SPEECH_ENDED: "the caller's last word",
    Mark.PAUSE_NOTICED: "noticing the pause",
    Mark.TRANSCRIBED: "the transcript",
    Mark.FIRST_TOKEN: "the first words",
    Mark.CHUNK_READY: "the first chunk of text",
    Mark.VOICED: "the first chunk of sound",
    Mark.CONFIRMED: "the decision that the turn was over",
    Mark.FIRST_SOUND: "the first sound",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One span on the axis, cut to the window."""

    start_ms: float
    end_ms: float
    duration_ms: float  # of the whole span, whatever the window shows of it
    on_critical_path: bool
    goes_on_before: bool = False  # it began left of the window
    goes_on_after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Bars of one stage and model that do not overlap."""

    label: str
    model: str
    stage: Stage
    colour: Colour
    bars: tuple[Bar, ...]  # by start, never empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of the critical path; from the last speech sample, ns."""

    name: str
    word: str  # the name in one or two words
    stage: Stage
    colour: Colour
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def start_ms(self) -> float:
        return self.start_ns / MILLISECOND_NS

    @property
    def end_ms(self) -> float:
        return self.end_ns / MILLISECOND_NS

    @property
    def rounded_ms(self) -> int:
        """Whole milliseconds between rounded ends, so that the rounded parts add up to the rounded whole."""
        return rounded_ms(self.end_ns) - rounded_ms(self.start_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """All that a renderer needs to draw one turn."""

    turn: int
    total_ns: int | None  # voice to voice; None without a reply, and when the stamps make no sense
    parts: tuple[Part, ...]  # empty exactly when `total_ns` is None, else their durations add up to it
    rows: tuple[Row, ...]
    start_ms: float  # the window
    end_ms: float
    note: str  # why there is no total, for people; empty with one
    warning: bool  # the stamps contradict each other, or the reply came before the caller had finished

    @property
    def rounded_total_ms(self) -> int | None:
        """What the rounded parts add up to."""
        return None if self.total_ns is None else rounded_ms(self.total_ns)


def rounded_ms(ns: int) -> int:
    """The nearest whole millisecond, halves up."""
    return (ns + MILLISECOND_NS // 2) // MILLISECOND_NS


def layout(timeline: TurnTimeline, *, before_ms: float = BEFORE_MS) -> Waterfall:
    """Lay one turn out, with at most `before_ms` of what happened before the caller's last speech sample.

    Stamps that contradict each other never give a negative time: `total_ns` is None then, and `warning` is set.
    """
    origin_ns = origin_of(timeline)
    marks = {mark: at_ns - origin_ns for mark, at_ns in timeline.marks.items()}
    spans = sorted(timeline.spans, key=lambda span: (ORDER.index(span.stage), span.start_ns, span.end_ns))
    total_ns, note, warning = _total(marks)
    parts = () if total_ns is None else _parts(marks, spans, origin_ns)
    start_ms, end_ms = _window(marks, spans, origin_ns, before_ms)
    bars = [(span, _bar(span, origin_ns, parts, (start_ms, end_ms))) for span in spans]
    return Waterfall(
        turn=timeline.turn,
        total_ns=total_ns,
        parts=parts,
        rows=_rows([(span, bar) for span, bar in bars if bar is not None]),
        start_ms=start_ms,
        end_ms=end_ms,
        note=note,
        warning=warning,
    )


def origin_of(timeline: TurnTimeline) -> int:
    """What times count from: the last speech sample, else the first stamp, else 0."""
    if Mark.SPEECH_ENDED in timeline.marks:
        return timeline.marks[Mark.SPEECH_ENDED]
    return min([*timeline.marks.values(), *(span.start_ns for span in timeline.spans)], default=0)


def _total(marks: Mapping[Mark, int]) -> tuple[int | None, str, bool]:
    """The latency, else why there is none, and whether that is suspicious."""
    sound_ns = marks.get(Mark.FIRST_SOUND)
    if Mark.SPEECH_ENDED not in marks:
        return None, "no latency: the end of the caller's speech was never stamped", sound_ns is not None
    if sound_ns is None:
        mark, at_ns = max(marks.items(), key=lambda item: (item[1], list(Mark).index(item[0])))
        return None, f"no reply: it got as far as {REACHED[mark]}, at {rounded_ms(at_ns)} ms", False
    if sound_ns < 0:
        early_ms = rounded_ms(-sound_ns)
        return None, f"no latency: the reply began {early_ms} ms before the caller's last word ended", True
    return sound_ns, "", False


def _parts(marks: Mapping[Mark, int], spans: Sequence[Span], origin_ns: int) -> tuple[Part, ...]:
    """Cut the latency at the marks, each no earlier than the one before it on the path and no later than the sound."""
    path = [mark for mark in _path(marks, spans, origin_ns) if mark in marks]
    cuts = [0]
    for mark in path:
        cuts.append(min(max(marks[mark], cuts[-1]), marks[Mark.FIRST_SOUND]))
    parts = []
    for mark, (start_ns, end_ns) in zip(path, pairwise(cuts), strict=True):
        name, word, stage = PARTS[mark]
        parts.append(Part(name=name, word=word, stage=stage, colour=COLOURS[stage], start_ns=start_ns, end_ns=end_ns))
    return tuple(parts)


def _path(marks: Mapping[Mark, int], spans: Sequence[Span], origin_ns: int) -> list[Mark]:
    """The marks in the order in which each waited for the one before.

    The decision comes late on the path, because a draft is made while it is still open. Where the work behind a
    mark began only after the decision, that work waited for it, so the decision goes in front of that mark:
    otherwise a turn without speculation would call the whole wait "hearing the last words".
    """
    path: list[Mark] = [mark for mark in PATH if mark is not Mark.CONFIRMED]
    decided_ns = marks.get(Mark.CONFIRMED)
    if decided_ns is None:
        return path
    for position, mark in enumerate(path):
        if mark in (Mark.PAUSE_NOTICED, Mark.FIRST_SOUND) or mark not in marks:
            continue
        colour = COLOURS[PARTS[mark][2]]
        starts = [
            span.start_ns - origin_ns
            for span in spans
            if COLOURS[span.stage] is colour and span.start_ns - origin_ns < marks[mark]
        ]
        if starts and max(starts) >= decided_ns:
            return [*path[:position], Mark.CONFIRMED, *path[position:]]
    return list(PATH)


def _window(marks: Mapping[Mark, int], spans: Sequence[Span], origin_ns: int, before_ms: float) -> tuple[float, float]:
    """From where to where the axis runs, ms; never empty."""
    first_ns = min([0, *marks.values(), *(span.start_ns - origin_ns for span in spans)])
    ends_ns = [*marks.values(), *(span.end_ns - origin_ns for span in spans)]
    last_ns = max(0, marks[Mark.FIRST_SOUND] if Mark.FIRST_SOUND in marks else max(ends_ns, default=0))
    start_ms = max(first_ns / MILLISECOND_NS, -before_ms)
    last_ms = last_ns / MILLISECOND_NS
    return start_ms, last_ms + max(AFTER_SHARE * last_ms, 10.0)


def _bar(span: Span, origin_ns: int, parts: Sequence[Part], window: tuple[float, float]) -> Bar | None:
    """The span's bar; None if nothing of it lies in the window."""
    start_ns = span.start_ns - origin_ns
    end_ns = max(start_ns, span.end_ns - origin_ns)
    start_ms, end_ms = start_ns / MILLISECOND_NS, end_ns / MILLISECOND_NS
    if end_ms < window[0] or start_ms > window[1]:
        return None
    critical = any(
        part.colour is COLOURS[span.stage] and min(part.end_ns, end_ns) > max(part.start_ns, start_ns) for part in parts
    )
    return Bar(
        start_ms=max(start_ms, window[0]),
        end_ms=min(end_ms, window[1]),
        duration_ms=end_ms - start_ms,
        on_critical_path=critical,
        goes_on_before=start_ms < window[0],
        goes_on_after=end_ms > window[1],
    )


def _rows(bars: Sequence[tuple[Span, Bar]]) -> tuple[Row, ...]:
    """One row for each stage and model, more where its bars overlap."""
    rows: list[tuple[Stage, str, list[Bar]]] = []
    for span, bar in bars:
        for stage, model, placed in rows:
            if (stage, model) == (span.stage, span.model) and placed[-1].end_ms <= bar.start_ms:
                placed.append(bar)
                break
        else:
            rows.append((span.stage, span.model, [bar]))
    return tuple(
        Row(label=LABELS[stage], model=model, stage=stage, colour=COLOURS[stage], bars=tuple(placed))
        for stage, model, placed in rows
    )
