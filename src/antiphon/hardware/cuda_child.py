"""Run as a process of its own: asks CUDA's driver library which GPUs a program may compute on.

Writes one line of JSON: {"problem": "", "cuda": "13.0", "gpus": [{"bus": "0000:0f:00.0", "name": ..., "memory_bytes":
..., "compute": "9.0", "multiprocessors": 132, "bandwidth_bytes_s": 4916736000000}]}; a bandwidth of null was not told.
`problem` is "no library", or the name of the error that stopped it.
A driver that crashes or hangs takes this process with it and no other. Makes no context, so it takes no memory of a
GPU. Imports nothing of Antiphon.
"""

import ctypes
import json
import sys

LIBRARIES = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}
MULTIPROCESSORS, MAJOR, MINOR = 16, 75, 76  # CU_DEVICE_ATTRIBUTE_*
MEMORY_CLOCK_KHZ, MEMORY_WIDTH_BITS = 36, 37


class CudaError(Exception):
    """A call to the driver failed."""


def check(library: ctypes.CDLL, result: int) -> None:
    """Raises CudaError with the driver's name for the result, unless it is success."""
    if result:
        name = ctypes.c_char_p()
        library.cuGetErrorName(result, ctypes.byref(name))
        raise CudaError((name.value or b"unknown").decode(errors="replace") + f" ({result})")


def device_facts(library: ctypes.CDLL, number: int) -> dict[str, object]:
    """One GPU by CUDA's number."""
    device = ctypes.c_int()
    check(library, library.cuDeviceGet(ctypes.byref(device), number))
    name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    check(library, library.cuDeviceGetName(name, len(name), device))
    check(library, library.cuDeviceGetPCIBusId(bus, len(bus), device))
    memory = ctypes.c_size_t()
    check(library, library.cuDeviceTotalMem_v2(ctypes.byref(memory), device))
    attributes = []
    for attribute in (MAJOR, MINOR, MULTIPROCESSORS, MEMORY_CLOCK_KHZ, MEMORY_WIDTH_BITS):
        value = ctypes.c_int()
        result = library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        if attribute not in {MEMORY_CLOCK_KHZ, MEMORY_WIDTH_BITS}:  # which a driver may have given up
            check(library, result)
        attributes.append(0 if result else value.value)
    major, minor, multiprocessors, clock_khz, width_bits = attributes
    return {
        "bus": bus.value.decode(errors="replace"),
        "name": name.value.decode(errors="replace"),
        "memory_bytes": memory.value,
        "compute": f"{major}.{minor}",
        "multiprocessors": multiprocessors,
        "bandwidth_bytes_s": clock_khz * 1000 * 2 * width_bits // 8 or None,  # two transfers to a clock
    }


def describe(library: ctypes.CDLL) -> dict[str, object]:
    """Version and GPUs; a failure is told beside what was found before it."""
    found: dict[str, object] = {"problem": "", "cuda": "", "gpus": []}
    try:
        version = ctypes.c_int()
        check(library, library.cuDriverGetVersion(ctypes.byref(version)))
        found["cuda"] = f"{version.value // 1000}.{version.value % 1000 // 10}"
        check(library, library.cuInit(0))
        count = ctypes.c_int()
        check(library, library.cuDeviceGetCount(ctypes.byref(count)))
        found["gpus"] = [device_facts(library, number) for number in range(count.value)]
    except (CudaError, AttributeError) as error:  # AttributeError: a library without one of the calls
        found["problem"] = str(error)
    return found


def main() -> None:
    """Ask, write, end."""
    try:
        library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else LIBRARIES.get(sys.platform, ""))
    except OSError:
        found: dict[str, object] = {"problem": "no library", "cuda": "", "gpus": []}
    else:
        found = describe(library)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
