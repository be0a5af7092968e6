"""Recorded caller turns in, a conversation in real time, and everything that happened out.

A file is played as a microphone would hear it; the microphone stays open on the file's own room tone until the reply
has been said, and then the next file begins.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.audio.files import FileSource, Playback
from antiphon.audio.recording import Recording
from antiphon.core.clock import SECOND_NS, MonotonicClock
from antiphon.session.events import (
    ReplyAudio,
    ReplyFinished,
    StageFailed,
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

PATIENCE_S = 20  # silence after a file in which its reply must begin; longest wait and slowest reply fit in twice
AFTERWARDS_S = 0.5  # the microphone's time after a reply, so that the recording does not end on its last sample


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
    _quiet: asyncio.Event = field(default_factory=asyncio.Event)  # nobody has anything to say
    _pending: int = 0  # turns that began and were not answered

    async def play(self, session: Session, files: Sequence[Path]) -> None:
        """Hold the conversation; returns after the last reply.

        Raises:
            CallerError: a file cannot be read; all are read before the first is played.
        """
        clock = MonotonicClock()
        open_mike = Playback(tail_ms=PATIENCE_S * 1000)
        sources = [FileSource.open(file, clock=clock, playback=open_mike) for file in files]
        listener = asyncio.create_task(self._listen(session))
        try:
            for source in sources:
                await self._speak(session, source)
            session.hang_up()
            await listener
        finally:
            listener.cancel()

    async def _speak(self, session: Session, source: FileSource) -> None:
        answered_ns: int | None = None
        self._quiet.clear()
        async for frame in source:
            if self.first_frame_ns is None:
                self.first_frame_ns = frame.captured_ns
            self.recording.add("caller", frame)
            session.feed(frame)
            if frame.pos_samples < source.clip_samples or not self._quiet.is_set():
                answered_ns = None
                continue
            answered_ns = answered_ns or frame.end_ns
            if frame.end_ns - answered_ns >= AFTERWARDS_S * SECOND_NS:
                break

    async def _listen(self, session: Session) -> None:
        async for event in session:
            self._note(event)
            self.watch(event)

    def _note(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._quiet.clear()
            case TurnConfirmed():
                self.turns.append(_result(event))
            case ReplyAudio(frame=frame):
                self.recording.add("reply", frame)
            case TurnMeasured(timeline=timeline):
                for turn in self._numbered(timeline.turn):
                    turn.timeline = timeline
                if timeline.voice_to_voice_ns is None:
                    self._quiet.set()
            case ReplyFinished(turn=number, heard=heard):
                for turn in self._numbered(number):
                    turn.reply = heard
                self._quiet.set()
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
