"""Tickets in, the few of them that a decision can fall on out: the same decision as on all, in a fraction of the time.

What keeps a ticket from beginning depends on its lane and its urgency alone. So of all that are alike in these (and in
what may run as one call, and in the side whose share they count to) only the best in rank matter. A ticket's urgency
changes by time at few moments, which are known beforehand: when it can no longer wait amply, and with each step of
patience. Within a bucket the order stays.
Units: ns. Threads: pure.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from antiphon.core.clock import MILLISECOND_NS
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.settings import Order
from antiphon.scheduling.shares import SIDES

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator

    from antiphon.scheduling.policy import Policy
    from antiphon.scheduling.ticket import Ticket

_Entry: TypeAlias = tuple[int, int]  # by rank or laxity; and the ticket's number


@dataclass(slots=True)
class _Bucket:
    lane: str
    urgency: int
    by_rank: list[_Entry] = field(default_factory=list)
    by_laxity: list[_Entry] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Place:
    ticket: Ticket
    bucket: _Bucket
    rank: _Entry
    laxity: _Entry
    changes_ns: int | None


class WaitingRoom:
    """Those that wait, or, since they are asked for in the same way, those that run."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._buckets: dict[Hashable, _Bucket] = {}
        self._places: dict[int, _Place] = {}
        self._changes: list[tuple[int, int]] = []  # (when, whose), stale ones among them

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, ticket: Ticket) -> bool:
        return ticket.number in self._places

    def add(self, ticket: Ticket, now_ns: int) -> None:
        """It comes."""
        urgency = self._policy.at(now_ns).urgency(ticket)
        key = (ticket.lane, ticket.kind, SIDES[ticket.job.stage], urgency)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(ticket.lane, urgency)
        latest_ns = ticket.deadline_ns - ticket.estimate_ns
        place = _Place(
            ticket=ticket,
            bucket=bucket,
            rank=self._rank(ticket, latest_ns),
            laxity=(latest_ns, ticket.number),
            changes_ns=self._changes_ns(ticket, now_ns, latest_ns),
        )
        insort(bucket.by_rank, place.rank)
        insort(bucket.by_laxity, place.laxity)
        self._places[ticket.number] = place
        if place.changes_ns is not None:
            heappush(self._changes, (place.changes_ns, ticket.number))

    def remove(self, ticket: Ticket) -> None:
        """It goes."""
        place = self._places.pop(ticket.number)
        place.bucket.by_rank.remove(place.rank)
        place.bucket.by_laxity.remove(place.laxity)

    def again(self, ticket: Ticket, now_ns: int) -> None:
        """Its claim has changed."""
        self.remove(ticket)
        self.add(ticket, now_ns)

    def refresh(self, now_ns: int) -> None:
        """Take note of whose urgency time has changed."""
        while self._changes and self._changes[0][0] <= now_ns:
            changes_ns, number = heappop(self._changes)
            place = self._places.get(number)
            if place is not None and place.changes_ns == changes_ns:
                self.again(place.ticket, now_ns)

    def best(self, full: Collection[str] = ()) -> list[Ticket]:
        """Whom `Policy.choose` may choose, with their company; none of lanes that are full."""
        return [
            self._places[number].ticket
            for bucket in self._buckets.values()
            if bucket.by_rank and bucket.lane not in full
            for _, number in bucket.by_rank[: self._places[bucket.by_rank[0][1]].ticket.most]
        ]

    def tightest(self) -> list[Ticket]:
        """Whom `Policy.make_way` may make way for."""
        return [self._places[bucket.by_laxity[0][1]].ticket for bucket in self._buckets.values() if bucket.by_laxity]

    def groups(self) -> Iterator[tuple[str, list[Ticket]]]:
        """All of them in groups that are alike to `Policy.obstacle`, each with its lane, who can wait least first."""
        alike: dict[tuple[str, int], list[_Entry]] = {}
        for bucket in self._buckets.values():
            if bucket.by_laxity:
                alike.setdefault((bucket.lane, bucket.urgency), []).extend(bucket.by_laxity)
        for (lane, _), entries in alike.items():
            yield lane, [self._places[number].ticket for _, number in sorted(entries)]

    def _rank(self, ticket: Ticket, latest_ns: int) -> _Entry:
        match self._policy.rules.order:
            case Order.FIFO:
                return (0, ticket.number)
            case Order.STATIC:
                return (int(ticket.claim.urgency), ticket.number)
            case Order.EDF:
                return (ticket.deadline_ns, ticket.number)
        return (latest_ns, ticket.number)

    def _changes_ns(self, ticket: Ticket, now_ns: int, latest_ns: int) -> int | None:
        """When its urgency will change next."""
        rules, found = self._policy.rules, []
        ample_ns = latest_ns - rules.ample_ms * MILLISECOND_NS
        if ticket.claim.urgency < Urgency.AHEAD and ample_ns > now_ns:
            found.append(ample_ns)
        if not ticket.started_ns:
            patience_ns = rules.patience_ms * MILLISECOND_NS
            steps = (now_ns - ticket.since_ns) // patience_ns
            if steps < Urgency.BACKGROUND:
                found.append(ticket.since_ns + (steps + 1) * patience_ns)
        return min(found, default=None)
