"""What counts is what this process may use, and nothing found is never a failure."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from antiphon.hardware import probe_cpu as module
from antiphon.hardware.probe_cpu import probe_cpu

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

X86 = "processor : 0\nmodel name : Some CPU @ 3 GHz\nflags : fpu sse2 avx avx2 fma avx512_vnni amx_int8\n"
ARM = "processor : 0\nFeatures : fp asimd asimddp i8mm crc32\nCPU implementer : 0x41\n"


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A made-up /proc and /sys of a machine with 16 cores, all allowed."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(module.os, "cpu_count", lambda: 16)
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: set(range(16)), raising=False)

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def test_x86(linux) -> None:
    """Model, the flags that matter, and the memory of an x86 machine."""
    facts = probe_cpu(linux({"proc/cpuinfo": X86, "proc/meminfo": "MemTotal:  1000 kB\n"}))

    assert facts.model == "Some CPU @ 3 GHz"
    assert {"avx", "avx2", "fma", "avx512_vnni", "amx_int8"} == facts.flags
    assert (facts.logical_cores, facts.usable_cores, facts.memory_bytes) == (16, 16, 1_024_000)


def test_arm(linux) -> None:
    """Arm calls them Features, and often has no model name."""
    facts = probe_cpu(linux({"proc/cpuinfo": ARM}))

    assert {"asimd", "asimddp", "i8mm"} == facts.flags
    assert facts.model


def test_nothing_readable_is_no_failure(linux, tmp_path: Path) -> None:
    """A system without /proc and /sys still gets an answer."""
    facts = probe_cpu(tmp_path / "nowhere")

    assert facts.flags is None
    assert facts.memory_bytes is None
    assert facts.usable_cores == 16


def test_affinity_counts(linux, monkeypatch: pytest.MonkeyPatch) -> None:
    """taskset and cpusets limit what is usable."""
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: {3, 4})

    facts = probe_cpu(linux({"proc/cpuinfo": X86}))

    assert (facts.logical_cores, facts.usable_cores) == (16, 2)


V1 = {"proc/self/cgroup": "7:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n"}


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n"}, 4),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
          "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3),
        ({**V1, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000",
          "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000"}, 3),
        ({**V1, "sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us": "500000",
          "sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us": "100000"}, 5),
        ({**V1, "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 16),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "junk\n"}, 16),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "1 0\n"}, 16),
        ({"proc/self/cgroup": "junk\n"}, 16),
    ],
)  # fmt: skip
def test_quotas_of_control_groups_count(linux, files: dict[str, str], cores: int) -> None:
    """The tightest quota of our group and of all that hold it, in both versions."""
    assert cores == probe_cpu(linux({"proc/cpuinfo": X86, **files})).usable_cores


@pytest.mark.parametrize(
    ("files", "memory_bytes"),
    [
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "1000000\n"}, 1_000_000),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 4_096_000),
        ({**V1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000"}, 2_000_000),
        ({**V1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 4_096_000),
    ],
)
def test_memory_limits_of_control_groups_count(linux, files: dict[str, str], memory_bytes: int) -> None:
    """A container has the memory it may use, not the machine's."""
    root = linux({"proc/meminfo": "MemTotal:  4000 kB\n", **files})

    assert memory_bytes == probe_cpu(root).memory_bytes


def test_this_machine_has_an_answer() -> None:
    """The real probe runs here."""
    facts = probe_cpu()

    assert 1 <= facts.usable_cores <= facts.logical_cores
    assert facts.architecture
