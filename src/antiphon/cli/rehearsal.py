"""Recorded caller turns in, a conversation in real time, and everything that happened out.

A file is played as a microphone would hear it; the microphone stays open on the file's own room tone until the reply
has been said, and then the next file begins; or while the reply still sounds, if the caller is to talk over it.
Units: ns of the monotonic clock, samples at the first file's rate. Threads: the event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.files import FileSource, Playback, read
from antiphon.audio.level import window_dbfs
from antiphon.audio.recording import Recording
from antiphon.audio.resample import resample
from antiphon.core.clock import SECOND_NS, Clock, MonotonicClock, samples_to_ns
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.core.stamps import Mark
from antiphon.session.events import (
    ReplyAudio,
    ReplyDucked,
    ReplyFinished,
    ReplyPaused,
    ReplyStarted,
    StageFailed,
    ToolUsed,
    TurnAbandoned,
    TurnConfirmed,
    TurnCorrected,
    TurnMeasured,
    TurnStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from antiphon.core.flow import Pcm
    from antiphon.core.stamps import TurnTimeline
    from antiphon.session import Session
    from antiphon.session.events import Event

OPEN_MIKE = Playback(tail_ms=60_000)  # after a file, for the reply: one of max_tokens fits in
AFTERWARDS_S = 0.5  # the microphone's time after a reply, so that the recording does not end on its last sample
SILENCE_S = 1.5  # after a file in which nobody was heard, or who was heard said nothing, or whose answer is awaited
ONSET_MS = 10  # how finely a file's first speech sample is looked for
SOFT_DB = 25.0  # below a file's loud windows its soft onsets still lie


@dataclass(slots=True)
class TurnResult:
    """One caller turn, as it went."""

    turn: int
    text: str
    silence_ns: int
    posterior: float
    end_mass: float | None
    prosody: float | None
    began_ns: int  # about when its voice began
    confirmed_ns: int
    reply: str = ""
    timeline: TurnTimeline | None = None

    @property
    def ended_ns(self) -> int:
        """The last speech sample."""
        return self.confirmed_ns - self.silence_ns


@dataclass(slots=True)
class ReplyResult:
    """One reply that sounded, as far as it did."""

    turn: int
    reply: int
    began_ns: int
    silent_since_ns: int  # the end of its last audible frame so far
    ended_ns: int | None = None
    heard: str = ""
    interrupted: bool = False
    retracted: bool = False
    soft_ns: list[tuple[int, int | None]] = field(default_factory=list)  # (from, to) it sounded softer
    held_ns: list[tuple[int, int | None]] = field(default_factory=list)  # (from, to) it was held


@dataclass(frozen=True, slots=True, kw_only=True)
class BargeIn:
    """A file that began while a reply sounded."""

    file: int  # which, from 0
    reply: int
    speech_ns: int  # its first speech sample


@dataclass(slots=True)
class Rehearsal:
    """A conversation from files, and what came of it."""

    watch: Callable[[Event], None]
    clock: Clock = field(default_factory=MonotonicClock)  # the session's too
    recording: Recording = field(default_factory=Recording)
    turns: list[TurnResult] = field(default_factory=list)
    replies: list[ReplyResult] = field(default_factory=list)
    barge_ins: list[BargeIn] = field(default_factory=list)
    tools: list[ToolUsed] = field(default_factory=list)
    failures: list[StageFailed] = field(default_factory=list)
    first_frame_ns: int | None = None
    _fed_samples: int = 0
    _began_ns: dict[int, int] = field(default_factory=dict)  # about when each turn began
    _open: set[int] = field(default_factory=set)  # turns that began and are neither answered nor abandoned

    async def play(
        self,
        session: Session,
        files: Sequence[Path],
        barge_in_s: Sequence[float | None] = (),
        *,
        greeted: bool = False,
    ) -> None:
        """Hold the conversation; returns after the last reply.

        `barge_in_s` says for each file after the first how long after the reply before it began to sound it begins;
        None, or nothing: once that reply has been said. A reply that ends sooner is not talked over. `greeted`: the
        session says something first, and the first file waits for its end.

        Raises:
            CallerError: a file cannot be read; all are read before the first is played.
        """
        clips = [read(file) for file in files]
        rate_hz = clips[0][1]  # one caller has one microphone, whatever made the files
        mikes = [_Mike(_at_rate(pcm, own_hz, rate_hz), rate_hz, self.clock) for pcm, own_hz in clips]
        listener = asyncio.create_task(self._listen(session))
        try:
            if greeted:
                await self._speak(session, _Mike(np.zeros(1, np.float32), rate_hz, self.clock).source, None)
            for place, mike in enumerate(mikes):
                self._note_barge_in(place, mike.onset_ns)
                await self._speak(session, mike.source, barge_in_s[place] if place < len(barge_in_s) else None)
                if listener.done():
                    break  # it failed, and says how below
            session.hang_up()
            await listener
        finally:
            listener.cancel()

    async def _speak(self, session: Session, source: FileSource, next_after_s: float | None) -> None:
        """Feed one file, and its room tone until the next may begin: over the reply, or once all has been said."""
        turns, replies = len(self.turns), len(self.replies)
        quiet_since_ns: int | None = None
        before_samples = self._fed_samples
        async for own in source:
            frame = replace(own, pos_samples=before_samples + own.pos_samples)
            self._fed_samples = frame.end_samples
            if self.first_frame_ns is None:
                self.first_frame_ns = frame.captured_ns
            self.recording.add("caller", frame)
            session.feed(frame)
            if own.pos_samples < source.clip_samples:
                continue
            if next_after_s is not None and self._has_sounded(replies, next_after_s, frame.end_ns):
                break
            if self._open:
                quiet_since_ns = None
                continue
            quiet_since_ns = quiet_since_ns or frame.captured_ns
            answered = len(self.turns) > turns and self.turns[-1].reply
            patience_s = AFTERWARDS_S if answered else SILENCE_S
            if frame.end_ns - quiet_since_ns >= patience_s * SECOND_NS:
                break

    def _has_sounded(self, replies: int, seconds: float, now_ns: int) -> bool:
        """Whether a reply that began since there were so many still sounds, and has for so long."""
        latest = self.replies[-1] if len(self.replies) > replies else None
        return latest is not None and latest.ended_ns is None and now_ns >= latest.began_ns + seconds * SECOND_NS

    def _note_barge_in(self, file: int, onset_ns: int) -> None:
        if self.replies and self.replies[-1].ended_ns is None:
            over = self.replies[-1].reply
            self.barge_ins.append(BargeIn(file=file, reply=over, speech_ns=self.clock.now_ns() + onset_ns))

    async def _listen(self, session: Session) -> None:
        async for event in session:
            self._note(event)
            self.watch(event)

    def _note(self, event: Event) -> None:
        match event:
            case TurnStarted(turn=number, at_ns=at_ns, start_samples=start):  # told late, if it began over a reply
                self._open.add(number)
                start_ns = (self.first_frame_ns or 0) + samples_to_ns(start, HEARING_RATE_HZ)
                self._began_ns[number] = min(at_ns, start_ns)
            case TurnAbandoned(turn=number):
                self._open.discard(number)
            case TurnConfirmed():
                self.turns.append(_result(event, self._began_ns.get(event.turn, event.at_ns)))
            case TurnCorrected(turn=number, text=text):
                for turn in self._numbered(number):
                    turn.text = text
            case TurnMeasured(timeline=timeline):
                for turn in self._numbered(timeline.turn):
                    turn.timeline = timeline
                if Mark.FIRST_SOUND not in timeline.marks:
                    self._open.discard(timeline.turn)
            case ToolUsed():
                self.tools.append(event)
            case StageFailed():
                self.failures.append(event)
            case _:
                self._note_reply(event)

    def _note_reply(self, event: Event) -> None:
        match event:
            case ReplyStarted(turn=number, reply=reply, at_ns=at_ns):
                self._open.add(number)
                self.replies.append(ReplyResult(number, reply, began_ns=at_ns, silent_since_ns=at_ns))
            case ReplyAudio(reply=reply, frame=frame):
                self.recording.add("reply", frame)
                for result in self._sounded(reply):
                    if np.any(frame.pcm):
                        result.silent_since_ns = frame.end_ns
            case ReplyDucked(reply=reply, at_ns=at_ns, soft=soft):
                for result in self._sounded(reply):
                    _mark(result.soft_ns, at_ns, begins=soft)
            case ReplyPaused(reply=reply, at_ns=at_ns, resumed=resumed):
                for result in self._sounded(reply):
                    _mark(result.held_ns, at_ns, begins=not resumed)
            case ReplyFinished():
                self._note_end(event)
            case _:
                pass

    def _note_end(self, event: ReplyFinished) -> None:
        for turn in self._numbered(event.turn):
            turn.reply = event.heard
        for result in self._sounded(event.reply):
            result.ended_ns, result.heard = event.at_ns, event.heard
            result.interrupted, result.retracted = event.interrupted, event.retracted
        self._open.discard(event.turn)

    def _numbered(self, number: int) -> list[TurnResult]:
        return [turn for turn in self.turns if turn.turn == number]

    def _sounded(self, number: int) -> list[ReplyResult]:
        return [reply for reply in self.replies if reply.reply == number]


class _Mike:
    """One file, ready to be played, so that nothing is left to compute while a reply sounds."""

    def __init__(self, clip: Pcm, rate_hz: int, clock: Clock) -> None:
        self.source = FileSource(clip, rate_hz, clock=clock, playback=OPEN_MIKE)
        self.onset_ns = samples_to_ns(onset_samples(clip, rate_hz), rate_hz)


def _at_rate(pcm: Pcm, own_hz: int, rate_hz: int) -> Pcm:
    return pcm if own_hz == rate_hz else resample(pcm, own_hz, rate_hz)


def onset_samples(clip: Pcm, rate_hz: int) -> int:
    """About where the first speech sample of a clip lies: its first window that is nearer to speech than to noise."""
    levels = window_dbfs(clip, rate_hz, ONSET_MS)
    if not len(levels):
        return 0
    quiet, loud = np.percentile(levels, [10, 95])
    spoken = np.flatnonzero(levels > max(loud - SOFT_DB, (quiet + loud) / 2))
    return round(int(spoken[0]) * ONSET_MS * rate_hz / 1000) if len(spoken) else 0


def _mark(spans: list[tuple[int, int | None]], at_ns: int, *, begins: bool) -> None:
    if begins:
        spans.append((at_ns, None))
    elif spans and spans[-1][1] is None:
        spans[-1] = (spans[-1][0], at_ns)


def _result(event: TurnConfirmed, began_ns: int) -> TurnResult:
    return TurnResult(
        turn=event.turn,
        text=event.text,
        silence_ns=event.silence_ns,
        posterior=event.posterior,
        end_mass=event.evidence.end_mass,
        prosody=event.evidence.prosody,
        began_ns=began_ns,
        confirmed_ns=event.at_ns,
    )
