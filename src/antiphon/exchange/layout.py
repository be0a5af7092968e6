"""Where everything lies in a ring's memory, and what a slot's header says.

      0  magic, version, slots, payload bytes: written once, by who makes it
    128  the writer's index       each on a line of its own: neither side's stores take the other's line away,
    256  the reader's index       128 bytes since some cores fetch lines in pairs
    384  the writer's generation, its refusals; 512 the reader's generation
    4096 the slots: 64 bytes of header, then the payload

Indices count messages since the ring was made, modulo 2**64, never modulo the slots: equal means empty, and full is
told from it. All words are naturally aligned, so that a core loads and stores them whole; an index that crossed a line
would be torn, or lock the bus. Units: bytes, messages. Pure.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from antiphon.core.errors import check_range

MAGIC = int.from_bytes(b"antiring", "little")
VERSION = 1
LINE_BYTES = 128
CONTROL_BYTES = 4096
HEADER_BYTES = 64
MODULUS = 2**64
MOST_BYTES = 2**34  # of a ring

# places of 8-byte words
MAGIC_WORD, VERSION_WORD, SLOTS_WORD, PAYLOAD_WORD = range(4)
HEAD_WORD = 1 * LINE_BYTES // 8
TAIL_WORD = 2 * LINE_BYTES // 8
WRITER_WORD = 3 * LINE_BYTES // 8
READER_WORD = 4 * LINE_BYTES // 8

# number, generation, refused, captured_ns, pos_samples, length, kind, dtype, dimensions, 3 x size; then the CRC32C
HEADER = struct.Struct("<QQQqqIBBHIII")
CHECK = struct.Struct("<I")
assert HEADER.size + CHECK.size == HEADER_BYTES

DTYPES = tuple(np.dtype(name) for name in ("u1", "f4", "f2", "i2", "i4", "i8", "f8"))
MOST_DIMENSIONS = 3


class Kind(IntEnum):
    """What a message is; its checksum covers accordingly much."""

    NOTE = 1  # bytes; header and payload are checked
    SOUND = 2  # samples; header and payload are checked
    TENSOR = 3  # megabytes; the header with its number is checked, the payload is not read for it


@dataclass(frozen=True, slots=True, kw_only=True)
class RingShape:
    """How many messages of what length fit.

    Raises:
        CallerError: a number is out of its range, or no power of two where it must be one.
    """

    slots: int  # a power of two
    payload_bytes: int  # the longest message

    def __post_init__(self) -> None:
        check_range("slots", self.slots, 2, 2**16)
        check_range("payload_bytes", self.payload_bytes, 1, 2**31)
        check_range("a ring's bytes", self.total_bytes, 0, MOST_BYTES)
        if self.slots & (self.slots - 1):
            check_range("slots that are no power of two", self.slots, 0, 0)

    @property
    def slot_bytes(self) -> int:
        """Whole lines, so that slots share none."""
        return -(-(HEADER_BYTES + self.payload_bytes) // LINE_BYTES) * LINE_BYTES

    @property
    def total_bytes(self) -> int:
        return CONTROL_BYTES + self.slots * self.slot_bytes


KINDS = {int(kind): kind for kind in Kind}


class Stamp(NamedTuple):
    """What a message says of itself besides its payload."""

    kind: Kind = Kind.NOTE
    captured_ns: int = 0  # of a sound: when its first sample met the microphone, or is to be heard
    pos_samples: int = 0  # of a sound: its place in the stream
    dtype: int = 0  # place in DTYPES
    sizes: tuple[int, ...] = ()  # of a tensor: its shape; of a sound: samples, channels, Hz


AS_BYTES = Stamp()
