"""This machine -> what it offers to a program on its CPU: cores, instructions, memory.

What counts is what this process may use: affinity and the quotas of control groups come before the hardware. Reads
files and asks the C library, starts nothing, and never fails: what cannot be found out is None or empty.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from antiphon.hardware.control_groups import read_group_limits
from antiphon.hardware.kernel_files import read_text

X86_FLAGS = frozenset({
    "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx_vnni",
    "amx_tile", "amx_int8", "amx_bf16",
})  # fmt: skip
ARM_FLAGS = frozenset({"asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme"})

# PF_* of IsProcessorFeaturePresent
WINDOWS_FEATURES = {39: "avx", 40: "avx2", 41: "avx512f", 19: "asimd", 43: "asimddp", 46: "sve", 47: "sve2"}
MAC_FEATURES = {
    "hw.optional.avx1_0": "avx",
    "hw.optional.avx2_0": "avx2",
    "hw.optional.fma": "fma",
    "hw.optional.f16c": "f16c",
    "hw.optional.avx512f": "avx512f",
    "hw.optional.neon": "asimd",
    "hw.optional.AdvSIMD": "asimd",
    "hw.optional.arm.FEAT_FP16": "asimdhp",
    "hw.optional.arm.FEAT_DotProd": "asimddp",
    "hw.optional.arm.FEAT_I8MM": "i8mm",
    "hw.optional.arm.FEAT_BF16": "bf16",
    "hw.optional.arm.FEAT_SME": "sme",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuFacts:
    """What was found."""

    model: str  # the maker's name for it; "" if unknown
    architecture: str  # x86_64, aarch64, arm64, AMD64: as Python names it
    logical_cores: int
    usable_cores: int  # by affinity and quota, at least 1; a quota of 1.5 cores counts as 1
    flags: frozenset[str] | None  # of X86_FLAGS or ARM_FLAGS, by Linux's names; None if unknown
    memory_bytes: int | None  # of the machine, or of the control group if that is less

    @property
    def is_x86(self) -> bool:
        return self.architecture.lower() in {"x86_64", "amd64"}


def probe_cpu(root: Path = Path("/")) -> CpuFacts:
    """Look at this machine; `root` is where Linux's /proc and /sys are found."""
    logical_cores = os.cpu_count() or 1
    model = platform.processor()
    flags: frozenset[str] | None = None
    memory_bytes: int | None = None
    usable = float(_allowed_cores(logical_cores))
    if sys.platform == "darwin":
        model, flags, memory_bytes = _probe_mac()
    elif sys.platform == "win32":
        flags, memory_bytes = _probe_windows()
    else:
        model, flags = _read_cpuinfo(root)
        limits = read_group_limits(root)
        usable = min(usable, limits.quota_cores) if limits.quota_cores is not None else usable
        sizes = [size for size in (read_meminfo(root), limits.memory_bytes) if size is not None]
        memory_bytes = min(sizes, default=None)
    return CpuFacts(
        model=model or platform.machine(),
        architecture=platform.machine(),
        logical_cores=logical_cores,
        usable_cores=max(1, int(usable)),
        flags=flags,
        memory_bytes=memory_bytes,
    )


def _allowed_cores(logical_cores: int) -> int:
    try:
        return len(os.sched_getaffinity(0)) or 1
    except (AttributeError, OSError):  # macOS and Windows have no such call
        return logical_cores


def _read_cpuinfo(root: Path) -> tuple[str, frozenset[str] | None]:
    """The model and the flags; x86 says `flags`, arm `Features`, and arm often no model, but the board's name."""
    fields: dict[str, str] = {}
    for line in read_text(root / "proc" / "cpuinfo").splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip().lower(), value.strip())
    words = (fields.get("flags") or fields.get("features") or "").lower().split()
    board = read_text(root / "proc" / "device-tree" / "model").strip("\0 \n")
    model = fields.get("model name") or fields.get("hardware") or board
    return model, frozenset(words) & (X86_FLAGS | ARM_FLAGS) if words else None


def read_meminfo(root: Path) -> int | None:
    """The machine's memory in bytes, as Linux counts it; None if it is not told."""
    for line in read_text(root / "proc" / "meminfo").splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "MemTotal:" and words[1].isdecimal():
            return int(words[1]) * 1024
    return None


def _probe_mac() -> tuple[str, frozenset[str] | None, int | None]:
    try:
        library = ctypes.CDLL(None)
        flags = frozenset(flag for name, flag in MAC_FEATURES.items() if _sysctl(library, name)[:1] == b"\x01")
        model = _sysctl(library, "machdep.cpu.brand_string").rstrip(b"\0").decode(errors="replace")
        memory = int.from_bytes(_sysctl(library, "hw.memsize"), "little")
    except (OSError, AttributeError):
        return "", None, None
    return model, flags or None, memory or None


def _sysctl(library: ctypes.CDLL, name: str) -> bytes:
    """The raw value of a sysctl; empty if there is none of that name."""
    buffer = ctypes.create_string_buffer(256)
    size = ctypes.c_size_t(len(buffer))
    failed = library.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, ctypes.c_size_t(0))
    return b"" if failed else buffer.raw[: size.value]


class _MemoryStatus(ctypes.Structure):
    """Windows' MEMORYSTATUSEX."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 6),
    )


def _probe_windows() -> tuple[frozenset[str] | None, int | None]:
    kernel = getattr(getattr(ctypes, "windll", None), "kernel32", None)
    if kernel is None:
        return None, None
    flags = {flag for number, flag in WINDOWS_FEATURES.items() if kernel.IsProcessorFeaturePresent(number)}
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    known = kernel.GlobalMemoryStatusEx(ctypes.byref(status))
    return frozenset(flags) or None, status.total if known else None
