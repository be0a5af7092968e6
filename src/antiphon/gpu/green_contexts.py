"""A cut of the multiprocessors -> two green contexts, and streams of any level in them.

One split gives both parts, so that they do not overlap: as many multiprocessors as asked for, in the chip's steps, and
what is left. Contexts of different cuts do overlap, and are not to be used beside each other. Works from CUDA 12.4 on;
the parts share memory, cache and address space, so a graph captured in one reads what the other wrote.
A cut is made once and lasts as long as the process: torch's events and graphs belong to the context in which they were
made, live until nobody refers to them any more, and take the process with them if their context has gone before.
Units: multiprocessors. Threads: the lane's; CUDA has to be initialised by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from cuda.bindings import driver

from antiphon.core.errors import MachineError
from antiphon.gpu.places import Place

if TYPE_CHECKING:
    from antiphon.hardware.gpu_parts import Cut


def checked(result: tuple[Any, ...]) -> Any:
    """What a call of the driver gave besides its code: nothing, one value, or a tuple.

    Raises:
        MachineError: the code is none of success.
    """
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        raise MachineError(
            f"CUDA's driver answers {code.name}", hint="is the GPU in use by others, or its memory full?"
        )
    return values[0] if len(values) == 1 else tuple(values)


@dataclass(slots=True, kw_only=True, eq=False)
class Parts:
    """The two green contexts of one cut."""

    cut: Cut  # as it turned out: the driver rounds up
    contexts: dict[Place, Any]

    def stream(self, place: Place, level: int) -> int:
        """The address of a new stream in that part."""
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        return int(checked(driver.cuGreenCtxStreamCreate(self.contexts[place], flags, level)))


@cache
def split(device_index: int, cut: Cut) -> Parts:
    """Cut the GPU in two, or find the parts of such a cut.

    Raises:
        MachineError: the driver is too old for it, or refuses; the message has its code.
    """
    if not hasattr(driver, "cuDevSmResourceSplitByCount"):
        raise MachineError("these bindings of CUDA know no green contexts", hint="install cuda-python 12.4 or later")
    device = checked(driver.cuDeviceGet(device_index))
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    whole = checked(driver.cuDeviceGetDevResource(device, kind))
    groups, _, rest = checked(driver.cuDevSmResourceSplitByCount(1, whole, 0, cut.others))
    found = type(cut)(replies=int(rest.sm.smCount), others=int(groups[0].sm.smCount))
    if not found.replies or not found.others:
        raise MachineError(f"a cut of {cut.others} multiprocessors leaves {found.replies} for replies")
    contexts = {}
    for place, resource in ((Place.OTHERS, groups[0]), (Place.REPLIES, rest)):
        description = checked(driver.cuDevResourceGenerateDesc([resource], 1))
        flags = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
        contexts[place] = checked(driver.cuGreenCtxCreate(description, device, flags))
    return Parts(cut=found, contexts=contexts)
