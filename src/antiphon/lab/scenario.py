"""Lanes of talks -> turns: opens a line for each talk, says what is to be said, and gives each turn when it is over.

One task per lane. Whatever a server does, a lane goes on: a line that is lost fails its turn, and the next turn opens
another; a server that is full is asked again when no schedule forbids it, and its refusals are counted. Only a server
that was never reached ends the run.
Units: ns of the clock. Threads: the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import AntiphonError
from antiphon.lab.caller import LEAD_MS, Manners, opened
from antiphon.lab.microphone import until
from antiphon.lab.result import Outcome
from antiphon.lab.turns import NEVER_OVER, Place, lost_turn, turn_of
from antiphon.lab.wire import FullError, LineLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from typing import Any

    from antiphon.core.clock import Clock
    from antiphon.lab.caller import Caller
    from antiphon.lab.exchange import Exchange
    from antiphon.lab.lateness import Lateness
    from antiphon.lab.microphone import Speech
    from antiphon.lab.patience import Patience
    from antiphon.lab.result import Turn
    from antiphon.lab.schedule import Habits, Talk, Utterance
    from antiphon.lab.wire import Wire

OPENS_AHEAD_NS = SECOND_NS  # of when the caller is to speak: what a telephone takes to ring
REFUSED_TRIES = 5  # of a caller without a schedule
REFUSED_PAUSE_S = 1.0


@dataclass(slots=True, kw_only=True)
class Stage:
    """What all lanes of a run share."""

    dial: Callable[[], Awaitable[Wire]]
    manners: Manners
    habits: Habits
    patience: Patience
    speeches: Mapping[str, Speech]  # by clip
    clock: Clock
    lateness: Lateness
    on_turn: Callable[[Turn], Awaitable[None]]
    scenario: str
    began_ns: int
    is_reached: bool = False  # a session was open once
    server: dict[str, Any] = field(default_factory=dict)  # its echo of the first one
    notes: list[str] = field(default_factory=list)


async def perform(stage: Stage, lanes: Sequence[Iterator[Talk]], *, until_ns: int | None = None) -> None:
    """All lanes at once, to their ends or until then.

    Raises:
        CallerError, PeerError: the server was never reached.
    """
    starts_ns = stage.clock.now_ns() + OPENS_AHEAD_NS
    async with asyncio.TaskGroup() as tasks:
        for number, talks in enumerate(lanes):
            lane = _Lane(stage, number, len(lanes), starts_ns)
            tasks.create_task(lane.run(talks, until_ns))


@dataclass(slots=True)
class _Open:
    """A turn that is not told yet: its reply may still be talked over."""

    exchange: Exchange
    place: Place


class _Lane:
    """One caller's talks, one after the other."""

    def __init__(self, stage: Stage, number: int, callers: int, starts_ns: int) -> None:
        self._stage = stage
        self._caller = number
        self._callers = callers
        self._starts_ns = starts_ns
        self._turns = 0

    async def run(self, talks: Iterator[Talk], until_ns: int | None) -> None:
        for talk in talks:
            if until_ns is not None and self._stage.clock.now_ns() >= until_ns:
                return
            await self._hold(talk)
            if talk.due_s is None:
                await asyncio.sleep(self._stage.habits.pause_s)

    async def _hold(self, talk: Talk) -> None:
        stage, left = self._stage, deque(talk.utterances)
        due_ns = self._ns(talk.due_s)
        if due_ns is not None:
            await until(due_ns - OPENS_AHEAD_NS, stage.clock)
        tries = 0
        while left:
            unsaid = len(left)
            try:
                wire = await stage.dial()
                first = stage.speeches[left[0].clip.name]
                async with opened(wire, stage.manners, first, clock=stage.clock, lateness=stage.lateness) as caller:
                    self._note_server(caller)
                    await self._converse(caller, left, due_ns, self._ns(talk.next_due_s))
                if len(left) == unsaid:  # the line was lost before anything was said
                    raise FullError(caller.lost) if caller.is_refused else LineLostError(caller.lost)
            except FullError as error:
                tries += 1
                if due_ns is not None or tries >= REFUSED_TRIES:
                    await self._tell_lost(left.popleft(), due_ns, Outcome.REFUSED, error)
                await asyncio.sleep(REFUSED_PAUSE_S)
            except AntiphonError as error:
                if not stage.is_reached:
                    raise
                await self._tell_lost(left.popleft(), due_ns, Outcome.FAILED, error)
                await asyncio.sleep(stage.habits.pause_s)
            due_ns = None

    async def _converse(
        self, caller: Caller, left: deque[Utterance], due_ns: int | None, next_due_ns: int | None
    ) -> None:
        """Say what is left until it is said or the line is lost."""
        clock, untold = self._stage.clock, deque[_Open]()
        await caller.quiet()
        while left and not caller.lost:
            utterance = left[0]
            at_ns = clock.now_ns() if due_ns is None else due_ns
            over = utterance.over_ms is not None and bool(untold)
            if utterance.over_ms is not None and untold:
                heard = await caller.wait_heard(untold[-1].exchange, utterance.over_ms - LEAD_MS, self._stage.patience)
                over = heard is not None
                at_ns = heard or clock.now_ns()
            exchange = caller.say(self._stage.speeches[utterance.clip.name], at_ns=at_ns, over=over)
            if utterance.over_ms is not None and not over:
                exchange.errors.append(NEVER_OVER)
            left.popleft()
            untold.append(_Open(exchange, self._place(utterance, due_ns, caller)))
            due_ns = None
            if left and left[0].over_ms is not None:
                continue
            listens_s = None if left else self._stage.habits.listens_s
            patience = replace(self._stage.patience, hears_out=bool(left), listens_s=listens_s)
            await caller.wait_over(exchange, patience, until_ns=None if left else next_due_ns)
            await self._tell(caller, untold)
            if left:
                await asyncio.sleep(self._stage.habits.pause_s)
                await caller.quiet()
        await self._tell(caller, untold)

    async def _tell(self, caller: Caller, untold: deque[_Open]) -> None:
        while untold:
            one = untold.popleft()
            turn = turn_of(one.exchange, one.place)
            is_unanswered = turn.outcome in {Outcome.FAILED, Outcome.SILENT}
            if caller.is_refused and is_unanswered:
                turn = replace(turn, outcome=Outcome.REFUSED)
            await self._stage.on_turn(turn)

    async def _tell_lost(
        self, utterance: Utterance, due_ns: int | None, outcome: Outcome, error: AntiphonError
    ) -> None:
        place = self._place(utterance, due_ns)
        await self._stage.on_turn(lost_turn(place, outcome, at_ns=self._stage.clock.now_ns(), error=error.message))

    def _place(self, utterance: Utterance, due_ns: int | None, caller: Caller | None = None) -> Place:
        self._turns += 1
        return Place(
            clip=utterance.clip,
            caller=self._caller,
            number=self._turns - 1,
            scenario=self._stage.scenario,
            callers=self._callers,
            began_ns=self._stage.began_ns,
            due_ns=due_ns,
            session=str(caller.opened.session.get("id") or "") if caller else "",
            rate_hz=self._stage.speeches[utterance.clip.name].format.rate_hz,
        )

    def _ns(self, due_s: float | None) -> int | None:
        return None if due_s is None else self._starts_ns + round(due_s * SECOND_NS)

    def _note_server(self, caller: Caller) -> None:
        stage = self._stage
        if stage.is_reached:
            return
        stage.is_reached = True
        stage.server.update(caller.opened.session)
        asked = next(iter(stage.speeches.values())).format
        if caller.opened.sent != asked:
            stage.notes.append(f"the server says it listens to {caller.opened.sent}, but was sent {asked}")
        if stage.manners.wants_stamps and not caller.opened.has_stamps:
            stage.notes.append("the server offers no stamps of its own")
