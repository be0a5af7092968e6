"""What a conversation may order. The session carries each out; results come back as stimuli.

A draft's number stays its number when it becomes the reply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from antiphon.dialogue.options import AS_USUAL, ReplyOptions

if TYPE_CHECKING:
    from antiphon.core.flow import Message, ToolCall
    from antiphon.dialogue.stimuli import Timer
    from antiphon.dialogue.turn_end import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """What may become a turn begins: recognise from here on. Nobody else knows of it yet."""

    turn: int
    from_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """The caller has the floor; the owner may know of the turn."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcribe:
    """Find out what the turn says so far; answer with TranscriptGrew."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Let the language model read ahead; the last message is still open. Then let it begin a reply, to play if need be.

    `opening` is what to begin it from, as if nothing more were to be said; empty: begin none.
    """

    messages: tuple[Message, ...]
    opening: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDraft:
    """The caller paused: find out what the turn says, by all that was heard until now (DraftTranscribed, DraftFailed).

    Words that are provisional are heard again (WordsCorrected), also if the turn is confirmed and the draft dropped.
    The silence belongs to it: cut at the last frame that counts as voice, words lose their soft ends.
    """

    draft: int
    turn: int
    until_samples: int | None = None  # or by what was heard until then: what follows is the next turn's


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeVoice:
    """The words leave doubt, the first sound is ready: find out how finished the voice sounds (ProsodyJudged)."""

    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReply:
    """Write and voice a reply, unheard (DraftVoiced, DraftFailed); first measure the end mass if there is doubt
    whether the turn has ended (EndMassMeasured).

    The model may ask for tools instead of an end (ToolCalled, ToolsWanted); a further WriteReply of the same draft
    then goes on behind what it said before. From words that are still to be corrected no more is written than the
    first chunk, until WriteOn or a further WriteReply.
    """

    draft: int
    messages: tuple[Message, ...]
    may_use_tools: bool
    measures_end: bool = False
    options: ReplyOptions = AS_USUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOn:
    """The words that the draft answers are known for good: write the rest of it, behind what is written already."""

    draft: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SayText:
    """Voice this as a reply, whole, or as a part of the one that waits for a tool (DraftVoiced, DraftFailed)."""

    draft: int
    text: str
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishReply:
    """The reply has all of its text: it ends when that has been heard; answer with ReplyEnded."""

    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Tell the owner that nobody has said anything for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTool:
    """Answer with ToolReturned, however long it takes, whatever becomes of the reply. The owner runs his own tools."""

    draft: int
    call: ToolCall


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
    provisional: bool = False  # CorrectTurn will tell its words for good


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectTurn:
    """What a turn says for good that was confirmed with provisional words; may be the same."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonTurn:
    """The voice said nothing that wants an answer: there was no such turn. The owner hears of it if it was open."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayDraft:
    """Let the draft be heard, from now or from when it is ready; answer with ReplyEnded."""

    draft: int
    options: ReplyOptions = AS_USUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReply:
    """The caller took the turn back: silence, at once; answer with ReplyEnded."""

    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckReply:
    """Somebody speaks over the reply, or no longer does: let it sound softer, or as before."""

    draft: int
    soft: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseReply:
    """Silence at once, and no further work on the reply; it may go on from here, or be stopped."""

    draft: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeReply:
    """The voice said nothing: the reply goes on where it was paused."""

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
    | OpenTurn
    | Transcribe
    | Prefill
    | StartDraft
    | JudgeVoice
    | WriteReply
    | WriteOn
    | SayText
    | FinishReply
    | RunTool
    | Idle
    | DropDraft
    | ConfirmTurn
    | CorrectTurn
    | AbandonTurn
    | PlayDraft
    | StopReply
    | DuckReply
    | PauseReply
    | ResumeReply
    | SetTimer
    | CancelTimer
    | EndSession
)
