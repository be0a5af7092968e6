"""What a simulation saw of each job in, its figures out: how long replies took, what came late, how busy cores were.

A reply is a draft that has sound; its time runs from the moment its first job was asked for, which is when the pause
was noticed, until its first piece of sound was made. One whose caller went on to their next turn before is never
answered. A job is late if it ended after its deadline, or was given up after it; counted are those of drafts and
confirmed replies, except the writing, whose chunks have deadlines of their own.
Percentiles are nearest ranks. Units: ns here, ms in figures. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Urgency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.scheduling.ticket import Ticket


@dataclass(slots=True, kw_only=True)
class Ledger:
    """What was seen; of jobs that were asked for from `since_ns` until `until_ns`."""

    since_ns: int
    until_ns: int
    busy_core_ns: float = 0.0
    replies_ns: list[float] = field(default_factory=list)  # infinite: never answered
    waits_ns: dict[Urgency, list[int]] = field(default_factory=dict)
    jobs: int = 0  # stretches that began
    late: int = 0
    due: int = 0  # jobs that could have been late
    gaps: int = 0
    continued: int = 0  # pieces of sound that were to follow another

    def began(self, ticket: Ticket, now_ns: int) -> None:
        """A job begins."""
        if self._counts(ticket.since_ns):
            self.jobs += 1
            self.waits_ns.setdefault(ticket.claim.urgency, []).append(now_ns - ticket.since_ns)

    def ended(self, ticket: Ticket, now_ns: int, *, continues: bool = False) -> None:
        """A job ends; `continues` if it voices what is to be heard after other sound."""
        if not self._is_due(ticket):
            return
        is_late = now_ns > ticket.deadline_ns
        self.due += 1
        self.late += is_late
        self.continued += continues
        self.gaps += continues and is_late

    def dropped(self, ticket: Ticket, now_ns: int) -> None:
        """A job is given up: nobody was waiting, unless it was late."""
        if self._is_due(ticket) and now_ns > ticket.deadline_ns:
            self.due += 1
            self.late += 1

    def replied(self, asked_ns: int, now_ns: int | None) -> None:
        """A reply has its first sound, or (None) will have none."""
        if self._counts(asked_ns):
            self.replies_ns.append(inf if now_ns is None else now_ns - asked_ns)

    def _counts(self, at_ns: int) -> bool:
        return self.since_ns <= at_ns < self.until_ns

    def _is_due(self, ticket: Ticket) -> bool:
        is_awaited = ticket.claim.urgency <= Urgency.DRAFT and ticket.job.stage is not Stage.THINK
        return is_awaited and self._counts(ticket.since_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures of one run; a time is None where there was nothing to measure, infinite where it never came."""

    order: str
    callers: int
    replies: int
    unanswered: float  # part of them
    ready_p50_ms: float | None
    ready_p95_ms: float | None
    late: float  # part of the jobs that had a deadline to keep
    gaps: float  # part of the pieces of sound that came when the sound before them had run out
    busy: float  # part of the cores' time
    waits_p95_ms: dict[str, float]  # by urgency
    jobs: int


def outcome_of(ledger: Ledger, *, order: str, callers: int, cores: float) -> Outcome:
    """The figures of what was seen."""
    replies = sorted(ledger.replies_ns)
    measured_ns = ledger.until_ns - ledger.since_ns
    return Outcome(
        order=order,
        callers=callers,
        replies=len(replies),
        unanswered=sum(not isfinite(each) for each in replies) / max(1, len(replies)),
        ready_p50_ms=_percentile_ms(replies, 0.5),
        ready_p95_ms=_percentile_ms(replies, 0.95),
        late=ledger.late / max(1, ledger.due),
        gaps=ledger.gaps / max(1, ledger.continued),
        busy=ledger.busy_core_ns / (measured_ns * cores),
        waits_p95_ms={
            urgency.name.lower(): _percentile_ms(sorted(waits), 0.95) or 0.0
            for urgency, waits in sorted(ledger.waits_ns.items())
        },
        jobs=ledger.jobs,
    )


def _percentile_ms(values: Sequence[float], part: float) -> float | None:
    """The nearest rank of sorted values."""
    return values[max(0, ceil(part * len(values)) - 1)] / MILLISECOND_NS if values else None
