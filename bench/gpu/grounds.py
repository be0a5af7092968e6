"""What the lane's measurements stand on: models, devices, and one way to run a body under each scheme of sharing.

On a processor (`cpu`) everything has run when it was launched, which tests the scripts and measures nothing.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from shapes import Decoder, Encoder, Hog, Vocoder

from antiphon.core.stamps import Stage
from antiphon.gpu.device import HostDevice, Spot
from antiphon.gpu.lane import GpuLane
from antiphon.gpu.places import Place
from antiphon.gpu.slices import Slice
from antiphon.hardware.plan_settings import GpuSettings
from antiphon.scheduling.job import Claim, Urgency

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.gpu.slices import SliceReport

# stage and class under which the lane knows each body
ROLES = {
    "decode": (Stage.THINK, Urgency.CONFIRMED),
    "asr": (Stage.RECOGNISE, Urgency.AHEAD),
    "vocoder": (Stage.SPEAK, Urgency.AHEAD),
    "hog": (Stage.SPEAK, Urgency.AHEAD),
}


@dataclass
class Ground:
    """Models in memory, and what was chosen for each: its bucket, its time alone, its part of the bandwidth."""

    device: torch.device
    tiny: bool
    peak_bytes_s: float = 1e9
    bodies: dict[str, Any] = field(default_factory=dict)
    buckets: dict[str, int] = field(default_factory=dict)
    alone_ns: dict[str, int] = field(default_factory=dict)
    bandwidth: dict[str, float | None] = field(default_factory=dict)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def load(self) -> None:
        """Make the models; random weights."""
        torch.manual_seed(1)
        with torch.no_grad():
            self.bodies = {
                "decode": Decoder(self.device, tiny=self.tiny),
                "asr": Encoder(self.device, tiny=self.tiny),
                "vocoder": Vocoder(self.device, tiny=self.tiny),
                "hog": Hog(self.device, tiny=self.tiny),
            }

    def make(self, name: str) -> Callable[[Any], Callable[[], None]]:
        """The body as the registry wants it, without autograd."""

        def bound(bucket: Any) -> Callable[[], None]:
            inner = self.bodies[name].body(bucket)

            def run() -> None:
                with torch.inference_mode():
                    inner()

            return run

        return bound

    def open(self, cut: tuple[int, int] | None = None, *, gpu: GpuSettings | None = None) -> Any:
        """A device with all bodies; on CUDA with a cut into (replies, others), or none."""
        gpu = gpu or GpuSettings()
        if not self.is_cuda:
            host = HostDevice()
            for name in self.bodies:
                host.add(name, self.make(name))
            return host
        from antiphon.gpu.cuda_device import CudaDevice
        from antiphon.gpu.green_contexts import split
        from antiphon.hardware.gpu_parts import Cut, Pressure

        parts = {}
        if cut is not None and gpu.partitions:
            parts = {Pressure.USUAL: split(0, Cut(replies=cut[0], others=cut[1]))}
        device = CudaDevice(self.device.index or 0, parts=parts, captures=gpu.graphs, levels=gpu.priorities)
        for name in self.bodies:
            device.registry.add(name, self.make(name))
        return device

    def slice(self, name: str, *, next_ns: int | None = None, bucket: int = 0, urgency: Urgency | None = None) -> Slice:
        stage, usual = ROLES[name]
        return Slice(
            stage=stage,
            body=name,
            bucket=bucket or self.buckets[name],
            estimate_ns=self.alone_ns.get(name, 0),
            claim=Claim(urgency=usual if urgency is None else urgency),
            bandwidth=self.bandwidth.get(name),
            next_ns=next_ns,
        )


class Direct:
    """Each body on a stream of its own, or all on one, without a scheduler."""

    def __init__(self, ground: Ground, device: Any, spots: dict[str, Spot], *, one_stream: bool = False) -> None:
        self._ground, self._device, self._spots = ground, device, spots
        self._replays: dict[str, Callable[[], None]] = {}
        self._streams: dict[str, Any] = {}
        for name, spot in spots.items():
            if ground.is_cuda:
                here = device._here(spot)  # noqa: SLF001 - the script looks under the hood
                device.registry.prepare(name, (here,), (ground.buckets[name],))
                self._replays[name], _ = device.registry.find(name, ground.buckets[name], here)
                self._streams[name] = device._stream(name, here)  # noqa: SLF001
            else:
                self._replays[name] = ground.make(name)(ground.buckets[name])
        if one_stream and ground.is_cuda:
            first = next(iter(self._streams.values()))
            self._streams = dict.fromkeys(self._streams, first)
        self._lock = threading.Lock()

    def start(self, name: str, next_ns: int | None = None) -> Any:  # noqa: ARG002 - the lane's wants it
        """Launch; what to wait for."""
        if not self._ground.is_cuda:
            with self._lock:
                self._replays[name]()
            return None
        stream = self._streams[name]
        event = torch.cuda.Event()
        with torch.cuda.stream(stream):
            self._replays[name]()
            event.record(stream)
        return event

    @staticmethod
    def wait(started: Any) -> None:
        if started is not None:
            started.synchronize()

    def close(self) -> None:
        """Let go of the graphs: they are not to outlive the parts that they were captured in."""
        if self._ground.is_cuda:
            torch.cuda.synchronize()
        self._replays.clear()
        self._streams.clear()


class Laned:
    """All through one GPU lane."""

    def __init__(self, ground: Ground, device: Any, *, rules: Any = None, gpu: GpuSettings | None = None) -> None:
        self._ground = ground
        self.lane = GpuLane(device, rules=rules, gpu=gpu)
        if ground.is_cuda:
            for name in ground.bodies:
                buckets = (ground.buckets[name],)
                spots = device.spots(is_reply=name == "decode")
                if name != "decode":  # of the levels, the one that its class has here
                    spots = tuple(spot for spot in spots if spot.level == -1 or not device.levels)
                self.lane.call(
                    lambda name=name, spots=spots, buckets=buckets: device.registry.prepare(name, spots, buckets)
                ).result()

    def start(self, name: str, next_ns: int | None = None) -> Any:
        return self.lane.submit(self._ground.slice(name, next_ns=next_ns))

    @staticmethod
    def wait(started: Any) -> SliceReport:
        return started.result(60)

    def close(self) -> None:
        self.lane.close()


def timed_alone(runner: Direct, name: str, seconds: float) -> list[int]:
    """ns of a body by itself, start to end seen from the host."""
    took: list[int] = []
    until_ns = time.perf_counter_ns() + round(seconds * 1e9)
    while time.perf_counter_ns() < until_ns or len(took) < 3:
        began_ns = time.perf_counter_ns()
        runner.wait(runner.start(name))
        took.append(time.perf_counter_ns() - began_ns)
    return took


def calibrate(ground: Ground) -> dict[str, Any]:
    """Choose buckets, so that an aggressor's slice is about 2 ms; times and bandwidths alone."""
    tried: dict[str, Any] = {}
    choices = {"decode": (1,), "asr": (1,), "vocoder": (1, 2, 4, 8, 16, 32), "hog": (1, 2)}
    device = ground.open()
    for name, sizes in choices.items():
        for size in sizes:
            ground.buckets[name] = size
            runner = Direct(ground, device, {name: Spot(place=Place.WHOLE, level=0)})
            took = sorted(timed_alone(runner, name, 0.01 if ground.tiny else 0.1))
            middle = took[len(took) // 2]
            tried[f"{name} {size}"] = middle / 1e6
            ground.alone_ns[name] = middle
            runner.close()
            if middle > 1.5e6:
                break
    decoder, hog = ground.bodies["decode"], ground.bodies["hog"]
    hog_s = ground.alone_ns["hog"] / 1e9
    ground.peak_bytes_s = hog.pass_bytes * ground.buckets["hog"] / hog_s
    step_bytes = decoder.weight_bytes + ground.buckets["decode"] * decoder.caller_bytes
    decode_share = min(1.0, step_bytes / (ground.alone_ns["decode"] / 1e9) / ground.peak_bytes_s)
    ground.bandwidth = {"decode": decode_share, "asr": None, "vocoder": None, "hog": 1.0}
    if ground.is_cuda:
        device.close()
    return {
        "alone_ms": tried,
        "buckets": dict(ground.buckets),
        "peak_tb_s": ground.peak_bytes_s / 1e12,
        "decode_bandwidth_share": decode_share,
    }
