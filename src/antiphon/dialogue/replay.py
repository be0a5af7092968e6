"""A log -> the same commands again, or the first that differ; with other settings, what each pause would have become.

A pause is answered, or the caller goes on from it. To answer one that the caller goes on from is to cut in. Whether
they go on is known from the log: they spoke again before our reply had sounded for long enough to move them to
(`retract_ms`).

Units: ns, waits counted from the caller's last speech sample. Threads: pure.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Any

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.dialogue import commands as do
from antiphon.dialogue import stimuli
from antiphon.dialogue.codec import encode
from antiphon.dialogue.commands import Command
from antiphon.dialogue.recorded import is_silence, silence_after
from antiphon.dialogue.rerun import Happened, as_recorded, rerun
from antiphon.dialogue.stimuli import Stimulus
from antiphon.dialogue.transitions import step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antiphon.dialogue.log import Log
    from antiphon.dialogue.settings import TurnSettings

# The same settings.


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first step that no longer leads to what it led to; all three are JSON."""

    line: int  # of the log
    stimulus: str
    recorded: str
    replayed: str


def first_difference(log: Log) -> Difference | None:
    """Feed every stimulus again and compare every command, to the last bit of every number; None: all are the same."""
    state = log.start
    for recorded in log.steps:
        state, commands = step(state, recorded.stimulus)
        then, now = _json(recorded.commands, tuple[Command, ...]), _json(commands, tuple[Command, ...])
        if then != now:
            stimulus = _json(recorded.stimulus, Stimulus)
            return Difference(line=recorded.line, stimulus=stimulus, recorded=then, replayed=now)
    return None


def _json(value: object, wanted: object) -> str:
    return json.dumps(encode(value, wanted))


# Other settings.


class Fate(StrEnum):
    """What became of a pause."""

    ANSWERED = "answered"
    WENT_ON = "went on"  # the caller spoke again first
    NO_WORDS = "no words"  # what was heard is not known, so nothing could be answered
    NOTHING_SAID = "nothing said"  # a cough or a door
    OPEN = "open"  # the log or the conversation ended first
    NO_PAUSE = "no pause"  # the caller did not have the floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A pause's fate, and the silence until it."""

    fate: Fate
    after_ns: int | None = None  # until it was answered, or the caller went on
    cut_in: bool = False  # answered, and the caller had not finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A silence of the caller's, then and with the new settings."""

    line: int  # of the log, where the silence was noticed
    ended_ns: int  # the last speech sample before it
    heard: str | None  # the turn's words until then; None: they were never known
    recorded: Decision
    replayed: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """All answered pauses of a conversation."""

    answered: int
    median_ns: float | None  # None: nothing was answered
    p95_ns: int | None
    cut_ins: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A conversation under the settings it was held with, and under others."""

    pauses: tuple[Pause, ...]
    recorded: Waits
    replayed: Waits
    without_words: int  # replayed pauses that stayed without an answer because their words are not in the log
    without_voice: int  # times that the tone of voice was asked for, and is not in the log


def compare(log: Log, settings: TurnSettings) -> Comparison:
    """Take every turn of the log again with other settings.

    Raises:
        CallerError: a setting differs whose effect the log cannot tell.
    """
    if settings.stalled_ms != log.start.settings.stalled_ms:
        raise CallerError(
            "turn.stalled_ms cannot be replayed: a log does not tell when sound came",
            hint="leave it out, and hold the conversation again to try it",
        )
    again = rerun(log, settings)
    then, now = _decisions(as_recorded(log), log), _decisions(again.happened, log)
    pauses = tuple(
        Pause(
            line=log.steps[origin].line,
            ended_ns=(then.get(origin) or now[origin]).ended_ns,
            heard=next((found[origin].heard for found in (then, now) if origin in found and found[origin].heard), None),
            recorded=then[origin].decision() if origin in then else Decision(fate=Fate.NO_PAUSE),
            replayed=_replayed(now.get(origin), known=origin in then),
        )
        for origin in sorted({*then, *now})
    )
    return Comparison(
        pauses=pauses,
        recorded=_waits(pause.recorded for pause in pauses),
        replayed=_waits(pause.replayed for pause in pauses),
        without_words=sum(pause.replayed.fate is Fate.NO_WORDS for pause in pauses),
        without_voice=again.without_voice,
    )


def _replayed(found: _Found | None, *, known: bool) -> Decision:
    """A pause that was none then has no words, whatever the caller did afterwards."""
    if found is None:
        return Decision(fate=Fate.NO_PAUSE)
    return found.decision() if known or found.heard is not None else Decision(fate=Fate.NO_WORDS)


def _waits(decisions: Iterable[Decision]) -> Waits:
    found = list(decisions)
    waits = sorted(each.after_ns for each in found if each.fate is Fate.ANSWERED and each.after_ns is not None)
    return Waits(
        answered=len(waits),
        median_ns=median(waits) if waits else None,
        p95_ns=waits[math.ceil(0.95 * len(waits)) - 1] if waits else None,  # the nearest rank
        cut_ins=sum(each.cut_in for each in found),
    )


def _goes_on(log: Log, silence: int) -> bool:
    """Whether the caller spoke again of their own accord after the silence that began in that step.

    The steps' order counts, not their times alone: on a machine that lags, a voice may be noticed long after it began.
    """
    reaction_ns = log.start.settings.retract_ms * MILLISECOND_NS
    sounds_ns: int | None = None
    for recorded in log.steps[silence + 1 :]:
        stimulus = recorded.stimulus
        if isinstance(stimulus, stimuli.ReplyBegan) and sounds_ns is None:
            sounds_ns = stimulus.at_ns
        elif isinstance(stimulus, stimuli.VoiceStarted):
            return sounds_ns is None or stimulus.at_ns <= sounds_ns + reaction_ns
    return False


@dataclass(slots=True)
class _Found:
    """A pause while it is followed."""

    ended_ns: int
    goes_on: bool  # the caller, of their own accord
    heard: str | None = None
    fate: Fate = Fate.OPEN
    at_ns: int | None = None

    def correct(self, text: str) -> None:
        """A careful ear heard that; where it heard nothing in a turn that is over, the quick one's words stand."""
        if text.strip() or self.fate is Fate.OPEN:
            self.heard = text

    def decision(self) -> Decision:
        if self.fate is Fate.OPEN and self.heard is None:
            return Decision(fate=Fate.NO_WORDS)
        return Decision(
            fate=self.fate,
            after_ns=None if self.at_ns is None else self.at_ns - self.ended_ns,
            cut_in=self.fate is Fate.ANSWERED and self.goes_on,
        )


def _decisions(happened: Sequence[Happened], log: Log) -> dict[int, _Found]:
    """What became of each pause, by the recorded step that it began with."""
    found: dict[int, _Found] = {}
    by_draft: dict[int, _Found] = {}
    silence: int | None = None
    ended_ns = 0
    for each in happened:
        stimulus: Any = each.stimulus
        silence = silence_after(silence, stimulus, each.origin)
        ended_ns = stimulus.ended_ns if is_silence(stimulus) else ended_ns
        if isinstance(stimulus, stimuli.DraftTranscribed) and stimulus.draft in by_draft:
            by_draft[stimulus.draft].heard = stimulus.transcript.text
        elif isinstance(stimulus, stimuli.WordsCorrected) and stimulus.draft in by_draft:
            by_draft[stimulus.draft].correct(stimulus.transcript.text)
        for command in each.commands:
            if isinstance(command, do.StartDraft) and silence is not None:
                pause = _Found(ended_ns=ended_ns, goes_on=_goes_on(log, silence))
                found[silence] = by_draft[command.draft] = pause
            elif isinstance(command, do.DropDraft | do.ConfirmTurn | do.PlayDraft):
                decided = by_draft.get(command.draft)
                if decided is not None and decided.fate is Fate.OPEN:
                    decided.fate, decided.at_ns = _fate(command, stimulus), stimulus.at_ns
    return found


def _fate(command: Command, stimulus: Stimulus) -> Fate:
    if not isinstance(command, do.DropDraft):
        return Fate.ANSWERED
    if isinstance(stimulus, stimuli.VoiceStarted | stimuli.VoiceStopped | stimuli.InputStalled):
        return Fate.WENT_ON
    return Fate.NOTHING_SAID
