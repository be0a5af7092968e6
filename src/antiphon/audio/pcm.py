"""Bytes as they travel -> float32 mono in [-1, 1], and back.

Channels are interleaved. Chunks may be cut at any byte: `PcmDecoder` carries the bytes of an unfinished sample over
to the next chunk, because a padding in mid-stream would shift all that follows.
Units: samples are counted per channel in Python ints, which do not overflow. Threads: a decoder belongs to one
caller; the functions are pure.
What it does not know: rates. Channels are mixed down whether or not a rate has to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from antiphon.audio.encoding import Encoding, encoding_named
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from antiphon.audio.encoding import Floats
    from antiphon.core.flow import Pcm

Buffer: TypeAlias = bytes | bytearray | memoryview

CHANNELS_MAX = 1024  # libsndfile's limit; more is a misread header


class PcmDecoder:
    """One stream of bytes, cut anywhere, to mono samples; the same samples wherever it was cut."""

    def __init__(self, encoding: Encoding | str, *, channels: int = 1) -> None:
        """Begin a stream.

        Raises:
            CallerError: unknown encoding, or a number of channels outside 1 to CHANNELS_MAX.
        """
        self.encoding = encoding_named(encoding)
        if not 1 <= channels <= CHANNELS_MAX:
            raise CallerError(f"{channels} channels are not possible", hint=f"give 1 to {CHANNELS_MAX}")
        self.channels = channels
        self.samples = 0  # given so far, per channel
        self.nonfinite_samples = 0  # NaN and Inf, replaced by 0; every channel counts
        self.clipped_samples = 0  # outside [-1, 1], brought to the border; every channel counts
        self.dropped_bytes = 0  # of samples that never became whole
        self._rest = b""

    @property
    def block_bytes(self) -> int:
        """Bytes of one sample of all channels."""
        return self.encoding.width_bytes * self.channels

    def push(self, data: Buffer) -> Pcm:
        """The samples that are whole by now, (samples,) mono, possibly none."""
        joined = self._rest + bytes(data)
        whole = len(joined) - len(joined) % self.block_bytes
        self._rest = joined[whole:]
        return self._mono(joined[:whole])

    def finish(self) -> int:
        """End the stream and return how many bytes of an unfinished sample are dropped; the next push begins anew."""
        dropped = len(self._rest)
        self.dropped_bytes += dropped
        self._rest = b""
        return dropped

    def _mono(self, data: bytes) -> Pcm:
        samples, nonfinite, clipped = sanitise(self.encoding.read(data))
        self.nonfinite_samples += nonfinite
        self.clipped_samples += clipped
        mono = downmix(samples.reshape(-1, self.channels))
        self.samples += len(mono)
        return mono


def encode(pcm: Pcm, encoding: Encoding | str) -> bytes:
    """The samples as bytes of one channel; NaN and Inf become 0, what lies outside [-1, 1] is clipped.

    Integers that came from `PcmDecoder` come back exactly, up to the 24 bits that a float32 holds.

    Raises:
        CallerError: unknown encoding.
    """
    clean, _, _ = sanitise(pcm)
    return encoding_named(encoding).write(clean)


def sanitise(samples: Floats) -> tuple[Pcm, int, int]:
    """The samples as float32 with NaN and Inf as 0 and the rest within [-1, 1]; how many were nonfinite, and clipped.

    A single NaN would stay in the state of every filter and model behind.
    """
    finite = np.isfinite(samples)
    outside = finite & (np.abs(samples) > 1.0)
    nonfinite, clipped = int(finite.size - np.count_nonzero(finite)), int(np.count_nonzero(outside))
    clean = samples if finite.all() else np.where(finite, samples, np.float32(0))
    if clipped:
        clean = np.clip(clean, -1.0, 1.0)
    return clean.astype(np.float32, copy=False), nonfinite, clipped


def downmix(interleaved: Pcm) -> Pcm:
    """The mean of the channels of (samples, channels), so that a voice on one of two channels is half as loud."""
    if interleaved.shape[1] == 1:
        return interleaved[:, 0]
    mean: Pcm = interleaved.mean(axis=1, dtype=np.float32)  # (samples,)
    return mean
