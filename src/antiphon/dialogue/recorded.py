"""A log in, what it knows of each draft out: what was ordered, what came of it, and how long that took.

Units: ns of the recorded conversation's clock. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median_low
from typing import TYPE_CHECKING, Any

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.dialogue import commands as do
from antiphon.dialogue import stimuli

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.log import Step
    from antiphon.dialogue.stimuli import Stimulus

# What the dialogue's own orders lead to. All else comes from outside: the caller's voice, the owner's wishes.
INSIDE = (
    stimuli.TranscriptGrew,
    stimuli.DraftTranscribed,
    stimuli.WordsCorrected,
    stimuli.ProsodyJudged,
    stimuli.EndMassMeasured,
    stimuli.DraftVoiced,
    stimuli.DraftFailed,
    stimuli.ReplyBegan,
    stimuli.ReplyEnded,
    stimuli.ToolCalled,
    stimuli.ToolsWanted,
    stimuli.ToolReturned,
    stimuli.TimerFired,
)
# Which order a draft's news answers; what is not named here answers the draft's latest order.
ORDERS: dict[type, tuple[type, ...]] = {
    stimuli.DraftTranscribed: (do.StartDraft,),
    stimuli.WordsCorrected: (do.StartDraft,),
    stimuli.ProsodyJudged: (do.JudgeVoice,),
    stimuli.EndMassMeasured: (do.WriteReply,),
    stimuli.DraftVoiced: (do.WriteReply, do.SayText),
    stimuli.DraftFailed: (do.StartDraft, do.WriteReply, do.SayText),
    stimuli.ToolCalled: (do.WriteReply,),
    stimuli.ToolsWanted: (do.WriteReply,),
}
WORK = (do.StartDraft, do.JudgeVoice, do.WriteReply, do.SayText)
NEAR_NS = 2 * SECOND_NS  # further apart, two drafts that no silence began are not the same
REPLY_NS = 3 * SECOND_NS  # a reply's length if the log holds none that was heard to its end
MORE_NS = 1 * SECOND_NS  # that a reply which was cut would have gone on for, at least
VOICING_NS = 400 * MILLISECOND_NS  # how long a reply's first sound takes if the log holds none


@dataclass(frozen=True, slots=True)
class Answer:
    """A recorded answer and how long it took."""

    stimulus: Any  # has a `draft`, or for a transcript a `turn`
    delay_ns: int


@dataclass(slots=True)
class KnownDraft:
    """All that is known of one recorded draft."""

    first: Command  # the order that began it
    began_ns: int
    silence: int | None  # the recorded step in which the silence began that it is for
    orders: list[tuple[type, int]] = field(default_factory=list)  # (what was ordered, when)
    answers: dict[tuple[type, int], list[Answer]] = field(default_factory=dict)  # by (order, which of its kind)
    sounds_ns: int | None = None  # from its play order and first sound on
    voiced_ns: int | None = None
    began_lag_ns: int = 0  # from when it could sound to ReplyBegan
    length_ns: int | None = None  # None: it never was heard to its end
    cut_ns: int = 0  # for how long it had sounded when it was stopped or held
    ended: Any = None  # its ReplyEnded
    stopped: bool = False

    @property
    def is_unvoiced(self) -> bool:
        """It came to its end without a sound: its text alone was wanted."""
        return self.ended is not None and self.voiced_ns is None and not self.stopped


@dataclass(slots=True)
class Looks:
    """The looks at a caller's words: one at a time, and one that is wanted meanwhile follows; a draft ends them."""

    since_ns: int | None = None  # since when one is under way
    again: bool = False

    def wanted(self, at_ns: int) -> bool:
        """Whether one begins now."""
        if self.since_ns is not None:
            self.again = True
            return False
        self.since_ns = at_ns
        return True

    def done(self, at_ns: int) -> bool:
        """Whether another begins now."""
        self.since_ns, self.again, begins = at_ns if self.again else None, False, self.again
        return begins

    def stopped(self) -> None:
        self.since_ns, self.again = None, False


class Recorded:
    """The log, by draft."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.drafts: dict[int, KnownDraft] = {}
        self.transcripts: list[tuple[int, int, Answer]] = []  # (voice segment, when it was ordered, answer)
        self.tools: dict[str, Answer] = {}  # by call
        self.segment_of: dict[int, int] = {}  # outside stimulus to how many voices had started by then
        self._looks = Looks()
        self._tool_ns: dict[str, int] = {}
        self._segment = 0
        self._silence: int | None = None
        for index, recorded in enumerate(steps):
            self._take(index, recorded)
        whole = [known.length_ns for known in self.drafts.values() if known.length_ns is not None]
        self.reply_ns = median_low(whole) if whole else REPLY_NS
        voicing = [
            answer.delay_ns
            for known in self.drafts.values()
            for answers in known.answers.values()
            for answer in answers
            if isinstance(answer.stimulus, stimuli.DraftVoiced)
        ]
        self.voicing_ns = median_low(voicing) if voicing else VOICING_NS

    def length_ns(self, known: KnownDraft | None) -> int:
        """How long a reply sounds; one that was cut would have gone on."""
        if known is None:
            return self.reply_ns
        return known.length_ns or max(self.reply_ns, known.cut_ns + MORE_NS)

    def twin(self, first: Command, began_ns: int, silence: int | None) -> KnownDraft | None:
        """The recorded draft that began in the same silence, or said the same."""
        alike = [known for known in self.drafts.values() if _same_kind(known.first, first) and known.silence == silence]
        nearest = min(alike, key=lambda known: abs(known.began_ns - began_ns), default=None)
        if nearest and isinstance(first, do.StartDraft) and silence is None:  # a turn that lasted too long
            return nearest if abs(nearest.began_ns - began_ns) <= NEAR_NS else None
        return nearest

    def _take(self, index: int, recorded: Step) -> None:
        stimulus: Any = recorded.stimulus
        at_ns = stimulus.at_ns
        outside = is_outside(stimulus)
        if isinstance(stimulus, stimuli.VoiceStarted):
            self._segment += 1
        self._silence = silence_after(self._silence, stimulus, index)
        if outside:
            self.segment_of[index] = self._segment
        elif isinstance(stimulus, stimuli.TranscriptGrew):
            if self._looks.since_ns is not None:
                answer = Answer(stimulus, at_ns - self._looks.since_ns)
                self.transcripts.append((self._segment, self._looks.since_ns, answer))
            self._looks.done(at_ns)
        elif isinstance(stimulus, stimuli.ToolReturned):
            if stimulus.call.id in self._tool_ns:
                self.tools[stimulus.call.id] = Answer(stimulus, at_ns - self._tool_ns[stimulus.call.id])
        elif hasattr(stimulus, "draft") and stimulus.draft in self.drafts:
            self._answer(self.drafts[stimulus.draft], stimulus)
        for command in recorded.commands:
            self._order(command, at_ns)

    def _answer(self, known: KnownDraft, stimulus: Any) -> None:
        at_ns = stimulus.at_ns
        match stimulus:
            case stimuli.ReplyBegan():
                if known.sounds_ns is not None:
                    known.began_lag_ns, known.sounds_ns = at_ns - known.sounds_ns, at_ns
                return
            case stimuli.ReplyEnded():
                known.ended = stimulus
                if known.sounds_ns is not None and not known.stopped:
                    known.length_ns = at_ns - known.sounds_ns
                return
            case stimuli.DraftVoiced():
                known.voiced_ns = at_ns
                if known.sounds_ns is not None:
                    known.sounds_ns = max(known.sounds_ns, at_ns)
        wanted = ORDERS.get(type(stimulus), WORK)
        for place in range(len(known.orders) - 1, -1, -1):
            kind, ordered_ns = known.orders[place]
            if kind in wanted:
                which = sum(other is kind for other, _ in known.orders[:place])
                known.answers.setdefault((kind, which), []).append(Answer(stimulus, at_ns - ordered_ns))
                return

    def _order(self, command: Command, at_ns: int) -> None:
        if isinstance(command, do.Transcribe):
            self._looks.wanted(at_ns)
        elif isinstance(command, do.StartDraft):
            self._looks.stopped()
        elif isinstance(command, do.RunTool):
            self._tool_ns[command.call.id] = at_ns
        number = getattr(command, "draft", None)
        if number is None:
            return
        if isinstance(command, WORK):
            silence = self._silence if isinstance(command, do.StartDraft) else None
            known = self.drafts.setdefault(number, KnownDraft(first=command, began_ns=at_ns, silence=silence))
            known.orders.append((type(command), at_ns))
        elif number in self.drafts:
            known = self.drafts[number]
            if isinstance(command, do.PlayDraft):
                known.sounds_ns = max(at_ns, known.voiced_ns or at_ns)
            elif isinstance(command, do.StopReply | do.PauseReply):
                known.stopped = True  # paused, it took longer than it is long
                known.cut_ns = max(known.cut_ns, at_ns - (at_ns if known.sounds_ns is None else known.sounds_ns))


def silence_after(silence: int | None, stimulus: Stimulus, origin: int | None) -> int | None:
    """The recorded step in which the present silence of the caller's began; None while they speak."""
    if isinstance(stimulus, stimuli.VoiceStarted):
        return None
    return origin if is_silence(stimulus) else silence


def is_outside(stimulus: Stimulus) -> bool:
    """Whether it would have happened whatever the dialogue had ordered."""
    return not isinstance(stimulus, INSIDE)


def is_silence(stimulus: Stimulus) -> bool:
    """Whether it says that the caller has fallen silent, or is taken to have."""
    return hasattr(stimulus, "ended_ns")


def _same_kind(one: Command, other: Command) -> bool:
    return type(one) is type(other) and getattr(one, "text", "") == getattr(other, "text", "")
