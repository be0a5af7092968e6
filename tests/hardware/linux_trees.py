"""Made-up /proc and /sys trees of whole machines, as their kernels would write them."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.hardware import probe_cpu, probe_gpu, probe_rights
from antiphon.hardware.probe_rights import Granted

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

X86_FLAGS = "fpu sse2 avx f16c avx2 fma"
ARM_FLAGS = "fp asimd evtstrm aes crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
ALL_RIGHTS = "000001ffffffffff"
NO_RIGHTS = "0000000000000000"
OF_DOCKER = "00000000a80425fb"  # what a container has by default; CAP_SYS_NICE is not among it


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Writes into a made-up root."""

    root: Path
    made: set[str] = field(default_factory=set)  # folders; a large machine has thousands of files in few of them

    def write(self, name: str, text: str) -> None:
        folder = name.rpartition("/")[0]
        if folder not in self.made:
            (self.root / folder).mkdir(parents=True, exist_ok=True)
            self.made.add(folder)
        (self.root / name).write_text(text)

    def link(self, name: str, target: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def listen(self, name: str) -> None:
        """A socket; bound from beside it, since the path as a whole may be too long for one."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = Path.cwd()
        os.chdir(path.parent)
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(path.name)
        finally:
            os.chdir(before)

    def core(self, number: int, *, siblings: str, package: int, most_khz: int | None = None) -> None:
        folder = f"sys/devices/system/cpu/cpu{number}"
        self.write(f"{folder}/topology/core_cpus_list", siblings + "\n")
        self.write(f"{folder}/topology/physical_package_id", f"{package}\n")
        # as the kernel numbers them, and why they cannot be used: each socket begins with 0 again
        self.write(f"{folder}/topology/core_id", "0\n")
        if most_khz is not None:
            self.write(f"{folder}/cpufreq/cpuinfo_max_freq", f"{most_khz}\n")

    def cache(self, number: int, index: int, level: int, kind: str, size: str, shared_by: str) -> None:
        folder = f"sys/devices/system/cpu/cpu{number}/cache/index{index}"
        for name, text in {"level": str(level), "type": kind, "size": size, "shared_cpu_list": shared_by}.items():
            self.write(f"{folder}/{name}", text + "\n")

    def caches(self, number: int, *, own: str, sizes: tuple[str, str, str, str], third: str) -> None:
        """L1 and L2 for a core's threads, L3 for all of `third`."""
        kinds = [(1, "Data", own), (1, "Instruction", own), (2, "Unified", own), (3, "Unified", third)]
        for index, ((level, kind, shared_by), size) in enumerate(zip(kinds, sizes, strict=True)):
            self.cache(number, index, level, kind, size, shared_by)

    def node(self, number: int, cores: str, size_kib: int) -> None:
        folder = f"sys/devices/system/node/node{number}"
        self.write(f"{folder}/cpulist", cores + "\n")
        self.write(f"{folder}/meminfo", f"Node {number} MemTotal:       {size_kib} kB\nNode {number} MemFree: 1 kB\n")

    def cpuinfo(self, model: str, count: int, flags: str) -> None:
        blocks = [f"processor\t: {number}\nmodel name\t: {model}\nflags\t\t: {flags}\n" for number in range(count)]
        self.write("proc/cpuinfo", "\n".join(blocks))

    def process(
        self, capabilities: str, *, priority: str = "0", nice: str = "0", locked: str = "8388608", group: str = "0::/\n"
    ) -> None:
        self.write("proc/self/uid_map", "         0          0 4294967295\n")
        self.write("proc/self/status", f"Name:\tpython\nCapPrm:\t{capabilities}\nCapEff:\t{capabilities}\n")
        self.write("proc/self/cgroup", group)
        lines = ["Limit                     Soft Limit           Hard Limit           Units     "]
        for name, value, unit in (
            ("Max processes", "63000", "processes"),
            ("Max locked memory", locked, "bytes"),
            ("Max nice priority", nice, ""),
            ("Max realtime priority", priority, ""),
            ("Max realtime timeout", "unlimited", "us"),
        ):
            lines.append(f"{name:<26}{value:<21}{value:<21}{unit:<10}")
        self.write("proc/self/limits", "\n".join(lines) + "\n")

    def namespaces(self, *, first: bool) -> None:
        for name, number in {"pid": 4026531836, "uts": 4026531838, "ipc": 4026531839, "cgroup": 4026531835}.items():
            self.link(f"proc/self/ns/{name}", f"{name}:[{number if first else number + 765}]")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A machine: its tree, and what its system answers."""

    build: Callable[[Tree], None]
    cores: int
    granted: Granted
    architecture: str = "x86_64"
    variables: dict[str, str] = field(default_factory=dict)


def _container(tree: Tree) -> None:
    tree.cpuinfo("AMD EPYC 7543P 32-Core Processor", 64, X86_FLAGS)
    tree.write("proc/meminfo", "MemTotal:       263782400 kB\nMemFree: 1 kB\n")
    tree.write("proc/sys/kernel/osrelease", "6.8.0\n")
    tree.write("sys/devices/system/cpu/online", "0-63\n")
    for number in range(64):
        threads = f"{number % 32},{number % 32 + 32}"
        first = number % 32 // 8 * 8
        tree.core(number, siblings=threads, package=0, most_khz=3_737_890)
        third = f"{first}-{first + 7},{first + 32}-{first + 39}"
        tree.caches(number, own=threads, sizes=("32K", "32K", "512K", "32768K"), third=third)
    tree.node(0, "0-63", 263_782_400)
    tree.process(OF_DOCKER)
    tree.namespaces(first=False)
    tree.write("sys/fs/cgroup/cpu.max", "150000 100000\n")
    tree.write("sys/fs/cgroup/memory.max", "4294967296\n")
    tree.write("sys/fs/cgroup/cgroup.type", "domain\n")
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n")
    tree.write(".dockerenv", "")


def _laptop(tree: Tree) -> None:
    tree.cpuinfo(
        "11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", 8, f"{X86_FLAGS} avx512f avx512bw avx512vl avx512_vnni"
    )
    tree.write("proc/meminfo", "MemTotal:       16166912 kB\n")
    tree.write("proc/sys/kernel/osrelease", "6.12.0\n")
    tree.write("sys/devices/system/cpu/online", "0-7\n")
    for number in range(8):
        threads = f"{number % 4},{number % 4 + 4}"
        tree.core(number, siblings=threads, package=0, most_khz=4_700_000)
        tree.caches(number, own=threads, sizes=("48K", "32K", "1280K", "12288K"), third="0-7")
    tree.node(0, "0-7", 16_166_912)
    tree.process(NO_RIGHTS, group="0::/user.slice/user-1000.slice/session-2.scope\n")
    tree.namespaces(first=True)
    tree.write("sys/fs/cgroup/user.slice/user-1000.slice/cpu.max", "max 100000\n")
    tree.write("usr/share/dbus-1/system-services/org.freedesktop.RealtimeKit1.service", "[D-BUS Service]\n")
    tree.listen("run/dbus/system_bus_socket")
    tree.write("proc/asound/cards", (
        " 0 [sofhdadsp      ]: sof-hda-dsp - sof-hda-dsp\n"
        "                      Some Maker-Some Laptop\n"
        " 1 [Audio          ]: USB-Audio - Headset: stereo\n"
        "                      Maker Headset at usb-0000:00:14.0-2, full speed\n"
    ))  # fmt: skip
    tree.write("proc/asound/pcm", (
        "00-00: HDA Analog (*) :  : playback 1 : capture 1\n"
        "00-03: HDMI1 (*) :  : playback 1\n"
        "00-06: DMIC (*) :  : capture 1\n"
        "01-00: USB Audio : USB Audio : playback 1 : capture 1\n"
    ))  # fmt: skip
    tree.listen("run/user/1000/pipewire-0")
    tree.listen("run/user/1000/pulse/native")


def _two_sockets(tree: Tree) -> None:
    tree.cpuinfo(
        "AMD EPYC 9354 32-Core Processor", 128, f"{X86_FLAGS} avx512f avx512bw avx512vl avx512_vnni avx512_bf16"
    )
    tree.write("proc/meminfo", "MemTotal:       527564800 kB\n")
    tree.write("proc/sys/kernel/osrelease", "6.12.0\n")
    tree.write("sys/devices/system/cpu/online", "0-127\n")
    for number in range(128):
        threads = f"{number % 64},{number % 64 + 64}"
        first = number % 64 // 8 * 8
        tree.core(number, siblings=threads, package=number % 64 // 32, most_khz=3_799_072)
        third = f"{first}-{first + 7},{first + 64}-{first + 71}"
        tree.caches(number, own=threads, sizes=("32K", "32K", "1024K", "32768K"), third=third)
    tree.node(0, "0-31,64-95", 263_782_400)
    tree.node(1, "32-63,96-127", 263_782_400)
    tree.process(ALL_RIGHTS, locked="unlimited")
    tree.namespaces(first=True)


def _arm_board(tree: Tree) -> None:
    blocks = [f"processor\t: {number}\nFeatures\t: {ARM_FLAGS}\nCPU implementer\t: 0x41\n" for number in range(4)]
    tree.write("proc/cpuinfo", "\n".join(blocks) + "\nRevision\t: d04170\n")
    tree.write("proc/device-tree/model", "Some Board 5 Rev 1.0\0")
    tree.write("proc/meminfo", "MemTotal:        8255728 kB\n")
    tree.write("proc/sys/kernel/osrelease", "6.12.0\n")
    tree.write("sys/devices/system/cpu/online", "0-3\n")
    for number in range(4):
        tree.core(number, siblings=f"{number}", package=0, most_khz=2_400_000)
        tree.caches(number, own=f"{number}", sizes=("64K", "64K", "512K", "2048K"), third="0-3")
    tree.process(NO_RIGHTS, priority="95", nice="31", locked="unlimited")
    tree.namespaces(first=True)
    tree.write(
        "proc/asound/cards", " 2 [Device         ]: USB-Audio - USB PnP Sound Device\n                      at usb-1\n"
    )
    tree.write("proc/asound/pcm", "02-00: USB Audio : USB Audio : playback 1 : capture 1\n")


NOTHING = Granted(fifo_priority=0, least_nice=0, deadline="EPERM")
SHAPES = {
    "container_1_5_of_64_cores": Shape(build=_container, cores=64, granted=NOTHING),
    "laptop_4_cores": Shape(
        build=_laptop, cores=8, granted=NOTHING, variables={"XDG_RUNTIME_DIR": "/run/user/1000"}
    ),
    "two_sockets_64_cores": Shape(
        build=_two_sockets, cores=128, granted=Granted(fifo_priority=99, least_nice=-20, deadline="granted")
    ),
    "arm_board_4_cores": Shape(
        build=_arm_board,
        cores=4,
        architecture="aarch64",
        granted=Granted(fifo_priority=95, least_nice=-11, deadline="EPERM"),
    ),
}  # fmt: skip


def pretend(shape: Shape, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the tree, and let the system answer as that machine's would."""
    shape.build(Tree(root=root))
    pretend_linux(monkeypatch, cores=shape.cores)
    monkeypatch.setattr(probe_cpu.platform, "machine", lambda: shape.architecture)
    monkeypatch.setattr(probe_cpu.platform, "system", lambda: "Linux")
    monkeypatch.setattr(probe_rights, "attempt_in_child", lambda _: shape.granted)
    monkeypatch.setattr(probe_gpu.shutil, "which", lambda _: None)
    for name in ("KUBERNETES_SERVICE_HOST", "container", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in shape.variables.items():
        monkeypatch.setenv(name, value)


def pretend_linux(monkeypatch: pytest.MonkeyPatch, *, cores: int, allowed: set[int] | None = None) -> None:
    """This is Linux, with so many cores, of which these may be used."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(probe_cpu.os, "cpu_count", lambda: cores)
    usable = set(range(cores)) if allowed is None else allowed
    monkeypatch.setattr(probe_cpu.os, "sched_getaffinity", lambda _: usable, raising=False)
