"""A step's callable in, the step done out: run as it is, or captured once into a CUDA graph and replayed.

Whoever has a step for many shapes gives a key for each. A graph keeps the priority of the stream that it was captured
on, and its memory: all graphs of one `Captured` share a pool, so they run one after the other and never at once.
Threads: one at a time for each instance; `run` comes back when the device is done.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_LOG = logging.getLogger(__name__)
_WARM_UPS = 2  # calls before a capture: libraries choose their kernels and make their working space in the first


class Replays(Protocol):
    """Something that runs steps."""

    def run(self, key: Hashable, make: Callable[[], Callable[[], None]]) -> None:
        """Run the step that `make` gives for `key`, and wait until its results are there."""
        ...


class Eager:
    """Runs steps as they are."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._bodies: dict[Hashable, Callable[[], None]] = {}

    @torch.inference_mode()
    def run(self, key: Hashable, make: Callable[[], Callable[[], None]]) -> None:
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = make()
        body()
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()


class Captured:
    """Captures a step when its key is new, and replays it from then on; what cannot be captured runs as it is."""

    def __init__(self, device: torch.device, *, priority: int = -1) -> None:
        self.stream = torch.cuda.Stream(device, priority=priority)
        self.capture_ns: dict[Hashable, int] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph | Callable[[], None]] = {}

    @torch.inference_mode()
    def run(self, key: Hashable, make: Callable[[], Callable[[], None]]) -> None:
        known = self._graphs.get(key)
        if known is None:
            known = self._graphs[key] = self._captured(key, make())
        with torch.cuda.stream(self.stream):
            if isinstance(known, torch.cuda.CUDAGraph):
                known.replay()
            else:
                known()
        self.stream.synchronize()

    def graph(self, key: Hashable) -> torch.cuda.CUDAGraph | None:
        """The graph of a key that has run; None if it is new or runs as it is."""
        known = self._graphs.get(key)
        return known if isinstance(known, torch.cuda.CUDAGraph) else None

    def _captured(self, key: Hashable, body: Callable[[], None]) -> torch.cuda.CUDAGraph | Callable[[], None]:
        started = time.perf_counter_ns()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(_WARM_UPS):
                body()
        self.stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            # only this thread's calls are held to what a capture allows: loading goes on elsewhere
            with torch.cuda.graph(graph, pool=self._pool, stream=self.stream, capture_error_mode="thread_local"):
                body()
        except RuntimeError:
            _LOG.warning("the step %s cannot be captured and runs without a graph", key, exc_info=True)
            return body
        self.capture_ns[key] = time.perf_counter_ns() - started
        return graph


def fitting_replays(device: torch.device) -> Replays:
    """Graphs on CUDA, plain calls elsewhere."""
    return Captured(device) if device.type == "cuda" else Eager(device)
