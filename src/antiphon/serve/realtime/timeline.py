"""A turn's stamps in -> what the event holds that tells them to a client that asked for it, an extension of ours.

A client asks by naming STAMPS in its session's `include`; the event comes when the reply begins to sound, or once it is
known that it will not. Units: ms after the caller's last speech sample, to the microsecond. It holds moments and
names of stages, never words or sound. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.stamps import Mark

if TYPE_CHECKING:
    from antiphon.core.stamps import TurnTimeline
    from antiphon.serve.realtime.outbox import Json

STAMPS = "antiphon.timeline"
EVENT = "antiphon.turn.timeline"
SCHEMA = "antiphon.turn.timeline/1"  # the number changes only if a field goes away or changes its meaning
MOST_SPANS = 24  # of one turn; behind the last speech sample there are about ten


def timeline_wire(timeline: TurnTimeline) -> Json | None:
    """The turn's moments and its engines' spans; None where nobody's speech came before it."""
    ended_ns = timeline.marks.get(Mark.SPEECH_ENDED)
    if ended_ns is None:
        return None
    marks = sorted((at_ns, mark) for mark, at_ns in timeline.marks.items() if mark is not Mark.SPEECH_ENDED)
    # What ended while the caller still spoke explains no wait, and there may be hundreds of it.
    spans = [span for span in timeline.spans if span.end_ns > ended_ns][:MOST_SPANS]
    return {
        "schema": SCHEMA,
        "turn": timeline.turn,
        "stages": {str(mark): _ms(at_ns - ended_ns) for at_ns, mark in marks},
        "spans": [
            {"stage": str(span.stage), "start_ms": _ms(span.start_ns - ended_ns), "end_ms": _ms(span.end_ns - ended_ns)}
            for span in spans
        ],
    }


def _ms(ns: int) -> float:
    return round(ns / MILLISECOND_NS, 3)
