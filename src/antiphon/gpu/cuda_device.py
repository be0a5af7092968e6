"""Bodies of torch models in, their time on an NVIDIA GPU out: streams, parts, graphs and events behind `Device`.

    device = CudaDevice.open("cuda:0", rules=rules, gpu=settings)
    device.registry.add("decode", decode_body, buckets=(1, 2, 4, 8))
    lane = GpuLane(device)
    lane.call(lambda: device.prepare("decode")).result()

Every body has a stream of its own for each place and level, and captures on it: libraries keep a workspace for each
stream, which two graphs that run beside each other must not share. All buckets of a body share one pool, for no two of
them run at once; two bodies never do. A slice of a body waits on the device for the one before it, wherever that ran.
The end of a slice rings the lane's bell from CUDA's side: an event on its stream, and behind it on a stream that does
nothing else, so that the next slice does not wait for the call.
Units: ns, bytes. Threads: the lane's, but for `open` and `memory`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from antiphon.core.errors import MachineError
from antiphon.gpu.bell import PosixBell
from antiphon.gpu.cuda_streams import borrow_stream, call_when_done, make_stream, return_stream
from antiphon.gpu.device import Spot
from antiphon.gpu.fragmentation import Block
from antiphon.gpu.green_contexts import Parts, split
from antiphon.gpu.machine import give_streams_queues
from antiphon.gpu.places import LEVELS, REPLY_LEVEL, Place
from antiphon.gpu.registry import Captured, GraphRegistry
from antiphon.hardware.gpu_parts import Pressure, cuts, planned_replies, step_of
from antiphon.hardware.plan_settings import GpuSettings
from antiphon.scheduling.settings import SchedulingSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from antiphon.gpu.device import Bell, Flight
    from antiphon.hardware.gpu_parts import Cut

log = logging.getLogger(__name__)

MILLISECOND_NS = 1_000_000


class _Flight:
    """A launched body between two events."""

    def __init__(self, start: torch.cuda.Event, end: torch.cuda.Event, *, is_graph: bool) -> None:
        self._start, self.end = start, end
        self.is_graph = is_graph

    def has_ended(self) -> bool:
        return bool(self.end.query())

    def took_ns(self) -> int | None:
        milliseconds: float = self._start.elapsed_time(self.end)
        return round(milliseconds * MILLISECOND_NS)


class CudaDevice:
    """One NVIDIA GPU as the lane uses it."""

    def __init__(self, index: int, *, parts: dict[Pressure, Parts], captures: bool = True, levels: bool = True) -> None:
        self.index = index
        self.levels = levels
        self.memory_limit_bytes: int | None = None  # that the allocator was told; None: the whole GPU
        self.registry = GraphRegistry(self, captures=captures)
        self._device = torch.device("cuda", index)
        self._parts = parts
        self._cuts = {_name_of(each.cut): each for each in parts.values()}
        self._pressure = Pressure.USUAL
        self._streams: dict[tuple[str, Spot], torch.cuda.ExternalStream] = {}
        self._pools: dict[str, tuple[int, int]] = {}
        self._last: dict[str, torch.cuda.Event] = {}  # the end of each body's latest slice
        self._bell: Bell | None = None
        self._followers: dict[Spot, torch.cuda.ExternalStream] = {}  # of the streams at each spot: they ring the bell

    @classmethod
    def open(
        cls, name: str = "cuda:0", *, rules: SchedulingSettings | None = None, gpu: GpuSettings | None = None
    ) -> CudaDevice:
        """Initialise CUDA there and cut it as the settings say; a cut that is refused is said, and done without.

        Raises:
            MachineError: torch sees no such GPU.
        """
        gpu = gpu or GpuSettings()
        give_streams_queues()
        if not torch.cuda.is_available():
            raise MachineError("torch sees no CUDA GPU", hint="install a torch built for CUDA, and look at nvidia-smi")
        index = torch.device(name).index or 0
        if index >= torch.cuda.device_count():
            raise MachineError(f"there is no {name}", hint=f"there are {torch.cuda.device_count()} GPUs, from cuda:0")
        torch.cuda.set_device(index)
        torch.cuda.synchronize(index)  # makes the context that the parts are made beside
        facts = torch.cuda.get_device_properties(index)
        found: dict[Pressure, Parts] = {}
        if gpu.partitions:
            found = _parts(index, wanted_cuts(facts.multi_processor_count, f"{facts.major}.{facts.minor}", gpu, rules))
        return cls(index, parts=found, captures=gpu.graphs, levels=gpu.priorities)

    @property
    def is_cut(self) -> bool:
        return bool(self._parts)

    @property
    def uuid(self) -> str:
        """As the driver's tools name it, whichever GPUs this process may see."""
        return f"GPU-{torch.cuda.get_device_properties(self._device).uuid}"

    def cut(self) -> Cut | None:
        """The cut that holds, as the driver made it."""
        parts = self._parts.get(self._pressure)
        return None if parts is None else parts.cut

    def press(self, pressure: Pressure) -> bool:
        """Use the cut for this pressure from the next slice on; False: there is none such.

        Parts of different cuts overlap: until what runs has ended, the two may be in each other's way.
        """
        if pressure not in self._parts:
            return False
        self._pressure = pressure
        return True

    def spots(self, *, is_reply: bool) -> tuple[Spot, ...]:
        """Where slices of such a body may come to run, in every cut that a pressure may bring."""
        levels = (REPLY_LEVEL,) if is_reply else tuple(sorted(set(LEVELS.values())))
        part = Place.REPLIES if is_reply else Place.OTHERS
        places = [(Place.WHOLE, ""), *((part, cut) for cut in self._cuts)]
        return tuple(
            Spot(place=place, level=level, cut=cut)
            for place, cut in places
            for level in (levels if self.levels else (0,))
        )

    def prepare(self, name: str, *, is_reply: bool = False, buckets: Iterable[Hashable] = ()) -> None:
        """Capture a body for all its spots; on the lane's thread (`lane.call`)."""
        self.registry.prepare(name, self.spots(is_reply=is_reply), buckets)

    # As Device.

    def set_bell(self, bell: Bell) -> None:
        self._bell = bell

    def launch(self, name: str, bucket: Hashable, spot: Spot) -> Flight:
        here = self._here(spot)
        body, is_graph = self.registry.find(name, bucket, here)
        return self._launch(name, body, here, is_graph=is_graph)

    def launch_call(self, call: Callable[[], None], spot: Spot) -> Flight:
        return self._launch("", call, self._here(spot), is_graph=False)

    def tidy(self) -> bool:
        return self.registry.capture_one()

    def close(self) -> None:
        torch.cuda.synchronize(self._device)
        self.registry.clear()
        self._last.clear()
        for (_, spot), stream in self._streams.items():
            return_stream((self.index, spot), stream.cuda_stream)
        for follower in self._followers.values():
            return_stream(self.index, follower.cuda_stream)
        self._streams.clear()
        self._followers.clear()
        self._parts.clear()
        self._cuts.clear()

    # As Capturer.

    def warm(self, name: str, body: Callable[[], None], spot: Spot) -> None:
        stream = self._stream(name, spot)
        torch.cuda.synchronize(self._device)  # weights may have been made on any stream
        with torch.cuda.stream(stream):
            body()
        stream.synchronize()

    def capture(self, name: str, body: Callable[[], None], spot: Spot) -> Captured:
        stream = self._stream(name, spot)
        if name not in self._pools:
            self._pools[name] = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize(self._device)
        before = torch.cuda.memory_reserved(self._device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=self._pools[name], capture_error_mode="thread_local")
            try:
                body()
            except BaseException:
                _abandon(graph)
                raise
            graph.capture_end()
        torch.cuda.synchronize(self._device)
        return Captured(replay=graph.replay, pool_bytes=torch.cuda.memory_reserved(self._device) - before)

    # Memory.

    def memory(self) -> tuple[tuple[Block, ...], int]:
        """The allocator's blocks, and the bytes that it may still take; milliseconds where there are many blocks."""
        blocks = tuple(
            Block(
                pool=str(segment.get("segment_pool_id", "")),
                size_bytes=block["size"],
                is_free=block["state"] == "inactive",
            )
            for segment in torch.cuda.memory_snapshot()
            if segment["device"] == self.index
            for block in segment["blocks"]
        )
        room_bytes, _ = torch.cuda.mem_get_info(self._device)
        if self.memory_limit_bytes is not None:
            room_bytes = min(room_bytes, self.memory_limit_bytes - torch.cuda.memory_reserved(self._device))
        return blocks, max(0, room_bytes)

    # Inside.

    def _launch(self, name: str, body: Callable[[], None], spot: Spot, *, is_graph: bool) -> Flight:
        stream = self._stream(name, spot)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before = self._last.get(name) if name else None
        with torch.cuda.stream(stream):
            if before is not None:
                stream.wait_event(before)
            start.record(stream)
            body()
            end.record(stream)
        if name:
            self._last[name] = end
        self._ring_after(end, spot)
        return _Flight(start, end, is_graph=is_graph)

    def _ring_after(self, end: torch.cuda.Event, spot: Spot) -> None:
        bell = self._bell
        if not isinstance(bell, PosixBell):
            raise MachineError("the end of a slice is told by the C library's semaphores", hint="run on glibc >= 2.30")
        follower = self._followers.get(spot)
        if follower is None:
            address = borrow_stream(self.index, lambda: make_stream(0))
            follower = self._followers[spot] = torch.cuda.ExternalStream(address, device=self._device)
        follower.wait_event(end)
        call_when_done(follower.cuda_stream, bell.post_address, bell.address)

    def _here(self, spot: Spot) -> Spot:
        """The spot in the cut that holds."""
        parts = self._parts.get(self._pressure)
        level = spot.level if self.levels else 0
        if spot.place is Place.WHOLE or parts is None:
            return Spot(place=Place.WHOLE, level=level)
        return Spot(place=spot.place, level=level, cut=_name_of(parts.cut))

    def _make_stream(self, spot: Spot) -> int:
        if spot.place is Place.WHOLE:
            return make_stream(spot.level)
        return self._cuts[spot.cut].stream(spot.place, spot.level)

    def _stream(self, name: str, spot: Spot) -> torch.cuda.ExternalStream:
        key = (name, spot)
        stream = self._streams.get(key)
        if stream is None:
            torch.cuda.synchronize(self._device)  # the driver's calls need the thread to have a context
            address = borrow_stream((self.index, spot), lambda: self._make_stream(spot))
            stream = self._streams[key] = torch.cuda.ExternalStream(address, device=self._device)
        return stream


def wanted_cuts(
    total: int, compute: str, gpu: GpuSettings, rules: SchedulingSettings | None = None
) -> dict[Pressure, Cut]:
    """The cuts for such a GPU, as `antiphon plan` shows them; empty if it is too small."""
    step = step_of(compute)
    asked = gpu.reply_multiprocessors
    replies = asked or planned_replies(total, step) or 0
    return cuts(total, rules or SchedulingSettings(), step, replies=max(0, replies))


def _parts(index: int, wanted: dict[Pressure, Cut]) -> dict[Pressure, Parts]:
    """Green contexts for each cut; one for alike cuts, none if the driver refuses."""
    made: dict[Pressure, Parts] = {}
    try:
        for pressure, each in wanted.items():
            alike = next((parts for parts in made.values() if parts.cut == each), None)
            made[pressure] = alike or split(index, each)
    except MachineError as error:
        log.warning("the GPU is not cut, levels alone order what runs beside replies: %s", error.message)
        return {}
    return made


def _name_of(cut: Cut) -> str:
    return f"{cut.replies}+{cut.others}"


def _abandon(graph: torch.cuda.CUDAGraph) -> None:
    """End a capture that failed, so that the device can be used again."""
    try:
        graph.capture_end()
    except RuntimeError:  # it was invalidated, which is why
        return
