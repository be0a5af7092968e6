"""What /metrics tells of a GPU; on the processor in its place."""

from __future__ import annotations

import math

import pytest

from antiphon.core.stamps import Stage
from antiphon.gpu.device import HostDevice
from antiphon.gpu.engine_lane import Want, around
from antiphon.gpu.fragmentation import Block
from antiphon.serve.gpu_metrics import GpuMetrics
from antiphon.serve.metrics import Metrics

pytestmark = pytest.mark.unit

PIECES = tuple(Block(pool="0", size_bytes=100 << 20, is_free=True) for _ in range(4))


def test_slices_are_counted_and_what_is_not_known_is_no_number():
    """Where it ran, how it ended; bandwidth without counters is unknown, not 0."""
    gpu, metrics = around(HostDevice(), memory=lambda: (PIECES, 0)), Metrics()
    GpuMetrics(metrics).follow(gpu)

    def told(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    assert math.isnan(told("antiphon_gpu_fragmentation_ratio"))
    gpu.engine().call(lambda: None, Want(stage=Stage.RECOGNISE))
    gpu.sensors.look()  # holds back what nobody waits for, as that was
    gpu.close()

    ran = {"stage": str(Stage.RECOGNISE), "place": "whole", "graph": "false", "fate": "done"}
    assert 1 == told("antiphon_gpu_slices_total", **ran)
    assert 1 == told("antiphon_gpu_seconds_count", stage=str(Stage.RECOGNISE))
    assert 0.75 == told("antiphon_gpu_fragmentation_ratio")
    assert 1 == told("antiphon_gpu_holds_background")
    assert math.isnan(told("antiphon_gpu_bandwidth_ratio"))
