"""Who waits for the same call in, who goes together out: a batch is closed by its earliest deadline.

Each one more makes the call longer for all, so one joins only if everybody in the batch still makes their deadline,
or if it is missed anyhow. Nothing is held back to wait for company.
Units: ns. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

Item = TypeVar("Item")

# One more in the call costs this part of one alone: Whisper's decoding on two cores, results/batching.json.
ONE_MORE = 0.45


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion(Generic[Item]):
    """One who might go along."""

    item: Item
    laxity_ns: int  # what is left if it ran alone now; below 0 it is late already


def company(
    first: Companion[Item], others: Sequence[Companion[Item]], *, most: int, alone_ns: int, one_more: float = ONE_MORE
) -> tuple[Item, ...]:
    """Those of `others`, in their order, that go with `first`, at most `most` in all."""
    chosen: list[Companion[Item]] = []
    for other in others:
        if len(chosen) + 1 >= most:
            break
        longer_ns = round(alone_ns * one_more * (len(chosen) + 1))
        if all(one.laxity_ns >= longer_ns or one.laxity_ns < 0 for one in (first, *chosen)):
            chosen.append(other)
    return tuple(one.item for one in chosen)
