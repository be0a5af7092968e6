"""Several servers of our own and clips -> a run of each, taken clip by clip in turn.

A machine drifts: it grows warm, its host gets other guests. What is compared is therefore said close together in time:
each clip to every server in turn, and a different server begins each time. Only one is spoken to at a time; the others
idle, which costs 0.02 cores each. They load one after the other, since loading takes all cores.
Threads: the event loop. What it does not know: how the servers differ.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from antiphon.core.clock import MonotonicClock
from antiphon.lab.caller import Manners
from antiphon.lab.lateness import Lateness
from antiphon.lab.machine import Load, fingerprint
from antiphon.lab.microphone import prepare
from antiphon.lab.own_server import own_server
from antiphon.lab.patience import Patience
from antiphon.lab.result import Run, Turn
from antiphon.lab.ruler import try_ruler
from antiphon.lab.scenario import Stage, perform
from antiphon.lab.schedule import SINGLE, Talk, Utterance
from antiphon.lab.sound_format import format_named
from antiphon.lab.wire import Address, connect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from antiphon.core.clock import Clock
    from antiphon.lab.clips import Clip
    from antiphon.lab.microphone import Speech
    from antiphon.lab.own_server import OwnServer
    from antiphon.lab.plan import BenchPlan
    from antiphon.lab.schedule import Habits
    from antiphon.lab.wire import Wire

Start = Callable[["Sequence[str]"], "AbstractAsyncContextManager[OwnServer]"]
Dial = Callable[[str], "Awaitable[Wire]"]


def _dial(url: str) -> Awaitable[Wire]:
    return connect(Address(url=url))


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """How servers are started and reached, and the time."""

    start: Start = own_server
    dial: Dial = _dial
    clock: Clock = field(default_factory=MonotonicClock)


@dataclass(slots=True)
class _Side:
    """One of the servers."""

    stage: Stage
    turns: list[Turn] = field(default_factory=list)


def order(names: Sequence[str], number: int) -> list[str]:
    """In which order clip `number` is said to them: each is first as often, and every second round goes backwards."""
    at = number % len(names)
    turned = [*names[at:], *names[:at]]
    return turned if number // len(names) % 2 == 0 else turned[::-1]


async def side_by_side(
    variants: Mapping[str, Sequence[str]],
    clips: Sequence[Clip],
    plan: BenchPlan,
    habits: Habits,
    *,
    on_turn: Callable[[str, Turn], Awaitable[None]],
    around: Around | None = None,
) -> dict[str, Run]:
    """Say each clip to each variant, a server with these arguments; `on_turn` gets the variant and its turn.

    The plan's wishes, seed and patience count, and the habits' warm-up turns, which each server has for itself.

    Raises:
        PeerError: a server does not start, or was never reached.
        MachineError: a process cannot be started.
    """
    around = around or Around()
    clock = around.clock
    wire_format = format_named(plan.wishes.format)
    speeches = {clip.name: prepare(clip, wire_format) for clip in clips}  # nothing else waits for the loop yet
    async with AsyncExitStack() as stack:
        sides: dict[str, _Side] = {}
        pids = []
        for name, arguments in variants.items():
            server = await stack.enter_async_context(around.start((*plan.own_server, *arguments)))
            pids.append(server.pid)
            sides[name] = _side(plan, habits, speeches, clock, partial(around.dial, server.url))
        for side in sides.values():
            for number in range(habits.warm_up):
                await _say(side.stage, clips[number % len(clips)])
        ruler = await try_ruler(habits.ruler_turns, clock=clock) if habits.ruler_turns else {}
        began_ns, load, used_s = clock.now_ns(), Load(*pids), time.process_time()
        for name, side in sides.items():
            side.stage.began_ns = began_ns
            side.stage.on_turn = partial(_take, name, side, on_turn)
        for number, clip in enumerate(clips):
            for name in order(list(sides), number):
                await _say(sides[name].stage, clip)
                await asyncio.sleep(habits.pause_s)
        spent = {**ruler, "run_cpu_s": round(time.process_time() - used_s, 3)}
        report = load.report()
        return {name: _run(name, variants[name], side, plan, report, spent) for name, side in sides.items()}


def _side(
    plan: BenchPlan, habits: Habits, speeches: Mapping[str, Speech], clock: Clock, dial: Callable[[], Awaitable[Wire]]
) -> _Side:
    async def ignore(_turn: Turn) -> None:
        return

    stage = Stage(
        dial=dial,
        manners=Manners(wishes=plan.wishes, wants_stamps=plan.wants_stamps),
        habits=habits,
        patience=Patience(answer_s=plan.patience_s),
        speeches=speeches,
        clock=clock,
        lateness=Lateness(),
        on_turn=ignore,
        scenario=SINGLE,
        began_ns=clock.now_ns(),
    )
    return _Side(stage)


async def _take(name: str, side: _Side, on_turn: Callable[[str, Turn], Awaitable[None]], turn: Turn) -> None:
    turn = replace(turn, number=len(side.turns))
    side.turns.append(turn)
    await on_turn(name, turn)


async def _say(stage: Stage, clip: Clip) -> None:
    await perform(stage, [iter([Talk(utterances=(Utterance(clip),))])])


def _run(
    name: str,
    arguments: Sequence[str],
    side: _Side,
    plan: BenchPlan,
    load: Mapping[str, float | bool | None],
    spent: Mapping[str, float],
) -> Run:
    own = (*plan.own_server, *arguments)
    late = side.stage.lateness
    figures = {f"microphone_{label}_ms": round(late.percentile_ms(at), 3) for label, at in (("p50", 50), ("p99", 99))}
    return Run(
        name=name,
        scenario=SINGLE,
        settings={**plan.settings(), "own_server": list(own), "is_side_by_side": True},
        server=side.stage.server,
        machine=fingerprint(),
        load=load,
        ruler={**figures, **spent},
        turns=tuple(side.turns),
        notes=tuple(side.stage.notes),
    )
