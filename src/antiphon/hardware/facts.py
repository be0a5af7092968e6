"""What a machine offers, as plain data: found by the probes, recorded in tests, read by the plan.

Whatever could not be found out is None or empty; nothing is guessed. Units: bytes, MHz, samples per second.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.hardware.probe_cpu import CpuFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """One logical core that the system shows, whether or not this process may use it."""

    number: int
    physical: int | None = None  # the same for hyperthreads of one core, and for no others in the machine
    socket: int | None = None
    node: int | None = None  # of memory (NUMA)
    most_mhz: int | None = None  # tells fast cores from slow ones
    is_usable: bool = True  # by affinity


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A cache as the cores see it."""

    level: int
    kind: str  # data, instruction, unified
    size_bytes: int
    shared_by: tuple[int, ...]  # logical cores


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNode:
    """Memory near to some of the cores."""

    number: int
    size_bytes: int
    cores: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What this user may ask the system for."""

    fifo_priority: int = 0  # the highest SCHED_FIFO priority, to 99; 0: none
    deadline: bool = False  # SCHED_DEADLINE
    least_nice: int | None = None  # the lowest nice value a thread may take, from -20; 0: not below; None: unknown
    locked_memory_bytes: int | None = None  # that may be locked; None: without limit or unknown
    rtkit: bool = False  # a service on the bus that grants it


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU."""

    index: int  # as the driver's tools number it
    name: str
    memory_bytes: int
    driver: str = ""
    cuda: str = ""  # the newest that the driver can do, "13.0"
    compute: str = ""  # capability, "9.0"
    multiprocessors: int | None = None
    bus: str = ""  # PCI address
    node: int | None = None  # of memory, that it is near to
    bandwidth_bytes_s: int | None = None  # of its memory at its peak, by clock and width


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioDevice:
    """A sound card's way in or out, or a sound server."""

    name: str
    system: str  # alsa, pipewire, pulse, jack, coreaudio, wasapi
    can_capture: bool = False
    can_play: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """All of it."""

    cpu: CpuFacts
    quota_cores: float | None = None  # of the control group: 1.5 cores of 64; None: no quota
    cores: tuple[Core, ...] = ()
    caches: tuple[Cache, ...] = ()
    nodes: tuple[MemoryNode, ...] = ()
    rights: Rights = field(default_factory=Rights)
    gpus: tuple[GpuFacts, ...] = ()
    audio: tuple[AudioDevice, ...] = ()
    system: str = ""  # Linux 6.18.0
    container: str = ""  # docker, podman, kubernetes, lxc; "": none seen
    notes: tuple[str, ...] = ()  # why something that is there cannot be used, for people to read
