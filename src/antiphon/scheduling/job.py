"""A piece of work that an engine asks time for: what it is, for whom, how long it may take, by when it is wanted.

A `Claim` is on whose behalf: a reply in the making, a look at the words so far. Whoever starts such work enters its
claim (`with claimed(claim)`), and every engine call made there, in tasks started there too, belongs to it. A claim may
change while its jobs wait: a draft that is confirmed becomes urgent in that moment.
A call on an engine's thread may ask which jobs it does (`current_errands`), so that what it hands on keeps
their urgency and deadline.
Units: ns of the monotonic clock. Threads: claims are made, changed and entered on the event loop.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.core.stamps import Stage


class Urgency(IntEnum):
    """What goes first; a lower number goes before a higher one."""

    PLAYBACK = 0  # sound that is heard now, and hearing that somebody speaks
    CONFIRMED = 1  # a reply that the caller waits for
    DRAFT = 2  # a reply that they will wait for if the pause lasts
    AHEAD = 3  # reading and listening while they still speak
    BACKGROUND = 4  # nobody waits for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The request; the call itself travels beside it."""

    stage: Stage
    estimate_ns: int = 0  # the engine's own guess, used until the stage's times are known; 0: it has none
    size: int = 0  # what the time depends on: columns, tokens, characters; 0: always the same
    deadline_ns: int | None = None  # None: the claim's


_callers = count(1)
_claims = count(1)


@dataclass(slots=True, kw_only=True, eq=False)
class Claim:
    """On whose behalf jobs run."""

    number: int = field(default_factory=lambda: next(_claims))
    caller: int = 0  # the conversation's number; 0: nobody's
    turn: int = 0  # of that conversation
    urgency: Urgency = Urgency.BACKGROUND
    deadline_ns: int | None = None  # when what it makes is wanted; None: by its urgency


NOBODYS = Claim()
_current: ContextVar[Claim] = ContextVar("claim", default=NOBODYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A job and on whose behalf it is done."""

    job: Job
    claim: Claim = NOBODYS

    @property
    def deadline_ns(self) -> int | None:
        """By when it is wanted, if somebody said so."""
        return self.claim.deadline_ns if self.job.deadline_ns is None else self.job.deadline_ns


_errands: ContextVar[tuple[Errand, ...]] = ContextVar("errands", default=())


def new_caller() -> int:
    """A number for one more conversation."""
    return next(_callers)


def current_claim() -> Claim:
    """On whose behalf this task works."""
    return _current.get()


@contextmanager
def claimed(claim: Claim) -> Iterator[Claim]:
    """Whatever is started inside works on behalf of `claim`."""
    token = _current.set(claim)
    try:
        yield claim
    finally:
        _current.reset(token)


def current_errands() -> tuple[Errand, ...]:
    """The jobs that this call on an engine's thread does; several where it is a batch, none elsewhere."""
    return _errands.get()


@contextmanager
def doing(errands: tuple[Errand, ...]) -> Iterator[None]:
    """What is called inside does these."""
    token = _errands.set(errands)
    try:
        yield
    finally:
        _errands.reset(token)
