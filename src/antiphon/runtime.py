"""What conversations share: the loaded models and the number of callers they may serve; it opens sessions.

Threads: `load` reads models in threads of its own, side by side; everything else happens on the event loop.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

from antiphon.core.clock import MonotonicClock
from antiphon.core.errors import BusyError, MachineError
from antiphon.dialogue.history import prompt
from antiphon.dialogue.turn_end import TurnEndModel
from antiphon.hardware.calibration import known_costs
from antiphon.hardware.plan import make_plan
from antiphon.hardware.probe import probe
from antiphon.loading import Lanes, load_engines, settled_device
from antiphon.models.store import Store
from antiphon.scheduling.admission import refusal
from antiphon.scheduling.decisions import DecisionLog
from antiphon.scheduling.job import new_caller
from antiphon.scheduling.openmp import limit_spinning
from antiphon.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from antiphon.config import Config
    from antiphon.core.clock import Clock
    from antiphon.core.flow import ToolSpec
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.gpu.engine_lane import Gpu
    from antiphon.hardware.plan import Plan
    from antiphon.scheduling.cpu_lanes import CpuScheduler
    from antiphon.scheduling.shares import Signs
    from antiphon.session import Engines, SessionSettings

FITTED = "whisper-tiny.en"  # whose opinions turn ends were first judged by


class Runtime:
    """Loaded engines, and the conversations that use them; close it, or use it as an async context manager."""

    def __init__(self, engines: Engines, *, conversations: int, plan: Plan | None = None) -> None:
        self.engines = engines
        self.conversations = conversations  # that may be open at once
        self.plan = plan
        self.seated: set[int] = set()  # callers whose conversations have begun and are not over
        self._lanes = Lanes(scheduler=None)
        self._opened = ExitStack()

    @classmethod
    async def load(cls, config: Config, *, store: Store | None = None) -> Self:
        """Load the chosen models side by side and warm them up.

        Raises:
            CallerError: a model's name is unknown, or a setting asks for what this machine does not have.
            MachineError: a model is not on this machine, or the machine cannot run it.
            PeerError: the language model's server does not answer as it should.
        """
        limit_spinning()
        config = await asyncio.to_thread(settled_device, config)
        facts = await asyncio.to_thread(probe)
        plan = make_plan(facts, config.models, config, known_costs(facts, config.models))
        lanes = Lanes.of(plan, config, MonotonicClock())
        with ExitStack() as opened:
            opened.callback(lanes.close)
            if config.scheduling.trace and lanes.scheduler is not None:
                log = opened.enter_context(DecisionLog(Path(config.scheduling.trace)))
                lanes.scheduler.watchers.append(log.write)
            engines = await load_engines(config, store or Store(), plan, lanes)
            runtime = cls(engines, conversations=plan.callers, plan=plan)
            runtime._lanes = lanes
            await engines.warm_up()
            runtime._opened = opened.pop_all()
        return runtime

    @property
    def scheduler(self) -> CpuScheduler | None:
        """Who decides what computes next; None: whatever comes computes at once."""
        return self._lanes.scheduler

    @property
    def gpu(self) -> Gpu | None:
        """What the engines on a GPU share; None: none is on one."""
        return self._lanes.gpu

    def open(
        self,
        settings: SessionSettings,
        *,
        clock: Clock | None = None,
        watch: Callable[[Stimulus, tuple[Command, ...]], None] | None = None,
    ) -> Session:
        """A new conversation; enter it as an async context manager to begin, which takes a place until it ends.

        Raises:
            MachineError: as many conversations as may be are open.
            BusyError: one more would make the others' replies late.
        """
        self.refuse_if_full()
        self._refuse_if_busy()
        return Session(self.engines, settings, clock=clock, watch=watch, seat=_Seat(self))

    def refuse_if_full(self) -> None:
        """Raises MachineError if as many conversations as may be are open."""
        if len(self.seated) >= self.conversations:
            raise MachineError(
                f"{len(self.seated)} conversations are open, which is all that may be",
                hint="end one, or raise capacity.conversations",
                retryable=True,
            )

    def _refuse_if_busy(self) -> None:
        if self.scheduler is None or not self.scheduler.rules.admission:
            return
        reason = refusal(self.scheduler.pressure(len(self.seated)), self.scheduler.rules)
        if reason:
            raise BusyError(
                reason, hint="try again in a moment, or raise scheduling.busy_limit or scheduling.wait_limit_ms"
            )

    async def meet(self, instructions: str, tools: Sequence[ToolSpec]) -> None:
        """Let the language model read what every conversation begins with, before the first one does."""
        thinking = self.engines.language_model.open()
        try:
            await thinking.prefill(prompt(instructions, (), "Hello."), tools=tools)
        finally:
            thinking.close()

    @cached_property
    def turn_end(self) -> TurnEndModel:
        """How turn ends are judged: by the fit for the recognizer that hears a pause first."""
        engines = self.engines
        return default_turn_end((engines.quick_recognizer or engines.recognizer).name)

    def close(self) -> None:
        """Free the engines; open conversations fail from here on."""
        self.engines.close()
        self._opened.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def default_turn_end(recognizer: str = FITTED) -> TurnEndModel:
    """The fit for what that recognizer hears, which ships with the package; for one that was never fitted, FITTED's.

    bench/turn_end_fit.py makes them.
    """
    fits = resources.files("antiphon") / "assets" / "turn_end"
    own = fits / f"{recognizer}.json"
    text = (own if own.is_file() else fits / f"{FITTED}.json").read_text(encoding="utf-8")
    return TurnEndModel.from_dict(json.loads(text))


class _Seat:
    """One conversation's place here."""

    def __init__(self, runtime: Runtime) -> None:
        self.caller = new_caller()
        self._runtime = runtime

    def take(self) -> None:
        self._runtime.refuse_if_full()  # another may have been entered since this one was made
        self._runtime.seated.add(self.caller)

    def leave(self) -> None:
        self._runtime.seated.discard(self.caller)
        if self._runtime.scheduler is not None:
            self._runtime.scheduler.leaves(self.caller)

    def hears(self, signs: Signs) -> None:
        self._runtime._lanes.hears(self.caller, signs)  # noqa: SLF001 - a part of it
