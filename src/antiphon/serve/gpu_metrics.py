"""What became of the GPU's slices in, and its sensors' readings; Prometheus' counts of it out.

What is not known is not a number (NaN), never 0. Units: seconds, parts from 0 to 1, bytes.
Threads: the lane's; counting is locked by the library.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

from antiphon.core.clock import SECOND_NS

if TYPE_CHECKING:
    from antiphon.gpu.engine_lane import Gpu
    from antiphon.gpu.sensors import Reading
    from antiphon.gpu.slices import SliceReport
    from antiphon.serve.metrics import Metrics

BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)


class GpuMetrics:
    """Of one GPU."""

    def __init__(self, metrics: Metrics) -> None:
        registry = metrics.registry
        self._waits = Histogram(
            "antiphon_gpu_wait_seconds",
            "How long slices waited for the GPU",
            ["stage"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._took = Histogram(
            "antiphon_gpu_seconds",
            "What slices took on the GPU, by its own events",
            ["stage"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._slices = Counter(
            "antiphon_gpu_slices",
            "Slices by where they ran, whether as a graph, and how they ended",
            ["stage", "place", "graph", "fate"],
            registry=registry,
        )
        self._bandwidth = Gauge(
            "antiphon_gpu_bandwidth_ratio", "Of the memory's peak, by its counter", registry=registry
        )
        self._used = Gauge(
            "antiphon_gpu_multiprocessors_ratio", "Multiprocessors with work, by their counter", registry=registry
        )
        self._pieces = Gauge(
            "antiphon_gpu_fragmentation_ratio", "1 - largest free block / all free memory", registry=registry
        )
        self._holds = Gauge("antiphon_gpu_holds_background", "1 while background work stays back", registry=registry)
        self._graphs = Gauge("antiphon_gpu_graphs", "Captured graphs", registry=registry)
        self._pool = Gauge("antiphon_gpu_graph_pool_bytes", "Memory that captures took", registry=registry)

    def follow(self, gpu: Gpu) -> None:
        """Count what this GPU does from now on."""
        gpu.lane.watchers.append(self._take)
        registry = gpu.lane.device.registry

        def last() -> Reading | None:
            return gpu.sensors.latest()

        self._bandwidth.set_function(lambda: _known(seen.counters.bandwidth if (seen := last()) else None))
        self._used.set_function(lambda: _known(seen.counters.multiprocessors if (seen := last()) else None))
        self._pieces.set_function(lambda: _known(seen.fragmentation if (seen := last()) else None))
        self._holds.set_function(lambda: float(bool((seen := last()) and seen.holds_background)))
        self._graphs.set_function(lambda: float(sum(not each.problem for each in registry.report())))
        self._pool.set_function(lambda: float(sum(each.pool_bytes for each in registry.report())))

    def _take(self, report: SliceReport) -> None:
        stage = str(report.stage)
        self._slices.labels(stage, str(report.place), str(report.is_graph).lower(), str(report.fate)).inc()
        if report.began_ns:
            self._waits.labels(stage).observe(report.waited_ns / SECOND_NS)
        if report.took_ns is not None:
            self._took.labels(stage).observe(report.took_ns / SECOND_NS)


def _known(value: float | None) -> float:
    return math.nan if value is None else value
