"""The allocator's blocks in, how much its free memory lies in pieces out, and whether background work stays back.

A pool in pieces cannot give one large block though the sum would do: the next large allocation then returns memory to
the driver and asks anew, which stops everything for milliseconds, or fails. So work that nobody waits for, whose loading
would ask for more, is held back from `LIMIT` on until it is clearly below.
Units: bytes; parts from 0 to 1. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LIMIT = 0.35
RELEASED = 0.30  # not at the limit itself, so that one block does not turn it on and off
LEAST_FREE_BYTES = 64 << 20  # of a pool; pieces of less say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of the allocator's memory."""

    pool: str
    size_bytes: int
    is_free: bool


def fragmentation(blocks: Iterable[Block], *, room_bytes: int = 0) -> dict[str, float]:
    """1 - largest free block / all free memory, for each pool that has some.

    `room_bytes` is what the allocator may still take of the GPU, which counts as one block of every pool: while there
    is room, pieces do no harm.
    """
    free: dict[str, list[int]] = {}
    for block in blocks:
        if block.is_free:
            free.setdefault(block.pool, []).append(block.size_bytes)
    found = {}
    for pool, sizes in free.items():
        total = sum(sizes) + room_bytes
        if total >= LEAST_FREE_BYTES:
            found[pool] = 1 - max(*sizes, room_bytes) / total if len(sizes) > 1 or room_bytes else 0.0
    return found


def worst(blocks: Iterable[Block], *, room_bytes: int = 0) -> float:
    """The worst pool's; 0 if none has free memory to speak of."""
    return max(fragmentation(blocks, room_bytes=room_bytes).values(), default=0.0)


class HoldBack:
    """Whether background work stays back."""

    def __init__(self, *, enabled: bool = True, limit: float = LIMIT) -> None:
        self._enabled = enabled
        self._limit = limit
        self.holds = False
        self.times = 0  # that it began to

    def look(self, value: float | None) -> bool:
        """Whether it holds, now that so much is in pieces; what is not known holds nobody back."""
        if not self._enabled or value is None:
            self.holds = False
        elif self.holds:
            self.holds = value >= self._limit - (LIMIT - RELEASED)
        else:
            self.holds = value > self._limit
            self.times += self.holds
        return self.holds
