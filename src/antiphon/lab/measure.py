"""A plan in -> a run out: starts what has to be started, has everything said, and takes down each turn.

The order: clips are prepared, the server of our own is started, the ruler tests itself, warm-up turns are said and
thrown away; only then does the run begin. Threads: the event loop; clips are prepared in another.
What it does not know: how figures are made of turns.
"""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from antiphon.core.clock import SECOND_NS, MonotonicClock
from antiphon.core.errors import AntiphonError, CallerError
from antiphon.lab import schedule
from antiphon.lab.caller import Manners
from antiphon.lab.clips import choose, read_corpus
from antiphon.lab.lateness import Lateness
from antiphon.lab.machine import Load, fingerprint, server_usage
from antiphon.lab.microphone import Speech, prepare
from antiphon.lab.own_server import own_server
from antiphon.lab.patience import Patience
from antiphon.lab.ramp import climb
from antiphon.lab.relay import relayed
from antiphon.lab.result import Run, Turn
from antiphon.lab.ruler import try_ruler
from antiphon.lab.scenario import Stage, perform
from antiphon.lab.schedule import Habits, lanes
from antiphon.lab.sound_format import format_named
from antiphon.lab.wire import Address, connect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from antiphon.core.clock import Clock
    from antiphon.lab.clips import Clip
    from antiphon.lab.plan import BenchPlan

PORTS = {"ws": 80, "wss": 443}


@dataclass(slots=True)
class _Account:
    """What a run leaves behind, as it grows."""

    on_turn: Callable[[Turn], Awaitable[None]]
    turns: list[Turn] = field(default_factory=list)

    async def take(self, turn: Turn) -> None:
        self.turns.append(turn)
        await self.on_turn(turn)


async def measure(plan: BenchPlan, *, on_turn: Callable[[Turn], Awaitable[None]], habits: Habits | None = None) -> Run:
    """Carry out a plan; `on_turn` gets each turn when it is over, those of the warm-up left out.

    Raises:
        CallerError: the plan, the corpus or the key is wrong.
        PeerError: the server was never reached, or ours does not start.
        MachineError: a process cannot be started.
    """
    try:
        return await _measured(plan, habits or Habits(), on_turn)
    except BaseExceptionGroup as group:
        raise _alone(group) from group


async def _measured(plan: BenchPlan, habits: Habits, on_turn: Callable[[Turn], Awaitable[None]]) -> Run:
    clock = MonotonicClock()
    clips = choose(read_corpus(plan.corpus), kinds=plan.kinds, limit=_limit(plan), seed=plan.seed)
    lanes(plan, habits, clips, callers=1)  # what is wrong with it is told before anything is started
    speeches = await asyncio.to_thread(_prepared, clips, plan)
    async with AsyncExitStack() as stack:
        server = None
        if plan.url is None:
            server = await stack.enter_async_context(own_server(plan.own_server))
        address = Address(url=server.url if server else plan.url or "", key=plan.key)
        ruler = await try_ruler(habits.ruler_turns, clock=clock) if habits.ruler_turns else {}
        address = await _behind_relay(stack, address, plan, clock)
        account = _Account(on_turn)
        stage = _stage(plan, habits, speeches, clock, partial(connect, address))
        await _warm_up(stage, plan, habits, clips)
        stage.on_turn, stage.lateness, stage.began_ns = account.take, Lateness(), clock.now_ns()
        load, used_s = Load(server.pid if server else None), time.process_time()
        usage_before = server_usage(server.pid) if server else {}
        gc.collect()
        gc.freeze()  # what is there now is not looked through again
        try:
            callers = await _perform(stage, plan, habits, clips)
        finally:
            gc.unfreeze()
        passed_s = max(1, clock.now_ns() - stage.began_ns) / SECOND_NS
        run_share = (time.process_time() - used_s) / passed_s
        notes = [*stage.notes, *_usage_notes(usage_before, server_usage(server.pid) if server else {}, passed_s)]
        return Run(
            name=plan.shown_name,
            scenario=plan.scenario,
            settings={**plan.settings(), "habits": asdict(habits)},
            server=stage.server,
            machine=fingerprint(),
            load=load.report(),
            ruler={**ruler, **_microphone_figures(stage.lateness), "run_cpu_share": round(run_share / callers, 4)},
            turns=tuple(account.turns),
            notes=tuple(notes),
        )


def _limit(plan: BenchPlan) -> int | None:
    """A soak goes through all clips; `turns` limits what is chosen elsewhere."""
    return None if plan.scenario in {schedule.SOAK, schedule.RAMP} else plan.turns


def _prepared(clips: list[Clip], plan: BenchPlan) -> dict[str, Speech]:
    wire_format = format_named(plan.wishes.format)
    return {clip.name: prepare(clip, wire_format) for clip in clips}


def _stage(
    plan: BenchPlan, habits: Habits, speeches: Mapping[str, Speech], clock: Clock, dial: Callable[[], Any]
) -> Stage:
    async def ignore(_turn: Turn) -> None:
        return

    return Stage(
        dial=dial,
        manners=Manners(
            wishes=plan.wishes,
            wants_stamps=plan.wants_stamps,
            checks_truncation=plan.scenario == schedule.BARGE_IN,
        ),
        habits=habits,
        patience=Patience(answer_s=plan.patience_s),
        speeches=speeches,
        clock=clock,
        lateness=Lateness(),
        on_turn=ignore,
        scenario=plan.scenario,
        began_ns=clock.now_ns(),
    )


async def _behind_relay(stack: AsyncExitStack, address: Address, plan: BenchPlan, clock: Clock) -> Address:
    """The address with the relay before it, if the plan wants a line that is not plain."""
    if plan.line.is_plain:
        return address
    parts = urlsplit(address.url)
    if not parts.hostname:
        raise CallerError(f"{address.url} names no host", hint="use ws://HOST:PORT/v1/realtime")
    far_port = parts.port or PORTS[parts.scheme]
    port = await stack.enter_async_context(relayed(parts.hostname, far_port, plan.line, clock=clock, seed=plan.seed))
    return replace(address, host="127.0.0.1", port=port)


async def _warm_up(stage: Stage, plan: BenchPlan, habits: Habits, clips: list[Clip]) -> None:
    if habits.warm_up:
        plain = replace(plan, scenario=schedule.SINGLE, turns=habits.warm_up)
        await perform(stage, lanes(plain, replace(habits, period_s=None), clips, callers=1))


async def _perform(stage: Stage, plan: BenchPlan, habits: Habits, clips: list[Clip]) -> int:
    """The scenario; returns how many callers there were, the most at once."""
    if plan.scenario == schedule.RAMP:
        found = await climb(stage, plan, habits, clips)
        stage.notes.append(f"capacity: {found.callers} callers; {found.ended_by or 'all levels were held'}")
        return max(found.tried)
    until_ns = stage.clock.now_ns() + round(plan.soak_minutes * 60 * SECOND_NS)
    is_soak = plan.scenario == schedule.SOAK
    talks = lanes(plan, habits, clips, callers=plan.callers)
    await perform(stage, talks, until_ns=until_ns if is_soak else None)
    return plan.callers


def _microphone_figures(lateness: Lateness) -> dict[str, float]:
    """How late the run's own frames were sent."""
    figures = {name: round(lateness.percentile_ms(percent), 3) for name, percent in (("p50", 50), ("p99", 99))}
    figures["max"] = round(lateness.percentile_ms(100), 3)
    return {f"microphone_{name}_ms": value for name, value in figures.items()}


def _usage_notes(before: Mapping[str, float], after: Mapping[str, float], passed_s: float) -> list[str]:
    if not before or not after:
        return []
    cores = (after["cpu_s"] - before["cpu_s"]) / passed_s
    return [
        f"server: {cores:.2f} cores, {before['rss_mib']:.0f} MiB at the start, {after['rss_mib']:.0f} MiB at the end"
    ]


def _alone(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that a task group holds; ours first, for all other tasks were cancelled because of it."""
    inner: list[BaseException] = []
    waiting: list[BaseException] = [group]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        else:
            inner.append(one)
    return next((one for one in inner if isinstance(one, AntiphonError)), inner[0])
