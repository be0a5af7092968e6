"""Callers of different lengths come and go while preloads ask for more: with hold-back and without.

The allocator gets a limit, so that memory is short on a large GPU as well. Callers hold contexts of 64 MB to 1 GB in
five eighths of it; a preload, which nobody waits for, takes 256 to 768 MB for a second, and is asked for five times in
that. A decode step runs
every 25 ms through the lane. Told for each way: steps' percentiles by quarter of the run, allocations that failed, the
allocator's retries (each returns memory to the driver, which stops everything), and how long preloads stayed back.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any

import torch
from contention import PERIOD_NS, percentiles
from grounds import Laned

from antiphon.core.errors import AntiphonError
from antiphon.core.stamps import Stage
from antiphon.gpu.fragmentation import Block, HoldBack
from antiphon.gpu.sensors import Sensors
from antiphon.gpu.slices import Fate, Slice
from antiphon.scheduling.job import Claim, Urgency

if TYPE_CHECKING:
    from grounds import Ground

BUDGET_BYTES = 16 << 30
MIB = 1 << 20


def stress(ground: Ground, cut: tuple[int, int]) -> dict[str, Any]:
    """Both ways, the same callers."""
    found = {}
    for label, enabled, seconds in (("hold-back", True, 80.0), ("without", False, 50.0)):
        if ground.is_cuda:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        found[label] = _run(ground, cut, enabled=enabled, seconds=0.5 if ground.tiny else seconds)
    return found


class _Callers(threading.Thread):
    """Contexts that come and go, within their room."""

    def __init__(self, ground: Ground, stop: threading.Event) -> None:
        super().__init__()
        self._ground, self._stopped, self._rng = ground, stop, random.Random(4)
        self.room_bytes = BUDGET_BYTES * 5 // 8 if ground.is_cuda else 64 * MIB
        self.held: list[torch.Tensor] = []
        self.failed = self.came = 0

    def run(self) -> None:
        while not self._stopped.wait(self._rng.expovariate(1 / 0.02)):
            size = self._rng.choice((64, 96, 160, 288, 544, 1024)) * (MIB if self._ground.is_cuda else 1024)
            while sum(each.numel() for each in self.held) + size > self.room_bytes:
                self.held.pop(self._rng.randrange(len(self.held)))
            try:
                self.held.append(torch.empty(size, dtype=torch.uint8, device=self._ground.device))
                self.came += 1
            except torch.OutOfMemoryError:
                self.failed += 1
            if self.held and self._rng.random() < 0.3:
                self.held.pop(self._rng.randrange(len(self.held)))


class _Preloads(threading.Thread):
    """Background slices that allocate."""

    def __init__(self, ground: Ground, laned: Laned, stop: threading.Event) -> None:
        super().__init__()
        self._ground, self._laned, self._stopped, self._rng = ground, laned, stop, random.Random(5)
        self.held: list[tuple[float, torch.Tensor]] = []
        self.reports: list[Any] = []
        self.refused = 0

    def run(self) -> None:
        flying: list[Any] = []
        while not self._stopped.wait(0.2 if self._ground.is_cuda else 0.06):
            now_s = time.monotonic()
            self.held = [each for each in self.held if now_s - each[0] < 1.0]
            if sum(not each.done() for each in flying) < 8:
                try:
                    flying.append(
                        self._laned.lane.submit(
                            Slice(stage=Stage.SPEAK, call=self._preload, claim=Claim(urgency=Urgency.BACKGROUND))
                        )
                    )
                except AntiphonError:
                    self.refused += 1
            self.reports += [each.report() for each in flying if each.done()]
            flying = [each for each in flying if not each.done()]
        for each in flying:
            each.cancel()
        self.reports += [each.report() for each in flying]

    def _preload(self) -> None:
        size = self._rng.randrange(256, 768) * (MIB if self._ground.is_cuda else 1024)
        weights = torch.empty(size, dtype=torch.uint8, device=self._ground.device)
        weights[: 16 * 1024].fill_(1)
        self.held.append((time.monotonic(), weights))


def _run(ground: Ground, cut: tuple[int, int], *, enabled: bool, seconds: float) -> dict[str, Any]:
    device = ground.open(cut)
    laned = Laned(ground, device)
    retries = 0
    if ground.is_cuda:
        limit_bytes = torch.cuda.memory_reserved() + BUDGET_BYTES
        torch.cuda.set_per_process_memory_fraction(limit_bytes / torch.cuda.get_device_properties(0).total_memory)
        device.memory_limit_bytes = limit_bytes
        retries = torch.cuda.memory_stats().get("num_alloc_retries", 0)
    hold_back = HoldBack(enabled=enabled)
    memory = device.memory if ground.is_cuda else _made_up
    sensors = Sensors(memory=memory, hold_back=hold_back, lane=laned.lane, period_ms=20 if ground.tiny else 100)
    stop = threading.Event()
    callers, preloads = _Callers(ground, stop), _Preloads(ground, laned, stop)
    sensors.start()
    callers.start()
    preloads.start()
    took: list[int] = []
    began_ns = due_ns = time.monotonic_ns()
    while time.monotonic_ns() - began_ns < seconds * 1e9:
        time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
        laned.wait(laned.start("decode", due_ns + PERIOD_NS))
        took.append(time.monotonic_ns() - due_ns)
        due_ns = max(due_ns + PERIOD_NS, time.monotonic_ns())
    stop.set()
    sensors.close()
    callers.join()
    preloads.join()
    readings = list(sensors.readings)
    pieces = sorted(each.fragmentation or 0.0 for each in readings)
    quarter = max(1, len(took) // 4)
    done = [each for each in preloads.reports if each.fate is Fate.DONE]
    found = {
        "steps": percentiles(took),
        "steps_by_quarter": [percentiles(took[at : at + quarter]) for at in range(0, 4 * quarter, quarter)],
        "callers_came": callers.came,
        "callers_out_of_memory": callers.failed,
        "preloads_done": len(done),
        "preloads_failed": sum(each.fate is Fate.FAILED for each in preloads.reports),
        "preloads_waited": percentiles([each.waited_ns for each in done]),
        "held_part_of_time": sum(each.holds_background for each in readings) / max(1, len(readings)),
        "held_times": hold_back.times,
        "fragmentation": {
            "median": pieces[len(pieces) // 2] if pieces else None,
            "p95": pieces[int(0.95 * len(pieces))] if pieces else None,
        },
        "look_ms": percentiles([each.look_ns for each in readings]),
    }
    if ground.is_cuda:
        found["allocator_retries"] = torch.cuda.memory_stats().get("num_alloc_retries", 0) - retries
        found["reserved_gb"] = torch.cuda.memory_reserved() / 1e9
        torch.cuda.set_per_process_memory_fraction(1.0)
    laned.close()
    return found


def _made_up() -> tuple[tuple[Block, ...], int]:
    """Now in pieces and now not: where there is no such allocator."""
    sizes = (100, 100, 100) if int(time.monotonic() * 5) % 2 else (100, 2000)
    return tuple(Block(pool="0", size_bytes=size << 20, is_free=True) for size in sizes), 0
