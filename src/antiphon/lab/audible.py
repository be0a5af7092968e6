"""A reply's samples as they come -> when it can be heard: runs of audible sound, the first and the last sample of it.

The same judgement as `audio.level.audible_span`, made chunk by chunk: windows of 1 ms are loud or not; a run of loud
windows, dips bridged, counts when it is long enough. So clicks and padding with silence are no sound. However the
sound is cut into chunks, the runs are the same.
Units: samples since the reply began. Threads: one at a time. It does not know when samples are played.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.level import AUDIBLE_MS, AUDIBLE_PEAK, BRIDGED_MS
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

MOST_RUNS = 10_000  # a reply of an hour has some thousand words; further ones lengthen the last run


@dataclass(slots=True)
class Run:
    """Audible sound without a dip worth the name."""

    first: int  # sample
    end: int  # the sample after the last
    loud_ms: int = 0

    @property
    def is_audible(self) -> bool:
        """Long enough to be no click."""
        return self.loud_ms > AUDIBLE_MS


class AudibleRuns:
    """Of one reply."""

    def __init__(self, rate_hz: int) -> None:
        """Begin.

        Raises:
            CallerError: the rate has no whole number of samples per millisecond.
        """
        if rate_hz < 1000 or rate_hz % 1000:
            raise CallerError(f"a reply at {rate_hz} Hz cannot be judged", hint="use a rate in whole kHz")
        self._window = rate_hz // 1000
        self._rest = np.zeros(0, np.float32)  # of a window that is not full
        self._samples = 0  # judged so far
        self._runs: list[Run] = []

    def push(self, pcm: Pcm) -> None:
        """The next samples, (n,)."""
        joined = np.concatenate([self._rest, pcm]) if len(self._rest) else pcm
        whole = len(joined) - len(joined) % self._window
        self._judge(joined[:whole])
        self._rest = joined[whole:].copy()

    def finish(self) -> None:
        """No more will come: the last window is judged by the samples that it has."""
        rest, self._rest = self._rest, self._rest[:0]
        self._judge(np.pad(rest, (0, -len(rest) % self._window)))

    def spans(self, cut_samples: int | None = None) -> list[tuple[int, int]]:
        """(first, end) of each audible run; with a cut, of what lies before it."""
        runs = [(run.first, run.end) for run in self._runs if run.is_audible]
        if cut_samples is None:
            return runs
        return [(first, min(end, cut_samples)) for first, end in runs if first < cut_samples]

    def _judge(self, pcm: Pcm) -> None:
        magnitude = np.abs(pcm).reshape(-1, self._window)  # (windows, samples)
        for row in np.flatnonzero(magnitude.max(axis=1, initial=0) >= AUDIBLE_PEAK):
            loud = np.flatnonzero(magnitude[row] >= AUDIBLE_PEAK)
            start = self._samples + int(row) * self._window
            self._add(start + int(loud[0]), start + int(loud[-1]) + 1)
        self._samples += len(pcm)

    def _add(self, first: int, end: int) -> None:
        """A loud window's loud samples."""
        last = self._runs[-1] if self._runs else None
        if last is not None:
            dip = first // self._window - (last.end - 1) // self._window - 1  # windows in between
            if dip <= BRIDGED_MS or len(self._runs) >= MOST_RUNS:
                last.end = end
                last.loud_ms += 1
                return
            if not last.is_audible:
                self._runs.pop()
        self._runs.append(Run(first, end, 1))
