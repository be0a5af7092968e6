"""Tool calls in, what came of them out: to the dialogue as stimuli, to the owner as events, never of a draft.

A call runs once. One without side effects that a dropped draft has made already, with the same arguments in the same
turn, is answered from there. A tool with side effects is never broken off, not even by the end of the session, which
waits for it as long as its own time limit says.
Threads: the event loop; plain functions run in threads (`act/tool.py`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from antiphon.act.tool import Outcome
from antiphon.core.stamps import Stage
from antiphon.dialogue.stimuli import ToolReturned
from antiphon.session.events import ToolUsed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from antiphon.act.toolbelt import Toolbelt
    from antiphon.core.clock import Clock
    from antiphon.core.flow import ToolCall
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.session.draft import DraftWork


_ACTING: set[asyncio.Task[Outcome]] = set()  # the loop itself holds tasks only weakly


class ToolRuns:
    """Of one conversation."""

    def __init__(
        self,
        belt: Toolbelt,
        *,
        clock: Clock,
        start: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        tell: Callable[[Stimulus], None],
        emit: Callable[[ToolUsed], None],
    ) -> None:
        self._belt = belt
        self._clock = clock
        self._start = start
        self._tell = tell
        self._emit = emit
        self._tasks: dict[asyncio.Task[None], bool] = {}  # and whether it may be broken off
        self._known: dict[tuple[str, str], asyncio.Task[Outcome]] = {}  # of this turn, without side effects
        self._running: set[asyncio.Task[Outcome]] = set()  # all of them
        self._dropped: set[int] = set()  # drafts whose tools still run
        self._unreported: dict[int, list[ToolUsed]] = {}  # by draft, while nobody may know of it

    def new_turn(self) -> None:
        """What was found out for the last turn may not hold any more."""
        self._known = {}

    def run(self, draft: DraftWork, call: ToolCall) -> None:
        """Begin; the outcome comes as ToolReturned."""
        tool = self._belt.find(call.name)
        task = self._start(self._run(draft, call))
        self._tasks[task] = tool is None or not tool.side_effects
        task.add_done_callback(self._tasks.pop)

    def confirmed(self, number: int) -> None:
        """The draft is a reply now, and its owner may know what it did."""
        for used in self._unreported.pop(number, []):
            self._emit(used)

    def dropped(self, number: int) -> None:
        """Nobody will ever know of the draft."""
        self._unreported.pop(number, None)
        self._dropped.add(number)

    def close(self) -> None:
        """Break off what may be."""
        for task, may_break_off in tuple(self._tasks.items()):
            if may_break_off:
                task.cancel()
        for known in self._running:
            known.cancel()

    async def _run(self, draft: DraftWork, call: ToolCall) -> None:
        start_ns = self._clock.now_ns()
        outcome = await self._outcome(call)
        now_ns = self._clock.now_ns()
        draft.record.add(Stage.ACT, start_ns, now_ns, model=call.name)
        used = ToolUsed(
            turn=draft.record.turn,
            reply=draft.number,
            call=call,
            output=outcome.text,
            failed=outcome.failed,
            started_ns=start_ns,
            at_ns=now_ns,
        )
        if draft.confirmed.is_set():
            self._emit(used)
        elif draft.number not in self._dropped:
            self._unreported.setdefault(draft.number, []).append(used)
        self._tell(ToolReturned(at_ns=now_ns, call=call, text=outcome.text))

    async def _outcome(self, call: ToolCall) -> Outcome:
        tool = self._belt.find(call.name)
        if tool is None:
            return Outcome(f"error: there is no tool {call.name!r}", failed=True)
        if tool.side_effects:  # a task of its own, which not even a session that breaks down takes along
            acting = asyncio.ensure_future(tool.run(call.arguments))
            _ACTING.add(acting)
            acting.add_done_callback(_ACTING.discard)
            return await asyncio.shield(acting)
        key = call.name, call.arguments
        known = self._known.get(key)
        if known is None or known.cancelled():
            known = self._known[key] = asyncio.ensure_future(tool.run(call.arguments))
            self._running.add(known)
            known.add_done_callback(self._running.discard)
        return await asyncio.shield(known)
