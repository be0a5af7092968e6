"""Tickets and lanes for tests, in ms."""

from __future__ import annotations

from itertools import count

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Claim, Job, Urgency
from antiphon.scheduling.policy import Policy
from antiphon.scheduling.settings import SchedulingSettings
from antiphon.scheduling.ticket import LaneFacts, Ticket

STAGES = {"recognizer": Stage.RECOGNISE, "prosody": Stage.PROSODY, "model": Stage.THINK, "voice": Stage.SPEAK}
LANES = {
    lane.name: lane
    for lane in (
        LaneFacts(name="recognizer", cores=2, nice=5),
        LaneFacts(name="prosody", cores=1, nice=5),
        LaneFacts(name="model", cores=2, width=4, shares_cores=True, nice=3),
        LaneFacts(name="voice", cores=1, nice=1),
    )
}
_numbers = count(1)


def ticket(
    lane: str,
    urgency: Urgency = Urgency.DRAFT,
    *,
    since_ms: float = 0,
    due_ms: float | None = None,
    takes_ms: float = 0,
    stage: Stage | None = None,
    can_yield: bool | None = None,
    kind: object = None,
    most: int = 1,
    caller: int = 1,
    started_ms: float | None = None,
) -> Ticket:
    made = Ticket(
        number=next(_numbers),
        lane=lane,
        job=Job(stage=stage or STAGES[lane]),
        claim=Claim(caller=caller, urgency=urgency, deadline_ns=None if due_ms is None else ns(due_ms)),
        since_ns=ns(since_ms),
        estimate_ns=ns(takes_ms),
        kind=kind,
        most=most,
        can_yield=lane == "model" if can_yield is None else can_yield,
    )
    if started_ms is not None:
        made.started_ns = ns(started_ms)
    return made


def running(lane: str, urgency: Urgency = Urgency.DRAFT, **what: object) -> Ticket:
    made = ticket(lane, urgency, **what)  # type: ignore[arg-type]
    made.started_ns = made.started_ns or 1
    return made


def policy(cores: int = 2, **rules: object) -> Policy:
    return Policy(rules=SchedulingSettings(**rules), cores=cores, lanes=LANES)  # type: ignore[arg-type]


def ns(ms: float) -> int:
    return round(ms * MILLISECOND_NS)
