"""`turn_detection` in, how the conversation takes turns out.

- `server_vad` waits for silence alone: a turn is over after exactly `silence_duration_ms`, whatever was said.
- `semantic_vad` weighs what was said, as the agent does by itself. `eagerness` shifts that: `low` takes a quarter of
  the agent's risk to cut in and waits three times as long at most, `high` takes twice the risk and waits two thirds
  as long; `medium` and `auto` are the agent's own settings.
- null: the client ends turns by `input_audio_buffer.commit` and asks for replies.

Of `server_vad`, `threshold` is the probability from which on a frame counts as voice, and `prefix_padding_ms` how much
of what lies before the first such frame belongs to the turn; else the agent's own are in effect.
Units: milliseconds, for these are settings. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.serve.realtime.errors import MISSING, RefusedError

if TYPE_CHECKING:
    from antiphon.dialogue.settings import TurnSettings
    from antiphon.hear.segmenter import SegmenterSettings
    from antiphon.serve.realtime.fields import Fields

LEAST_THRESHOLD, MOST_THRESHOLD = 0.01, 0.99  # a probability of 0 would always be a voice, one of 1 never
MOST_PADDING_MS = 900  # recognition looks back a second at most, and noticing a voice takes some of that

Eagerness: TypeAlias = Literal["low", "medium", "high", "auto"]
_OFF_PROBABILITY = 0.35  # a voice that is there lasts as long as frames stay at or above it
_LOW_RISK, _LOW_WAIT, _HIGH_RISK, _HIGH_WAIT = 0.25, 3.0, 2.0, 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVad:
    """Silence ends a turn."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    idle_timeout_ms: int | None = None
    create_response: bool = True
    interrupt_response: bool = True

    @property
    def wire(self) -> dict[str, object]:
        return {
            "type": "server_vad",
            "threshold": self.threshold,
            "prefix_padding_ms": self.prefix_padding_ms,
            "silence_duration_ms": self.silence_duration_ms,
            "idle_timeout_ms": self.idle_timeout_ms,
            "create_response": self.create_response,
            "interrupt_response": self.interrupt_response,
        }

    def applied(self, turn: TurnSettings) -> TurnSettings:
        """The agent's own settings with these in place of what they stand for."""
        wait_ms = self.silence_duration_ms
        return replace(turn, shortest_wait_ms=wait_ms, longest_wait_ms=wait_ms, idle_ms=self.idle_timeout_ms or 0)

    def heard(self, ear: SegmenterSettings) -> SegmenterSettings:
        """The same for when a voice counts as there."""
        on = min(max(self.threshold, LEAST_THRESHOLD), MOST_THRESHOLD)
        return replace(
            ear,
            on_probability=on,
            off_probability=min(_OFF_PROBABILITY, on),
            padding_samples=self.prefix_padding_ms * HEARING_RATE_HZ // 1000,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticVad:
    """What was said, and how, ends a turn."""

    eagerness: Eagerness = "auto"
    create_response: bool = True
    interrupt_response: bool = True

    @property
    def wire(self) -> dict[str, object]:
        return {
            "type": "semantic_vad",
            "eagerness": self.eagerness,
            "create_response": self.create_response,
            "interrupt_response": self.interrupt_response,
        }

    def applied(self, turn: TurnSettings) -> TurnSettings:
        """The agent's own settings, shifted."""
        match self.eagerness:
            case "low":
                risk, longest_ms = turn.cut_in_risk * _LOW_RISK, turn.longest_wait_ms * _LOW_WAIT
            case "high":
                risk, longest_ms = turn.cut_in_risk * _HIGH_RISK, turn.longest_wait_ms * _HIGH_WAIT
            case _:
                return turn
        longest_ms = min(max(longest_ms, turn.shortest_wait_ms), 60_000)
        return replace(turn, cut_in_risk=min(max(risk, 0.0001), 1.0), longest_wait_ms=round(longest_ms))

    def heard(self, ear: SegmenterSettings) -> SegmenterSettings:
        """The agent's own: it says nothing about that."""
        return ear


TurnTaking: TypeAlias = ServerVad | SemanticVad | None  # None: by hand


def read_turn_taking(fields: Fields, now: TurnTaking) -> ServerVad | SemanticVad:
    """What a client asks for; of the same kind as `now`, only the fields that are there change.

    Raises:
        RefusedError: a field has a wrong type or value.
    """
    kind = fields.choice("type", "server_vad", "semantic_vad")
    if kind is None and now is None:
        raise RefusedError(f"{fields.at('type')} is missing", code=MISSING, param=fields.at("type"))
    if kind == "semantic_vad" or (kind is None and isinstance(now, SemanticVad)):
        return _read_semantic(fields, now if isinstance(now, SemanticVad) else SemanticVad())
    return _read_server(fields, now if isinstance(now, ServerVad) else ServerVad())


def _read_semantic(fields: Fields, now: SemanticVad) -> SemanticVad:
    eagerness = fields.choice("eagerness", "low", "medium", "high", "auto")
    creates, interrupts = fields.flag("create_response"), fields.flag("interrupt_response")
    return SemanticVad(
        eagerness=now.eagerness if eagerness is None else eagerness,  # type: ignore[arg-type] # `choice` has looked
        create_response=now.create_response if creates is None else creates,
        interrupt_response=now.interrupt_response if interrupts is None else interrupts,
    )


def _read_server(fields: Fields, now: ServerVad) -> ServerVad:
    threshold = fields.number("threshold", 0.0, 1.0)
    padding_ms = fields.whole("prefix_padding_ms", 0, 10_000)
    silence_ms = fields.whole("silence_duration_ms", 0, 10_000)
    idle_ms = fields.whole("idle_timeout_ms", 1, 3_600_000)
    creates, interrupts = fields.flag("create_response"), fields.flag("interrupt_response")
    return ServerVad(
        threshold=now.threshold if threshold is None else threshold,
        prefix_padding_ms=now.prefix_padding_ms if padding_ms is None else min(padding_ms, MOST_PADDING_MS),
        silence_duration_ms=now.silence_duration_ms if silence_ms is None else silence_ms,
        idle_timeout_ms=idle_ms if fields.has("idle_timeout_ms") else now.idle_timeout_ms,
        create_response=now.create_response if creates is None else creates,
        interrupt_response=now.interrupt_response if interrupts is None else interrupts,
    )
