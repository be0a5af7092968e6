"""A recorded conversation and other settings -> how its turns would have been taken.

What came from outside, the caller's voice and the owner's wishes, happens when it happened. What the dialogue orders
is answered as it was answered then: a draft takes its answers from the recorded draft of the same pause, each as long
after its order as it came then. Waits run on the log's own time. What was never made then cannot be known:
a draft that was dropped before its words were known has none, and a reply that never sounded takes as long as the
others did.

Units: ns of the recorded conversation's clock. Threads: pure; no clock, no waiting.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from antiphon.core.clock import SECOND_NS
from antiphon.dialogue import commands as do
from antiphon.dialogue import stimuli
from antiphon.dialogue.recorded import KnownDraft, Looks, Recorded, is_outside, silence_after
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.state import Phase
from antiphon.dialogue.transitions import step

if TYPE_CHECKING:
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.log import Log
    from antiphon.dialogue.stimuli import Stimulus

AFTERWARDS_NS = 60 * SECOND_NS  # how long after the log's last line a replay may go on
UNKNOWN_WORDS = "..."  # what was heard of a reply that nobody ever heard
_FATES = frozenset({stimuli.DraftVoiced, stimuli.DraftFailed, stimuli.ToolsWanted})


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """One step of a conversation, recorded or replayed."""

    origin: int | None  # the recorded step that it comes from, if it came from outside
    stimulus: Stimulus
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """How it would have gone."""

    happened: tuple[Happened, ...]
    without_words: int  # drafts whose words were never known
    without_voice: int  # times that the tone of voice was asked for and was not known


def rerun(log: Log, settings: TurnSettings) -> Rerun:
    """Take the turns of a recorded conversation again, with other settings."""
    world = _World(Recorded(log.steps))
    for index, recorded in enumerate(log.steps):
        if is_outside(recorded.stimulus):
            happens = _under(recorded.stimulus, log.start.settings, settings)
            world.happens_at(recorded.stimulus.at_ns, happens, origin=index)
    state = replace(log.start, settings=settings)
    until_ns = max((recorded.stimulus.at_ns for recorded in log.steps), default=0) + AFTERWARDS_NS
    happened = []
    while state.phase is not Phase.ENDED and (due := world.next()) is not None:
        origin, stimulus = due
        if stimulus.at_ns > until_ns:  # who was still speaking when the log ended would be looked at for ever
            break
        if isinstance(stimulus, stimuli.TranscriptGrew):  # the turns of this conversation have other numbers
            stimulus = replace(stimulus, turn=state.turn)
        state, commands = step(state, stimulus)
        happened.append(Happened(origin=origin, stimulus=stimulus, commands=commands))
        for command in commands:
            world.carry_out(command, stimulus.at_ns)
    return Rerun(happened=tuple(happened), without_words=world.without_words, without_voice=world.without_voice)


def _under(stimulus: Any, old: TurnSettings, new: TurnSettings) -> Any:
    """Where the owner changed the settings in mid-conversation, what is tried here stays changed."""
    if not isinstance(getattr(stimulus, "settings", None), TurnSettings):
        return stimulus
    names = [item.name for item in fields(new) if getattr(new, item.name) != getattr(old, item.name)]
    return replace(stimulus, settings=replace(stimulus.settings, **{name: getattr(new, name) for name in names}))


def as_recorded(log: Log) -> tuple[Happened, ...]:
    """The recorded conversation in the form of a replayed one."""
    return tuple(
        Happened(
            origin=index if is_outside(recorded.stimulus) else None,
            stimulus=recorded.stimulus,
            commands=recorded.commands,
        )
        for index, recorded in enumerate(log.steps)
    )


# The world in which it happens again.


@dataclass(slots=True)
class _Reply:
    """A draft of the replayed conversation."""

    twin: KnownDraft | None
    turn: int = 0  # that it was begun for
    orders: dict[type, int] = field(default_factory=dict)
    voiced_ns: int | None = None  # when its first sound is ready
    may_sound_ns: int | None = None  # since when it may be heard; None: it may not
    begins: int | None = None  # its first sound's entry among what is to happen
    ends: int | None = None  # and its end's
    sounds_ns: int = 0  # when it begins to sound, or goes on
    sounded_ns: int = 0  # for how long it had sounded before that


class _World:
    """What is to happen, by time; answers orders as the log did."""

    def __init__(self, recorded: Recorded) -> None:
        self.without_words = 0
        self.without_voice = 0
        self._recorded = recorded
        self._due: list[tuple[int, int, int, int | None, Stimulus]] = []  # heap of (ns, urgency, entry, origin, what)
        self._entries = 0
        self._void: set[int] = set()  # entries that were taken back
        self._timers: dict[stimuli.Timer, int] = {}
        self._replies: dict[int, _Reply] = {}
        self._looks = Looks()
        self._looked = 0  # the entry of the look that is under way
        self._segment = 0
        self._silence: int | None = None

    def happens_at(self, at_ns: int, stimulus: Stimulus, *, origin: int | None = None, at_once: bool = False) -> int:
        """Let it happen then; with `at_once` before everything else of that moment."""
        self._entries += 1
        heapq.heappush(self._due, (at_ns, 0 if at_once else 1, self._entries, origin, stimulus))
        return self._entries

    def next(self) -> tuple[int | None, Stimulus] | None:
        """What happens next, and the recorded step that it is."""
        while self._due:
            _, _, entry, origin, stimulus = heapq.heappop(self._due)
            if entry in self._void:
                self._void.remove(entry)
                continue
            if origin is not None:
                self._segment = self._recorded.segment_of[origin]
            self._silence = silence_after(self._silence, stimulus, origin)
            if isinstance(stimulus, stimuli.TranscriptGrew) and self._looks.done(stimulus.at_ns):
                self._look(stimulus.at_ns)
            return origin, stimulus
        return None

    def carry_out(self, command: Command, now_ns: int) -> None:
        """Arrange what the order will lead to."""
        match command:
            case do.SetTimer():
                self._cancel(command.timer)
                at_ns = max(now_ns, command.at_ns)
                fired = stimuli.TimerFired(at_ns=at_ns, timer=command.timer, generation=command.generation)
                self._timers[command.timer] = self.happens_at(at_ns, fired)
            case do.CancelTimer(timer=timer):
                self._cancel(timer)
            case do.Transcribe():
                if self._looks.wanted(now_ns):
                    self._look(now_ns)
            case do.RunTool(call=call):
                answer = self._recorded.tools.get(call.id)
                if answer is not None:
                    self._answer_at(now_ns + answer.delay_ns, answer.stimulus)
            case do.StartDraft() | do.JudgeVoice() | do.WriteReply() | do.SayText():
                self._work(command, now_ns)
            case do.PlayDraft(draft=number) | do.ResumeReply(draft=number):
                self._reply(number).may_sound_ns = now_ns
                self._sounds(number)
            case do.PauseReply(draft=number) | do.DropDraft(draft=number):
                self._falls_silent(number, now_ns)
            case do.StopReply(draft=number):
                self._falls_silent(number, now_ns)
                heard = (UNKNOWN_WORDS,) if self._reply(number).sounded_ns else ()
                self.happens_at(now_ns, stimuli.ReplyEnded(at_ns=now_ns, draft=number, heard=heard), at_once=True)

    def _cancel(self, timer: stimuli.Timer) -> None:
        entry = self._timers.pop(timer, None)
        if entry is not None:
            self._void.add(entry)

    def _answer_at(self, at_ns: int, recorded: Any, **changes: Any) -> int:
        return self.happens_at(at_ns, replace(recorded, at_ns=at_ns, **changes))

    def _look(self, now_ns: int) -> None:
        """As the recorded look at the same words that began nearest to now; never earlier than those were known."""
        here = [
            (began_ns, answer) for segment, began_ns, answer in self._recorded.transcripts if segment == self._segment
        ]
        if not here:
            self._looks.stopped()
            return
        _, answer = min(here, key=lambda found: abs(found[0] - now_ns))
        self._looked = self._answer_at(max(answer.stimulus.at_ns, now_ns + answer.delay_ns), answer.stimulus)

    def _stop_looking(self) -> None:
        if self._looks.since_ns is not None:
            self._void.add(self._looked)
        self._looks.stopped()

    # Drafts.

    def _reply(self, number: int) -> _Reply:
        return self._replies.setdefault(number, _Reply(twin=None))

    def _work(self, command: Any, now_ns: int) -> None:
        number, kind = command.draft, type(command)
        if kind is do.StartDraft:
            self._stop_looking()
        if number not in self._replies:
            silence = self._silence if kind is do.StartDraft else None
            twin = self._recorded.twin(command, now_ns, silence)
            self._replies[number] = _Reply(twin=twin, turn=getattr(command, "turn", 0))
        reply = self._replies[number]
        which = reply.orders.get(kind, 0)
        reply.orders[kind] = which + 1
        answers = reply.twin.answers.get((kind, which), []) if reply.twin else []
        for answer in answers:
            self._news(number, now_ns + answer.delay_ns, answer.stimulus)
        if kind is do.StartDraft and not answers:
            self.without_words += 1
        if kind is do.JudgeVoice and not answers:
            self.without_voice += 1
        told = {type(answer.stimulus) for answer in answers}
        unvoiced = reply.twin is not None and reply.twin.is_unvoiced
        if kind in (do.WriteReply, do.SayText) and which == 0 and not told & _FATES and not unvoiced:
            self._news(number, now_ns + self._recorded.voicing_ns, stimuli.DraftVoiced(at_ns=0, draft=number))

    def _news(self, number: int, at_ns: int, recorded: Any) -> None:
        reply = self._replies[number]
        if isinstance(recorded, stimuli.WordsCorrected):
            self._answer_at(at_ns, recorded, draft=number, turn=reply.turn)
            return
        self._answer_at(at_ns, recorded, draft=number)
        if isinstance(recorded, stimuli.DraftVoiced):
            reply.voiced_ns = at_ns
            self._sounds(number)

    # Replies.

    def _sounds(self, number: int) -> None:
        """It sounds from when it may and can, for as long as it did, or for what is left of that."""
        reply = self._reply(number)
        twin = reply.twin
        unvoiced = twin is not None and twin.is_unvoiced
        if reply.may_sound_ns is None or reply.ends is not None or (reply.voiced_ns is None and not unvoiced):
            return
        lag_ns = twin.began_lag_ns if twin else 0
        reply.sounds_ns = max(reply.may_sound_ns, reply.voiced_ns or 0) + (0 if reply.sounded_ns else lag_ns)
        if not reply.sounded_ns and not unvoiced:
            reply.begins = self.happens_at(reply.sounds_ns, stimuli.ReplyBegan(at_ns=reply.sounds_ns, draft=number))
        ends_ns = reply.sounds_ns + max(0, self._recorded.length_ns(twin) - reply.sounded_ns)
        known = twin is not None and twin.length_ns is not None and twin.ended is not None
        heard = twin.ended.heard if twin is not None and known else (UNKNOWN_WORDS,)
        reply.ends = self.happens_at(ends_ns, stimuli.ReplyEnded(at_ns=ends_ns, draft=number, heard=heard))

    def _falls_silent(self, number: int, now_ns: int) -> None:
        """What is still to happen to it is taken back; it may go on later."""
        reply = self._reply(number)
        reply.may_sound_ns = None
        if reply.ends is None:
            return
        self._void.add(reply.ends)
        if reply.begins is not None and now_ns < reply.sounds_ns:
            self._void.add(reply.begins)
        reply.sounded_ns += max(0, now_ns - reply.sounds_ns)
        reply.begins = reply.ends = None
