"""What is asked of the GPU, and what became of it.

A slice is the least that runs without a break: one replay of a captured graph, or one bounded call. Nothing stops a
slice that has begun, so its length is what a more urgent one may have to wait for.
Units: ns of the monotonic clock. Threads: values, made anywhere.
What it does not know: models, streams, graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from antiphon.core.errors import CallerError
from antiphon.gpu.places import Place
from antiphon.scheduling.job import NOBODYS, Claim

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from antiphon.core.stamps import Stage

    Body: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A piece of work for the GPU: a registered body in one of its buckets, or a call that is given.

    Raises:
        CallerError: a time is negative, or the share of the bandwidth no share; the message names the field.
    """

    stage: Stage
    body: str = ""  # as it was registered; "": `call` is what runs
    bucket: Hashable = 0  # of the body: the shape it was made for
    call: Callable[[], None] | None = None  # bounded, and enqueues its work on the current stream
    estimate_ns: int = 0  # until its times are known; 0: not known
    deadline_ns: int | None = None  # None: the claim's, or by its urgency
    claim: Claim = field(default=NOBODYS)
    bandwidth: float | None = None  # part of the memory's that it takes while it runs alone; None: not known
    next_ns: int | None = None  # when its like will be asked for after it; None: not foreseen
    size: int = 0  # what its time depends on; 0: always the same

    def __post_init__(self) -> None:
        if bool(self.body) == (self.call is not None):
            raise CallerError(
                "a slice has either a registered body or a call of its own", hint="give one of `body` and `call`"
            )
        if self.estimate_ns < 0:
            raise CallerError(f"estimate_ns is {self.estimate_ns}", hint="use 0 if it is not known")
        if self.bandwidth is not None and not 0 <= self.bandwidth <= 1:
            raise CallerError(f"bandwidth is {self.bandwidth}", hint="use a part from 0 to 1, or None")

    @property
    def what(self) -> str:
        """The name under which it shares buffers, and so time, with its like; "" for a call that shares none."""
        return self.body


class Fate(StrEnum):
    """How a slice ended."""

    DONE = "done"
    FAILED = "failed"  # its call or its launch raised
    CANCELLED = "cancelled"  # before it began
    DISPLACED = "displaced"  # the queue was full, and somebody more urgent came
    CLOSED = "closed"  # the lane was closed before it began


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceReport:
    """What became of one slice."""

    number: int
    stage: Stage
    body: str
    bucket: Hashable
    fate: Fate
    asked_ns: int
    began_ns: int = 0  # was handed to the device; 0: never
    ended_ns: int = 0  # was known to have ended
    took_ns: int | None = None  # on the device, by its own events; None: not measured
    launch_ns: int = 0  # of the lane's thread, for handing it over
    estimate_ns: int = 0
    deadline_ns: int = 0
    place: Place = Place.WHOLE
    level: int = 0
    is_graph: bool = False
    ahead: bool = False  # was handed over while its forerunner still ran
    reason: str = ""  # why it did not begin at once; "": it did
    error: str = ""
    was_cancelled: bool = False  # while it ran: its result is not wanted

    @property
    def waited_ns(self) -> int:
        """From asking to being handed over; of one that never was, to its end."""
        return (self.began_ns or self.ended_ns) - self.asked_ns

    @property
    def was_late(self) -> bool:
        """Whether it ended behind its deadline."""
        return self.ended_ns > self.deadline_ns

    def __str__(self) -> str:
        waited_ms, took_ms = self.waited_ns / 1e6, (self.took_ns or self.ended_ns - self.began_ns) / 1e6
        why = f", because {self.reason}" if self.reason else ""
        name = self.body or str(self.stage)
        return f"{name} {self.fate}: waited {waited_ms:.2f} ms{why}; took {took_ms:.2f} ms in {self.place}"
