"""Frames as they come in -> runs of sound that lie end to end.

A frame may repeat what was heard, leave a gap, or hold something that is no number; what comes out does neither.
Units: samples at HEARING_RATE_HZ, positions since the stream opened, unbounded. Threads: one caller's, one thread.
What it does not know: who listens. Each listener has an intake of its own, since each bears another gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.errors import CallerError
from antiphon.core.flow import HEARING_RATE_HZ

if TYPE_CHECKING:
    from antiphon.core.flow import AudioFrame, Pcm


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Sound that follows the run before, or begins anew."""

    pcm: Pcm  # (samples,) float32, finite; a view where the frame was in order
    pos_samples: int
    restarted: bool = False  # nothing before it belongs to it

    @property
    def end_samples(self) -> int:
        return self.pos_samples + len(self.pcm)


class Intake:
    """Fills gaps up to `longest_gap_samples` with silence; after a longer one the stream begins anew."""

    def __init__(self, longest_gap_samples: int) -> None:
        self._longest_gap_samples = longest_gap_samples
        self._next_samples: int | None = None

    def take(self, frame: AudioFrame) -> Run | None:
        """The part of the frame that is new, with the silence that belongs before it; None if nothing is new.

        Raises:
            CallerError: the frame has another rate, or is not one row of samples.
        """
        if frame.rate_hz != HEARING_RATE_HZ:
            raise CallerError(
                f"the sound has {frame.rate_hz} Hz", hint=f"resample it to {HEARING_RATE_HZ} Hz before it is heard"
            )
        if frame.pcm.ndim != 1:
            raise CallerError(f"the sound has shape {frame.pcm.shape}", hint="mix it down to one channel")
        pcm = frame.pcm
        pos = frame.pos_samples
        expected = pos if self._next_samples is None else self._next_samples
        gap = pos - expected
        if gap < 0:
            pcm = pcm[-gap:]
            pos = expected
        restarted = self._next_samples is None or gap > self._longest_gap_samples
        if not len(pcm):
            return None
        if not np.isfinite(pcm).all():
            # One such sample would stay in a recurrent state for the rest of the call.
            pcm = np.nan_to_num(pcm, nan=0.0, posinf=1.0, neginf=-1.0)
        if gap > 0 and not restarted:
            pcm = np.concatenate((np.zeros(gap, np.float32), pcm))
            pos = expected
        self._next_samples = pos + len(pcm)
        return Run(pcm=pcm, pos_samples=pos, restarted=restarted)
