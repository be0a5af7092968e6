"""Recorded caller turns in, a conversation in real time, and everything that happened out.

A file is played as a microphone would hear it; the microphone stays open on the file's own room tone until the reply
has been said, and then the next file begins.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from antiphon.audio.files import FileSource, Playback, read
from antiphon.audio.recording import Recording
from antiphon.audio.resample import resample
from antiphon.core.clock import SECOND_NS, MonotonicClock
from antiphon.core.stamps import Mark
from antiphon.session.events import (
    ReplyAudio,
    ReplyFinished,
    ReplyStarted,
    StageFailed,
    TurnAbandoned,
    TurnConfirmed,
    TurnMeasured,
    TurnStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from antiphon.core.stamps import TurnTimeline
    from antiphon.session import Session
    from antiphon.session.events import Event

OPEN_MIKE = Playback(tail_ms=60_000)  # after a file, for the reply: one of max_tokens fits in
AFTERWARDS_S = 0.5  # the microphone's time after a reply, so that the recording does not end on its last sample
SILENCE_S = 1.5  # after a file in which nobody was heard, or who was heard said nothing


@dataclass(slots=True)
class TurnResult:
    """One caller turn, as it went."""

    turn: int
    text: str
    silence_ns: int
    posterior: float
    end_mass: float | None
    prosody: float | None
    reply: str = ""
    timeline: TurnTimeline | None = None


@dataclass(slots=True)
class Rehearsal:
    """A conversation from files, and what came of it."""

    watch: Callable[[Event], None]
    recording: Recording = field(default_factory=Recording)
    turns: list[TurnResult] = field(default_factory=list)
    failures: list[StageFailed] = field(default_factory=list)
    first_frame_ns: int | None = None
    _fed_samples: int = 0
    _open: set[int] = field(default_factory=set)  # turns that began and are neither answered nor abandoned

    async def play(self, session: Session, files: Sequence[Path]) -> None:
        """Hold the conversation; returns after the last reply.

        Raises:
            CallerError: a file cannot be read; all are read before the first is played.
        """
        clips = [read(file) for file in files]
        rate_hz = clips[0][1]
        listener = asyncio.create_task(self._listen(session))
        try:
            for pcm, own_rate_hz in clips:  # one caller has one microphone, whatever their files were made with
                clip = pcm if own_rate_hz == rate_hz else resample(pcm, own_rate_hz, rate_hz)
                await self._speak(session, FileSource(clip, rate_hz, clock=MonotonicClock(), playback=OPEN_MIKE))
                if listener.done():
                    break  # it failed, and says how below
            session.hang_up()
            await listener
        finally:
            listener.cancel()

    async def _speak(self, session: Session, source: FileSource) -> None:
        """Feed one file, and its room tone until nobody has anything to say any more."""
        answered = len(self.turns)
        quiet_since_ns: int | None = None
        before_samples = self._fed_samples
        async for own in source:
            frame = replace(own, pos_samples=before_samples + own.pos_samples)
            self._fed_samples = frame.end_samples
            if self.first_frame_ns is None:
                self.first_frame_ns = frame.captured_ns
            self.recording.add("caller", frame)
            session.feed(frame)
            if own.pos_samples < source.clip_samples or self._open:
                quiet_since_ns = None
                continue
            quiet_since_ns = quiet_since_ns or frame.captured_ns
            patience_s = AFTERWARDS_S if len(self.turns) > answered else SILENCE_S
            if frame.end_ns - quiet_since_ns >= patience_s * SECOND_NS:
                break

    async def _listen(self, session: Session) -> None:
        async for event in session:
            self._note(event)
            self.watch(event)

    def _note(self, event: Event) -> None:
        match event:
            case TurnStarted(turn=number):
                self._open.add(number)
            case TurnAbandoned(turn=number):
                self._open.discard(number)
            case TurnConfirmed():
                self.turns.append(_result(event))
            case ReplyAudio(frame=frame):
                self.recording.add("reply", frame)
            case ReplyStarted(turn=number):
                self._open.add(number)
            case TurnMeasured(timeline=timeline):
                for turn in self._numbered(timeline.turn):
                    turn.timeline = timeline
                if Mark.FIRST_SOUND not in timeline.marks:
                    self._open.discard(timeline.turn)
            case ReplyFinished(turn=number, heard=heard):
                for turn in self._numbered(number):
                    turn.reply = heard
                self._open.discard(number)
            case StageFailed():
                self.failures.append(event)
            case _:
                pass

    def _numbered(self, number: int) -> list[TurnResult]:
        return [turn for turn in self.turns if turn.turn == number]


def _result(event: TurnConfirmed) -> TurnResult:
    return TurnResult(
        turn=event.turn,
        text=event.text,
        silence_ns=event.silence_ns,
        posterior=event.posterior,
        end_mass=event.evidence.end_mass,
        prosody=event.evidence.prosody,
    )
