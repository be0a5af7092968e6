"""What a conversation may order. The session carries each out; results come back as stimuli.

A draft's number stays its number when it becomes the reply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from antiphon.core.flow import Message
    from antiphon.dialogue.stimuli import Timer
    from antiphon.dialogue.turn_end import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """A turn begins: recognise from here on."""

    turn: int
    from_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcribe:
    """Find out what the turn says so far; answer with TranscriptGrew."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Let the language model read ahead; the last message is still open."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDraft:
    """The caller paused: find out what the turn says, by all that was heard until now (DraftTranscribed, DraftFailed).

    The silence belongs to it: cut at the last frame that counts as voice, words lose their soft ends.
    """

    draft: int
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeVoice:
    """The words leave doubt: find out how finished the voice sounds (ProsodyJudged)."""

    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReply:
    """Measure the end mass, then write and voice a reply, unheard (EndMassMeasured, DraftVoiced, DraftFailed)."""

    draft: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDraft:
    """The draft was for nothing: stop all work on it. Nobody will ever know of it."""

    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmTurn:
    """The turn is over and says this."""

    turn: int
    draft: int
    text: str
    posterior: float  # how sure we were that it was over
    evidence: Evidence  # why
    forced: bool  # not judged: it had lasted too long, or the sound had ended


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonTurn:
    """The voice said nothing that wants an answer: there was no such turn."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayDraft:
    """Let the draft be heard, from now or from when it is ready; answer with ReplyEnded."""

    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReply:
    """The caller took the turn back: silence, at once; answer with ReplyEnded."""

    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer:
    """Answer with TimerFired at that time, or at once if it has passed."""

    timer: Timer
    at_ns: int
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTimer:
    """No answer is wanted any more."""

    timer: Timer


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession:
    """The conversation is over."""


Command: TypeAlias = (
    Listen
    | Transcribe
    | Prefill
    | StartDraft
    | JudgeVoice
    | WriteReply
    | DropDraft
    | ConfirmTurn
    | AbandonTurn
    | PlayDraft
    | StopReply
    | SetTimer
    | CancelTimer
    | EndSession
)
