"""An engine's bodies and calls in, slices of its GPU's lane out: how an engine computes.

    gpu = open_gpu("cuda:0", gpu=settings)
    lane = gpu.engine()
    decode = lane.add("decode", step.body, is_reply=True, at_start=buckets)
    gpu.prepare()                                            # captures what every engine wants at the start
    report = lane.run(decode, bucket, wanted(Stage.THINK))   # waits on this thread for the end

Each body has a stream and a pool of its own, so two engines never share a workspace. What a job on an engine's thread
hands on has that job's urgency and deadline (`wanted`).
Threads: `run` and `call` block whoever computes; bodies and calls run on the lane's thread, and only enqueue.
What it does not know: torch, models.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

from antiphon.gpu.device import HostDevice
from antiphon.gpu.fragmentation import HoldBack
from antiphon.gpu.gpm import Gpm
from antiphon.gpu.lane import GpuLane
from antiphon.gpu.sensors import Sensors
from antiphon.gpu.slices import Slice
from antiphon.hardware.plan_settings import GpuSettings
from antiphon.scheduling.job import NOBODYS, Claim, current_errands

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from antiphon.core.stamps import Stage
    from antiphon.gpu.device import Device
    from antiphon.gpu.fragmentation import Block
    from antiphon.gpu.lane import Handle
    from antiphon.gpu.sensors import Counting
    from antiphon.gpu.slices import SliceReport
    from antiphon.scheduling.settings import SchedulingSettings

_LOG = logging.getLogger(__name__)
_LOOK_MS = 1000  # at the allocator's blocks: a look holds Python's lock for as long as there are blocks
MOST_CALLERS = 64  # in one step, where no plan says

Result = TypeVar("Result")
Bucket = TypeVar("Bucket", bound="Hashable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What a slice is for."""

    stage: Stage
    claim: Claim = NOBODYS
    deadline_ns: int | None = None  # None: by the claim
    size: int = 0  # what its time depends on
    bandwidth: float | None = None


def wanted(stage: Stage, *, size: int = 0) -> Want:
    """For the jobs that this thread does: the most urgent one's claim and the earliest deadline."""
    errands = current_errands()
    claims = [errand.claim for errand in errands]
    deadlines = [errand.deadline_ns for errand in errands if errand.deadline_ns is not None]
    return Want(
        stage=stage,
        claim=min(claims, key=lambda claim: claim.urgency, default=NOBODYS),
        deadline_ns=min(deadlines, default=None),
        size=size,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _AtStart:
    body: str
    is_reply: bool
    buckets: tuple[Hashable, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class Gpu:
    """One GPU that a process's engines share: its lane, and who watches its memory."""

    name: str  # as torch names devices
    lane: GpuLane
    sensors: Sensors
    settings: GpuSettings
    reply_batch: int = MOST_CALLERS  # most callers in one step of writing
    context_bytes: int | None = None  # for conversations' contexts; None: as much as they need
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)  # engines load side by side
    _at_start: list[_AtStart] = field(default_factory=list, init=False)
    _is_watched: bool = field(default=False, init=False)

    def engine(self) -> EngineLane:
        """A way to the lane for one more engine."""
        return EngineLane(self)

    def add(self, name: str, make: Callable[[Hashable], Callable[[], None]]) -> str:
        """Register a body; the name to run it by, another one where the name is taken."""
        registry = self.lane.device.registry
        with self._lock:
            found, number = name, 1
            while registry.has(found):
                number += 1
                found = f"{name} {number}"
            registry.add(found, make)
        return found

    def want_at_start(self, body: str, buckets: Sequence[Hashable], *, is_reply: bool) -> None:
        """Have `prepare` capture these."""
        self._at_start.append(_AtStart(body=body, is_reply=is_reply, buckets=tuple(buckets)))

    def prepare(self) -> None:
        """Capture what the engines want at the start, say what it cost, and watch the memory from here on.

        Raises:
            EngineError: the lane is closed.
        """
        waiting, self._at_start = self._at_start, []
        for each in waiting:
            prepare = lambda each=each: self.lane.device.prepare(  # noqa: E731
                each.body, is_reply=each.is_reply, buckets=each.buckets
            )
            self.lane.call(prepare).result()
            _LOG.info("%s on %s: %s", each.body, self.name, self._cost(each.body))
        if not self._is_watched:
            self._is_watched = True
            self.sensors.start()

    def close(self) -> None:
        """Take no more work; what runs is waited for."""
        self.sensors.close()
        self.lane.close()

    def _cost(self, body: str) -> str:
        reports = [each for each in self.lane.device.registry.report() if each.name == body]
        captured = [each for each in reports if not each.problem]
        if not reports:
            return "runs eagerly, without graphs"
        took_s, mib = sum(each.capture_ns for each in reports) / 1e9, sum(each.pool_bytes for each in reports) / 2**20
        failed = len(reports) - len(captured)
        return f"{len(captured)} graphs captured in {took_s:.1f} s, {mib:.0f} MiB" + (
            f"; {failed} could not be captured and run eagerly" if failed else ""
        )


class EngineLane:
    """One engine's way to its GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._lane = gpu.lane

    def add(
        self,
        name: str,
        make: Callable[[Bucket], Callable[[], None]],
        *,
        is_reply: bool = False,
        at_start: Sequence[Bucket] = (),
    ) -> str:
        """Register a body, those of its buckets in `at_start` to be captured by `Gpu.prepare`; the name to run it by.

        The name is another than was asked for where a second engine has a body of that name.
        """
        found = self.gpu.add(name, cast("Callable[[Hashable], Callable[[], None]]", make))
        if at_start:
            self.gpu.want_at_start(found, at_start, is_reply=is_reply)
        return found

    def run(self, body: str, bucket: Hashable, want: Want) -> SliceReport:
        """Have a registered body run, and come back when its results are there.

        Raises:
            EngineError: it failed, or the lane was closed.
            BusyError: too much waits for the GPU.
        """
        return self.submit(body, bucket, want).result()

    def submit(self, body: str, bucket: Hashable, want: Want) -> Handle:
        """As `run`, but come back at once.

        Raises:
            EngineError: the lane is closed.
            BusyError: too much waits for the GPU.
        """
        return self._lane.submit(
            Slice(
                stage=want.stage,
                body=body,
                bucket=bucket,
                deadline_ns=want.deadline_ns,
                claim=want.claim,
                bandwidth=want.bandwidth,
                size=want.size,
            )
        )

    def call(self, what: Callable[[], Result], want: Want) -> Result:
        """Have something bounded run as a slice, and come back with its result when the device is through with it.

        Raises:
            EngineError: it failed, or the lane was closed.
            BusyError: too much waits for the GPU.
        """
        found: list[Result] = []
        made = Slice(
            stage=want.stage,
            call=lambda: found.append(what()),
            deadline_ns=want.deadline_ns,
            claim=want.claim,
            size=want.size,
        )
        self._lane.submit(made).result()
        return found[0]


def open_gpu(
    name: str,
    *,
    rules: SchedulingSettings | None = None,
    gpu: GpuSettings | None = None,
    reply_batch: int = 0,
    context_bytes: int | None = None,
) -> Gpu:
    """Open "cuda:0", or the processor in its place ("cpu"); a batch of 0 is the settings' or as many as there may be.

    Raises:
        MachineError: torch sees no such GPU.
    """
    settings = gpu or GpuSettings()
    device: Device
    memory = None
    counters: Counting | None = None
    if name.startswith("cuda"):
        from antiphon.gpu.cuda_device import CudaDevice  # noqa: PLC0415 - imports torch

        device = cuda = CudaDevice.open(name, rules=rules, gpu=settings)
        memory, counters = cuda.memory, Gpm(cuda.uuid)
    else:
        device = HostDevice(captures=settings.graphs)
    return around(
        device,
        name=name,
        rules=rules,
        settings=settings,
        memory=memory,
        counters=counters,
        reply_batch=reply_batch or settings.reply_batch or MOST_CALLERS,
        context_bytes=context_bytes or (settings.context_mib << 20) or None,
    )


def around(  # noqa: PLR0913 - what opening knows, each once
    device: Device,
    *,
    name: str = "cpu",
    rules: SchedulingSettings | None = None,
    settings: GpuSettings | None = None,
    memory: Callable[[], tuple[tuple[Block, ...], int]] | None = None,
    counters: Counting | None = None,
    reply_batch: int = MOST_CALLERS,
    context_bytes: int | None = None,
) -> Gpu:
    """The lane of an open device, with each mechanism on that the settings leave on."""
    settings = settings or GpuSettings()
    lane = GpuLane(device, rules=rules, gpu=settings)
    hold_back = HoldBack(enabled=settings.hold_back, limit=settings.hold_back_above)
    sensors = Sensors(counters=counters, memory=memory, hold_back=hold_back, lane=lane, period_ms=_LOOK_MS)
    return Gpu(
        name=name,
        lane=lane,
        sensors=sensors,
        settings=settings,
        reply_batch=reply_batch,
        context_bytes=context_bytes,
    )
