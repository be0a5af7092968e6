"""Cores, caches and memory nodes: as the kernel writes them, and as it does not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.hardware.linux_trees import Tree, pretend_linux

from antiphon.hardware.facts import Cache, Core, MemoryNode
from antiphon.hardware.probe_cores import probe_caches, probe_cores, probe_nodes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    pretend_linux(monkeypatch, cores=4)
    return Tree(root=tmp_path)


def test_hyperthreads_share_a_physical_core(tree: Tree) -> None:
    """Whatever the kernel's core ids say, which begin anew on every socket and die."""
    for number in range(4):
        tree.core(number, siblings="0-1" if number < 2 else "2-3", package=number // 2)

    cores = probe_cores(tree.root)

    assert [(0, 0), (0, 0), (2, 1), (2, 1)] == [(core.physical, core.socket) for core in cores]


def test_older_kernels_say_thread_siblings(tree: Tree) -> None:
    """`core_cpus_list` came with Linux 5.3."""
    tree.write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n")
    tree.write("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n")

    cores = probe_cores(tree.root)

    assert [(0, 0), (1, None), (2, 0), (3, None)] == [(core.number, core.physical) for core in cores]


def test_cpuinfo_tells_where_sys_does_not(tree: Tree) -> None:
    """Some sandboxes have no /sys; x86's /proc/cpuinfo names sockets and cores, which repeat between sockets."""
    places = [(0, 0), (0, 0), (1, 0), (1, 0)]
    blocks = [f"processor : {n}\nphysical id : {s}\ncore id : {c}\n" for n, (s, c) in enumerate(places)]
    tree.write("proc/cpuinfo", "\n".join(blocks))

    cores = probe_cores(tree.root)

    assert [(0, 0), (0, 0), (2, 1), (2, 1)] == [(core.physical, core.socket) for core in cores]


def test_a_core_that_is_switched_off_is_not_there(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder stays, but it is not among those online."""
    pretend_linux(monkeypatch, cores=3, allowed={0, 2, 3})
    tree.write("sys/devices/system/cpu/online", "0,2-3\n")
    for number in range(4):
        tree.core(number, siblings=f"{number}", package=0)

    assert [0, 2, 3] == [core.number for core in probe_cores(tree.root)]


def test_affinity_says_what_is_usable(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are told; one that is usable but not shown, as in some containers, is told too."""
    pretend_linux(monkeypatch, cores=4, allowed={1, 9})
    tree.write("sys/devices/system/cpu/online", "0-3\n")

    cores = probe_cores(tree.root)

    assert [0, 1, 2, 3, 9] == [core.number for core in cores]
    assert [1, 9] == [core.number for core in cores if core.is_usable]


def test_fast_and_slow_cores_differ(tree: Tree) -> None:
    """By their highest clock; one that does not say has none."""
    tree.core(0, siblings="0", package=0, most_khz=2_400_000)
    tree.core(1, siblings="1", package=0, most_khz=1_800_000)
    tree.core(2, siblings="2", package=0, most_khz=0)

    assert [2400, 1800, None, None] == [core.most_mhz for core in probe_cores(tree.root)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("topology/core_cpus_list", "junk\n"),
        ("topology/core_cpus_list", "1-3\n"),
        ("topology/physical_package_id", "-1\n"),
        ("topology/physical_package_id", "\n"),
        ("cpufreq/cpuinfo_max_freq", "<unknown>\n"),
    ],
)
def test_what_makes_no_sense_is_not_known(tree: Tree, name: str, text: str) -> None:
    """Boards write -1 and worse."""
    tree.write(f"sys/devices/system/cpu/cpu0/{name}", text)

    assert Core(number=0) == probe_cores(tree.root)[0]


def test_systems_without_a_kernel_that_tells_still_count(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS, where there is no affinity either."""
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.delattr(os, "sched_getaffinity")

    assert tuple(Core(number=number) for number in range(4)) == probe_cores(tree.root)


def test_a_shared_cache_is_one(tree: Tree) -> None:
    """Each core tells of it; sizes are in K or M."""
    for number in range(2):
        tree.cache(number, 0, 1, "Data", "32K", f"{number}")
        tree.cache(number, 3, 3, "Unified", "32M", "0-1")
    tree.cache(0, 4, 4, "Unified", "", "0-1")

    expected = (
        Cache(level=1, kind="data", size_bytes=32 << 10, shared_by=(0,)),
        Cache(level=1, kind="data", size_bytes=32 << 10, shared_by=(1,)),
        Cache(level=3, kind="unified", size_bytes=32 << 20, shared_by=(0, 1)),
    )
    assert expected == probe_caches(tree.root)


def test_nodes_hold_cores_and_memory(tree: Tree) -> None:
    """One without cores is memory of another kind; one with neither is only a place for some."""
    tree.node(0, "0-1", 1000)
    tree.node(1, "2-3", 2000)
    tree.node(2, "", 4000)
    tree.node(3, "", 0)

    expected = (
        MemoryNode(number=0, size_bytes=1_024_000, cores=(0, 1)),
        MemoryNode(number=1, size_bytes=2_048_000, cores=(2, 3)),
        MemoryNode(number=2, size_bytes=4_096_000, cores=()),
    )
    assert expected == probe_nodes(tree.root)
    assert [0, 0, 1, 1] == [core.node for core in probe_cores(tree.root)]


def test_a_lone_node_holds_all_memory(tree: Tree) -> None:
    """A virtual machine that gets its memory as it touches it counts only that in the node."""
    tree.node(0, "0-3", 1000)
    tree.write("proc/meminfo", "MemTotal: 30000 kB\n")

    assert 30_720_000 == probe_nodes(tree.root)[0].size_bytes
