"""What can happen to a conversation, as facts. Each says when it became known; nothing else knows the time.

Units: `at_ns` and `ended_ns` are ns of the monotonic clock, positions are samples at HEARING_RATE_HZ since the
caller's stream opened. `turn` and `draft` are the numbers that the dialogue gave out in its commands: a result that
names an old one is stale and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from antiphon.core.flow import Message, ToolCall, Transcript
    from antiphon.dialogue.options import ReplyOptions
    from antiphon.dialogue.settings import TurnSettings
    from antiphon.dialogue.state import ToolRule
    from antiphon.dialogue.turn_end import TurnEndModel


class Timer(StrEnum):
    """The waits of a conversation. Each kind runs at most once at a time; setting it again replaces it."""

    HOP = "hop"  # time to look at what the caller has said so far
    CONFIRM = "confirm"  # the silence has lasted long enough
    LONGEST_TURN = "longest_turn"  # the caller has spoken for as long as a turn may last
    INTERRUPT = "interrupt"  # the voice over our reply has lasted long enough to look at it
    DUCK = "duck"  # our reply was soft for long enough
    IDLE = "idle"  # nobody has said anything for long
    TOOL = "tool"  # a tool takes so long that something should be said


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceStarted:
    """The caller began to speak, or went on after a pause."""

    at_ns: int
    start_samples: int  # where the speech began, run-up included


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceStopped:
    """The caller has been silent for a few frames."""

    at_ns: int
    end_samples: int  # just after the last speech sample
    ended_ns: int  # when that sample was captured


@dataclass(frozen=True, slots=True, kw_only=True)
class InputStalled:
    """No sound at all has come for a while; the stream may go on later."""

    at_ns: int
    end_samples: int
    ended_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEnded:
    """No sound will come any more."""

    at_ns: int
    end_samples: int
    ended_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptGrew:
    """What the turn seems to say, while the caller is still speaking."""

    at_ns: int
    turn: int
    transcript: Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTranscribed:
    """What the turn says up to the pause that the draft began in."""

    at_ns: int
    draft: int
    transcript: Transcript
    provisional: bool = False  # a quick ear's words; those of a careful one follow, for good
    end_mass: float | None = None  # as in EndMassMeasured, where it was measured before the pause was one
    prosody: float | None = None  # as in ProsodyJudged, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsCorrected:
    """What a careful ear heard in the same sound; comes once, after words that were provisional.

    The quick ear's words again if the careful one failed.
    """

    at_ns: int
    draft: int
    turn: int  # that the draft was begun for
    transcript: Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class ProsodyJudged:
    """How finished the voice sounded at the pause, 0 to 1."""

    at_ns: int
    draft: int
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMassMeasured:
    """The probability that the language model gives to a sentence end after the words, 0 to 1."""

    at_ns: int
    draft: int
    mass: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftVoiced:
    """The draft's first sound is ready to be played."""

    at_ns: int
    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftFailed:
    """Nothing will come of the draft: an engine failed, or there was nothing to say."""

    at_ns: int
    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyBegan:
    """The reply's first audible sample has left."""

    at_ns: int
    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEnded:
    """The reply will not sound any more: all of it was played, it was stopped, or it failed on the way."""

    at_ns: int
    draft: int
    heard: tuple[str, ...]  # the text that was heard, of each of the reply's passes: one, and one after each tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The model wants a tool used before it goes on with the draft."""

    at_ns: int
    draft: int
    call: ToolCall
    said: str  # the text that the model wrote in this pass before the call


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsWanted:
    """The model has made all the calls of this pass and waits for what comes of them."""

    at_ns: int
    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """A tool is done, or has failed; either way the model is to know."""

    at_ns: int
    call: ToolCall
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SayRequested:
    """The owner wants this said as soon as nobody speaks."""

    at_ns: int
    text: str
    interruptible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptibleSet:
    """The owner lets the present reply and later ones be interrupted, or not."""

    at_ns: int
    interruptible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconfigured:
    """The owner has changed how the conversation is held; all of it is said anew, changed or not."""

    at_ns: int
    settings: TurnSettings
    turn_end: TurnEndModel | None = None  # None: as before; it is too large to be logged each time
    instructions: str
    tools: tuple[ToolRule, ...]
    interruptible: bool
    by_hand: bool  # the owner says when a turn is over, not the voice
    answers: bool  # a turn that is over is answered without being asked to
    usual: ReplyOptions  # of replies that nobody asks for in particular
    end_samples: int  # where the sound stands


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCommitted:
    """The owner says that the turn is over."""

    at_ns: int
    end_samples: int
    ended_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCleared:
    """The owner wants forgotten what was heard since the last turn."""

    at_ns: int
    end_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRequested:
    """The owner wants the conversation answered as it stands, or the turn in progress once it is over."""

    at_ns: int
    options: ReplyOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyCancelled:
    """The owner wants no more of the reply."""

    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAdded:
    """The owner has put something into the history."""

    at_ns: int
    message: Message
    after: str | None  # the item that it follows, "" for the beginning; None for the end


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDeleted:
    """The owner has taken something out of the history."""

    at_ns: int
    item: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTruncated:
    """The owner knows better how much of a reply was heard."""

    at_ns: int
    item: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired:
    """A wait is over."""

    at_ns: int
    timer: Timer
    generation: int  # what the timer was set for: a turn or a draft


Stimulus: TypeAlias = (
    VoiceStarted
    | VoiceStopped
    | InputStalled
    | InputEnded
    | TranscriptGrew
    | DraftTranscribed
    | WordsCorrected
    | ProsodyJudged
    | EndMassMeasured
    | DraftVoiced
    | DraftFailed
    | ReplyBegan
    | ReplyEnded
    | ToolCalled
    | ToolsWanted
    | ToolReturned
    | SayRequested
    | Reconfigured
    | TurnCommitted
    | InputCleared
    | ReplyRequested
    | ReplyCancelled
    | ItemAdded
    | ItemDeleted
    | ItemTruncated
    | InterruptibleSet
    | TimerFired
)
