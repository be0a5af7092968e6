"""An exchange that is over -> the turn as the result holds it.

Voice-to-voice runs from the moment the last speech sample had been captured to the moment the first audible sample of
the reply is heard; a reply that the server itself takes back is none. A turn that began late has its lateness added: it
counts from when it was due. Audible sound before the true end is a cut-in, and such a turn has no latency.
Units: ns in, ms and seconds out. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.lab.heard import slot_is_heard, word_errors
from antiphon.lab.result import Outcome, Turn

if TYPE_CHECKING:
    from antiphon.lab.clips import Clip
    from antiphon.lab.exchange import Exchange, Reply

NEVER_OVER = "the reply was over before the caller talked over it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which turn of whom it is."""

    clip: Clip
    caller: int
    number: int
    scenario: str
    callers: int
    began_ns: int  # the run
    due_ns: int | None = None
    session: str = ""  # the server's name for the line
    rate_hz: int = 0  # of what is sent on it; 0: not known


def turn_of(exchange: Exchange, place: Place) -> Turn:
    """What is measured of one turn."""
    said, clip = exchange.said, place.clip
    late_ns = 0 if place.due_ns is None else max(0, said.started_ns - place.due_ns)
    outcome, v2v_ns, cut_in_ns = _outcome(exchange)
    transcript = " ".join(text.strip() for text in exchange.transcripts.values() if text.strip())
    errors, words = word_errors(clip.text, transcript) if clip.text else (None, None)
    heard = exchange.answer or next(iter(exchange.audible), None)
    stop_ms, heard_until_ms, kept_error_ms, problem = _barge_in(exchange)
    failures = (reply.failure for reply in exchange.replies.values() if reply.failure)
    return Turn(
        clip=clip.name,
        kind=clip.kind,
        caller=place.caller,
        number=place.number,
        scenario=place.scenario,
        callers=place.callers,
        outcome=outcome,
        started_s=(said.started_ns - place.began_ns) / SECOND_NS,
        due_s=None if place.due_ns is None else (place.due_ns - place.began_ns) / SECOND_NS,
        v2v_ms=None if v2v_ns is None else (v2v_ns + late_ns) / MILLISECOND_NS,
        late_ms=late_ns / MILLISECOND_NS,
        cut_in_ms=None if cut_in_ns is None else cut_in_ns / MILLISECOND_NS,
        splits=max(0, len(exchange.audible) - 1),
        transcript=transcript,
        reply=" ".join(_text(reply) for reply in exchange.replies.values() if reply.texts),
        slots=dict(clip.slots),
        slots_heard=sum(slot_is_heard(value, transcript) for value in clip.slots.values()),
        word_errors=errors,
        words=words,
        reply_ms=_reply_ms(heard),
        gaps_ms=tuple(gap / MILLISECOND_NS for gap in _gaps_ns(exchange)),
        stop_ms=stop_ms,
        heard_until_ms=heard_until_ms,
        truncation_error_ms=kept_error_ms,
        events_ms=_events_ms(exchange, heard),
        stages_ms=dict(exchange.stages_ms),
        session=place.session,
        stream_start_s=said.pos_samples / place.rate_hz if place.rate_hz else None,
        stream_end_s=said.end_samples / place.rate_hz if place.rate_hz else None,
        error="; ".join(text for text in (exchange.lost, *exchange.errors, *failures, problem) if text),
    )


def lost_turn(place: Place, outcome: Outcome, *, at_ns: int, error: str) -> Turn:
    """A turn that was never said, for there was no line."""
    return Turn(
        clip=place.clip.name,
        kind=place.clip.kind,
        caller=place.caller,
        number=place.number,
        scenario=place.scenario,
        callers=place.callers,
        outcome=outcome,
        started_s=(at_ns - place.began_ns) / SECOND_NS,
        due_s=None if place.due_ns is None else (place.due_ns - place.began_ns) / SECOND_NS,
        slots=dict(place.clip.slots),
        error=error,
    )


def _outcome(exchange: Exchange) -> tuple[Outcome, int | None, int | None]:
    """How it went, the latency if it has one, and how early a cut-in came."""
    spoken_ns = exchange.said.spoken_ns
    first = next(iter(exchange.audible), None)
    first_ns = first.first_ns if first else None
    if first_ns is not None and first_ns < spoken_ns:
        return Outcome.CUT_IN, None, spoken_ns - first_ns
    if exchange.lost:
        return Outcome.FAILED, None, None
    answer_ns = exchange.answer.first_ns if exchange.answer else None
    if answer_ns is None:
        has_failed = exchange.errors or any(reply.status == "failed" for reply in exchange.replies.values())
        return (Outcome.FAILED if has_failed else Outcome.SILENT), None, None
    return Outcome.ANSWERED, answer_ns - spoken_ns, None


def _barge_in(exchange: Exchange) -> tuple[float | None, float | None, float | None, str]:
    """When the reply that was talked over fell silent, how much of it was heard, how wrong the server is, a problem."""
    if not exchange.over:
        return None, None, None, ""
    last_ns = max((ns for reply in exchange.over if (ns := reply.last_ns) is not None), default=None)
    if last_ns is None or last_ns < exchange.said.speech_ns:
        return None, None, None, NEVER_OVER
    stop_ms = (last_ns - exchange.said.speech_ns) / MILLISECOND_NS
    stop = exchange.stop
    if stop is None:
        return stop_ms, None, None, ""
    kept = None if stop.kept_ms is None else stop.kept_ms - stop.heard_ms
    return stop_ms, stop.heard_ms, kept, ""


def _text(reply: Reply) -> str:
    return " ".join(text.strip() for text in reply.texts.values() if text.strip())


def _reply_ms(reply: Reply | None) -> float | None:
    if reply is None:
        return None
    return sum(sound.audible_ns for sound in reply.sounds.values()) / MILLISECOND_NS


def _gaps_ns(exchange: Exchange) -> tuple[int, ...]:
    sounds = (sound for reply in exchange.audible for sound in reply.sounds.values())
    return tuple(gap for sound in sounds for gap in sound.gaps_ns(exchange.talked_over_ns))


def _events_ms(exchange: Exchange, reply: Reply | None) -> dict[str, float]:
    came: dict[str, int | None] = dict(exchange.came_ns)
    if reply is not None:
        came |= {"response.created": reply.opened_ns, "response.output_audio.delta": reply.first_sound_ns}
        came["response.done"] = reply.ended_ns
    spoken_ns = exchange.said.spoken_ns
    return {name: (ns - spoken_ns) / MILLISECOND_NS for name, ns in came.items() if ns is not None}
