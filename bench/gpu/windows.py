"""A clip's samples in, the window of columns that Whisper is given for it out: as the server would cut it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.hear.mel import HOP_SAMPLES, MelStream, normalised

if TYPE_CHECKING:
    import numpy.typing as npt

STEP = 200  # columns; ten seconds at least, two of silence behind the sound


def window_of(pcm: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]:
    """(bins, columns) of 16 kHz samples."""
    sound = MelStream(pcm.astype(np.float32) / 32768)
    wanted = max(1000, len(pcm) // HOP_SAMPLES + STEP)
    columns = min(3000, -(-wanted // STEP) * STEP)
    return normalised(sound.columns(len(pcm), columns))
