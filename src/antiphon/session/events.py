"""What a conversation tells its owner, in the order it happens.

A draft that is dropped leaves no trace here. Sound comes as `ReplyAudio` at the moment it is to be heard.
`reply` numbers replies: a turn that was answered too early has several, a text that the owner had said has one too and
the number of the turn before it.
Units: `at_ns` is ns of the session's monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from antiphon.core.errors import AntiphonError
    from antiphon.core.flow import AudioFrame, ToolCall, Transcript, Usage
    from antiphon.core.stamps import Stage, TurnTimeline
    from antiphon.dialogue.options import ReplyOptions
    from antiphon.dialogue.turn_end import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """The caller began to speak."""

    turn: int
    at_ns: int
    start_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsHeard:
    """What the caller seems to be saying; it may still change past `transcript.stable_chars`."""

    turn: int
    at_ns: int
    transcript: Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEndJudged:
    """More became known of a pause, and this is how sure it makes us that the turn is over; the draft stays unheard."""

    turn: int
    at_ns: int
    silence_ns: int  # from the last speech sample to this opinion
    posterior: float
    wait_ns: int  # of silence in all, after which the turn is over if no voice comes
    evidence: tuple[str, ...]  # what it rests on: words, ears, mass, prosody
    pause_ms: int  # the two settings that make a wait of a posterior
    cut_in_risk: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnConfirmed:
    """The caller's turn is over and says this."""

    turn: int
    at_ns: int
    text: str
    posterior: float
    evidence: Evidence
    silence_ns: int  # from the last speech sample to this decision
    end_samples: int  # just after the last speech sample
    forced: bool
    provisional: bool = False  # its words are heard again: TurnCorrected comes, with others or the same


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCorrected:
    """What the caller said in a turn that was confirmed as provisional, by a careful ear."""

    turn: int
    at_ns: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAbandoned:
    """What had begun as a turn was a cough, a door or an "mhm": it says nothing and is not answered."""

    turn: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOpened:
    """There will be a reply, or an attempt at one: what follows with its number belongs to it."""

    turn: int
    reply: int
    at_ns: int
    options: ReplyOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStarted:
    """The first audible sample of the reply leaves now."""

    turn: int
    reply: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyText:
    """More of the reply's text, as its sound is about to be heard."""

    turn: int
    reply: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyAudio:
    """The reply's next sound; `frame.captured_ns` is when its first sample is to be heard."""

    turn: int
    reply: int
    frame: AudioFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFinished:
    """The reply sounds no more."""

    turn: int
    reply: int
    at_ns: int
    heard: str  # the part of its text that was heard
    interrupted: bool
    usage: Usage | None = None  # of the language model; None where its engine does not know
    failed: bool = False  # nothing came of it, or not all that was to come
    reached_limit: bool = False  # the model had more to say than it was allowed; False where its engine does not know
    retracted: bool = False  # interrupted before a whole word was heard: as if it had never been
    unheard: str = ""  # what was written of it, and not heard; empty unless it was interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyDucked:
    """The reply sounds softer because of a voice over it, or as before."""

    turn: int
    reply: int
    at_ns: int
    soft: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPaused:
    """The reply fell silent until it is known whether the voice over it says something, or goes on."""

    turn: int
    reply: int
    at_ns: int
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsed:
    """A tool was used for a reply, and this came of it."""

    turn: int
    reply: int
    call: ToolCall
    output: str
    failed: bool
    started_ns: int
    at_ns: int

    @property
    def name(self) -> str:
        """The tool's."""
        return self.call.name

    @property
    def arguments(self) -> str:
        """JSON, as the model wrote it."""
        return self.call.arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWanted:
    """The model wants one of the owner's tools used; `Session.return_tool` tells what came of it."""

    turn: int
    reply: int
    call: ToolCall
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTooLong:
    """Nobody has said anything for `turn.idle_ms` after a reply."""

    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMeasured:
    """All that was stamped for a turn, once its reply has begun to sound or is known not to."""

    timeline: TurnTimeline


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFailed:
    """An engine failed on one piece of work; the conversation goes on without it."""

    stage: Stage
    error: AntiphonError


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """The last event."""

    at_ns: int


Event: TypeAlias = (
    TurnStarted
    | WordsHeard
    | TurnEndJudged
    | TurnConfirmed
    | TurnCorrected
    | TurnAbandoned
    | ReplyOpened
    | ReplyStarted
    | ReplyText
    | ReplyAudio
    | ReplyDucked
    | ReplyPaused
    | ReplyFinished
    | ToolUsed
    | ToolWanted
    | IdleTooLong
    | TurnMeasured
    | StageFailed
    | SessionEnded
)
