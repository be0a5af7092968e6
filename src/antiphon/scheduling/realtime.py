"""The plan of a sound card's thread -> that thread, scheduled so; what was refused comes back in words.

What the plan chose was tried before, but a control group, a full deadline budget or a dead rtkit may still refuse it:
then the next weaker one is asked for, down to what everybody has.
Units: ns. Threads: call on the one that is meant, before it opens anything. Linux alone.
What it does not know: what the thread does.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import platform
import struct
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.hardware.probe_rights import SET_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.hardware.audio_plan import AudioPlan

SCHED_DEADLINE = 6
RESET_ON_FORK = 1
ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # of sched_setattr's first version: 48 bytes
LOCK_NOW, LOCK_LATER = 1, 2  # mlockall
TIMER_SLACK = 29  # prctl: by how many ns a thread without a policy may be woken late on purpose, 50 us by default
RTKIT_RUN_US = 200_000  # rtkit asks for a limit on how long a thread may compute without sleeping
RTKIT = (
    "dbus-send", "--system", "--print-reply", "--reply-timeout=2000", "--dest=org.freedesktop.RealtimeKit1",
    "/org/freedesktop/RealtimeKit1", "org.freedesktop.RealtimeKit1.MakeThreadRealtimeWithPID",
)  # fmt: skip
WEAKER = {
    "fifo": ("fifo", "rtkit", "nice"),
    "deadline": ("deadline", "rtkit", "nice"),
    "rtkit": ("rtkit", "nice"),
    "nice": ("nice",),
    "normal": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What the thread has now."""

    policy: str
    is_locked: bool
    refused: tuple[str, ...]  # in words

    def text(self) -> str:
        """In a sentence, to be said once."""
        names = {"fifo": "SCHED_FIFO", "deadline": "SCHED_DEADLINE", "rtkit": "SCHED_RR by rtkit", "nice": "niceness"}
        what = f"the audio thread runs under {names.get(self.policy, 'no policy of its own')}"
        locked = "memory locked" if self.is_locked else "memory not locked"
        return "; ".join([f"{what}, {locked}", *self.refused])


def settle(plan: AudioPlan) -> Taken:
    """Take what the plan says, or what there is: the policy, locked memory, and no pauses for garbage."""
    refused: list[str] = []
    policy = "normal"
    ways: dict[str, Callable[[AudioPlan], str]] = {"fifo": _fifo, "deadline": _deadline, "rtkit": _rtkit, "nice": _nice}
    for name in WEAKER[plan.policy]:
        if name in {"rtkit", "nice"} and name != plan.policy and not _is_worth(name, plan):
            continue
        problem = ways[name](plan)
        if not problem:
            policy = name
            break
        refused.append(f"{name} was refused ({problem})")
    if policy in {"normal", "nice"}:
        ctypes.CDLL(None).prctl(TIMER_SLACK, ctypes.c_ulong(1), 0, 0, 0)
    is_locked = False
    if plan.locks_memory:
        problem = _lock_memory()
        is_locked = not problem
        if problem:
            refused.append(f"locked memory was refused ({problem})")
    gc.collect()
    gc.freeze()
    gc.disable()
    return Taken(policy=policy, is_locked=is_locked, refused=tuple(refused))


def _is_worth(name: str, plan: AudioPlan) -> bool:
    """A weaker way that the plan did not choose is tried quietly if it costs nothing."""
    return name == "nice" and plan.policy in {"fifo", "deadline", "rtkit"}


def _fifo(plan: AudioPlan) -> str:
    """For the threads that a sound library starts from it as well: some of them move the sound."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(plan.priority))
    except OSError as error:
        return _name(error.errno or 0)
    return ""


def _deadline(plan: AudioPlan) -> str:
    call = SET_ATTRIBUTES.get(platform.machine(), 0)
    if not call:
        return "its system call is not known here"
    attributes = ATTRIBUTES.pack(
        ATTRIBUTES.size, SCHED_DEADLINE, RESET_ON_FORK, 0, 0, plan.runtime_ns, plan.period_ns, plan.period_ns
    )
    library = ctypes.CDLL(None, use_errno=True)
    return _name(ctypes.get_errno()) if library.syscall(ctypes.c_long(call), 0, attributes, 0) else ""


def _rtkit(plan: AudioPlan) -> str:
    """By the tool that every bus comes with; the limit it asks for goes first."""
    import resource  # noqa: PLC0415 - not on Windows

    try:
        resource.setrlimit(resource.RLIMIT_RTTIME, (RTKIT_RUN_US, RTKIT_RUN_US))
        thread = f"uint64:{threading.get_native_id()}"
        command = [*RTKIT, f"uint64:{os.getpid()}", thread, f"uint32:{plan.priority or 20}"]
        subprocess.run(command, check=True, capture_output=True, timeout=3)  # noqa: S603 - our own words
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return " ".join(str(error).split())[:120]
    return ""


def _nice(plan: AudioPlan) -> str:
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), plan.nice or -11)
    except OSError as error:
        return _name(error.errno or 0)
    return ""


def _lock_memory() -> str:
    library = ctypes.CDLL(None, use_errno=True)
    return _name(ctypes.get_errno()) if library.mlockall(LOCK_NOW | LOCK_LATER) else ""


def _name(number: int) -> str:
    return errno.errorcode.get(number, str(number))
