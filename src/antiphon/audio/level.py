"""Sound in, how loud it is and where it can be heard out; fades at its edges. Pure.

Units: samples of mono float32; levels in dBFS, where a full-scale square wave has 0 and a full-scale sine -3.
Threads: any. What it does not know: speech; a slammed door is audible too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from antiphon.core.flow import Pcm

SILENCE_DBFS = -120.0  # digital silence; below what 16 bits can hold, so that a mean over windows stays finite
AUDIBLE_PEAK = 328 / 32_768  # -40 dBFS; voices were found to open with 275 to 331 ms of noise below 300 / 32768
AUDIBLE_MS = 5.0  # of loud windows in a run: shorter is a click of the codec or of a cut, not a sound of speech
BRIDGED_MS = 15.0  # a run survives dips this long: between two pulses of the lowest male voices (70 Hz) lie 14 ms
WINDOW_MS = 1.0  # fine enough for the 5 ms, long enough that a window holds a peak of anything above 500 Hz


def dbfs(pcm: Pcm) -> float:
    """The level of all of `pcm` as one number; SILENCE_DBFS for none at all."""
    if not len(pcm):
        return SILENCE_DBFS
    return float(_dbfs(np.asarray([np.mean(np.square(pcm, dtype=np.float64))]))[0])


def window_dbfs(pcm: Pcm, rate_hz: int, window_ms: float) -> npt.NDArray[np.float64]:
    """The level of each window, (windows,); the last one may be shorter and is judged by the samples it has."""
    starts = _window_starts(len(pcm), rate_hz, window_ms)
    if not len(starts):
        return np.zeros(0)
    lengths = np.diff(np.append(starts, len(pcm)))
    return _dbfs(np.add.reduceat(np.square(pcm, dtype=np.float64), starts) / lengths)


def audible_span(pcm: Pcm, rate_hz: int) -> tuple[int, int]:
    """The first audible sample and the one after the last; (0, 0) when nothing is audible.

    Audible is a run of windows above AUDIBLE_PEAK that holds more than AUDIBLE_MS of them, dips of BRIDGED_MS allowed.
    """
    starts = _window_starts(len(pcm), rate_hz, WINDOW_MS)
    if not len(starts):
        return 0, 0
    magnitude = np.abs(pcm)
    loud = np.flatnonzero(np.maximum.reduceat(magnitude, starts) >= AUDIBLE_PEAK)
    if not len(loud):
        return 0, 0
    breaks = np.flatnonzero(np.diff(loud) - 1 > BRIDGED_MS / WINDOW_MS) + 1
    # A sound of 5 ms touches up to six windows: what counts is surely longer than 4 ms, and all of 6 ms counts.
    runs = [run for run in np.split(loud, breaks) if len(run) > AUDIBLE_MS / WINDOW_MS]
    if not runs:
        return 0, 0
    ends = np.append(starts[1:], len(pcm))
    first, last = int(runs[0][0]), int(runs[-1][-1])
    head = magnitude[starts[first] : ends[first]] >= AUDIBLE_PEAK
    tail = magnitude[starts[last] : ends[last]] >= AUDIBLE_PEAK
    return int(starts[first] + np.argmax(head)), int(ends[last] - np.argmax(tail[::-1]))


def fade(pcm: Pcm, rate_hz: int, in_ms: float, out_ms: float) -> Pcm:
    """A copy whose edges rise from and fall to zero along half a cosine; where both meet, the shorter sound wins."""
    faded = pcm.copy()
    for ramp_ms, edge in ((in_ms, faded), (out_ms, faded[::-1])):
        length = min(round(ramp_ms * rate_hz / 1000), len(pcm))
        edge[:length] *= (0.5 - 0.5 * np.cos(np.pi * np.arange(length) / max(length, 1))).astype(np.float32)
    return faded


def _window_starts(samples: int, rate_hz: int, window_ms: float) -> npt.NDArray[np.int64]:
    """Where each window begins; rounded one by one, so that windows of 1 ms at 22050 Hz do not drift."""
    windows = int(np.ceil(samples * 1000 / (rate_hz * window_ms)))
    starts = np.rint(np.arange(windows) * (rate_hz * window_ms / 1000)).astype(np.int64)
    return np.unique(starts[starts < samples])  # below 1 kHz a window may hold no sample


def _dbfs(power: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    levels: npt.NDArray[np.float64] = 10 * np.log10(np.maximum(power, 10 ** (SILENCE_DBFS / 10)))
    return levels
