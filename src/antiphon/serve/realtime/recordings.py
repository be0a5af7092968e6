"""What items sounded like, kept for a client that asks; the oldest goes when there is too much.

Units: 16-bit samples, bytes. Threads: the event loop. What it does not know: what was said.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.pcm import encode
from antiphon.audio.resample import resample

if TYPE_CHECKING:
    import numpy.typing as npt

    from antiphon.serve.realtime.formats import WireFormat

MOST_BYTES = 8 * 2**20  # of one session: four minutes at 16 kHz
MOST_BYTES_OF_ONE = 2 * 2**20  # of one item: about a minute; of a longer one the beginning is kept
MOST_READ_CHARS = 1_000_000  # of base64 in one event, 15 s at 24 kHz: common clients take 1 MiB with all that is around


class Recordings:
    """Of one session."""

    def __init__(self) -> None:
        self._runs: dict[str, list[npt.NDArray[np.int16]]] = {}
        self._rates_hz: dict[str, int] = {}
        self._sizes: dict[str, int] = {}

    def add(self, item: str, pcm: npt.NDArray[np.int16], rate_hz: int) -> None:
        """More of an item's sound."""
        size = self._sizes.get(item, 0)
        pcm = pcm[: (MOST_BYTES_OF_ONE - size) // 2]
        if not len(pcm):
            return
        self._runs.setdefault(item, []).append(pcm)
        self._rates_hz[item] = rate_hz
        self._sizes[item] = size + pcm.nbytes
        while sum(self._sizes.values()) > MOST_BYTES:
            self.drop(next(iter(self._sizes)))

    def truncate(self, item: str, ms: int) -> None:
        """Forget what comes after so much of an item."""
        if item in self._runs:
            kept = np.concatenate(self._runs[item])[: ms * self._rates_hz[item] // 1000]
            self._runs[item], self._sizes[item] = [kept], kept.nbytes

    def drop(self, item: str) -> None:
        """Forget an item."""
        for kept in (self._runs, self._rates_hz, self._sizes):
            kept.pop(item, None)

    def read(self, item: str, wire_format: WireFormat) -> str | None:
        """An item's sound in base64, of a long one the beginning; None if it is not kept."""
        if item not in self._runs:
            return None
        rate_hz = self._rates_hz[item]
        most_samples = MOST_READ_CHARS // 4 * 3 // wire_format.encoding.width_bytes
        kept = np.concatenate(self._runs[item])[: most_samples * rate_hz // wire_format.rate_hz]
        pcm = resample(kept.astype(np.float32) / np.float32(2**15), rate_hz, wire_format.rate_hz)
        return base64.b64encode(encode(pcm[:most_samples], wire_format.encoding)).decode("ascii")
