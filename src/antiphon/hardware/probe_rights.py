"""This process -> what the system would grant its threads: real-time priorities, low nice values, locked memory.

What the limits and capabilities promise is tried, since control groups, sandboxes and virtual machines may refuse it
all the same. A short-lived child process tries, so nothing of ours ever runs under another policy. Linux alone is
asked; elsewhere the answer is that nothing is known. Never fails. Threads: blocks up to `ATTEMPT_TIMEOUT_S`.
"""

from __future__ import annotations

import json
import platform
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.hardware.child import run_child
from antiphon.hardware.control_groups import read_group_limits
from antiphon.hardware.facts import Rights
from antiphon.hardware.kernel_files import number_of, read_text

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPT_TIMEOUT_S = 10.0  # a busy board takes a second or two to start Python
CAP_IPC_LOCK = 14
CAP_SYS_NICE = 23
TOP_PRIORITY = 99
LEAST_NICE = -20
EVERYONE = ["0", "0", "4294967295"]  # the map of the first user namespace: its capabilities are worth what they say
REFUSALS = {  # what refuses it, by what is known of the control group
    "shared": "a sandbox or the kernel's settings forbid it",
    "withheld": "its control group has no real-time share: write one to cpu.rt_runtime_us, or start outside the group",
    "inner": "this kernel seems to grant it in the root control group alone (CONFIG_RT_GROUP_SCHED): start there",
}
SET_ATTRIBUTES = {  # sched_setattr by architecture; those that came later share 274
    "x86_64": 314, "aarch64": 274, "riscv64": 274, "loongarch64": 274, "armv7l": 380, "ppc64le": 355, "s390x": 345,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """What limits and capabilities promise; each list is in the order to try."""

    fifo_priorities: tuple[int, ...]
    nice_values: tuple[int, ...]
    locked_memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """What an attempt was granted."""

    fifo_priority: int  # 0: none
    least_nice: int  # 0: none below
    deadline: str  # "granted", or the name of the error


def probe_rights(
    root: Path = Path("/"), *, attempt: Callable[[Promised], Granted | str] | None = None
) -> tuple[Rights, tuple[str, ...]]:
    """The rights, and notes on promises that were not kept; `attempt` returns why it could not try, if it could not."""
    if sys.platform != "linux":
        return Rights(), ()
    promised = read_promises(root)
    rtkit = _has_rtkit(root)
    granted = (attempt or attempt_in_child)(promised)
    if isinstance(granted, str):
        rights = Rights(locked_memory_bytes=promised.locked_memory_bytes, rtkit=rtkit)
        return rights, (f"real-time rights are not known, since they could not be tried: {granted}",)
    rights = Rights(
        fifo_priority=granted.fifo_priority,
        deadline=granted.deadline == "granted",
        least_nice=granted.least_nice,
        locked_memory_bytes=promised.locked_memory_bytes,
        rtkit=rtkit,
    )
    return rights, _broken_promises(root, promised, granted)


def read_promises(root: Path) -> Promised:
    """What /proc/self says; a limit is what the process has now, not what it could raise it to."""
    capabilities = _capabilities(root)
    limits = _limits(root)
    may_all = bool(capabilities >> CAP_SYS_NICE & 1)
    priority = min(TOP_PRIORITY, limits.get("Max realtime priority") or 0)
    nice = max(LEAST_NICE, 20 - (limits.get("Max nice priority") or 0))
    locked = None if capabilities >> CAP_IPC_LOCK & 1 else limits.get("Max locked memory")
    return Promised(
        fifo_priorities=_most_first([TOP_PRIORITY] if may_all else [], [priority] if priority > 0 else []),
        nice_values=_most_first([LEAST_NICE] if may_all else [], [nice] if nice < 0 else []),
        locked_memory_bytes=None if locked is None or locked >= 1 << 62 else locked,
    )


def attempt_in_child(promised: Promised) -> Granted | str:
    """Try it all in a child process; the text is why that was not possible."""
    fits = struct.calcsize("P") == 8 or platform.machine() == "armv7l"  # a 32-bit Python has other numbers
    call = SET_ATTRIBUTES.get(platform.machine(), 0) if fits else 0
    fifo = ",".join(map(str, promised.fifo_priorities))
    nice = ",".join(map(str, promised.nice_values))
    script = str(Path(__file__).with_name("rights_child.py"))
    command = [sys.executable or "python3", "-I", script, fifo, nice, str(call)]
    end = run_child(command, timeout_s=ATTEMPT_TIMEOUT_S)
    if end.problem:
        return f"the child process {end.problem}"
    try:
        found = json.loads(end.output)
        return Granted(fifo_priority=found["fifo"], least_nice=found["nice"], deadline=found["deadline"])
    except (ValueError, KeyError, TypeError):
        return "the child process wrote something else"


def _broken_promises(root: Path, promised: Promised, granted: Granted) -> tuple[str, ...]:
    notes: list[str] = []
    if promised.fifo_priorities and granted.fifo_priority < promised.fifo_priorities[0]:
        cause = REFUSALS[read_group_limits(root).realtime]
        notes.append(f"SCHED_FIFO {promised.fifo_priorities[0]} is allowed to this process but refused: {cause}")
    may_all = TOP_PRIORITY in promised.fifo_priorities and LEAST_NICE in promised.nice_values
    if may_all and granted.deadline == "EBUSY":
        notes.append("SCHED_DEADLINE is refused: other threads hold all of its time")
    elif may_all and granted.deadline == "EPERM" and granted.fifo_priority:
        notes.append("SCHED_DEADLINE is refused: it needs a process that may use every core (no taskset, no cpuset)")
    return tuple(notes)


def _capabilities(root: Path) -> int:
    """The bits of CapEff; none of them counts here in a user namespace of a container without root."""
    if read_text(root / "proc" / "self" / "uid_map").split() not in (EVERYONE, []):
        return 0
    for line in read_text(root / "proc" / "self" / "status").splitlines():
        if line.startswith("CapEff:"):
            try:
                return int(line.partition(":")[2], 16)
            except ValueError:
                return 0
    return 0


def _limits(root: Path) -> dict[str, int]:
    """The limits in force by the kernel's names for them; one that is unlimited is a very large number."""
    limits: dict[str, int] = {}
    for line in read_text(root / "proc" / "self" / "limits").splitlines()[1:]:
        name, rest = line[:26].strip(), line[26:].split()
        value = 1 << 62 if rest[:1] == ["unlimited"] else number_of(rest[0] if rest else "")
        if value is not None:
            limits[name] = value
    return limits


def _most_first(*candidates: list[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(value for values in candidates for value in values))


def _has_rtkit(root: Path) -> bool:
    """Whether the bus would start or find it; asking it would start it."""
    services = [root / folder / "dbus-1" / "system-services" for folder in ("usr/share", "usr/local/share", "lib")]
    known = any((folder / "org.freedesktop.RealtimeKit1.service").exists() for folder in services)
    return known and any((root / folder / "dbus" / "system_bus_socket").exists() for folder in ("run", "var/run"))
