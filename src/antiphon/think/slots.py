"""Conversations in, places in the model's cache out: a few slots shared by any number of conversations.

A conversation keeps its slot until another needs one and all are taken: then the slot unused for longest changes
hands, which costs its former owner a fresh reading of its prompt and nothing else. A slot at work is never taken;
who finds all at work waits, first come, first served. Threads: the event loop only.
"""

from __future__ import annotations

import asyncio
from collections import deque


class SlotTable:
    """Which conversation has which slot."""

    def __init__(self, count: int) -> None:
        self._owners: list[object | None] = [None] * count
        self._by_use = list(range(count))  # slots, the one unused for longest first
        self._at_work: set[int] = set()
        self._waiting: deque[tuple[asyncio.Future[int], object]] = deque()

    async def acquire(self, owner: object) -> int:
        """A slot for one piece of `owner`'s work: its own, else a free one, else one unused for long."""
        slot = self._find(owner)
        if slot is not None:
            return self._hand(slot, owner)
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, owner))
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # handed over in the same moment
                self.release(turn.result())
            raise

    def release(self, slot: int) -> None:
        """The work is done; the slot stays its owner's for as long as no other needs it."""
        self._at_work.discard(slot)
        while self._waiting:
            turn, owner = self._waiting.popleft()
            if not turn.done():
                turn.set_result(self._hand(slot, owner))
                return

    def forget(self, owner: object) -> list[int]:
        """`owner` is gone; its slots, which are the first to be handed out next."""
        freed = []
        for slot, holder in enumerate(self._owners):
            if holder is owner:
                self._owners[slot] = None
                self._by_use.remove(slot)
                self._by_use.insert(0, slot)
                freed.append(slot)
        return freed

    def _find(self, owner: object) -> int | None:
        idle = [slot for slot in self._by_use if slot not in self._at_work]
        own = (slot for slot in idle if self._owners[slot] is owner)
        free = (slot for slot in idle if self._owners[slot] is None)
        return next(own, next(free, idle[0] if idle else None))

    def _hand(self, slot: int, owner: object) -> int:
        self._owners[slot] = owner
        self._at_work.add(slot)
        self._by_use.remove(slot)
        self._by_use.append(slot)
        return slot
