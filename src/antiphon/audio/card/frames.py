"""Messages of the audio process -> frames, and the reply's frames -> messages in the loudspeaker's form.

Units: samples, ns. Threads: the event loop. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.encoding import Encoding
from antiphon.audio.pcm import PcmDecoder, encode
from antiphon.audio.resample import FrameResampler, Resampler
from antiphon.core.clock import ns_to_samples
from antiphon.core.flow import AudioFrame
from antiphon.exchange.layout import DTYPES, Kind, Stamp

if TYPE_CHECKING:
    from antiphon.audio.card.contract import Form
    from antiphon.core.flow import Pcm
    from antiphon.exchange.ends import Message

PAYLOAD_BYTES = 16_384  # a period of the longest kind, in stereo
ENCODINGS = {"i2": Encoding.INT16, "i4": Encoding.INT32, "f4": Encoding.FLOAT32}
PLACES = {name: DTYPES.index(np.dtype(name)) for name in ENCODINGS}
NAMES = {place: name for name, place in PLACES.items()}


class Ears:
    """Captured messages to frames."""

    def __init__(self) -> None:
        self._decoder: PcmDecoder | None = None
        self._decodes = (0, 0)
        self._rate_hz: int | None = None  # of the first frame, and so of all
        self._resampler: FrameResampler | None = None
        self._resamples_hz = 0
        self._offset = 0  # between the audio process's positions and ours
        self._last: AudioFrame | None = None
        self._is_new = False

    def begin_anew(self) -> None:
        """Another process counts from 0."""
        self._is_new = self._last is not None

    def frames(self, message: Message) -> tuple[AudioFrame, ...]:
        """The frames that are complete with this message, at the first one's rate."""
        samples, channels, rate_hz = message.stamp.sizes
        if self._decoder is None or self._decodes != (message.stamp.dtype, channels):
            self._decoder = PcmDecoder(ENCODINGS[NAMES[message.stamp.dtype]], channels=channels)
            self._decodes = (message.stamp.dtype, channels)
        pcm = self._decoder.push(message.payload)
        assert len(pcm) == samples, "a period of whole samples"
        frame = AudioFrame(pcm, rate_hz, message.stamp.pos_samples, message.stamp.captured_ns)
        self._rate_hz = self._rate_hz or rate_hz
        frames = (frame,) if rate_hz == self._rate_hz else self._resampled(frame)
        return tuple(self._placed(each) for each in frames)

    def _resampled(self, frame: AudioFrame) -> tuple[AudioFrame, ...]:
        if self._resampler is None or self._resamples_hz != frame.rate_hz:
            self._resampler = FrameResampler(frame.rate_hz, self._rate_hz or frame.rate_hz)
            self._resamples_hz = frame.rate_hz
        return self._resampler.push(frame)

    def _placed(self, frame: AudioFrame) -> AudioFrame:
        last = self._last
        if self._is_new and last is not None:
            missing = max(0, ns_to_samples(frame.captured_ns - last.end_ns, frame.rate_hz))
            self._offset = last.end_samples + missing - frame.pos_samples
            self._is_new = False
        pos = frame.pos_samples + self._offset
        if last is not None:
            pos = max(pos, last.end_samples)  # rounding between two rates
        self._last = placed = replace(frame, pos_samples=pos)
        return placed


class Mouth:
    """The reply's frames to messages in the loudspeaker's form."""

    def __init__(self) -> None:
        self.form: Form | None = None
        self._resampler: Resampler | None = None
        self._pos_samples = 0
        self._next_ns = 0  # when what comes next is due

    def move_to(self, form: Form) -> None:
        """What is said from here on is for this one."""
        self.form = form
        self._resampler = None

    def packed(self, frame: AudioFrame) -> list[tuple[memoryview, Stamp]]:
        """A frame's messages, none while there is no loudspeaker."""
        if self.form is None:
            return []
        if self._resampler is None or self._resampler.from_hz != frame.rate_hz:
            self._resampler = Resampler(frame.rate_hz, self.form.rate_hz)
        return self._messages(self._resampler.push(frame.pcm), frame.captured_ns)

    def rest(self) -> list[tuple[memoryview, Stamp]]:
        """What was held back."""
        if self.form is None or self._resampler is None:
            return []
        return self._messages(self._resampler.flush(), self._next_ns)

    def _messages(self, pcm: Pcm, due_ns: int) -> list[tuple[memoryview, Stamp]]:
        assert self.form is not None
        form = self.form
        mono = np.frombuffer(encode(pcm, ENCODINGS[form.sample_type]), form.sample_type)
        blocks = np.ascontiguousarray(np.repeat(mono[:, None], form.channels, axis=1))
        most = PAYLOAD_BYTES // form.block_bytes
        messages = []
        for start in range(0, len(blocks), most):
            part = blocks[start : start + most]
            stamp = Stamp(
                Kind.SOUND,
                due_ns + form.ns(start),
                self._pos_samples,
                PLACES[form.sample_type],
                (len(part), form.channels, form.rate_hz),
            )
            self._pos_samples += len(part)
            messages.append((part.data.cast("B"), stamp))
        self._next_ns = due_ns + form.ns(len(blocks))
        return messages
