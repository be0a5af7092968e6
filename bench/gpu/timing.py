"""Something to run in, how long it takes out: on the host to the end of the stream, on the device by events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Callable

_WARM_UPS = 3


def summary(samples_ms: list[float]) -> dict[str, float]:
    """Percentiles with their count."""
    found = np.percentile(samples_ms, (50, 95, 99))
    return {
        "p50_ms": round(float(found[0]), 4),
        "p95_ms": round(float(found[1]), 4),
        "p99_ms": round(float(found[2]), 4),
        "max_ms": round(max(samples_ms), 4),
        "samples": len(samples_ms),
    }


def timed(run: Callable[[], Any], *, samples: int, device: torch.device, stream: Any = None) -> dict[str, Any]:
    """`run` only enqueues; its launch alone is `launch_us`, host time until it returns."""
    if device.type != "cuda":
        walls = []
        for place in range(samples + 1):
            start = time.perf_counter()
            run()
            if place:
                walls.append((time.perf_counter() - start) * 1e3)
        return summary(walls)
    stream = stream or torch.cuda.current_stream()
    walls, launches, devices = [], [], []
    with torch.cuda.stream(stream):
        for place in range(samples + _WARM_UPS):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            stream.synchronize()
            first.record(stream)
            start = time.perf_counter()
            run()
            launched = time.perf_counter()
            last.record(stream)
            stream.synchronize()
            if place >= _WARM_UPS:
                walls.append((time.perf_counter() - start) * 1e3)
                launches.append((launched - start) * 1e6)
                devices.append(first.elapsed_time(last))
    found = summary(walls)
    found["launch_us_p50"] = round(float(np.median(launches)), 2)
    found["launch_us_p99"] = round(float(np.percentile(launches, 99)), 2)
    found["device_ms_p50"] = round(float(np.median(devices)), 4)
    return found


def graph_of(body: Callable[[], Any], stream: Any) -> torch.cuda.CUDAGraph:
    """`body` captured on `stream`."""
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            body()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        body()
    return graph


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference over that of what was expected."""
    found, expected = found.double().cpu(), expected.double().cpu()
    return float((found - expected).norm() / expected.norm())


class Graphs:
    """Bodies captured by themselves, without the lane: what a replay takes, and nothing else."""

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream(priority=-1)
        self.capture_ns: dict[Any, int] = {}
        self._graphs: dict[Any, torch.cuda.CUDAGraph] = {}

    def graph(self, key: Any, make: Callable[[], Callable[[], None]]) -> torch.cuda.CUDAGraph:
        """The graph for a key, captured and replayed once if the key is new."""
        known = self._graphs.get(key)
        if known is None:
            started_ns = time.perf_counter_ns()
            known = self._graphs[key] = graph_of(make(), self.stream)
            self.capture_ns[key] = time.perf_counter_ns() - started_ns
            with torch.cuda.stream(self.stream):
                known.replay()
            self.stream.synchronize()
        return known
