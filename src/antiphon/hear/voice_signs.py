"""Sound and what the detector says of it in, signs that a voice has come up out: how long, how loud, how sure.

Units: frames of the detector; a ratio of amplitudes. Threads: one caller's; 10 us for a frame of 20 ms.
What it does not know: what is made of the signs (scheduling/shares.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.scheduling.shares import Signs

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm
    from antiphon.hear.ear import Ear

VOICED = 0.5
_FADING = 0.999  # of the usual level, for each stretch of sound: a third after 20 s


class VoiceSigns:
    """Of one caller's microphone."""

    def __init__(self, frame_samples: int) -> None:
        self._frame_samples = frame_samples
        self._voiced_from: int | None = None  # where the voice came up
        self._usual = 0.0  # level of this voice

    def take(self, pcm: Pcm, ear: Ear) -> Signs:
        """The next stretch of sound, which `ear` has heard."""
        level = float(np.sqrt(np.mean(np.square(pcm)))) if len(pcm) else 0.0
        if ear.probability < VOICED:
            self._voiced_from = None
            return Signs(certainty=ear.probability)
        if self._voiced_from is None:
            self._voiced_from = ear.pos_samples - self._frame_samples
        self._usual = max(self._usual * _FADING, level)
        return Signs(
            voiced_frames=(ear.pos_samples - self._voiced_from) // self._frame_samples,
            energy_ratio=level / self._usual if self._usual > 0 else 0.0,
            certainty=ear.probability,
        )
