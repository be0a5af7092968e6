"""What clients are told beyond the protocol, each kind only if the session's `include` names it.

Clients of the protocol may take an event that they do not know for an error, so nobody gets one unasked.
Units: ms. Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.serve.realtime import timeline

if TYPE_CHECKING:
    from antiphon.core.stamps import TurnTimeline
    from antiphon.serve.realtime.call_state import CallState
    from antiphon.serve.realtime.response import Response
    from antiphon.session import events

TURN_END = "antiphon.turn_end"
UNHEARD = "antiphon.unheard"
EXTRAS = (timeline.STAMPS, TURN_END, UNHEARD)
JUDGED_EVENT = "antiphon.turn.end_judged"
UNHEARD_EVENT = "antiphon.response.unheard"
MOST_UNHEARD_CHARS = 20_000  # of one reply; its limit of tokens is far below


class Extras:
    """Of one call."""

    def __init__(self, state: CallState) -> None:
        self._state = state

    def timeline(self, measured: TurnTimeline, response: Response | None) -> None:
        """When each stage of a turn was over; `response` is the present one, if there is one."""
        told = timeline.timeline_wire(measured) if timeline.STAMPS in self._state.fields.extras else None
        if told is None:
            return
        asked = self._state.conversation.standing_for(f"turn-{measured.turn}")
        if response is not None and response.turn != measured.turn:
            response = None
        reply = response.message if response else None
        names = {
            "item_id": asked.id if asked else None,
            "response_id": response.plan.id if response else None,
            "response_item_id": reply.id if reply else None,
        }
        self._state.outbox.put(timeline.EVENT, {**told, **names})

    def judged(self, event: events.TurnEndJudged) -> None:
        """How sure we are by now that the caller's turn is over."""
        if TURN_END not in self._state.fields.extras:
            return
        self._state.outbox.put(
            JUDGED_EVENT,
            {
                "turn": event.turn,
                "silence_ms": round(event.silence_ns / MILLISECOND_NS, 3),
                "probability": round(event.posterior, 4),
                "wait_ms": round(event.wait_ns / MILLISECOND_NS, 3),
                "evidence": list(event.evidence),
                "pause_ms": event.pause_ms,
                "cut_in_risk": event.cut_in_risk,
            },
        )

    def unheard(self, event: events.ReplyFinished, response: Response | None) -> None:
        """What was written of a reply that was broken off, and not heard."""
        if UNHEARD not in self._state.fields.extras or response is None or not event.unheard:
            return
        message = response.message
        self._state.outbox.put(
            UNHEARD_EVENT,
            {
                "response_id": response.plan.id,
                "item_id": message.id if message else None,
                "text": event.unheard[:MOST_UNHEARD_CHARS],
            },
        )
