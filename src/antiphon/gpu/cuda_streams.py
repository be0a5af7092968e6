"""Streams of any level that are nobody else's, and C functions that CUDA calls at the end of what a stream holds.

torch has 32 streams to a level and gives the 33rd the first again; and the bindings' own host functions take Python's
lock on CUDA's thread. So both are asked of the driver's library itself.
A stream lasts as long as the process and is lent again: when a pinned buffer is freed, which may be long after its
owner has closed, torch records an event on every stream that it was copied on, and ends the process if one is gone.
Threads: any; CUDA has to be initialised by then.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_NON_BLOCKING = 1
_IDLE: dict[Hashable, list[int]] = {}  # streams by where they run


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise MachineError("CUDA's driver library was not found", hint="the GPU lane runs on Linux") from error
    library.cuStreamCreateWithPriority.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint, ctypes.c_int)
    library.cuStreamDestroy_v2.argtypes = (ctypes.c_void_p,)
    library.cuLaunchHostFunc.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return library


def make_stream(level: int) -> int:
    """The address of a new stream on the whole GPU.

    Raises:
        MachineError: the driver refuses.
    """
    stream = ctypes.c_void_p()
    _check(_library().cuStreamCreateWithPriority(ctypes.byref(stream), _NON_BLOCKING, level), "making a stream")
    return stream.value or 0


def borrow_stream(where: Hashable, make: Callable[[], int]) -> int:
    """The address of a stream that runs there and is nobody's; `make` makes one if there is none."""
    idle = _IDLE.get(where)
    return idle.pop() if idle else make()


def return_stream(where: Hashable, address: int) -> None:
    """Nothing is enqueued on it any more, and whatever was is done."""
    _IDLE.setdefault(where, []).append(address)


def call_when_done(stream: int, function: int, argument: int) -> None:
    """Have CUDA call a C function of one pointer when all that the stream holds so far is done.

    Raises:
        MachineError: the driver refuses.
    """
    _check(_library().cuLaunchHostFunc(stream, function, argument), "enqueuing a host function")


def _check(code: int, what: str) -> None:
    if code:
        raise MachineError(f"{what} failed: CUDA's driver answers {code}", hint="is the GPU's memory full?")
