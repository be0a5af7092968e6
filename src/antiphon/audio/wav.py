"""The bytes of a WAV as they arrive -> the bytes of its samples, and nothing else.

A back end that streams a WAV cannot know its length, so headers lie: a data length of 0 or near 2**31 or 2**32 means
"until the stream ends". A length that is believable is respected, and what follows it (LIST, id3) is never played.
Some back ends send a whole WAV per sentence on one stream; a second header is read like the first.
Units: bytes. Threads: a stream belongs to one caller. Memory: what was pushed, and one header chunk of at most
HEADER_CHUNK_MAX_BYTES.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.audio.encoding import Encoding
from antiphon.audio.pcm import CHANNELS_MAX, Buffer
from antiphon.audio.rate import RATE_MAX_HZ, RATE_MIN_HZ
from antiphon.core.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import Callable

CONTAINERS = (b"RIFF", b"RF64", b"BW64")  # the last two carry 64-bit lengths in a ds64 chunk
HEADER = re.compile(b"(?:" + b"|".join(CONTAINERS) + b")....WAVE", re.DOTALL)
HEADER_BYTES = 12
HEADER_CHUNK_MAX_BYTES = 65_536  # fmt has 16 to 40, ds64 28 and 12 per further chunk
ENDLESS_MIN_BYTES = 0x7FFF0000  # sox and espeak write 0x7ffff000, others 2**31 or 2**32 less a header
EXTENSIBLE_TAG = 0xFFFE
EXTENSIBLE_TAIL = bytes.fromhex("000000001000800000aa00389b71")  # of the GUID, after its first two bytes
ENCODINGS = {
    (1, 8): Encoding.UINT8,
    (1, 16): Encoding.INT16,
    (1, 24): Encoding.INT24,
    (1, 32): Encoding.INT32,
    (3, 32): Encoding.FLOAT32,
    (3, 64): Encoding.FLOAT64,
    (6, 8): Encoding.ALAW,
    (7, 8): Encoding.MULAW,
}  # by format tag and bits per sample
HINT = "set the back end to answer with WAV, or declare its raw format"


@dataclass(frozen=True, slots=True, kw_only=True)
class WavHeader:
    """What a WAV says about its samples."""

    encoding: Encoding
    channels: int
    rate_hz: int
    data_bytes: int | None  # None: until the stream ends


class WavStream:
    """One answer of a back end, cut anywhere; the same samples wherever it was cut."""

    def __init__(self, *, raw_fallback: bool = False) -> None:
        """Begin a stream; with `raw_fallback`, one that does not begin like a WAV passes through as it is."""
        self.header: WavHeader | None = None  # known once the samples begin; stays None for raw bytes
        self.skipped_bytes = 0  # of other chunks, before and after the samples
        self._raw_fallback = raw_fallback
        self._buffer = bytearray()
        self._out = bytearray()
        self._step: Callable[[], bool] = self._open  # takes from the buffer; False when it needs more bytes
        self._remaining = 0  # of the chunk that is being skipped or played
        self._is_playing = False  # whether what stands before the next header is sound
        self._pad = 0
        self._format: tuple[Encoding, int, int] | None = None  # encoding, channels, rate; of the current header
        self._riff_bytes = 0  # what the container says follows its first 8 bytes
        self._consumed = 0  # since the current header began
        self._wide_data_bytes: int | None = None  # from ds64

    def push(self, data: Buffer) -> bytes:
        """The sample bytes that are certain by now, possibly none and possibly ending inside a sample.

        Raises:
            PeerError: the stream is no WAV, or one in a format that we cannot read.
        """
        self._buffer += data
        while self._step():
            pass
        return self._taken()

    def finish(self) -> bytes:
        """End the stream and return the last sample bytes.

        Raises:
            PeerError: the stream ended before its samples began.
        """
        if self._step == self._open and self._raw_fallback and self.header is None:
            self._step = self._pass
        if self._step == self._pass or (self._step == self._until_header and self._is_playing):
            self._emit(len(self._buffer))  # held back as the possible beginning of a header
        elif self.header is None:
            raise PeerError("the stream ended inside its WAV header, before any sample", hint=HINT, retryable=True)
        return self._taken()

    def _open(self) -> bool:
        """Read the container's 12 bytes, or see as early as possible that they are none."""
        head = bytes(self._buffer[:HEADER_BYTES])
        if not _may_begin_header(head):
            if self._raw_fallback and self.header is None:
                self._step = self._pass
                return True
            raise PeerError("the stream is no WAV: it does not begin with a RIFF header", hint=HINT)
        if len(head) < HEADER_BYTES:
            return False
        self._riff_bytes = int.from_bytes(head[4:8], "little")
        self._consumed = 0
        self._format = self._wide_data_bytes = None
        self._drop(HEADER_BYTES)
        self._step = self._chunk
        return True

    def _chunk(self) -> bool:
        """Read the head of a chunk before the samples."""
        if len(self._buffer) < 8:
            return False
        name, size = bytes(self._buffer[:4]), int.from_bytes(self._buffer[4:8], "little")
        if not all(0x20 <= byte < 0x7F for byte in name):
            raise PeerError("the WAV header is damaged: a chunk has no readable name", hint=HINT)
        if name == b"data":
            self._drop(8)
            self._begin_data(size)
        elif name in {b"fmt ", b"ds64"}:
            return self._read_chunk(name, size)
        else:
            self._drop(8)
            self.skipped_bytes += 8
            self._remaining, self._pad, self._step = size, size % 2, self._skip
        return True

    def _read_chunk(self, name: bytes, size: int) -> bool:
        if size > HEADER_CHUNK_MAX_BYTES:
            raise PeerError(f"the WAV header is damaged: its {name.decode()!r} chunk has {size} bytes", hint=HINT)
        if len(self._buffer) < 8 + size:
            return False
        body = bytes(self._buffer[8 : 8 + size])
        if name == b"fmt ":
            self._format = _read_format(body)
        elif len(body) >= 16:
            self._wide_data_bytes = int.from_bytes(body[8:16], "little")
        self._drop(8 + size)
        self._remaining, self._pad, self._step = 0, size % 2, self._skip
        return True

    def _skip(self) -> bool:
        """Drop the rest of a chunk, then its padding byte, which some writers forget."""
        skipped = min(self._remaining, len(self._buffer))
        self._drop(skipped)
        self.skipped_bytes += skipped
        self._remaining -= skipped
        if self._remaining or (self._pad and not self._buffer):
            return False
        if self._pad and not 0x20 <= self._buffer[0] < 0x7F:  # else it is the next chunk's name
            self._drop(1)
            self.skipped_bytes += 1
        self._step = self._chunk
        return True

    def _begin_data(self, size: int) -> None:
        if self._format is None:
            raise PeerError("the WAV header is damaged: samples begin before their format is given", hint=HINT)
        length = self._data_length(size)
        encoding, channels, rate_hz = self._format
        header = WavHeader(encoding=encoding, channels=channels, rate_hz=rate_hz, data_bytes=length)
        before = self.header
        if before and (before.encoding, before.channels, before.rate_hz) != self._format:
            raise PeerError(
                f"the format changed in mid-stream from {before.rate_hz} Hz {before.encoding} x {before.channels}"
                f" to {rate_hz} Hz {encoding} x {channels}",
                hint="set the back end to one format for all of a reply",
            )
        self.header = before or header
        self._remaining = length or 0
        self._is_playing = length is None
        self._step = self._until_header if length is None else self._counted

    def _data_length(self, size: int) -> int | None:
        """How many bytes of samples follow, None if only the stream's end will tell."""
        if self._wide_data_bytes is not None and size in {0, 0xFFFFFFFF}:
            wide = self._wide_data_bytes
            return wide if 0 < wide < 2**63 - 1 else None
        if size >= ENDLESS_MIN_BYTES:
            return None
        if size == 0:
            # A container that goes on past the empty data chunk was closed properly: there is nothing to say.
            riff_end = self._riff_bytes + 8
            return 0 if self._consumed < riff_end < ENDLESS_MIN_BYTES else None
        return size

    def _counted(self) -> bool:
        taken = min(self._remaining, len(self._buffer))
        self._emit(taken)
        self._remaining -= taken
        if self._remaining:
            return False
        self._step = self._until_header
        return True

    def _until_header(self) -> bool:
        """Play or drop all up to the next header, holding back only what may be the beginning of one."""
        found = HEADER.search(self._buffer)
        count = found.start() if found else len(self._buffer) - _tail_that_may_begin_header(self._buffer)
        if self._is_playing:
            self._emit(count)
        else:
            self._drop(count)
            self.skipped_bytes += count
        if found:
            self._step = self._open
        return found is not None

    def _pass(self) -> bool:
        self._emit(len(self._buffer))
        return False

    def _emit(self, count: int) -> None:
        self._out += self._buffer[:count]
        self._drop(count)

    def _drop(self, count: int) -> None:
        del self._buffer[:count]
        self._consumed += count

    def _taken(self) -> bytes:
        taken = bytes(self._out)
        self._out.clear()
        return taken


def _may_begin_header(head: bytes) -> bool:
    """Whether up to HEADER_BYTES bytes are a container's header, as far as they go."""
    name, kind = head[:4], head[8:]
    return any(container.startswith(name) for container in CONTAINERS) and b"WAVE".startswith(kind)


def _tail_that_may_begin_header(data: bytearray) -> int:
    """How many bytes at the end of `data` may turn out to be a header."""
    for length in range(min(HEADER_BYTES - 1, len(data)), 0, -1):
        if _may_begin_header(bytes(data[-length:])):
            return length
    return 0


def _read_format(body: bytes) -> tuple[Encoding, int, int]:
    """Encoding, channels and rate of a fmt chunk."""
    if len(body) < 16:
        raise PeerError(f"the WAV header is damaged: its format has {len(body)} bytes, not 16 or more", hint=HINT)
    tag, channels = int.from_bytes(body[0:2], "little"), int.from_bytes(body[2:4], "little")
    rate_hz, bits = int.from_bytes(body[4:8], "little"), int.from_bytes(body[14:16], "little")
    if tag == EXTENSIBLE_TAG and len(body) >= 40 and body[26:40] == EXTENSIBLE_TAIL:
        tag = int.from_bytes(body[24:26], "little")
    encoding = ENCODINGS.get((tag, bits))
    if encoding is None:
        raise PeerError(
            f"the WAV's format (tag {tag}, {bits} bits) cannot be read", hint="set the back end to 16-bit PCM"
        )
    if not 1 <= channels <= CHANNELS_MAX or not RATE_MIN_HZ <= rate_hz <= RATE_MAX_HZ:
        raise PeerError(f"the WAV header is damaged: {channels} channels at {rate_hz} Hz", hint=HINT)
    return encoding, channels, rate_hz
