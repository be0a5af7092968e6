"""Sound up to a loss -> sound in its place: the last pitch period over and over, softer and softer.

After 60 ms there is silence: longer invented speech would be heard as speech. What comes after a loss is faded in over
the invented, so that no click is heard as a consonant.
Units: float32 mono at 48 kHz. Pure, about 0.3 ms for a lost packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

RATE_HZ = 48_000
FADE_SAMPLES = 60 * RATE_HZ // 1000
JOIN_SAMPLES = 5 * RATE_HZ // 1000
_KEPT = 40 * RATE_HZ // 1000
_COARSE = 6  # of 48 kHz samples, one is looked at for the pitch: 8 kHz
_SHORTEST, _LONGEST = 120, 720  # samples of a period: 400 to 67 Hz
_MATCHED = 120  # coarse samples that are compared, 15 ms


class Concealer:
    """Of one stream."""

    def __init__(self) -> None:
        self._heard: Pcm = np.zeros(_KEPT, np.float32)
        self._period: Pcm | None = None  # that is repeated, in the midst of a loss
        self._invented = 0  # samples since the loss began

    def heard(self, pcm: Pcm) -> Pcm:
        """What came; behind a loss with its beginning faded in."""
        if self._period is not None:
            size = min(JOIN_SAMPLES, len(pcm))
            rise = np.linspace(0, 1, size, dtype=np.float32)
            joined = pcm.copy()
            joined[:size] = rise * pcm[:size] + (1 - rise) * self._more(size)
            pcm, self._period, self._invented = joined, None, 0
        self._heard = np.concatenate([self._heard, pcm])[-_KEPT:]
        return pcm

    def conceal(self, samples: int) -> Pcm:
        """(samples,) in place of so much that was lost."""
        if self._period is None:
            self._period = self._heard[-_period(self._heard) :]
        return self._more(samples)

    def _more(self, samples: int) -> Pcm:
        assert self._period is not None
        at = self._invented + np.arange(samples)
        self._invented += samples
        loudness = np.clip(1 - at / FADE_SAMPLES, 0, 1).astype(np.float32)
        invented: Pcm = self._period[at % len(self._period)] * loudness
        return invented


def _period(pcm: Pcm) -> int:
    """How many samples the sound at the end repeats itself after."""
    coarse = pcm[len(pcm) % _COARSE :: _COARSE]
    last = coarse[-_MATCHED:]
    lags = np.arange(_SHORTEST // _COARSE, _LONGEST // _COARSE + 1)
    before = np.lib.stride_tricks.sliding_window_view(coarse, _MATCHED)[len(coarse) - _MATCHED - lags]
    energy = np.sqrt((before**2).sum(axis=1)) + np.float32(1e-6)
    return int(lags[np.argmax(before @ last / energy)]) * _COARSE
