"""Pieces of a reply in, frames out to a sink when they are due: the shell around `Playout`.

Threads: everything on the event loop; `sink` and `listener` are called there and must not block. No polling: between
a deadline and the next, or while there is nothing to play, the task sleeps.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from antiphon.core.clock import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.clock import Clock
    from antiphon.core.flow import AudioFrame, SpeechPiece
    from antiphon.speak.playout import Played, Playout

# A timer may fire a little early; without a lower bound the loop would spin for the rest.
SHORTEST_SLEEP_NS = 1_000


@dataclass(frozen=True, slots=True)
class SoundBegan:
    """The first audible sample of a reply has left."""

    generation: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """All of a reply has left. A reply that was stopped or replaced does not end."""

    played: Played
    at_ns: int  # when this was noticed; the last sample left no later


PlayerEvent: TypeAlias = SoundBegan | ReplyEnded


class Player:
    """Keeps the deadlines of one conversation's replies."""

    def __init__(
        self,
        playout: Playout,
        *,
        clock: Clock,
        sink: Callable[[AudioFrame], None],
        listener: Callable[[PlayerEvent], None],
    ) -> None:
        self._playout = playout
        self._clock = clock
        self._sink = sink
        self._listener = listener
        self._changed = asyncio.Event()  # there is news for the task
        self._room = asyncio.Event()  # there may be room for a piece, or no need for one
        self._begun = -1  # the latest generation whose first sound was told
        self._ended = -1  # and whose end

    async def run(self) -> None:
        """Play until cancelled.

        Raises: whatever the sink or the listener raises.
        """
        while True:
            self._changed.clear()
            while frame := self._playout.take(self._clock.now_ns()):
                self._sink(frame)
            if not self._playout.is_full:
                self._room.set()
            now_ns = self._clock.now_ns()
            self._tell(self._playout.played(now_ns), now_ns)
            await self._sleep_until(self._playout.next_event_ns(now_ns))

    async def push(self, generation: int, piece: SpeechPiece) -> bool:
        """Play `piece` after those before it, waiting for room in the queue if need be; one producer per reply.

        False if the reply is stale: the piece was dropped and no further one is wanted.
        """
        while self._playout.is_full and self._playout.is_current(generation):
            self._room.clear()
            await self._room.wait()
        taken = self._playout.push(generation, piece, self._clock.now_ns())
        self._wake()
        return taken

    def finish(self, generation: int) -> None:
        """No more pieces will come for this reply."""
        self._playout.finish(generation, self._clock.now_ns())
        self._wake()

    def stop(self, generation: int) -> Played | None:
        """As `Playout.stop`, now."""
        played = self._playout.stop(generation, self._clock.now_ns())
        self._begun = max(self._begun, generation)  # of a stopped reply nothing more is told
        self._ended = max(self._ended, generation)
        self._wake()
        return played

    def duck(self, generation: int, *, soft: bool) -> None:
        """As `Playout.duck`."""
        self._playout.duck(generation, soft=soft)

    def pause(self, generation: int) -> None:
        """As `Playout.pause`, now."""
        self._playout.pause(generation, self._clock.now_ns())
        self._wake()

    def resume(self, generation: int) -> None:
        """As `Playout.resume`, now."""
        self._playout.resume(generation, self._clock.now_ns())
        self._wake()

    def played(self) -> Played:
        """What has left so far of the latest reply."""
        return self._playout.played(self._clock.now_ns())

    def _wake(self) -> None:
        self._changed.set()
        self._room.set()

    def _tell(self, played: Played, now_ns: int) -> None:
        if played.first_sound_ns is not None and played.generation > self._begun:
            self._begun = played.generation
            self._listener(SoundBegan(played.generation, played.first_sound_ns))
        if played.is_complete and played.generation > self._ended:
            self._ended = played.generation
            self._listener(ReplyEnded(played, now_ns))

    async def _sleep_until(self, moment_ns: int | None) -> None:
        """Until `moment_ns` of our clock, or until something changes."""
        if moment_ns is None:
            await self._changed.wait()
            return
        delay_ns = max(moment_ns - self._clock.now_ns(), SHORTEST_SLEEP_NS)
        timer = asyncio.get_running_loop().call_later(delay_ns / SECOND_NS, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()
