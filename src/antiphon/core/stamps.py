"""When each stage of a turn began and ended, in the order things happened.

Stages stamp; nothing here counts, prints or decides. Names follow OpenTelemetry's conventions, so that an
exporter can hand them on as they are: `{operation} {model}` for a model's work, `antiphon.*` for our own.
Units: ns of the monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Mark(StrEnum):
    """A moment that every answered turn passes; together they explain the whole of its latency."""

    SPEECH_ENDED = "antiphon.speech.ended"  # the caller's last speech sample was captured
    PAUSE_NOTICED = "antiphon.pause.noticed"  # voice detection called it a pause
    TRANSCRIBED = "antiphon.transcribed"  # the words that the reply answers were known
    FIRST_TOKEN = "antiphon.reply.first_token"  # the language model gave its first piece of text  # noqa: S105
    CHUNK_READY = "antiphon.reply.chunk_ready"  # enough text for the first chunk
    VOICED = "antiphon.reply.voiced"  # the first chunk's sound was there
    CONFIRMED = "antiphon.turn.confirmed"  # the turn was judged to be over
    FIRST_SOUND = "antiphon.reply.first_sound"  # the first audible sample left


class Stage(StrEnum):
    """The operations that spans are named after."""

    VAD = "antiphon.vad"
    PROSODY = "antiphon.prosody"
    RECOGNISE = "speech_to_text"
    PREFILL = "antiphon.prefill"
    OPENING = "antiphon.opening"  # a reply's first chunk, before all words are known
    JUDGE = "antiphon.turn_end"
    THINK = "chat"
    ACT = "execute_tool"
    SPEAK = "text_to_speech"
    PLAY = "antiphon.playout"


@dataclass(frozen=True, slots=True)
class Span:
    """One stage at work."""

    stage: Stage
    start_ns: int
    end_ns: int
    model: str = ""
    attributes: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The span's name as it is exported."""
        return f"{self.stage} {self.model}" if self.model else str(self.stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTimeline:
    """All that was stamped for one turn."""

    turn: int
    marks: Mapping[Mark, int]  # the moments passed, ns
    spans: tuple[Span, ...]  # by start

    @property
    def voice_to_voice_ns(self) -> int | None:
        """From the last speech sample to the first audible reply sample; None without a reply."""
        if Mark.SPEECH_ENDED not in self.marks or Mark.FIRST_SOUND not in self.marks:
            return None
        return self.marks[Mark.FIRST_SOUND] - self.marks[Mark.SPEECH_ENDED]
