"""Who waits and what runs in, what begins next and who makes way out: the rules, and what they remember.

`moment.py` works them out, on any clock.

Rank: the more urgent class first (job.Urgency); within a class the side that is below its share; then the least
laxity, which is deadline - now - estimate; then who came first. Two things move a job between classes: whoever can wait
longer than `ample_ms` counts as working ahead at most, and every `patience_ms` of waiting is one step up, so that
nobody waits for ever.
Start: the best in rank whose lane is free and whose cores are. No core lies idle for the sake of a better one that
cannot begin, unless that one is late or has waited for `patience_ms`: then nobody of its class or below begins before
it. Cores on which only lesser jobs run, on lanes that the system treats as lesser (nice), count as free: the system
takes them away in that moment. Jobs that can yield are asked to, at their next token, by a better one that cannot
begin otherwise.
Units: ns. Threads: pure; the same input gives the same decision.
What it does not know: threads, models, what an engine does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.scheduling.moment import Moment
from antiphon.scheduling.shares import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from antiphon.scheduling.settings import SchedulingSettings
    from antiphon.scheduling.ticket import Choice, LaneFacts, Ticket


@dataclass(slots=True, kw_only=True)
class Policy:
    """The rules, and what they remember: how the cores were shared lately."""

    rules: SchedulingSettings
    cores: int
    lanes: Mapping[str, LaneFacts]
    usage: Usage = field(default_factory=Usage)
    hear_share: float = 0.6  # of the moment; see shares.hear_share

    def at(self, now_ns: int) -> Moment:
        """The decisions of one moment, which may follow each other; for as long as no claim changes."""
        return Moment(self, now_ns)

    def choose(self, now_ns: int, waiting: Iterable[Ticket], running: Sequence[Ticket]) -> Choice | None:
        """What begins now, if anything does; ask again until nothing does."""
        return self.at(now_ns).choose(waiting, running)

    def make_way(self, now_ns: int, waiting: Iterable[Ticket], running: Sequence[Ticket]) -> tuple[Ticket, ...]:
        """Who is to yield at the next border: lesser jobs that can, in the way of a better one."""
        return self.at(now_ns).make_way(waiting, running)
