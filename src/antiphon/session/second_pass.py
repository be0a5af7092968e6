"""Turns whose words came from the quick ear in; what the careful ear makes of them, out, one stimulus for each.

A turn is heard again when its draft needs the cores no more: `release` says so. Until its turn is confirmed the second
hearing goes with its draft, from then on it takes place whatever becomes of the reply. If the careful ear fails,
the quick one's words stand.
Bounds: as many as there are drafts, and the turns confirmed last. Threads: the event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.core.stamps import Stage
from antiphon.dialogue.stimuli import WordsCorrected
from antiphon.scheduling.job import Claim, Urgency, claimed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from antiphon.core.clock import Clock
    from antiphon.core.flow import Transcript
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.session.record import TurnRecord


@dataclass(slots=True)
class _Pass:
    claim: Claim
    may_begin: asyncio.Event = field(default_factory=asyncio.Event)
    is_kept: bool = False
    task: asyncio.Task[None] | None = None


class SecondPass:
    """Of one conversation."""

    def __init__(
        self,
        *,
        clock: Clock,
        caller: int,
        name: str,
        start: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        tell: Callable[[Stimulus], None],
        report: Callable[[Stage, AntiphonError], None],
    ) -> None:
        self._clock = clock
        self._caller = caller
        self._name = name
        self._start = start
        self._tell = tell
        self._report = report
        self._passes: dict[int, _Pass] = {}  # by draft

    def begin(
        self, draft: int, record: TurnRecord, quick: Transcript, hear: Callable[[], Awaitable[Transcript]]
    ) -> None:
        """Hear the draft's turn again, once it is released."""
        claim = Claim(caller=self._caller, turn=record.turn, urgency=Urgency.AHEAD)
        one = self._passes[draft] = _Pass(claim)
        with claimed(claim):
            one.task = self._start(self._hear(draft, one, record, quick, hear))

    def release(self, draft: int) -> None:
        """The draft has its first sound, or nothing will be written: what it waits for now are the words."""
        one = self._passes.get(draft)
        if one is not None:
            one.claim.urgency = Urgency.CONFIRMED if one.is_kept else Urgency.DRAFT
            one.may_begin.set()

    def is_to_come(self, draft: int) -> bool:
        """Whether the draft's turn is still to be heard again."""
        return draft in self._passes

    def keep(self, draft: int) -> None:
        """Its turn is confirmed, so its words are wanted whatever becomes of the reply."""
        one = self._passes.get(draft)
        if one is not None:
            one.is_kept = True
            if one.may_begin.is_set():
                one.claim.urgency = Urgency.CONFIRMED

    def drop(self, draft: int) -> None:
        """There is no such draft any more."""
        one = self._passes.get(draft)
        if one is None:
            return
        if one.is_kept:
            one.claim.urgency = Urgency.AHEAD
            one.may_begin.set()
            return
        del self._passes[draft]
        if one.task is not None:
            one.task.cancel()

    def close(self) -> None:
        """Hear nothing more."""
        for one in self._passes.values():
            if one.task is not None:
                one.task.cancel()
        self._passes.clear()

    async def _hear(
        self,
        draft: int,
        one: _Pass,
        record: TurnRecord,
        quick: Transcript,
        hear: Callable[[], Awaitable[Transcript]],
    ) -> None:
        turn = record.turn  # the reply may come to answer an earlier one
        await one.may_begin.wait()
        try:
            with record.span(Stage.RECOGNISE, self._name):
                careful = await hear()
        except AntiphonError as error:
            self._report(Stage.RECOGNISE, error)
            careful = quick
        self._passes.pop(draft, None)
        self._tell(WordsCorrected(at_ns=self._clock.now_ns(), draft=draft, turn=turn, transcript=careful))
