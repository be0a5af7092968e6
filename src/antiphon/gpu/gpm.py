"""NVML's counters (GPM) -> the part of the memory's bandwidth and of the multiprocessors in use between two looks.

Chips from 2022 on have them; a container or virtual machine may be refused. What cannot be had is None, never 0:
`problem` says why. NVML's plain "memory utilisation" is the part of time in which any access happened, so it is not
used. Two looks are to be 100 ms apart or more; a slice is too short for them, its own bandwidth is counted bytes over
event time.
Units: parts from 0 to 1. Threads: one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

LEAST_APART_NS = 100_000_000
_SM_UTIL, _SM_OCCUPANCY, _ANY_TENSOR, _DRAM_BW_UTIL = 2, 3, 5, 10
_METRICS = (_DRAM_BW_UTIL, _SM_UTIL, _SM_OCCUPANCY, _ANY_TENSOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Between two looks."""

    bandwidth: float | None = None  # of the memory's peak
    multiprocessors: float | None = None  # had at least one warp
    occupancy: float | None = None  # warps, of those that fit
    tensor: float | None = None  # cycles of the matrix units


UNKNOWN = Counters()


class Gpm:
    """The counters of one GPU, by its index at NVML or its UUID ("GPU-..."). Never raises: `problem` tells."""

    def __init__(self, gpu: int | str = 0) -> None:
        self.problem = ""
        self._nvml: ModuleType | None = None
        self._samples: list[Any] = []
        self._looked_ns = 0
        try:
            import pynvml  # noqa: PLC0415 - of the gpu extra alone

            pynvml.nvmlInit()
            self._nvml = pynvml
            self._device = (
                pynvml.nvmlDeviceGetHandleByUUID(gpu)
                if isinstance(gpu, str)
                else pynvml.nvmlDeviceGetHandleByIndex(gpu)
            )
            if not pynvml.nvmlGpmQueryDeviceSupport(self._device).isSupportedDevice:
                self.problem = "this GPU has no such counters"
                return
            self._samples = [pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()]
            self._take()
        except Exception as error:  # noqa: BLE001 - a library, a driver or a right is missing: all mean "unknown"
            self.problem = f"{type(error).__name__}: {error}"

    def look(self) -> Counters:
        """Since the look before; unknown if that was less than 100 ms ago, and the window goes on."""
        if self.problem or self._nvml is None or time.monotonic_ns() - self._looked_ns < LEAST_APART_NS:
            return UNKNOWN
        try:
            self._take()
            return self._between()
        except Exception as error:  # noqa: BLE001 - as above
            self.problem = f"{type(error).__name__}: {error}"
            return UNKNOWN

    def close(self) -> None:
        """Give the samples back."""
        if self._nvml is None:
            return
        for sample in self._samples:
            self._nvml.nvmlGpmSampleFree(sample)
        self._samples = []
        self._nvml.nvmlShutdown()
        self._nvml = None

    def _take(self) -> None:
        assert self._nvml is not None
        self._samples.reverse()  # the later one is the last
        self._nvml.nvmlGpmSampleGet(self._device, self._samples[1])
        self._looked_ns = time.monotonic_ns()

    def _between(self) -> Counters:
        nvml = self._nvml
        assert nvml is not None
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(_METRICS)
        asked.sample1, asked.sample2 = self._samples
        for place, metric in enumerate(_METRICS):
            asked.metrics[place].metricId = metric
        nvml.nvmlGpmMetricsGet(asked)
        values = [
            asked.metrics[place].value / 100 if asked.metrics[place].nvmlReturn == 0 else None
            for place in range(len(_METRICS))
        ]
        return Counters(bandwidth=values[0], multiprocessors=values[1], occupancy=values[2], tensor=values[3])
