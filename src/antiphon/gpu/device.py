"""What the lane needs of a device: to enqueue a body somewhere, to hear of its end. And the device without a GPU.

Threads: all calls come from the lane's own thread; `ring` may be called from any.
What it does not know: who goes first.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from antiphon.gpu.places import LEVELS, REPLY_LEVEL, Place
from antiphon.gpu.registry import Captured, GraphRegistry
from antiphon.scheduling.job import Urgency

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from antiphon.gpu.registry import Capturer
    from antiphon.hardware.gpu_parts import Pressure


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A place and a level: a stream, in other words, one for each body that runs there."""

    place: Place
    level: int
    cut: str = ""  # of the parts: a part of another cut is another place; the device's to say


class Flight(Protocol):
    """A body that was handed to the device."""

    @property
    def is_graph(self) -> bool:
        """Whether it went as one captured graph."""
        ...

    def has_ended(self) -> bool:
        """Whether the device is through with it; never waits.

        Raises:
            whatever the device reports of work that failed.
        """
        ...

    def took_ns(self) -> int | None:
        """Its time on the device, once it has ended; None: not measured."""
        ...


class Device(Protocol):
    """Somewhere to compute."""

    registry: GraphRegistry

    @property
    def is_cut(self) -> bool:
        """Whether replies and the rest have parts of their own."""
        ...

    def set_bell(self, bell: Bell) -> None:
        """Ring this one whenever something has ended."""
        ...

    def prepare(self, name: str, *, is_reply: bool = False, buckets: Iterable[Hashable] = ()) -> None:
        """Make ready what can be made ready of these buckets before they are asked for; on the lane's thread."""
        ...

    def launch(self, name: str, bucket: Hashable, spot: Spot) -> Flight:
        """Enqueue the registered body.

        Raises:
            CallerError: none has that name, or not that bucket.
            and whatever the body raises.
        """
        ...

    def launch_call(self, call: Callable[[], None], spot: Spot) -> Flight:
        """Enqueue what a call enqueues.

        Raises:
            whatever it raises.
        """
        ...

    def press(self, pressure: Pressure) -> bool:
        """Cut the multiprocessors for this pressure from the next slice on; False: it has no such cut."""
        ...

    def tidy(self) -> bool:
        """Do one thing that waits for a quiet moment; False: there is nothing. Called when nothing runs or waits."""
        ...

    def close(self) -> None:
        """Wait for all that runs, and give everything back."""
        ...


class Bell(Protocol):
    """Wakes the lane's thread."""

    def ring(self) -> None:
        """From any thread."""
        ...

    def wait(self, timeout_ns: int | None) -> bool:
        """Until it rings, or the time has passed: False."""
        ...

    def close(self) -> None:
        """It rings no more."""
        ...


@dataclass(frozen=True, slots=True)
class _Done:
    """What ended before its launch returned."""

    nanoseconds: int
    is_graph: bool = False

    def has_ended(self) -> bool:
        return True

    def took_ns(self) -> int | None:
        return self.nanoseconds


class HostDevice:
    """The processor in a GPU's place: a body has run when its launch returns.

    Torch models on the processor run here, and everything that is told of lanes holds but for what runs beside what.
    """

    is_cut = False

    def __init__(self, *, capturer: Capturer | None = None, captures: bool = True) -> None:
        """Without a `capturer` there are no graphs: every body runs as it is."""
        self._has_graphs = capturer is not None
        self.registry = GraphRegistry(capturer or _NoCapturer(), captures=captures and self._has_graphs)
        self._bell: Bell | None = None

    def add(self, name: str, body: Callable[[Hashable], Callable[[], None]]) -> None:
        """A body by name; see registry.GraphRegistry.add."""
        self.registry.add(name, body)

    def set_bell(self, bell: Bell) -> None:
        self._bell = bell

    def prepare(self, name: str, *, is_reply: bool = False, buckets: Iterable[Hashable] = ()) -> None:
        if self._has_graphs:
            level = REPLY_LEVEL if is_reply else LEVELS[Urgency.AHEAD]
            self.registry.prepare(name, (Spot(place=Place.WHOLE, level=level),), buckets)

    def launch(self, name: str, bucket: Hashable, spot: Spot) -> Flight:
        body, is_graph = self.registry.find(name, bucket, spot)
        return self._launch(body, is_graph=is_graph)

    def launch_call(self, call: Callable[[], None], spot: Spot) -> Flight:  # noqa: ARG002 - there is one place
        return self._launch(call, is_graph=False)

    def press(self, pressure: Pressure) -> bool:  # noqa: ARG002 - there is nothing to cut
        return False

    def tidy(self) -> bool:
        return self.registry.capture_one()

    def close(self) -> None:
        self.registry.clear()

    def _launch(self, body: Callable[[], None], *, is_graph: bool) -> Flight:
        began_ns = time.perf_counter_ns()
        body()
        took_ns = time.perf_counter_ns() - began_ns
        if self._bell is not None:
            self._bell.ring()
        return _Done(took_ns, is_graph)


class _NoCapturer:
    """Of a device without graphs; never asked to capture."""

    def warm(self, name: str, body: Callable[[], None], spot: Spot) -> None:  # noqa: ARG002 - the registry's names
        body()

    def capture(self, name: str, body: Callable[[], None], spot: Spot) -> Captured:
        raise NotImplementedError
