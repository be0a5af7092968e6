"""One turn's timeline in -> a dict for JSON out, under a schema that only grows.

    schema            "antiphon.timeline/1"; the number changes only if a field goes away or changes its meaning
    turn              int, as in the conversation
    voice_to_voice_ms float, or null without a reply and when the stamps contradict each other
    note              why voice_to_voice_ms is null, in plain English; "" otherwise
    warning           true if the stamps contradict each other or the reply cut in
    parts             [{name, stage, start_ms, duration_ms}], by time; the durations add up to voice_to_voice_ms
    marks             {mark's name: ms}
    spans             [{name, stage, model, start_ms, end_ms, attributes}], by start

Units: ms, relative to the caller's last speech sample (to the first stamp if that is missing); they have six
decimals, so no nanosecond is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from antiphon.core.clock import MILLISECOND_NS
from antiphon.observe.waterfall import layout, origin_of

if TYPE_CHECKING:
    from antiphon.core.stamps import TurnTimeline

SCHEMA = "antiphon.timeline/1"


class PartRecord(TypedDict):
    """A stretch of the critical path."""

    name: str
    stage: str
    start_ms: float
    duration_ms: float


class SpanRecord(TypedDict):
    """One stage at work."""

    name: str
    stage: str
    model: str
    start_ms: float
    end_ms: float
    attributes: dict[str, str | int | float | bool]


class TimelineRecord(TypedDict):
    """One turn, ready for `json.dumps`."""

    schema: str
    turn: int
    voice_to_voice_ms: float | None
    note: str
    warning: bool
    parts: list[PartRecord]
    marks: dict[str, float]
    spans: list[SpanRecord]


def describe(timeline: TurnTimeline) -> TimelineRecord:
    """The turn as plain values."""
    origin = origin_of(timeline)
    waterfall = layout(timeline)
    return TimelineRecord(
        schema=SCHEMA,
        turn=timeline.turn,
        voice_to_voice_ms=None if waterfall.total_ns is None else waterfall.total_ns / MILLISECOND_NS,
        note=waterfall.note,
        warning=waterfall.warning,
        parts=[
            PartRecord(
                name=part.name,
                stage=str(part.stage),
                start_ms=part.start_ms,
                duration_ms=part.duration_ns / MILLISECOND_NS,
            )
            for part in waterfall.parts
        ],
        marks={
            str(mark): (at_ns - origin) / MILLISECOND_NS
            for mark, at_ns in sorted(timeline.marks.items(), key=lambda item: item[1])
        },
        spans=[
            SpanRecord(
                name=span.name,
                stage=str(span.stage),
                model=span.model,
                start_ms=(span.start_ns - origin) / MILLISECOND_NS,
                end_ms=(span.end_ns - origin) / MILLISECOND_NS,
                attributes=dict(span.attributes),
            )
            for span in timeline.spans
        ],
    )
