"""Sound that nobody said, frames of it, and sound that a voice did say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.clock import samples_to_ns
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antiphon.core.flow import Pcm

SECOND = HEARING_RATE_HZ


def at_level(pcm: Pcm, dbfs: float) -> Pcm:
    """The sound with this RMS level."""
    return (pcm / np.sqrt(np.mean(pcm**2)) * 10 ** (dbfs / 20)).astype(np.float32)


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * SECOND), np.float32)


def white(dbfs: float, seconds: float = 5.0, seed: int = 1) -> Pcm:
    return at_level(np.random.default_rng(seed).standard_normal(round(seconds * SECOND)), dbfs)


def pink(dbfs: float, seconds: float = 5.0) -> Pcm:
    spectrum = np.fft.rfft(np.random.default_rng(2).standard_normal(round(seconds * SECOND)))
    return at_level(np.fft.irfft(spectrum / np.sqrt(np.arange(len(spectrum)) + 1.0)), dbfs)


def hum(dbfs: float, hz: float, seconds: float = 5.0) -> Pcm:
    """A tone with four overtones."""
    time_s = np.arange(round(seconds * SECOND)) / SECOND
    return at_level(sum(np.sin(2 * np.pi * hz * k * time_s) / k for k in range(1, 6)), dbfs)


def clicks(peak_dbfs: float, count: int, seconds: float = 5.0) -> Pcm:
    """Keys on a keyboard over a faint hiss: bursts of 4 to 30 ms that die away."""
    rng = np.random.default_rng(count)
    pcm = white(-65, seconds)
    for start in rng.integers(0, len(pcm) - 800, count):
        size = int(rng.integers(60, 500))
        decay = np.exp(-np.arange(size) / (size / 4)) * 10 ** (peak_dbfs / 20)
        pcm[start : start + size] += (rng.standard_normal(size) * decay).astype(np.float32)
    return pcm


def no_speech() -> dict[str, Callable[[], Pcm]]:
    """One of each kind, at several levels."""
    return {
        "zeros": lambda: silence(5),
        **{f"white {level}": lambda level=level: white(level) for level in (-20, -40, -60)},
        **{f"pink {level}": lambda level=level: pink(level) for level in (-20, -40, -60)},
        **{f"hum {hz} {level}": lambda hz=hz, level=level: hum(level, hz) for hz in (50, 440) for level in (-20, -50)},
        **{f"clicks {n} {level}": lambda n=n, level=level: clicks(level, n) for n in (1, 5, 30) for level in (-6, -30)},
        "slam": lambda: np.concatenate((clicks(-3, 3, 1.0), silence(1))),
    }


def frames(pcm: Pcm, *, size_samples: int = 320, pos_samples: int = 0) -> Iterator[AudioFrame]:
    """The sound as it would come in, `size_samples` at a time, the last frame shorter."""
    for offset in range(0, len(pcm), size_samples):
        pos = pos_samples + offset
        yield AudioFrame(
            pcm=pcm[offset : offset + size_samples],
            rate_hz=HEARING_RATE_HZ,
            pos_samples=pos,
            captured_ns=samples_to_ns(pos, HEARING_RATE_HZ),
        )
