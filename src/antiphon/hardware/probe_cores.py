"""This machine -> its logical cores, caches and memory nodes, and which cores this process may use.

All cores of the machine are told, also in a container that may use few of them: `is_usable` says which. Linux tells
where a core sits in /sys, or else in /proc/cpuinfo; other systems' cores are only counted. Reads files, starts
nothing, never fails. Units: bytes, MHz.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from antiphon.hardware.facts import Cache, Core, MemoryNode
from antiphon.hardware.kernel_files import list_of, number_of, numbered_folders, read_number, read_text
from antiphon.hardware.probe_cpu import read_meminfo

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def probe_cores(root: Path = Path("/")) -> tuple[Core, ...]:
    """Every logical core that is switched on, by number."""
    allowed = _allowed_cores()
    if sys.platform != "linux":
        numbers = range(os.cpu_count() or 1)
        return tuple(Core(number=number, is_usable=allowed is None or number in allowed) for number in numbers)
    folder = _cpu_folder(root)
    listed = _cpuinfo_cores(root)
    online = list_of(read_text(folder / "online")) or tuple(numbered_folders(folder, "cpu")) or tuple(listed)
    nodes = {core: node.number for node in probe_nodes(root) for core in node.cores}
    cores: list[Core] = []
    # a container may be shown other numbers than those it runs on; what it runs on is there all the same
    for number in sorted({*online, *(allowed or ())}) or range(os.cpu_count() or 1):
        physical, socket = _place(folder / f"cpu{number}" / "topology", number)
        if physical is None:
            physical, socket = listed.get(number, (None, None))
        most_khz = read_number(folder / f"cpu{number}" / "cpufreq" / "cpuinfo_max_freq")
        core = Core(
            number=number,
            physical=physical,
            socket=socket,
            node=nodes.get(number),
            most_mhz=most_khz // 1000 if most_khz is not None and most_khz > 0 else None,
            is_usable=allowed is None or number in allowed,
        )
        cores.append(core)
    return tuple(cores)


def probe_caches(root: Path = Path("/")) -> tuple[Cache, ...]:
    """Every cache once, from the first level up; empty where the system does not tell."""
    found: set[tuple[int, str, tuple[int, ...], int]] = set()
    for cpu in numbered_folders(_cpu_folder(root), "cpu").values():
        for index in numbered_folders(cpu / "cache", "index").values():
            level = read_number(index / "level")
            kind = read_text(index / "type").strip().lower()
            size_bytes = _bytes_of(read_text(index / "size"))
            shared_by = list_of(read_text(index / "shared_cpu_list"))
            if level is not None and kind and size_bytes and shared_by:
                found.add((level, kind, shared_by, size_bytes))
    return tuple(
        Cache(level=level, kind=kind, size_bytes=size_bytes, shared_by=shared_by)
        for level, kind, shared_by, size_bytes in sorted(found)
    )


def probe_nodes(root: Path = Path("/")) -> tuple[MemoryNode, ...]:
    """The nodes of memory; one without cores is memory on a card or a bus. Empty where the system does not tell."""
    nodes: list[MemoryNode] = []
    for number, folder in numbered_folders(root / "sys" / "devices" / "system" / "node", "node").items():
        size_bytes = 0
        for line in read_text(folder / "meminfo").splitlines():
            words = line.split()  # Node 0 MemTotal: 1000 kB
            if len(words) >= 4 and words[2] == "MemTotal:":
                size_bytes = 1024 * (number_of(words[3]) or 0)
        cores = list_of(read_text(folder / "cpulist"))
        if size_bytes or cores:
            nodes.append(MemoryNode(number=number, size_bytes=size_bytes, cores=cores))
    if len(nodes) == 1:
        # machines that get their memory as they touch it count only what came so far; a lone node holds all
        nodes = [replace(nodes[0], size_bytes=max(nodes[0].size_bytes, read_meminfo(root) or 0))]
    return tuple(nodes)


def _cpu_folder(root: Path) -> Path:
    return root / "sys" / "devices" / "system" / "cpu"


def _allowed_cores() -> frozenset[int] | None:
    """By affinity, which cpusets narrow too; None where there is no such call: all."""
    try:
        return frozenset(os.sched_getaffinity(0)) or None
    except (AttributeError, OSError):
        return None


def _place(topology: Path, number: int) -> tuple[int | None, int | None]:
    """Physical core and socket. Core ids repeat between sockets and dies, so the first of the siblings names a core."""
    siblings = list_of(read_text(topology / "core_cpus_list") or read_text(topology / "thread_siblings_list"))
    socket = read_number(topology / "physical_package_id")
    physical = siblings[0] if number in siblings else None
    return physical, socket if socket is not None and socket >= 0 else None  # some boards write -1 for unknown


def _cpuinfo_cores(root: Path) -> dict[int, tuple[int | None, int | None]]:
    """Physical core and socket by logical core, as far as /proc/cpuinfo tells; x86 alone tells them."""
    places: dict[int, tuple[int | None, int | None]] = {}
    first: dict[tuple[int, int], int] = {}
    number = socket = None
    for line in read_text(root / "proc" / "cpuinfo").splitlines():
        key, _, text = line.partition(":")
        key, value = key.strip(), number_of(text)
        if key == "processor" and value is not None:
            number, socket = value, None
            places[number] = (None, None)
        elif key == "physical id":
            socket = value
        elif key == "core id" and number is not None and socket is not None and value is not None:
            places[number] = (first.setdefault((socket, value), number), socket)
    return places


def _bytes_of(text: str) -> int | None:
    """A size as the kernel writes it for caches: 512K."""
    text = text.strip()
    factor = UNITS.get(text[-1:])
    number = number_of(text[:-1] if factor else text)
    return number * (factor or 1) if number is not None and number > 0 else None
