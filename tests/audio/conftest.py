"""Virtual time and signals with a known answer."""

from __future__ import annotations

import numpy as np
import pytest


class VirtualClock:
    """Time that moves only when told to, or slept through."""

    def __init__(self) -> None:
        self.ns = 5_000_000_000
        self.slept: list[float] = []

    def now_ns(self) -> int:
        return self.ns

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ns += round(seconds * 1e9)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(scope="session")
def sine():
    def make(hz: float, rate_hz: int, seconds: float, peak: float = 0.5):
        return (peak * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate_hz)) / rate_hz)).astype(np.float32)

    return make


@pytest.fixture(scope="session")
def line_dbfs():
    """The level of one spectral line, where a full-scale sine has 0."""

    def measure(pcm, rate_hz: int, hz: float) -> float:
        window = np.hanning(len(pcm))
        turn = np.exp(-2j * np.pi * hz * np.arange(len(pcm)) / rate_hz)
        return float(20 * np.log10(2 * abs(np.sum(pcm * window * turn)) / np.sum(window) + 1e-12))

    return measure
