"""The dialogue's waits, kept on the event loop; at most one of each kind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from antiphon.core.clock import SECOND_NS
from antiphon.dialogue.stimuli import TimerFired

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.clock import Clock
    from antiphon.dialogue.commands import SetTimer
    from antiphon.dialogue.stimuli import Timer


class Timers:
    """Answers a SetTimer with its TimerFired."""

    def __init__(self, clock: Clock, fire: Callable[[TimerFired], None], fail: Callable[[Exception], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._fail = fail  # the loop would only log what a callback raises
        self._handles: dict[Timer, asyncio.TimerHandle] = {}

    def set(self, command: SetTimer) -> None:
        """Wait, in place of whatever this kind waited for; a moment that has passed fires at once."""
        self.cancel(command.timer)
        delay_s = max(0, command.at_ns - self._clock.now_ns()) / SECOND_NS
        self._handles[command.timer] = asyncio.get_running_loop().call_later(delay_s, self._due, command)

    def cancel(self, timer: Timer) -> None:
        """Wait no more."""
        handle = self._handles.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def close(self) -> None:
        """Wait for nothing any more."""
        for timer in tuple(self._handles):
            self.cancel(timer)

    def _due(self, command: SetTimer) -> None:
        del self._handles[command.timer]
        try:
            self._fire(TimerFired(at_ns=self._clock.now_ns(), timer=command.timer, generation=command.generation))
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the session rather than stall it
            self._fail(error)
