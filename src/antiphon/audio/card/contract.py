"""A sound card as the audio process sees it: what it is asked for, what it is, and the two contracts of its ways.

Nothing here waits: the loop sleeps until a file descriptor or the clock says that there is something to do, and the
card then gives what is there or takes what fits. After an xrun it has set itself going again by the time it says so.
Units: samples per channel, ns of the monotonic clock, bytes. Threads: the audio process's one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from antiphon.core.clock import SECOND_NS, samples_to_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

SampleType: TypeAlias = Literal["i2", "i4", "f4"]  # as numpy writes them; little-endian
PERIODS = 4  # of which a buffer holds so many: less than two is no buffer, more than a few is only delay
WIDTHS = {"i2": 2, "i4": 4, "f4": 4}
SHORTEST_PERIOD, LONGEST_PERIOD = 256, 4096  # samples at 48 kHz; as long in time at other rates
AT_HZ = 48_000


class Fault(Enum):
    """What went wrong since the card was last asked."""

    NONE = auto()
    LOST = auto()  # an xrun: sound was lost, or silence was heard that nobody wrote; it goes on
    GONE = auto()  # unplugged, or its server ended: close it


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a way in or out is, once open."""

    rate_hz: int
    channels: int
    sample_type: SampleType
    period_samples: int
    buffer_samples: int

    @property
    def block_bytes(self) -> int:
        """One sample of every channel."""
        return WIDTHS[self.sample_type] * self.channels

    def ns(self, samples: int) -> int:
        """How long so many last."""
        return samples_to_ns(samples, self.rate_hz)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is wished for; a card that cannot gives what is nearest."""

    device: str = ""  # its name in the system that is asked; empty: the default
    rates_hz: Sequence[int]  # the most welcome first
    channels: Sequence[int] = (1, 2)
    period: int = SHORTEST_PERIOD  # samples at 48 kHz
    by_clock: bool = False  # its file descriptors woke us without end

    def period_samples(self, rate_hz: int) -> int:
        """The period at a rate."""
        return max(1, self.period * rate_hz // AT_HZ)


class Took(NamedTuple):
    """What a read gave."""

    samples: int
    end_ns: int  # when the last of them was captured, by the card's clock where it has one
    fault: Fault = Fault.NONE


class Queued(NamedTuple):
    """What a loudspeaker has yet to say."""

    samples: int
    fault: Fault = Fault.NONE


class Way(Protocol):
    """What both have in common."""

    @property
    def name(self) -> str: ...
    @property
    def form(self) -> Form: ...
    @property
    def fds(self) -> Sequence[tuple[int, int]]:
        """File descriptors and the events to poll for that say there is something to do; none: the clock says it."""
        ...

    def due_ns(self, now_ns: int) -> int | None:
        """When there will be something to do; None: a file descriptor tells."""
        ...

    def wake_at(self, samples: int) -> None:
        """How many samples are to be there, or to be free, before it is worth waking for."""
        ...

    def close(self) -> None: ...


class Capture(Way, Protocol):
    """A microphone."""

    def read(self, into: memoryview, now_ns: int) -> Took:
        """Copy what was captured, as much as fits; call again while it fills `into`."""
        ...


class Playback(Way, Protocol):
    """A loudspeaker. It begins with the first write and never stops: silence is written too."""

    def queued(self, now_ns: int) -> Queued:
        """What was written and has not been heard yet, as near as the card can tell."""
        ...

    def write(self, block: memoryview) -> int:
        """Take whole samples, and say how many; fewer if it is full."""
        ...


class Card(Protocol):
    """A system through which sound goes.

    Raises:
        MachineError: from both: the device is not there, is busy, or cannot be had in any form; with a remedy.
    """

    @property
    def system(self) -> str: ...
    def open_capture(self, ask: Ask) -> Capture: ...
    def open_playback(self, ask: Ask) -> Playback: ...


def period_ns(form: Form) -> int:
    """How long a period lasts."""
    return form.period_samples * SECOND_NS // form.rate_hz
