"""Bytes -> their CRC32C (Castagnoli), by the processor's own instruction where google-crc32c is installed.

A checksum tells a slot that was damaged or written by a process that should be gone; it does not order memory.
Without that wheel the tables below do, by numpy and
without a compiler, and give the same numbers. Threads: any.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Checksum: TypeAlias = Callable[[bytes], int]

POLYNOMIAL = 0x82F63B78  # reflected
BLOCK_BYTES = 256  # its tables are 256 KiB, and stay in a core's own cache
ALL_ONES = 0xFFFFFFFF


def find_checksum() -> Checksum:
    """The fastest that is installed; all give the same numbers."""
    try:
        library = import_module("google_crc32c")
    except ImportError:
        return crc32c_by_tables
    if library.implementation != "c":  # in plain Python it looks at each byte by itself
        return crc32c_by_tables
    value: Checksum = library.value
    return value


def crc32c_by_tables(data: bytes) -> int:
    """CRC32C of `data`, every block of it by one look into the tables: what a byte adds depends on its place alone."""
    register = ALL_ONES
    values = np.frombuffer(data, np.uint8)
    for start in range(0, len(values), BLOCK_BYTES):
        block = values[start : start + BLOCK_BYTES].copy()
        length = len(block)
        head = min(4, length)
        block[:head] ^= np.frombuffer(register.to_bytes(4, "little"), np.uint8)[:head]
        added = _TABLES[_PLACES[BLOCK_BYTES - length :], block]
        register = (register >> (8 * length) if length < 4 else 0) ^ int(np.bitwise_xor.reduce(added))
    return register ^ ALL_ONES


def _tables() -> npt.NDArray[np.uint32]:
    """(places, 256): what a byte adds that has so many bytes behind it."""
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, first >> np.uint32(1) ^ np.uint32(POLYNOMIAL), first >> np.uint32(1))
    tables = np.empty((BLOCK_BYTES, 256), np.uint32)
    tables[0] = first
    for place in range(1, BLOCK_BYTES):
        before = tables[place - 1]
        tables[place] = before >> np.uint32(8) ^ first[before & np.uint32(255)]
    return tables


_TABLES = _tables()
_PLACES = np.arange(BLOCK_BYTES - 1, -1, -1)
