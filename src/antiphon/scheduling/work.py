"""A ticket with what travels beside it: the call, who waits for its result, what is noted of it on its way.

Threads: made and changed on the event loop; a lane's thread reads the call and reports at its border.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antiphon.scheduling.decisions import Decision
from antiphon.scheduling.job import Errand, Urgency, doing

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable, Sequence

    from antiphon.scheduling.border import Border
    from antiphon.scheduling.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Call:
    """What is to be computed."""

    compute: Callable[[Sequence[Work]], Sequence[Any]]  # one result for each of the works that run together
    item: Any = None
    kind: Hashable = None
    most: int = 1
    can_yield: bool = False


@dataclass(slots=True, eq=False)
class Work:
    """A job on its way."""

    ticket: Ticket
    call: Call
    future: asyncio.Future[Any]
    border: Border
    reason: str = ""  # why it did not begin at once
    ahead: tuple[int, ...] = ()  # the jobs that ran then
    company: int = 0  # others in the same call
    urgency: Urgency = Urgency.BACKGROUND  # when it began
    deciding_ns: int = 0  # what it cost the event loop so far; see overhead.py
    handing_ns: int = 0

    def decision(self, ended_ns: int, *, dropped: bool, failed: bool) -> Decision:
        """What became of it."""
        ticket = self.ticket
        return Decision(
            number=ticket.number,
            caller=ticket.claim.caller,
            turn=ticket.claim.turn,
            claim=ticket.claim.number,
            stage=str(ticket.job.stage),
            lane=ticket.lane,
            size=ticket.job.size,
            urgency=self.urgency.name.lower(),
            asked_ns=ticket.since_ns,
            began_ns=ticket.started_ns,
            ended_ns=ended_ns,
            deadline_ns=ticket.deadline_ns,
            estimate_ns=ticket.estimate_ns,
            company=self.company,
            kind=_written(ticket.kind) if ticket.most > 1 else "",
            most=ticket.most,
            can_yield=ticket.can_yield,
            reason=self.reason,
            ahead=self.ahead,
            made_way=self.border.is_asked and ticket.can_yield,
            dropped=dropped or self.future.cancelled(),
            failed=failed,
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """How the call of works that ran together ended."""

    results: Sequence[Any]
    error: BaseException | None
    began_ns: int
    ended_ns: int


def computed(works: Sequence[Work], now_ns: Callable[[], int]) -> Ending:
    """Make the call; on a lane's thread."""
    results: Sequence[Any] = ()
    error: BaseException | None = None
    began_ns = now_ns()
    try:
        with doing(tuple(Errand(job=work.ticket.job, claim=work.ticket.claim) for work in works)):
            results = works[0].call.compute(works)
    except BaseException as failure:  # noqa: BLE001 - handed to whoever waits for the result
        error = failure
    return Ending(results, error, began_ns, now_ns())


def settle(works: Sequence[Work], ending: Ending) -> None:
    """Give the results, or the error, to those who still wait."""
    for place, work in enumerate(works):
        if work.future.done():
            continue
        if ending.error is None:
            work.future.set_result(ending.results[place])
        else:
            work.future.set_exception(ending.error)


def _written(kind: Hashable) -> str:
    """A kind of job as another process can tell it from others: its words and numbers, without the engine itself."""
    parts = kind if isinstance(kind, tuple) else (kind,)
    return " ".join(str(part) for part in parts if isinstance(part, (str, int, tuple)))
