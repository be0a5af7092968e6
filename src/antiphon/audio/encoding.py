"""How samples are written as bytes: whole samples in, floats out, and back.

Bytes are little-endian. Integers of n bits stand for value / 2**(n-1), so that an int16 goes to float32 and back
without a change. Units: floats in [-1, 1). Threads: any; everything here is a constant or pure.
What it does not know: channels, and chunks that end inside a sample; see pcm.py.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from antiphon.audio import g711
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from antiphon.core.flow import Pcm

    Floats: TypeAlias = npt.NDArray[np.float32 | np.float64]


class Encoding(StrEnum):
    """How one sample is written."""

    UINT8 = "uint8"  # offset binary, silence is 128
    INT16 = "int16"
    INT24 = "int24"
    INT32 = "int32"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    MULAW = "mulaw"  # G.711
    ALAW = "alaw"  # G.711

    @property
    def width_bytes(self) -> int:
        """Bytes per sample of one channel."""
        return LAYOUTS[self].width_bytes

    def read(self, data: bytes) -> Floats:
        """The samples of `data`, which holds whole ones only; floats come as they are, NaN included."""
        return LAYOUTS[self].read(data)

    def write(self, pcm: Pcm) -> bytes:
        """The samples as bytes; they are finite and within [-1, 1]."""
        return LAYOUTS[self].write(pcm)


@dataclass(frozen=True, slots=True)
class Layout:
    """One encoding's width and both directions."""

    width_bytes: int
    read: Callable[[bytes], Floats]
    write: Callable[[Pcm], bytes]


def encoding_named(name: str) -> Encoding:
    """The encoding with exactly this name; nothing is guessed, for a wrong guess is noise at full level.

    Raises:
        CallerError: there is none.
    """
    known = [str(encoding) for encoding in Encoding]
    if name in known:
        return Encoding(name)
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    raise CallerError(f"unknown audio format {name!r}", hint=hint)


def to_int16(pcm: Pcm) -> npt.NDArray[np.int16]:
    """The nearest 16-bit value of each sample; +1.0 becomes 32767."""
    return _to_integers(pcm, bits=16).astype(np.int16)


def _to_integers(pcm: Pcm, *, bits: int) -> npt.NDArray[np.int64]:
    scale = 2 ** (bits - 1)
    rounded = np.rint(pcm.astype(np.float64) * scale)
    integers: npt.NDArray[np.int64] = np.clip(rounded, -scale, scale - 1).astype(np.int64)
    return integers


def _read_uint8(data: bytes) -> Floats:
    return (np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(2**7)


def _write_uint8(pcm: Pcm) -> bytes:
    return (_to_integers(pcm, bits=8) + 128).astype(np.uint8).tobytes()


def _read_int16(data: bytes) -> Floats:
    return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(2**15)


def _write_int16(pcm: Pcm) -> bytes:
    return _to_integers(pcm, bits=16).astype("<i2").tobytes()


def _read_int24(data: bytes) -> Floats:
    padded = np.zeros((len(data) // 3, 4), np.uint8)  # (samples, bytes of an int32 whose lowest byte is 0)
    padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return padded.view("<i4")[:, 0].astype(np.float32) / np.float32(2**31)


def _write_int24(pcm: Pcm) -> bytes:
    return _to_integers(pcm, bits=24).astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()


def _read_int32(data: bytes) -> Floats:
    return np.frombuffer(data, "<i4").astype(np.float64) / 2**31


def _write_int32(pcm: Pcm) -> bytes:
    return _to_integers(pcm, bits=32).astype("<i4").tobytes()


def _read_mulaw(data: bytes) -> Floats:
    return g711.decode_mulaw(np.frombuffer(data, np.uint8)).astype(np.float32) / np.float32(2**15)


def _read_alaw(data: bytes) -> Floats:
    return g711.decode_alaw(np.frombuffer(data, np.uint8)).astype(np.float32) / np.float32(2**15)


LAYOUTS: Mapping[Encoding, Layout] = {
    Encoding.UINT8: Layout(1, _read_uint8, _write_uint8),
    Encoding.INT16: Layout(2, _read_int16, _write_int16),
    Encoding.INT24: Layout(3, _read_int24, _write_int24),
    Encoding.INT32: Layout(4, _read_int32, _write_int32),
    Encoding.FLOAT32: Layout(4, lambda data: np.frombuffer(data, "<f4"), lambda pcm: pcm.astype("<f4").tobytes()),
    Encoding.FLOAT64: Layout(8, lambda data: np.frombuffer(data, "<f8"), lambda pcm: pcm.astype("<f8").tobytes()),
    Encoding.MULAW: Layout(1, _read_mulaw, lambda pcm: g711.encode_mulaw(to_int16(pcm)).tobytes()),
    Encoding.ALAW: Layout(1, _read_alaw, lambda pcm: g711.encode_alaw(to_int16(pcm)).tobytes()),
}
