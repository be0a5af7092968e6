"""A job with what a decision asks about it: its lane, its claim, since when it waits, what it will take.

Units: ns. Threads: made and changed on the event loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.scheduling.job import Urgency

if TYPE_CHECKING:
    from collections.abc import Hashable

    from antiphon.scheduling.job import Claim, Job

# When work without a deadline of its own is wanted, after it was asked for.
WANTED_WITHIN_NS = {
    Urgency.PLAYBACK: 10 * MILLISECOND_NS,
    Urgency.CONFIRMED: 100 * MILLISECOND_NS,
    Urgency.DRAFT: 150 * MILLISECOND_NS,  # people leave about 200 ms between turns
    Urgency.AHEAD: 400 * MILLISECOND_NS,
    Urgency.BACKGROUND: 5000 * MILLISECOND_NS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneFacts:
    """How an engine takes work."""

    name: str
    width: int = 1  # jobs at once
    cores: int = 1  # that one job computes on; 0: it computes elsewhere, and takes none from anybody
    shares_cores: bool = False  # all of its jobs compute on the same cores, as one batch
    nice: int = 0  # how much the system prefers others' threads


@dataclass(slots=True, kw_only=True, eq=False)
class Ticket:
    """A job on its way: it waits, then it runs."""

    number: int
    lane: str
    job: Job
    claim: Claim
    since_ns: int  # when it was asked for; for the rest of a job that made way, when that was
    estimate_ns: int
    kind: Hashable = None  # jobs of one kind may run as one call
    most: int = 1  # of them
    can_yield: bool = False
    started_ns: int = 0

    @property
    def deadline_ns(self) -> int:
        """By when it is wanted."""
        own_ns = self.job.deadline_ns
        if own_ns is None:
            own_ns = self.claim.deadline_ns
        if own_ns is not None:
            return own_ns
        return self.since_ns + WANTED_WITHIN_NS[self.claim.urgency]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What begins now."""

    ticket: Ticket
    company: tuple[Ticket, ...] = ()  # that go with it, in one call
