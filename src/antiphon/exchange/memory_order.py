"""What makes one process see another's stores in the order in which they were made; Python has no fences of its own.

The rule that the ring needs: who has seen the other side's index move must see everything that was stored before it,
and who lets a slot go must have read it before. An index is an aligned word of 8 bytes, which both x86-64 and Arm load
and store whole; CPython does so with one instruction.

- x86-64 keeps stores in order among each other, loads too, and no load passes an older one or a store an older load
  (its memory model, TSO). Nothing need be done. The one thing it does reorder, a load before an older store, the ring
  never depends on: it rings a bell for every message, and a bell is a system call.
- Arm and others keep no such order. There, whoever has loaded a new index calls membarrier(2), which lets every running
  thread of the registered processes pass a full barrier before it returns: the other side's stores, and its loads too,
  that came before the index in its program are done then. It costs a system call once for each new index seen, not
  for each message. On a machine that is neither and lacks it there is no ring.

Threads: any; a process registers once.
"""

from __future__ import annotations

import ctypes
import os
import platform
from typing import TYPE_CHECKING

from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable

ORDERED = frozenset({"x86_64", "AMD64"})
CALLS = {"x86_64": 324, "aarch64": 283, "riscv64": 283, "loongarch64": 283, "ppc64le": 365, "s390x": 356}
GLOBAL_EXPEDITED, REGISTER_GLOBAL_EXPEDITED = 2, 4


def nothing() -> None:
    """The fence of a machine that needs none."""


def find_fence(architecture: str = "") -> Callable[[], None]:
    """What to call between loading the other side's index and touching what it stands for.

    Raises:
        MachineError: the machine needs a fence and has none that can be called from here.
    """
    architecture = architecture or platform.machine()
    return nothing if architecture in ORDERED else membarrier(architecture)


def membarrier(architecture: str = "") -> Callable[[], None]:
    """A full barrier in every running thread of the processes that called this.

    Raises:
        MachineError: the kernel has no such call.
    """
    number = CALLS.get(architecture or platform.machine())
    library = ctypes.CDLL(None, use_errno=True)
    call = library.syscall
    call.restype = ctypes.c_long
    if number is None or call(ctypes.c_long(number), REGISTER_GLOBAL_EXPEDITED, 0, 0):
        cause = os.strerror(ctypes.get_errno()) if number else "its number is not known here"
        raise MachineError(
            f"memory cannot be shared on {architecture or platform.machine()}: no membarrier: {cause}",
            hint="use a kernel of 4.16 or newer, without a filter on this system call",
        )
    kernel_call = ctypes.c_long(number)

    def fence() -> None:
        call(kernel_call, GLOBAL_EXPEDITED, 0, 0)

    return fence
