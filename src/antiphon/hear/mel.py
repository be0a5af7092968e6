"""Sound in, Whisper's log-mel columns out: all at once, or one by one as the sound arrives.

A column looks at 400 samples around its centre, columns lie 160 samples apart: 100 a second. The first one is
centred on the first sample and sees it mirrored, as in training. Whatever lies past the end of the sound is
silence. `MelStream` and `log_mel` run the same arithmetic on the same numbers, so their columns are equal bit for bit.

Units: samples at HEARING_RATE_HZ, log10 of power. Threads: no state is shared; a `MelStream` belongs to one caller.
What it does not know: what the columns are for, and where a turn lies in the stream.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from antiphon.core.flow import HEARING_RATE_HZ

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

    Mel: TypeAlias = npt.NDArray[np.float32]  # (columns, bins) or, as models want it, (bins, columns)

BINS = 80  # of most models; Whisper large-v3 and turbo read 128
WINDOW_SAMPLES = 400
HOP_SAMPLES = 160
COLUMNS_PER_SECOND = HEARING_RATE_HZ // HOP_SAMPLES
REACH_SAMPLES = WINDOW_SAMPLES // 2  # how far a column looks to either side of its centre
_FLOOR = np.float32(1e-10)  # of power: what silence is taken for
_SILENCE = np.float32(-10.0)  # log10 of the floor: a column of silence
_RANGE = np.float32(8.0)  # decades below the loudest bin that are told apart, as in training
_VARIANCE_FLOOR = np.float32(1e-7)  # keeps digital silence finite, as in training


def _mel_to_hz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Slaney's scale: linear up to 1 kHz (15 mel), then 27 steps for each factor of 6.4."""
    return np.where(mel < 15.0, mel * (200.0 / 3.0), 1000.0 * 6.4 ** ((mel - 15.0) / 27.0))


def _hz_to_mel(hz: float) -> float:
    return hz * 3.0 / 200.0 if hz < 1000.0 else 15.0 + 27.0 * float(np.log(hz / 1000.0) / np.log(6.4))


@cache
def _filters(bins: int) -> Mel:
    """Triangles of equal area between neighbouring points of the scale."""  # (frequencies, bins)
    corners = _mel_to_hz(np.linspace(0.0, _hz_to_mel(HEARING_RATE_HZ / 2), bins + 2))  # (bins + 2,)
    hz = np.linspace(0.0, HEARING_RATE_HZ / 2, WINDOW_SAMPLES // 2 + 1)[:, None]  # (frequencies, 1)
    low, peak, high = corners[:-2], corners[1:-1], corners[2:]
    triangles = np.clip(np.minimum((hz - low) / (peak - low), (high - hz) / (high - peak)), 0.0, None)
    return np.ascontiguousarray(triangles * (2.0 / (high - low)), dtype=np.float32)


@cache
def _window() -> Pcm:
    """Hann, periodic."""  # (WINDOW_SAMPLES,)
    return np.hanning(WINDOW_SAMPLES + 1)[:-1].astype(np.float32)


def _columns(padded: Pcm, count: int, bins: int) -> Mel:
    """The first `count` columns of sound that already begins REACH_SAMPLES before the first centre."""
    if count <= 0:
        return np.empty((0, bins), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW_SAMPLES)[::HOP_SAMPLES][:count]
    spectrum = np.fft.rfft(windows * _window(), axis=1)  # (count, frequencies) complex64
    power = spectrum.real**2 + spectrum.imag**2
    # One small product per column rather than one large one: BLAS sums in another order for another shape, and
    # a column must not depend on how many were asked for along with it.
    energy = np.matmul(power[:, None, :], _filters(bins))[:, 0, :]  # (count, bins)
    logs: Mel = np.log10(np.maximum(energy, _FLOOR))
    return logs


def _mirrored(pcm: Pcm) -> Pcm:
    """The sound with REACH_SAMPLES in front that mirror its beginning; silence stands in for what is not there."""
    head = np.zeros(REACH_SAMPLES, np.float32)
    mirror = pcm[1 : REACH_SAMPLES + 1][::-1]
    if len(mirror):
        head[-len(mirror) :] = mirror
    return np.concatenate((head, pcm))


def log_mel(pcm: Pcm, columns: int, *, bins: int = BINS) -> Mel:
    """The logarithms of `columns` columns, not yet normalised."""  # (columns, bins)
    return MelStream(pcm, bins=bins).columns(len(pcm), columns)


def normalised(logs: Mel) -> Mel:
    """What Whisper's encoder reads: the range below the loudest bin cut and brought to about [-1, 1]."""
    clamped = np.maximum(logs, logs.max() - _RANGE)
    return np.ascontiguousarray(((clamped + 4.0) / 4.0).T)  # (bins, columns)


def standardised(pcm: Pcm) -> Pcm:
    """The waveform with mean 0 and variance 1, which smart-turn's features begin with."""
    centred = pcm - pcm.mean()
    scaled: Pcm = centred / np.sqrt(np.mean(centred * centred) + _VARIANCE_FLOOR)
    return scaled


class MelStream:
    """Sound that grows, with each of its columns computed once.

    Positions count from the stream's own first sample.
    """

    def __init__(self, pcm: Pcm | None = None, *, bins: int = BINS) -> None:
        self.bins = bins
        self._pcm = np.zeros(0, np.float32)
        self._logs = np.empty((0, bins), np.float32)
        self._samples = 0
        self._ready = 0
        if pcm is not None:
            self.feed(pcm)

    def __len__(self) -> int:
        """How many samples there are."""
        return self._samples

    @property
    def pcm(self) -> Pcm:
        """All sound there is; a view."""
        return self._pcm[: self._samples]

    def feed(self, pcm: Pcm) -> None:
        """Append sound and compute the columns that it completes."""
        end = self._samples + len(pcm)
        self._pcm = _room(self._pcm, self._samples, end)
        self._pcm[self._samples : end] = pcm
        self._samples = end
        complete = _settled(end)
        if complete > self._ready:
            self._logs = _room(self._logs, self._ready, complete)
            self._logs[self._ready : complete] = self._fresh(self._ready, complete, end)
            self._ready = complete

    def columns(self, until_samples: int, count: int) -> Mel:
        """The first `count` columns of the sound up to `until_samples`, followed by silence."""  # (count, bins)
        until = min(until_samples, self._samples)
        settled = min(count, _settled(until), self._ready)
        touched = min(count, -(-(until + REACH_SAMPLES) // HOP_SAMPLES))  # the last one that still sees sound
        logs = np.full((count, self.bins), _SILENCE)
        logs[:settled] = self._logs[:settled]
        logs[settled:touched] = self._fresh(settled, touched, until)
        return logs

    def drop(self, columns: int) -> None:
        """Forget the first `columns` columns and their sound; what is left is numbered from 0.

        The columns kept stay as they are: the first two still reflect the sound before them.
        """
        samples = min(columns * HOP_SAMPLES, self._samples)
        self._pcm = self._pcm[samples : self._samples].copy()
        self._samples -= samples
        self._logs = self._logs[columns : self._ready].copy()
        self._ready = max(0, self._ready - columns)

    def _fresh(self, first: int, end: int, until_samples: int) -> Mel:
        """Columns `first` to `end` as if the sound stopped at `until_samples`."""
        if end <= first:
            return np.empty((0, self.bins), np.float32)
        start = first * HOP_SAMPLES - REACH_SAMPLES
        size = (end - 1 - first) * HOP_SAMPLES + WINDOW_SAMPLES
        if start < 0:
            span = _mirrored(self._pcm[:until_samples])[start + REACH_SAMPLES :][:size]
        else:
            span = self._pcm[start : min(start + size, until_samples)]
        if len(span) < size:
            span = np.concatenate((span, np.zeros(size - len(span), np.float32)))
        return _columns(span, end - first, self.bins)


def _settled(samples: int) -> int:
    """How many columns cannot change once there are `samples`; the mirror reaches one sample further than a window."""
    return max(0, (samples - REACH_SAMPLES - 1) // HOP_SAMPLES + 1)


def _room(array: npt.NDArray[np.float32], used: int, needed: int) -> npt.NDArray[np.float32]:
    """The array, or a copy of twice the size where `needed` rows do not fit."""
    if needed <= len(array):
        return array
    larger = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), np.float32)
    larger[:used] = array[:used]
    return larger
