"""Rights are what was granted, not what was promised; a promise that was not kept is noted with its cause."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from tests.hardware.linux_trees import ALL_RIGHTS, NO_RIGHTS, OF_DOCKER, Tree

from antiphon.hardware import probe_rights as module
from antiphon.hardware.child import ChildEnd
from antiphon.hardware.facts import Rights
from antiphon.hardware.probe_rights import Granted, Promised, attempt_in_child, probe_rights, read_promises

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

ALL = Granted(fifo_priority=99, least_nice=-20, deadline="granted")
NONE = Granted(fifo_priority=0, least_nice=0, deadline="EPERM")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(sys, "platform", "linux")
    return Tree(root=tmp_path)


@pytest.mark.parametrize(
    ("process", "fifo", "nice", "locked"),
    [
        ({"capabilities": NO_RIGHTS}, (), (), 8_388_608),
        ({"capabilities": ALL_RIGHTS}, (99,), (-20,), None),
        ({"capabilities": OF_DOCKER}, (), (), 8_388_608),
        ({"capabilities": ALL_RIGHTS, "priority": "50", "nice": "30"}, (99, 50), (-20, -10), None),
        ({"capabilities": NO_RIGHTS, "priority": "95", "nice": "31", "locked": "unlimited"}, (95,), (-11,), None),
        ({"capabilities": NO_RIGHTS, "priority": "unlimited", "nice": "unlimited"}, (99,), (-20,), 8_388_608),
        ({"capabilities": NO_RIGHTS, "nice": "15"}, (), (), 8_388_608),
        ({"capabilities": "junk"}, (), (), 8_388_608),
    ],
)
def test_promises(tree: Tree, process: dict[str, str], fifo: tuple[int, ...], nice: tuple[int, ...], locked) -> None:
    """Limits and capabilities, the most first; nice is 20 less the limit, and above 0 it is no right."""
    tree.process(**process)

    expected = Promised(fifo_priorities=fifo, nice_values=nice, locked_memory_bytes=locked)
    assert expected == read_promises(tree.root)


def test_capabilities_of_a_user_namespace_promise_nothing(tree: Tree) -> None:
    """A container without root has them all, and the kernel asks for those of the first namespace."""
    tree.process(ALL_RIGHTS, priority="20")
    tree.write("proc/self/uid_map", "0 1000 1\n1 100000 65536\n")

    assert (20,) == read_promises(tree.root).fifo_priorities


def test_nothing_readable_promises_nothing(tmp_path: Path) -> None:
    """And is no failure."""
    assert Promised(fifo_priorities=(), nice_values=(), locked_memory_bytes=None) == read_promises(tmp_path)


def test_what_is_granted_is_told(tree: Tree) -> None:
    """The attempt decides."""
    tree.process(ALL_RIGHTS)

    rights, notes = probe_rights(tree.root, attempt=lambda _: ALL)

    assert (Rights(fifo_priority=99, deadline=True, least_nice=-20), ()) == (rights, notes)


def test_no_promise_no_note(tree: Tree) -> None:
    """Most users have no such rights, and need not be told why."""
    tree.process(NO_RIGHTS)

    assert (Rights(least_nice=0, locked_memory_bytes=8_388_608), ()) == probe_rights(tree.root, attempt=lambda _: NONE)


V1 = "4:cpu,cpuacct:/service\n0::/\n"


@pytest.mark.parametrize(
    ("group", "files", "said"),
    [
        ("0::/\n", {}, "a sandbox"),
        (V1, {"cpu,cpuacct/service/cpu.rt_runtime_us": "0\n"}, "write one to cpu.rt_runtime_us"),
        (V1, {"cpu,cpuacct/cpu.rt_runtime_us": "0\n"}, "write one to cpu.rt_runtime_us"),
        (V1, {"cpu,cpuacct/service/cpu.rt_runtime_us": "950000\n"}, "a sandbox"),
        # our own group's counts: a share is given, not inherited
        (V1, {"cpu,cpuacct/service/cpu.rt_runtime_us": "9000\n", "cpu,cpuacct/cpu.rt_runtime_us": "0\n"}, "a sandbox"),
        ("0::/a\n", {"a/cgroup.type": "domain\n", "a/cgroup.controllers": "cpuset cpu\n"}, "CONFIG_RT_GROUP_SCHED"),
        ("0::/a\n", {"a/cgroup.type": "domain\n", "a/cgroup.controllers": "memory\n"}, "a sandbox"),
        # the group that holds ours shares out cores, ours only memory
        (
            "0::/a/b\n",
            {"a/cgroup.type": "domain\n", "a/cgroup.controllers": "cpu memory\n", "a/b/cgroup.controllers": "memory\n"},
            "CONFIG_RT_GROUP_SCHED",
        ),
        # a container calls its own group the root; the machine's root has no type
        ("0::/\n", {"cgroup.type": "domain\n", "cgroup.controllers": "cpu\n"}, "CONFIG_RT_GROUP_SCHED"),
        ("0::/\n", {"cgroup.controllers": "cpu\n"}, "a sandbox"),
    ],
)
def test_a_refusal_names_its_cause(tree: Tree, group: str, files: dict[str, str], said: str) -> None:
    """A control group may take what the capability gives: version 1 by its share, version 2 below the root."""
    tree.process(ALL_RIGHTS, group=group)
    for name, text in files.items():
        tree.write(f"sys/fs/cgroup/{name}", text)

    rights, notes = probe_rights(tree.root, attempt=lambda _: NONE)

    assert (0, 1) == (rights.fifo_priority, len(notes))
    assert notes[0].startswith("SCHED_FIFO 99 is allowed to this process but refused: ")
    assert said in notes[0]


@pytest.mark.parametrize(
    ("error", "said"), [("EBUSY", "hold all of its time"), ("EPERM", "every core"), ("ENOSYS", "")]
)
def test_a_refused_deadline_names_its_cause(tree: Tree, error: str, said: str) -> None:
    """Where all else is granted."""
    tree.process(ALL_RIGHTS)
    granted = Granted(fifo_priority=99, least_nice=-20, deadline=error)

    rights, notes = probe_rights(tree.root, attempt=lambda _: granted)

    assert not rights.deadline
    assert ([said] if said else []) == [said for note in notes if said in note]


def test_an_attempt_that_cannot_be_made_leaves_it_unknown(tree: Tree) -> None:
    """As in a sandbox that starts no processes."""
    tree.process(ALL_RIGHTS)

    rights, notes = probe_rights(tree.root, attempt=lambda _: "no luck")

    assert (0, None) == (rights.fifo_priority, rights.least_nice)
    assert ("real-time rights are not known, since they could not be tried: no luck",) == notes


@pytest.mark.parametrize("output", ["", "junk", "[]", "{}", '{"fifo": 1}'])
def test_a_child_that_writes_something_else_is_no_attempt(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made of it."""
    monkeypatch.setattr(module, "run_child", lambda *_, **__: ChildEnd(output=output, problem=""))

    promised = Promised(fifo_priorities=(), nice_values=(), locked_memory_bytes=None)
    assert attempt_in_child(promised) == "the child process wrote something else"


def test_rtkit_needs_its_service_and_the_bus(tree: Tree) -> None:
    """Either alone grants nothing; a look does not start it."""
    tree.process(NO_RIGHTS)
    tree.write("usr/share/dbus-1/system-services/org.freedesktop.RealtimeKit1.service", "")
    assert not probe_rights(tree.root, attempt=lambda _: NONE)[0].rtkit

    tree.listen("run/dbus/system_bus_socket")
    assert probe_rights(tree.root, attempt=lambda _: NONE)[0].rtkit


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone is asked")
def test_the_real_attempt_leaves_us_as_we_were() -> None:
    """What the child is granted is gone with it."""
    before = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)

    rights, _ = probe_rights()

    assert (0 <= rights.fifo_priority <= 99, rights.least_nice is not None) == (True, True)
    assert before == (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
