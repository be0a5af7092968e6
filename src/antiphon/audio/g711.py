"""G.711 bytes in, 16-bit samples out, and back: the telephone's two laws as look-up tables.

Both laws code sign and magnitude in eight segments of sixteen steps. Values stand on the 16-bit scale: the
recommendation's 14-bit (mu-law) and 13-bit (A-law) values times 4 and 8. A sample on a decision value takes the code
of the larger magnitude; the recommendation leaves that side open.
Units: codes are uint8, samples int16. Threads: any; the tables are made once and never written to again.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint8]
    Samples = npt.NDArray[np.int16]

MULAW_BIAS = 33 * 4  # moves the segments' borders onto powers of two
MULAW_TOP = 8159 * 4 - 1  # beyond the last decision value everything has the last code
ALAW_TOGGLE = 0x55  # even bits are inverted on the line, so that silence has transitions for the clock to follow


def decode_mulaw(codes: Codes) -> Samples:
    """The sample that each mu-law code stands for, +-32124 at most."""
    return _mulaw_values()[codes]


def decode_alaw(codes: Codes) -> Samples:
    """The sample that each A-law code stands for, +-32256 at most."""
    return _alaw_values()[codes]


def encode_mulaw(samples: Samples) -> Codes:
    """The mu-law code by the recommendation's decision values; zero is 0xFF."""
    return _mulaw_codes()[samples.view(np.uint16)]


def encode_alaw(samples: Samples) -> Codes:
    """The A-law code by the recommendation's decision values; zero is 0xD5."""
    return _alaw_codes()[samples.view(np.uint16)]


@cache
def _mulaw_values() -> Samples:
    code = ~np.arange(256, dtype=np.uint8)  # every bit is inverted on the line
    step, segment = code & 0x0F, (code >> 4) & 0x07
    magnitude = (((step.astype(np.int32) << 3) + MULAW_BIAS) << segment) - MULAW_BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)  # (256,)


@cache
def _alaw_values() -> Samples:
    code = np.arange(256, dtype=np.uint8) ^ ALAW_TOGGLE
    step, segment = (code & 0x0F).astype(np.int32), (code >> 4) & 0x07
    # the two lowest segments have the same step; from there each doubles it
    magnitude = np.where(segment == 0, (step << 4) + 8, ((step << 4) + 0x108) << (np.maximum(segment, 1) - 1))
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)  # (256,)


@cache
def _mulaw_codes() -> Codes:
    sample = _every_sample()
    magnitude = np.minimum(np.abs(sample), MULAW_TOP) + MULAW_BIAS
    segment = _highest_bit(magnitude) - 7
    code = (segment << 4) | ((magnitude >> (segment + 3)) & 0x0F) | np.where(sample < 0, 0x80, 0)
    codes: Codes = (code ^ 0xFF).astype(np.uint8)  # (65536,) every bit is inverted on the line
    return codes


@cache
def _alaw_codes() -> Codes:
    sample = _every_sample()
    magnitude = np.minimum(np.abs(sample), 0x7FFF)
    segment = np.maximum(_highest_bit(np.maximum(magnitude, 1)) - 7, 0)
    step = (magnitude >> (np.maximum(segment, 1) + 3)) & 0x0F
    code = (segment << 4) | step | np.where(sample < 0, 0, 0x80)
    codes: Codes = (code ^ ALAW_TOGGLE).astype(np.uint8)  # (65536,)
    return codes


def _every_sample() -> npt.NDArray[np.int32]:
    """All int16 values, each at the index of its own bits read as unsigned."""
    samples: npt.NDArray[np.int32] = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32)
    return samples


def _highest_bit(magnitude: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    _, exponent = np.frexp(magnitude.astype(np.float64))  # exact: below 2**53
    bit: npt.NDArray[np.int32] = exponent.astype(np.int32) - 1
    return bit
