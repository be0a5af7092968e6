"""A reply's frames in, base64 of at most 100 ms each out; and which text had been said by when.

Units: samples at the voice's rate, milliseconds at the protocol's border. Threads: the event loop.
What it does not know: responses and items.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from antiphon.audio.pcm import encode
from antiphon.audio.resample import Resampler

if TYPE_CHECKING:
    from antiphon.core.flow import AudioFrame, Pcm
    from antiphon.serve.realtime.formats import WireFormat

DELTAS_PER_S = 10  # at least


class OutputAudio:
    """One item's sound, on its way to the client."""

    def __init__(self, wire_format: WireFormat) -> None:
        self._format = wire_format
        self._resampler: Resampler | None = None
        self._marks: list[tuple[int, str]] = []  # (samples after which it has been said, text)
        self.samples = 0  # so far
        self.rate_hz = 0  # of the voice; 0 before the first frame
        self.is_cut = False  # by the client: what comes later was not heard

    def count(self, frame: AudioFrame) -> None:
        """So much more of it sounds, over another way."""
        self.rate_hz = frame.rate_hz
        if not self.is_cut:
            self.samples += len(frame.pcm)

    def push(self, frame: AudioFrame) -> list[str]:
        """The deltas that this frame completes."""
        if self._resampler is None:
            self._resampler = Resampler(frame.rate_hz, self._format.rate_hz)
        self.count(frame)
        return self._deltas(self._resampler.push(frame.pcm))

    def finish(self) -> list[str]:
        """The last deltas."""
        return self._deltas(self._resampler.flush()) if self._resampler else []

    def say(self, text: str) -> None:
        """This has been said once all sound so far was heard."""
        if not self.is_cut:
            self._marks.append((self.samples, text))

    @property
    def seconds(self) -> float:
        return self.samples / self.rate_hz if self.rate_hz else 0.0

    @property
    def duration_ms(self) -> int:
        """How long it is, rounded up: a client may round too."""
        return -(-self.samples * 1000 // self.rate_hz) if self.rate_hz else 0

    def text_by(self, ms: int) -> str:
        """What had been said in full by then."""
        samples = ms * self.rate_hz // 1000
        return "".join(text for at_samples, text in self._marks if at_samples <= samples)

    def truncate(self, ms: int) -> str:
        """Forget what comes after; return what had been said."""
        text = self.text_by(ms)
        self.is_cut = True
        self.samples = min(self.samples, ms * self.rate_hz // 1000)
        self._marks = [mark for mark in self._marks if mark[0] <= self.samples]
        return text

    def _deltas(self, pcm: Pcm) -> list[str]:
        step = self._format.rate_hz // DELTAS_PER_S
        return [
            base64.b64encode(encode(pcm[start : start + step], self._format.encoding)).decode("ascii")
            for start in range(0, len(pcm), step)
        ]
