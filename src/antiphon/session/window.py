"""The last seconds of a stream, for whoever looks back from a pause."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm


class SoundWindow:
    """Keeps the newest `samples` of what is pushed, in memory bounded by that and one frame."""

    def __init__(self, samples: int) -> None:
        self._wanted = samples
        self._held = 0
        self._runs: deque[Pcm] = deque()

    def push(self, pcm: Pcm) -> None:
        """Take the next sound; it is copied."""
        if self._wanted == 0:
            return
        self._runs.append(pcm.copy())
        self._held += len(pcm)
        while self._held - len(self._runs[0]) >= self._wanted:
            self._held -= len(self._runs.popleft())

    def last(self) -> Pcm:
        """(<= samples,) the newest sound, oldest first."""
        if not self._runs:
            return np.zeros(0, np.float32)
        return np.concatenate(self._runs)[-self._wanted :]
