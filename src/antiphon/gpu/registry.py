"""Bodies by name and shape in, the captured graph for a place and level out; what cannot be captured runs as it is.

A body is what a model gives: `body(bucket)` makes a bounded callable for one shape bucket, which works on input and
output buffers that it owns and that stay where they are. The registry captures it once for each place and level it is
to run at, since both are fixed at capture. Buckets that were prepared are captured at the start; a rare one runs
eagerly when it is first asked for, which also warms it up, and is captured in the next quiet moment.
A capture that fails is logged, a body's first as a warning, and counted; the body goes on eagerly: `report()` names it.
Bounds: `most` graphs; beyond, those that were replayed longest ago are dropped, and captured again if asked for.
Threads: the lane's.
What it does not know: torch, CUDA; `Capturer` does.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from antiphon.gpu.device import Spot

log = logging.getLogger(__name__)

MOST_GRAPHS = 512
WARM_UPS = 2  # before a capture: libraries choose their kernels in the first, and allocate in both
MOST_WANTED = 64  # captures that wait for a quiet moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A graph, and what it costs to keep."""

    replay: Callable[[], None]
    pool_bytes: int  # that its capture took


class Capturer(Protocol):
    """Who can capture."""

    def warm(self, name: str, body: Callable[[], None], spot: Spot) -> None:
        """Run it once at that spot and wait for its end."""
        ...

    def capture(self, name: str, body: Callable[[], None], spot: Spot) -> Captured:
        """Raises whatever keeps it from being captured; the device is usable afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """One graph."""

    name: str
    bucket: Hashable
    spot: Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """What one capture cost, or why there is none."""

    name: str
    bucket: Hashable
    place: str
    level: int
    capture_ns: int
    pool_bytes: int
    problem: str = ""  # "": it was captured


@dataclass(slots=True)
class _Body:
    make: Callable[[Hashable], Callable[[], None]]
    buckets: tuple[Hashable, ...]  # empty: any
    made: dict[Hashable, Callable[[], None]] = field(default_factory=dict)


class GraphRegistry:
    """The graphs of one device."""

    def __init__(self, capturer: Capturer, *, captures: bool = True, most: int = MOST_GRAPHS) -> None:
        self._capturer = capturer
        self._captures = captures
        self._most = most
        self._bodies: dict[str, _Body] = {}
        self._graphs: OrderedDict[Key, Captured] = OrderedDict()  # least lately replayed first
        self._wanted: OrderedDict[Key, None] = OrderedDict()
        self._problems: dict[Key, str] = {}
        self._reports: dict[Key, GraphReport] = {}
        self._warned: set[str] = set()  # bodies of which a failure was told
        self.eager_runs = 0

    def add(
        self, name: str, make: Callable[[Hashable], Callable[[], None]], *, buckets: Sequence[Hashable] = ()
    ) -> None:
        """Register a body; with `buckets`, no others are accepted.

        Raises:
            CallerError: the name is taken.
        """
        if not name or name in self._bodies:
            raise CallerError(f"a body named {name!r} cannot be registered", hint="give each body a name of its own")
        self._bodies[name] = _Body(make, tuple(buckets))

    @property
    def captures(self) -> bool:
        """Whether bodies become graphs."""
        return self._captures

    def has(self, name: str) -> bool:
        """Whether a body of that name is registered."""
        return name in self._bodies

    def prepare(self, name: str, spots: Iterable[Spot], buckets: Iterable[Hashable] = ()) -> None:
        """Warm up and capture now; without `buckets`, all that the body was registered with.

        Raises:
            CallerError: there is no such body or bucket.
        """
        for bucket in tuple(buckets) or self._body(name).buckets:
            for spot in spots:
                key = Key(name, bucket, spot)
                body = self._made(key)
                for _ in range(WARM_UPS):
                    self._capturer.warm(name, body, spot)
                if self._captures:
                    self._capture(key)

    def find(self, name: str, bucket: Hashable, spot: Spot) -> tuple[Callable[[], None], bool]:
        """What to run, and whether it is a graph.

        Raises:
            CallerError: there is no such body or bucket.
        """
        key = Key(name, bucket, spot)
        graph = self._graphs.get(key)
        if graph is not None:
            self._graphs.move_to_end(key)
            return graph.replay, True
        body = self._made(key)
        self.eager_runs += 1
        if self._captures and key not in self._problems:
            self._wanted[key] = None
            while len(self._wanted) > MOST_WANTED:
                self._wanted.popitem(last=False)
        return body, False

    def capture_one(self) -> bool:
        """Capture one that was asked for before it was prepared; False: there is none. For quiet moments."""
        if not self._wanted:
            return False
        key, _ = self._wanted.popitem(last=False)
        self._capture(key)
        return True

    def report(self) -> tuple[GraphReport, ...]:
        """All captures, those that failed among them."""
        return tuple(self._reports.values())

    def clear(self) -> None:
        """Drop every graph; nothing may run."""
        self._graphs.clear()
        self._wanted.clear()

    def _capture(self, key: Key) -> None:
        if key in self._graphs:
            return
        began_ns = time.perf_counter_ns()
        pool_bytes, problem = 0, ""
        try:
            captured = self._capturer.capture(key.name, self._made(key), key.spot)
        except Exception as error:  # noqa: BLE001 - the body runs eagerly instead, and this is said
            problem = f"{type(error).__name__}: {error}"
            self._problems[key] = problem
            is_first = key.name not in self._warned  # of many buckets that fail alike, one is enough to read
            self._warned.add(key.name)
            log.log(
                logging.WARNING if is_first else logging.DEBUG,
                "%s, bucket %s, could not be captured and runs eagerly, which is slower: %s",
                key.name,
                key.bucket,
                problem,
            )
        else:
            self._graphs[key] = captured
            pool_bytes = captured.pool_bytes
            while len(self._graphs) > self._most:
                self._graphs.popitem(last=False)
        self._reports[key] = GraphReport(
            name=key.name,
            bucket=key.bucket,
            place=str(key.spot.place),
            level=key.spot.level,
            capture_ns=time.perf_counter_ns() - began_ns,
            pool_bytes=pool_bytes,
            problem=problem,
        )

    def _made(self, key: Key) -> Callable[[], None]:
        body = self._body(key.name)
        if body.buckets and key.bucket not in body.buckets:
            known = ", ".join(map(str, body.buckets))
            raise CallerError(f"{key.name} has no bucket {key.bucket!r}", hint=f"it was registered with {known}")
        made = body.made.get(key.bucket)
        if made is None:
            made = body.made[key.bucket] = body.make(key.bucket)
        return made

    def _body(self, name: str) -> _Body:
        body = self._bodies.get(name)
        if body is None:
            raise CallerError(f"no body is named {name!r}", hint=f"registered are: {', '.join(self._bodies) or 'none'}")
        return body
