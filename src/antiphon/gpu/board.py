"""Slices that are asked for, begin, end and are given up in; which begins where and what became of each out.

The order is the scheduler's own policy: its lanes are the stream levels here, and its cores are the parts of the GPU,
two where the multiprocessors are cut, else one. `placing.py` then says where. Of one body a single slice runs at a
time, for all of them compute on the same buffers; a reply step may be handed over while its forerunner still runs.
Bounds: `most_waiting` slices. When full, the least urgent that came last makes room; if that is the newcomer itself, it
is refused.
Units: ns. Threads: pure; whoever shares a board between threads locks it.
What it does not know: devices, graphs, threads, the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import BusyError
from antiphon.gpu.places import LANES, REPLY_LEVEL, Place, level_of
from antiphon.gpu.placing import Outlook, Seat, place
from antiphon.scheduling.estimates import Estimates
from antiphon.scheduling.job import Job, Urgency
from antiphon.scheduling.policy import Policy
from antiphon.scheduling.shares import SIDES, Side
from antiphon.scheduling.ticket import Choice, LaneFacts, Ticket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.gpu.slices import Slice
    from antiphon.scheduling.moment import Moment
    from antiphon.scheduling.settings import SchedulingSettings

HELD = "the memory is in pieces, and nobody waits for it"
HELD_LOOK_NS = 20 * MILLISECOND_NS  # whether somebody waits for what is held now: nobody tells that a claim has changed
STEP_RUNS = "a step of writing runs"
OWN_BUFFERS = "its like runs on the same buffers"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSettings:
    """What is on."""

    is_cut: bool = False  # the multiprocessors are parted
    orders: bool = True  # without, everything begins as it comes, all of it on the whole GPU
    ahead: bool = True  # a reply step may be handed over while the one before runs
    levels: bool = True  # streams have levels; without, all have the lowest
    most_waiting: int = 256


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """A slice on its way."""

    ticket: Ticket
    asked: Slice
    level: int = 0
    place: Place = Place.WHOLE
    reason: str = ""
    is_ahead: bool = False
    was_cancelled: bool = False

    @property
    def number(self) -> int:
        return self.ticket.number

    @property
    def is_reply(self) -> bool:
        return self.ticket.lane == LANES[REPLY_LEVEL]


class Board:
    """The slices of one GPU."""

    def __init__(self, rules: SchedulingSettings, settings: BoardSettings) -> None:
        self.settings = settings
        self.estimates = Estimates()
        self.holds_background = False  # see fragmentation.py
        self.waiting: dict[int, Work] = {}
        self.running: dict[int, Work] = {}
        self.displaced: list[Work] = []  # that made room; whoever asks for them takes them
        self.wake_ns: int | None = None  # when to ask anew even if nothing ends
        self._numbers = count(1)
        self._foreseen: tuple[int, float | None] | None = None
        lanes = {
            name: LaneFacts(
                name=name,
                width=2 if level == REPLY_LEVEL else 1,
                shares_cores=level == REPLY_LEVEL,  # the second follows on the same stream
                nice=level - REPLY_LEVEL if settings.levels else 0,
            )
            for level, name in LANES.items()
        }
        self._policy = Policy(rules=rules, cores=2 if settings.is_cut else 1, lanes=lanes)

    @property
    def rules(self) -> SchedulingSettings:
        return self._policy.rules

    @rules.setter
    def rules(self, rules: SchedulingSettings) -> None:
        self._policy.rules = rules

    def share(self, hear_share: float) -> None:
        """Hearing's share of the moment; see scheduling/shares.py."""
        self._policy.hear_share = hear_share

    def lag_ns(self, now_ns: int) -> int:
        """How far the latest reply that is written or waits to be is behind its time; 0: none is."""
        replies = (work for work in (*self.running.values(), *self.waiting.values()) if _is_for_a_reply(work))
        return max(0, *(now_ns - work.ticket.deadline_ns for work in replies), 0)

    def ask(self, asked: Slice, now_ns: int) -> Work:
        """A slice begins to wait.

        Raises:
            BusyError: so many wait already, none of them less urgent.
        """
        size = asked.size or (asked.bucket if isinstance(asked.bucket, int) else 0)
        job = Job(stage=asked.stage, estimate_ns=asked.estimate_ns, size=size, deadline_ns=asked.deadline_ns)
        lane = asked.what or str(asked.stage)
        ticket = Ticket(
            number=next(self._numbers),
            lane="",
            job=job,
            claim=asked.claim,
            since_ns=now_ns,
            estimate_ns=self.estimates.of(lane, job),
        )
        work = Work(ticket=ticket, asked=asked)
        if len(self.waiting) >= self.settings.most_waiting:
            self._make_room(work)
        self.waiting[ticket.number] = work
        return work

    def give_up(self, number: int) -> Work | None:
        """Nobody wants it any more: the work if it had not begun, None if it runs or is gone."""
        work = self.take_back(number)
        if work is None and number in self.running:
            self.running[number].was_cancelled = True
        return work

    def take_back(self, number: int) -> Work | None:
        """It is not to begin; the work if it had not begun."""
        return self.waiting.pop(number, None)

    def begin(self, now_ns: int) -> Iterator[Work]:
        """Those that begin now, one after the other; each counts as running from the moment it is given."""
        self.wake_ns = None
        while self.waiting:
            work = self._next(now_ns)
            if work is None:
                if any(each.reason == HELD for each in self.waiting.values()):
                    self._wake_at(now_ns + HELD_LOOK_NS)
                return
            yield work

    def ended(self, number: int, now_ns: int, took_ns: int | None) -> Work:
        """A slice that ran has ended."""
        work = self.running.pop(number)
        ticket = work.ticket
        taken = now_ns - ticket.started_ns if took_ns is None else took_ns
        if work.is_reply and self._foreseen is not None and self._foreseen[0] < now_ns:
            self._foreseen = (now_ns, self._foreseen[1])  # it was to follow at once
        self._policy.usage.add(SIDES[ticket.job.stage], taken, now_ns, self.rules)
        if work.place is Place.WHOLE and not (work.is_ahead and took_ns is None):
            self.estimates.learn(work.asked.what or str(ticket.job.stage), ticket.job, ticket.estimate_ns, taken)
        return work

    def close(self) -> list[Work]:
        """Nothing begins any more; those that waited."""
        left = list(self.waiting.values())
        self.waiting.clear()
        return left

    # Inside.

    def _next(self, now_ns: int) -> Work | None:
        moment = self._policy.at(now_ns)
        for work in self.waiting.values():
            self._seat_by_class(work)
        left = [work.ticket for work in self.waiting.values() if self._is_free(work)]
        running = [work.ticket for work in self.running.values()]
        while left:
            choice = moment.choose(left, running) if self.settings.orders else Choice(ticket=left[0])
            if choice is None:
                self._note(moment, left, running)
                return None
            work = self.waiting[choice.ticket.number]
            if not self.settings.orders or self._place(work, moment, now_ns):
                self._start(work, now_ns)
                return work
            left.remove(choice.ticket)
        return None

    def _seat_by_class(self, work: Work) -> None:
        """Its lane is the level that its class has now: a draft that was confirmed while it waited has moved."""
        level = level_of(work.asked.stage, work.ticket.claim.urgency)
        work.ticket.lane = LANES[level]
        work.level = level if self.settings.levels else 0

    def _is_free(self, work: Work) -> bool:
        """Whether anything but the order keeps it from beginning."""
        if self.holds_background and work.ticket.claim.urgency >= Urgency.BACKGROUND:
            work.reason = work.reason or HELD
            return False
        if work.is_reply:
            replies = [each for each in self.running.values() if each.is_reply]
            follows = self.settings.ahead and len(replies) == 1 and replies[0].asked.what == work.asked.what
            reason = "" if not replies or follows else STEP_RUNS
        else:
            alike = work.asked.what and any(each.asked.what == work.asked.what for each in self.running.values())
            reason = OWN_BUFFERS if alike else ""
        work.reason = work.reason or reason
        return not reason

    def _place(self, work: Work, moment: Moment, now_ns: int) -> bool:
        foreseen_ns, bandwidth = self._foreseen or (None, None)
        others_wait = any(not each.is_reply and self._is_free(each) for each in self.waiting.values())
        outlook = Outlook(
            now_ns=now_ns,
            is_cut=self.settings.is_cut,
            others_wait=others_wait,
            next_reply_ns=foreseen_ns,
            next_reply_bandwidth=bandwidth,
        )
        running = [self._seat(each, moment, now_ns) for each in self.running.values()]
        found = place(self._seat(work, moment, now_ns), running, outlook)
        if found.reason:
            work.reason = work.reason or found.reason
            if found.again_ns is not None:
                self._wake_at(found.again_ns)
            return False
        work.place = found.place
        return True

    def _wake_at(self, at_ns: int) -> None:
        self.wake_ns = at_ns if self.wake_ns is None else min(self.wake_ns, at_ns)

    def _seat(self, work: Work, moment: Moment, now_ns: int) -> Seat:
        ticket = work.ticket
        waited_ns = 0 if ticket.started_ns else now_ns - ticket.since_ns
        has_waited = waited_ns >= self.rules.patience_ms * MILLISECOND_NS
        return Seat(
            level=REPLY_LEVEL if work.is_reply else max(work.level, REPLY_LEVEL + 1),
            urgency=moment.urgency(ticket),
            estimate_ns=ticket.estimate_ns,
            bandwidth=work.asked.bandwidth,
            place=work.place,
            began_ns=ticket.started_ns,
            is_late=has_waited or ticket.deadline_ns - now_ns < ticket.estimate_ns,
        )

    def _start(self, work: Work, now_ns: int) -> None:
        del self.waiting[work.number]
        work.is_ahead = work.is_reply and any(each.is_reply for each in self.running.values())
        work.ticket.started_ns = now_ns
        self.running[work.number] = work
        if work.is_reply:
            next_ns = work.asked.next_ns
            self._foreseen = None if next_ns is None else (next_ns, work.asked.bandwidth)

    def _note(self, moment: Moment, waiting: list[Ticket], running: list[Ticket]) -> None:
        for ticket in waiting:
            work = self.waiting[ticket.number]
            work.reason = work.reason or moment.obstacle(ticket, running) or "others go first"

    def _make_room(self, newcomer: Work) -> None:
        worst = max(self.waiting.values(), key=lambda work: (work.ticket.claim.urgency, work.number))
        if worst.ticket.claim.urgency <= newcomer.ticket.claim.urgency:
            raise BusyError(
                f"{len(self.waiting)} slices wait for the GPU, none less urgent than this one",
                hint="ask for fewer at a time, or raise gpu.most_waiting",
            )
        self.displaced.append(self.waiting.pop(worst.number))


def _is_for_a_reply(work: Work) -> bool:
    ticket = work.ticket
    return SIDES[ticket.job.stage] is Side.SPEAK and ticket.claim.urgency <= Urgency.DRAFT
