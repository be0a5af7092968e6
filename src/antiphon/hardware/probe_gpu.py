"""This machine -> the NVIDIA GPUs that a program may compute on, and notes on those that are there but cannot be used.

Two are asked, each in a child process with a time limit: `nvidia-smi`, which tells every GPU that the driver has, and
CUDA's own library, which tells what a program gets to see of them. A GPU is told only if both the driver and CUDA
answer for it; without nvidia-smi, CUDA and /proc/driver/nvidia do. Never fails. Threads: blocks, at worst for the two
time limits; at once where there is no sign of a driver. Does not know GPUs of other makers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from antiphon.hardware.child import run_child
from antiphon.hardware.facts import GpuFacts
from antiphon.hardware.kernel_files import number_of, read_number, read_text

TOOL_TIMEOUT_S = 15.0  # a driver that nothing keeps awake takes a second or two per GPU to start
CUDA_TIMEOUT_S = 30.0
FIELDS = "index,pci.bus_id,name,memory.total,driver_version"
NO_DEVICE = "CUDA_ERROR_NO_DEVICE (100)"
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A GPU as nvidia-smi lists it."""

    index: int
    bus: str
    name: str
    memory_bytes: int | None  # None: it shares the machine's
    driver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A GPU as CUDA shows it to a program."""

    bus: str
    name: str
    memory_bytes: int
    compute: str
    multiprocessors: int
    bandwidth_bytes_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaAnswer:
    """What CUDA said."""

    problem: str = ""
    cuda: str = ""
    gpus: tuple[Seen, ...] = field(default=())


def probe_gpus(root: Path = Path("/")) -> tuple[tuple[GpuFacts, ...], tuple[str, ...]]:
    """The GPUs in the driver's order, and notes."""
    tool = shutil.which("nvidia-smi")
    driver_folder = root / "proc" / "driver" / "nvidia"
    if tool is None and not driver_folder.exists():
        return (), ()
    listed, problem = list_gpus(tool) if tool else ((), "")
    if problem:
        return (), (f"no GPU can be used: nvidia-smi {problem}",)
    if tool and not listed:
        return (), ()
    answer = ask_cuda()
    if answer.problem == NO_DEVICE and not listed:
        return (), ()
    if answer.problem and not answer.gpus:
        names = ", ".join(gpu.name for gpu in listed) or "the driver's"
        return (), (f"no GPU can be used ({names}): {_explain(answer.problem)}",)
    driver = _driver_version(driver_folder)
    by_bus = {gpu.bus: gpu for gpu in listed}
    gpus = tuple(
        _facts(root, number, seen, by_bus.get(seen.bus), cuda=answer.cuda, driver=driver)
        for number, seen in enumerate(answer.gpus)
    )
    hidden = [gpu.index for gpu in listed if gpu.bus not in {seen.bus for seen in answer.gpus}]
    return tuple(sorted(gpus, key=lambda gpu: gpu.index)), _note_hidden(hidden, len(listed))


def list_gpus(tool: str, *, timeout_s: float = TOOL_TIMEOUT_S) -> tuple[tuple[Listed, ...], str]:
    """What nvidia-smi lists, or the problem that it has."""
    command = [tool, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    end = run_child(command, timeout_s=timeout_s)
    if "No devices were found" in end.output + end.problem:  # with code 0 or 6, by version
        return (), ""
    if end.problem:
        return (), end.problem
    listed: list[Listed] = []
    for line in end.output.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        index = number_of(cells[0])
        if len(cells) == 5 and index is not None:
            memory = number_of(cells[3])
            gpu = Listed(
                index=index,
                bus=bus_of(cells[1]),
                name=cells[2],
                memory_bytes=memory * MIB if memory else None,  # "[N/A]" where it is the machine's
                driver=cells[4],
            )
            listed.append(gpu)
    return tuple(listed), "" if listed or not end.output.strip() else "wrote something that is no list"


def ask_cuda(*, library: str = "", timeout_s: float = CUDA_TIMEOUT_S) -> CudaAnswer:
    """What CUDA shows to a program; `library` names another than the driver's."""
    script = str(Path(__file__).with_name("cuda_child.py"))
    command = [sys.executable or "python3", "-I", script, *([library] if library else [])]
    end = run_child(command, timeout_s=timeout_s, environment={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    if end.problem:
        return CudaAnswer(problem=end.problem)
    try:
        found = json.loads(end.output.strip().rpartition("\n")[2])  # a library may write lines of its own before
        gpus = tuple(Seen(**{**gpu, "bus": bus_of(gpu["bus"])}) for gpu in found["gpus"])
        return CudaAnswer(problem=found["problem"], cuda=found["cuda"], gpus=gpus)
    except (ValueError, KeyError, TypeError):
        return CudaAnswer(problem="wrote something that is no answer")


def bus_of(text: str) -> str:
    """A PCI address as /sys writes it; nvidia-smi writes the domain with eight digits."""
    domain, _, rest = text.strip().lower().partition(":")
    return f"{domain[-4:]}:{rest}" if rest else ""


def _facts(root: Path, number: int, seen: Seen, listed: Listed | None, *, cuda: str, driver: str) -> GpuFacts:
    node = read_number(root / "sys" / "bus" / "pci" / "devices" / seen.bus / "numa_node")
    return GpuFacts(
        index=listed.index if listed else number,
        name=seen.name,
        memory_bytes=(listed.memory_bytes if listed else None) or seen.memory_bytes,
        driver=listed.driver if listed else driver,
        cuda=cuda,
        compute=seen.compute,
        multiprocessors=seen.multiprocessors,
        bus=seen.bus,
        node=node if node is not None and node >= 0 else None,  # -1 where there are no nodes
        bandwidth_bytes_s=seen.bandwidth_bytes_s,
    )


def _driver_version(folder: Path) -> str:
    """As in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  date`."""
    first_line = read_text(folder / "version").partition("\n")[0]
    version = re.search(r"\b\d+\.\d+(\.\d+)?\b", first_line.replace("x86_64", ""))
    return version.group() if version else ""


def _explain(problem: str) -> str:
    if problem == "no library":
        return "CUDA's driver library was not found; a container needs the driver's compute capability"
    if problem == NO_DEVICE:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        return "CUDA shows none" if visible is None else f"CUDA_VISIBLE_DEVICES is {visible!r}"
    return f"CUDA answers {problem}" if problem.startswith("CUDA_") else f"asking CUDA {problem}"


def _note_hidden(hidden: list[int], all_of_them: int) -> tuple[str, ...]:
    if not hidden:
        return ()
    numbers = ", ".join(map(str, hidden))
    return (f"{len(hidden)} of {all_of_them} GPUs are hidden from this process: {numbers} (CUDA_VISIBLE_DEVICES)",)
