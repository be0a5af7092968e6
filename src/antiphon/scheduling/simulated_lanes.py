"""Jobs in, each begun when its turn has come and ended when its work is done, on simulated cores and lanes.

They are let in as the rules want it: by the policy, as live, or, with `rules.enabled` false, by each lane for itself,
first come, first served, its threads no nicer than others.
Units: ns. Threads: pure.
What it does not know: callers, and which job follows which; it tells what ended.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.core.stamps import Stage
from antiphon.scheduling.batching import ONE_MORE
from antiphon.scheduling.estimates import Estimates
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.policy import Policy
from antiphon.scheduling.processor import ONE_REPLY_MORE, Processor
from antiphon.scheduling.shares import SIDES, Side, Signs, hear_share
from antiphon.scheduling.waiting_room import WaitingRoom

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from antiphon.scheduling.outcome import Ledger
    from antiphon.scheduling.processor import Run
    from antiphon.scheduling.settings import SchedulingSettings
    from antiphon.scheduling.ticket import Choice, LaneFacts, Ticket
    from antiphon.scheduling.workload import Slice

    class _Told(Protocol):
        def __call__(self, piece: Piece, *, made_way: bool) -> None: ...

    class _Reached(Protocol):
        def __call__(self, piece: Piece, mate: int) -> None: ...

    class _Watch(Protocol):
        def __call__(self, ticket: Ticket, /) -> None: ...


SIGNS_LAST_NS = 250 * MILLISECOND_NS  # as cpu_lanes has it
# How far a job gets between two borders: a token written; of a prompt, a batch of 32 tokens.
TOKEN_NS = 8 * MILLISECOND_NS
PROMPT_BATCH_NS = 128 * MILLISECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where it computes, and by which rules."""

    lanes: tuple[LaneFacts, ...]
    rules: SchedulingSettings
    cores: float  # that compute
    one_more: float = ONE_MORE  # of a call for one, that one more in it costs
    one_reply_more: float = ONE_REPLY_MORE


@dataclass(slots=True, kw_only=True, eq=False)
class Piece:
    """A job on its way, or one stretch of it."""

    held: object  # whose it is
    place: int
    slice: Slice
    ticket: Ticket
    left: float  # of its work
    milestones: dict[int, float] = field(default_factory=dict)  # job that is asked for when so much is left -> of that
    run: Run[list[Piece]] | None = None
    stops: bool = False  # at its next border
    is_dropped: bool = False


class Lanes:
    """What both kinds of lanes have in common; a kind says how jobs are let in."""

    def __init__(self, site: Site, *, ledger: Ledger, ended: _Told, reached: _Reached, watch: _Watch | None) -> None:
        self.now_ns = 0
        self.speaking = 0  # callers who do
        self.estimates = Estimates()
        self.cpu: Processor[list[Piece]] = Processor(
            site.cores, site.lanes, uses_nice=site.rules.enabled, one_reply_more=site.one_reply_more
        )
        self._facts = {lane.name: lane for lane in site.lanes}
        self._line: _AsTheyCome | _ByPolicy = _ByPolicy(site) if site.rules.enabled else _AsTheyCome(site)
        self._one_more = site.one_more
        self._ledger, self._ended, self._reached, self._watch = ledger, ended, reached, watch

    def enter(self, piece: Piece) -> None:
        """A job begins to wait."""
        self._line.enter(piece, self.now_ns)

    def changed(self, pieces: Iterable[Piece]) -> None:
        """Their claim has changed."""
        for piece in pieces:
            self._line.changed(piece, self.now_ns)

    def drop(self, piece: Piece) -> None:
        """Nobody wants it any more: it does not begin, or ends at its next border."""
        if piece.run is None:
            self._line.leave(piece)
            self._ledger.dropped(piece.ticket, self.now_ns)
        else:
            piece.is_dropped = True
            self._stop(piece)

    def advance(self, now_ns: int) -> None:
        """Compute until then, and tell what was reached and what ended."""
        self.now_ns = now_ns
        for run, mate in self.cpu.advance(now_ns):
            piece = run.item[0]
            if isinstance(mate, int):
                if piece.milestones.pop(mate, None) is not None and not piece.is_dropped:
                    self._reached(piece, mate)
            elif not run.has_ended:
                self._end(run)

    def pump(self) -> None:
        """Begin whatever may begin, and ask whoever is to make way."""
        while True:
            pieces = self._line.next(self.now_ns, self.speaking)
            if not pieces:
                break
            self._begin(pieces)
        for piece in self._line.in_the_way(self.now_ns):
            self._stop(piece)

    def _begin(self, pieces: list[Piece]) -> None:
        first = pieces[0]
        run = self.cpu.begin(first.ticket.lane, pieces)
        for piece in pieces:
            piece.run = run
            piece.ticket.started_ns = max(1, self.now_ns)
            self._ledger.began(piece.ticket, self.now_ns)
            if self._watch is not None:
                self._watch(piece.ticket)
        self._line.begun(pieces, self.now_ns)
        self.cpu.mark(run, _work(pieces, self._one_more), None)
        for mate, left in first.milestones.items():
            self.cpu.mark(run, max(0.0, first.left - left), mate)

    def _stop(self, piece: Piece) -> None:
        run = piece.run
        if piece.stops or run is None or not piece.ticket.can_yield:
            return
        piece.stops = True
        border_ns = TOKEN_NS if piece.slice.stage is Stage.THINK else PROMPT_BATCH_NS
        stop = (int(self.cpu.done(run) / border_ns) + 1) * border_ns
        if stop < piece.left:
            self.cpu.mark(run, stop, None)

    def _end(self, run: Run[list[Piece]]) -> None:
        pieces, first = run.item, run.item[0].ticket
        done, whole = self.cpu.done(run), _work(run.item, self._one_more)
        self.cpu.end(run)
        took_ns = self.now_ns - first.started_ns
        lane = self._facts[first.lane]
        if not first.can_yield and len(pieces) == 1:
            self.estimates.learn(first.lane, first.job, first.estimate_ns, took_ns)
        self._line.ended(pieces, self.now_ns, core_ns=took_ns * lane.cores, borders=int(done / TOKEN_NS))
        made_way = done < whole - 1
        for piece in pieces:
            if piece.is_dropped:
                self._ledger.dropped(piece.ticket, self.now_ns)
                continue
            piece.left -= done if made_way else piece.left
            if not made_way:
                continues = piece.slice.is_after_sound and piece.slice.stage is Stage.SPEAK
                self._ledger.ended(piece.ticket, self.now_ns, continues=continues)
            self._ended(piece, made_way=made_way)


def _work(pieces: Sequence[Piece], one_more: float) -> float:
    """Of one call for all of them."""
    return max(piece.left for piece in pieces) * (1 + one_more * (len(pieces) - 1))


class _AsTheyCome:
    """Each lane takes its jobs first come, first served."""

    def __init__(self, site: Site) -> None:
        self._facts = {lane.name: lane for lane in site.lanes}
        self._waiting: dict[str, deque[Piece]] = {lane.name: deque() for lane in site.lanes}
        self._running: Counter[str] = Counter()

    def enter(self, piece: Piece, _now_ns: int) -> None:
        self._waiting[piece.ticket.lane].append(piece)

    def leave(self, piece: Piece) -> None:
        self._waiting[piece.ticket.lane].remove(piece)

    def changed(self, piece: Piece, now_ns: int) -> None:
        """It is all the same here."""

    def next(self, _now_ns: int, _speaking: int) -> list[Piece]:
        for lane, waiting in self._waiting.items():
            if waiting and self._running[lane] < self._facts[lane].width:
                first = waiting[0]
                alike = [piece for piece in waiting if piece.slice.most > 1 and piece.slice.kind == first.slice.kind]
                return alike[: first.slice.most] if first.slice.most > 1 else [first]
        return []

    def begun(self, pieces: Sequence[Piece], _now_ns: int) -> None:
        self._running[pieces[0].ticket.lane] += 1
        for piece in pieces:
            self.leave(piece)

    def ended(self, pieces: Sequence[Piece], _now_ns: int, *, core_ns: int, borders: int) -> None:
        del core_ns, borders
        self._running[pieces[0].ticket.lane] -= 1

    def in_the_way(self, _now_ns: int) -> list[Piece]:
        return []


class _ByPolicy:
    """The policy decides, as live: what it remembers is told to it, and the moment's signs."""

    def __init__(self, site: Site) -> None:
        self._policy = Policy(
            rules=site.rules,
            cores=max(1, int(site.cores)),
            lanes={lane.name: lane for lane in site.lanes},
        )
        self._pieces: dict[int, Piece] = {}  # by their ticket's number
        self._waiting = WaitingRoom(self._policy)
        self._running = WaitingRoom(self._policy)  # of each call the first
        self._jobs: Counter[str] = Counter()  # calls, by lane
        self._late: list[tuple[int, int]] = []  # (deadline, number) of what voices or writes replies, stale ones too
        self._pace: tuple[int, float] | None = None

    def enter(self, piece: Piece, now_ns: int) -> None:
        self._pieces[piece.ticket.number] = piece
        self._waiting.add(piece.ticket, now_ns)
        self._note_deadline(piece.ticket)

    def leave(self, piece: Piece) -> None:
        del self._pieces[piece.ticket.number]
        self._waiting.remove(piece.ticket)

    def changed(self, piece: Piece, now_ns: int) -> None:
        for room in (self._waiting, self._running):
            if piece.ticket in room:
                room.again(piece.ticket, now_ns)
        self._note_deadline(piece.ticket)

    def next(self, now_ns: int, speaking: int) -> list[Piece]:
        if not len(self._waiting):
            return []
        self._waiting.refresh(now_ns)
        self._running.refresh(now_ns)
        full = {lane for lane, jobs in self._jobs.items() if jobs >= self._policy.lanes[lane].width}
        tickets = self._waiting.best(full)
        if not tickets:
            return []
        self._policy.hear_share = hear_share(self._signs(now_ns, speaking), self._policy.rules)
        choice: Choice | None = self._policy.choose(now_ns, tickets, self._few_running())
        return [self._pieces[one.number] for one in (choice.ticket, *choice.company)] if choice else []

    def begun(self, pieces: Sequence[Piece], now_ns: int) -> None:
        for piece in pieces:
            self._waiting.remove(piece.ticket)
        self._running.add(pieces[0].ticket, now_ns)
        self._jobs[pieces[0].ticket.lane] += 1

    def ended(self, pieces: Sequence[Piece], now_ns: int, *, core_ns: int, borders: int) -> None:
        first = pieces[0].ticket
        self._running.remove(first)
        self._jobs[first.lane] -= 1
        for piece in pieces:
            del self._pieces[piece.ticket.number]
        self._policy.usage.add(SIDES[first.job.stage], core_ns, now_ns, self._policy.rules)
        if first.job.stage is Stage.THINK and borders > 1:
            self._pace = (now_ns, borders * SECOND_NS / max(1, now_ns - first.since_ns))

    def in_the_way(self, now_ns: int) -> list[Piece]:
        if not self._jobs.total() or not self._policy.rules.yielding:
            return []
        self._running.refresh(now_ns)
        few = self._few_running()
        asked = {one.number for one in self._policy.make_way(now_ns, self._waiting.tightest(), few)}
        if not asked:
            return []
        # Those left out by `_few_running` are like two that it names, so they are asked if these are.
        return [
            self._pieces[one.number]
            for lane, group in self._running.groups()
            for one in group
            if one.number in asked or (self._has_room(lane) and {mate.number for mate in group[:2]} <= asked)
        ]

    def _few_running(self) -> list[Ticket]:
        """Who runs; of a batch that has room, two of each that are alike stand for all: none of them is in the way."""
        few: list[Ticket] = []
        for lane, tickets in self._running.groups():
            few += tickets[:2] if self._has_room(lane) else tickets
        return few

    def _has_room(self, lane: str) -> bool:
        facts = self._policy.lanes[lane]
        return facts.shares_cores and self._jobs[lane] < facts.width

    def _note_deadline(self, ticket: Ticket) -> None:
        if SIDES[ticket.job.stage] is Side.SPEAK and ticket.claim.urgency <= Urgency.DRAFT:
            heappush(self._late, (ticket.deadline_ns, ticket.number))

    def _signs(self, now_ns: int, speaking: int) -> Signs:
        """Somebody who speaks is taken to speak clearly."""
        rules, late = self._policy.rules, self._late
        while late and (late[0][1] not in self._pieces or self._pieces[late[0][1]].ticket.deadline_ns != late[0][0]):
            heappop(late)
        is_recent = self._pace is not None and now_ns - self._pace[0] < SIGNS_LAST_NS
        return Signs(
            voiced_frames=rules.voiced_frames if speaking else 0,
            certainty=1.0 if speaking else 0.0,
            decode_lag_ms=max(0, now_ns - late[0][0]) / MILLISECOND_NS if late else 0.0,
            tokens_per_s=self._pace[1] if self._pace and is_recent else None,
        )
