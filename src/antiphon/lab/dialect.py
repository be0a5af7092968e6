"""Events of either generation of the protocol in -> today's names out; and what a caller asks for, in either.

Servers speak the names of the protocol's general availability (GA) or those of its beta. What is read is brought to
the former; `session.update` is written in whichever the server's own `session.created` shows.
Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from antiphon.lab.sound_format import format_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antiphon.lab.plan import SessionWishes

Json: TypeAlias = dict[str, Any]

STAMPS = "antiphon.timeline"  # opted into by a session's `include`
TIMELINE = "antiphon.turn.timeline"  # the event that then comes with each turn
BY_HAND = "none"  # a turn detection: the caller commits
GA_NAMES = {
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
    "conversation.item.created": "conversation.item.added",
}
_BETA_FIELDS = ("input_audio_format", "output_audio_format", "modalities", "max_response_output_tokens")


def read_event(text: str) -> Json | None:
    """A server's event under today's name; None if it is none."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        return None
    event["type"] = GA_NAMES.get(event["type"], event["type"])
    return event


def is_beta(session: Mapping[str, object]) -> bool:
    """Whether a server that echoes this session speaks the beta."""
    return "audio" not in session and any(name in session for name in _BETA_FIELDS)


def session_update(wishes: SessionWishes, *, beta: bool) -> Json:
    """The event that asks for it; what is not wished for is not mentioned."""
    session: Json = {name: value for name, value in _shared(wishes).items() if value is not None}
    transcription = {"prompt": wishes.vocabulary} if wishes.vocabulary else None
    sound = format_named(wishes.format)
    detection = _turn_detection(wishes)
    if beta:
        session |= {"modalities": ["audio", "text"], "voice": wishes.voice}
        session |= {"input_audio_format": sound.beta, "output_audio_format": sound.beta}
        session |= {"input_audio_transcription": transcription}
        session = {name: value for name, value in session.items() if value is not None}
        return {"type": "session.update", "session": session | detection}
    listening: Json = {"format": sound.ga, **({"transcription": transcription} if transcription else {}), **detection}
    speaking: Json = {"format": sound.ga, **({"voice": wishes.voice} if wishes.voice else {})}
    session |= {"type": "realtime", "output_modalities": ["audio"], "audio": {"input": listening, "output": speaking}}
    return {"type": "session.update", "session": session}


def _shared(wishes: SessionWishes) -> Json:
    return {"instructions": wishes.instructions}


def _turn_detection(wishes: SessionWishes) -> Json:
    """The field, or nothing where the server's default is wanted."""
    kind = str(wishes.turn_detection)
    if kind == "default":
        return {}
    if kind == BY_HAND:
        return {"turn_detection": None}
    wanted: Json = {"type": kind}
    if wishes.eagerness is not None:
        wanted["eagerness"] = str(wishes.eagerness)
    if wishes.silence_ms is not None:
        wanted["silence_duration_ms"] = wishes.silence_ms
    return {"turn_detection": wanted}
