"""A GPU is told if the driver and CUDA both answer for it; whatever else is there becomes a note."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from antiphon.hardware import cuda_child
from antiphon.hardware import probe_gpu as module
from antiphon.hardware.child import ChildEnd
from antiphon.hardware.facts import GpuFacts
from antiphon.hardware.probe_gpu import CudaAnswer, Listed, Seen, ask_cuda, bus_of, list_gpus, probe_gpus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

BUSES = ("0000:0f:00.0", "0001:10:00.0")
SEEN = tuple(
    Seen(bus=bus, name="NVIDIA H200", memory_bytes=150_109_880_320, compute="9.0", multiprocessors=132) for bus in BUSES
)
TWO = (
    "0, 00000000:0F:00.0, NVIDIA H200, 143771, 580.159.04\n"
    "1, 00000001:10:00.0, NVIDIA H200, 143771, 580.159.04\n"
)  # fmt: skip
BROKEN = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine whose nvidia-smi writes the text and ends with the code, and whose CUDA answers so; None: not there."""

    def build(text: str | None, answer: CudaAnswer | None, *, code: int = 0) -> Path:
        if text is not None:
            (tmp_path / "answer").write_text(text)
            tool = tmp_path / "bin" / "nvidia-smi"
            tool.parent.mkdir()
            tool.write_text(f"#!/bin/sh\ncat {tmp_path / 'answer'}\nexit {code}\n")
            tool.chmod(0o755)
        monkeypatch.setattr(
            module.shutil, "which", lambda _: None if text is None else str(tmp_path / "bin/nvidia-smi")
        )
        monkeypatch.setattr(module, "ask_cuda", lambda: answer)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        return tmp_path

    return build


def test_no_sign_of_a_driver_asks_nobody(machine) -> None:
    """At once, and without a note."""
    assert ((), ()) == probe_gpus(machine(None, None))


def test_driver_and_cuda_are_put_together(machine) -> None:
    """By PCI address: the order of the two may differ. /sys says which memory is near."""
    root = machine(TWO, CudaAnswer(cuda="13.0", gpus=SEEN[::-1]))
    for bus, node in zip(BUSES, ("1\n", "-1\n"), strict=True):
        (root / "sys/bus/pci/devices" / bus).mkdir(parents=True)
        (root / "sys/bus/pci/devices" / bus / "numa_node").write_text(node)

    gpus, notes = probe_gpus(root)

    first = GpuFacts(
        index=0,
        name="NVIDIA H200",
        memory_bytes=143_771 << 20,
        driver="580.159.04",
        cuda="13.0",
        compute="9.0",
        multiprocessors=132,
        bus=BUSES[0],
        node=1,
    )
    assert first == gpus[0]
    assert [(0, BUSES[0], 1), (1, BUSES[1], None)] == [(gpu.index, gpu.bus, gpu.node) for gpu in gpus]
    assert notes == ()


def test_a_gpu_that_is_hidden_is_not_told(machine) -> None:
    """It keeps its number, so that the tools' numbers still fit; the note says which are hidden."""
    gpus, notes = probe_gpus(machine(TWO, CudaAnswer(cuda="13.0", gpus=SEEN[1:])))

    assert [1] == [gpu.index for gpu in gpus]
    assert ("1 of 2 GPUs are hidden from this process: 0 (CUDA_VISIBLE_DEVICES)",) == notes


@pytest.mark.parametrize(
    ("text", "code", "answer", "said"),
    [
        (BROKEN, 9, CudaAnswer(), "no GPU can be used: nvidia-smi ended with code 9: NVIDIA-SMI has failed"),
        ("Failed to initialize NVML: Driver/library version mismatch\n", 18, CudaAnswer(), "version mismatch"),
        ("", 139, CudaAnswer(), "nvidia-smi ended with code 139"),
        ("<html>\n", 0, CudaAnswer(), "something that is no list"),
        (
            TWO,
            0,
            CudaAnswer(problem="CUDA_ERROR_SYSTEM_NOT_READY (802)"),
            "CUDA answers CUDA_ERROR_SYSTEM_NOT_READY (802)",
        ),
        (TWO, 0, CudaAnswer(problem="no library"), "driver library was not found"),
        (
            TWO,
            0,
            CudaAnswer(problem="ended with signal 11"),
            "(NVIDIA H200, NVIDIA H200): asking CUDA ended with signal 11",
        ),
        (TWO, 0, CudaAnswer(problem="CUDA_ERROR_NO_DEVICE (100)"), "CUDA shows none"),
    ],
)
def test_a_driver_that_does_not_work_is_noted(machine, text: str, code: int, answer: CudaAnswer, said: str) -> None:
    """No GPU, and why."""
    gpus, notes = probe_gpus(machine(text, answer, code=code))

    assert ((), 1) == (gpus, len(notes))
    assert said in notes[0].replace("'", "")


def test_a_variable_that_hides_all_is_named(machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever set it to nothing knows at once."""
    root = machine(TWO, CudaAnswer(problem="CUDA_ERROR_NO_DEVICE (100)"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    assert ((), ("no GPU can be used (NVIDIA H200, NVIDIA H200): CUDA_VISIBLE_DEVICES is ''",)) == probe_gpus(root)


@pytest.mark.parametrize(("text", "code"), [("No devices were found\n", 0), ("No devices were found\n", 6), ("", 0)])
def test_a_driver_without_a_gpu_is_no_news(machine, text: str, code: int) -> None:
    """Nothing, and no note."""
    assert ((), ()) == probe_gpus(machine(text, CudaAnswer(), code=code))


def test_without_the_tool_cuda_and_proc_tell(machine) -> None:
    """As in small containers; the driver's version stands in /proc, by two forms."""
    root = machine(None, CudaAnswer(cuda="13.0", gpus=SEEN))
    folder = root / "proc/driver/nvidia"
    folder.mkdir(parents=True)
    for line in (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@)",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Nov  4 01:02:03 UTC 2026",
    ):
        (folder / "version").write_text(f"{line}\nGCC version:  gcc version 15.3.0 (GCC)\n")

        gpus, notes = probe_gpus(root)

        assert [("580.159.04", 150_109_880_320)] * 2 == [(gpu.driver, gpu.memory_bytes) for gpu in gpus]
        assert [0, 1] == [gpu.index for gpu in gpus]
        assert notes == ()


def test_memory_shared_with_the_machine_is_as_cuda_says(machine) -> None:
    """nvidia-smi has no number for it."""
    gpus, _ = probe_gpus(machine("0, 0000000F:01:00.0, NVIDIA GB10, [N/A], 580.95.05\n", CudaAnswer(gpus=SEEN[:1])))

    assert 150_109_880_320 == gpus[0].memory_bytes


def test_a_tool_that_hangs_is_given_up(tmp_path: Path) -> None:
    """A driver in trouble hangs more often than it fails."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!{sys.executable} -IS\nwhile True: pass\n")
    tool.chmod(0o755)

    assert ((), "no answer within 0.3 s") == list_gpus(str(tool), timeout_s=0.3)


def test_one_damaged_line_spoils_no_other(tmp_path: Path) -> None:
    """What is no GPU is left out."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'warning: something'\necho '3, 00000000:0F:00.0, Some GPU, 1000, 5.1'\necho\n")
    tool.chmod(0o755)

    expected = Listed(index=3, bus=BUSES[0], name="Some GPU", memory_bytes=1000 << 20, driver="5.1")
    assert ((expected,), "") == list_gpus(str(tool))


@pytest.mark.parametrize(
    ("text", "bus"), [("00000000:0F:00.0", BUSES[0]), (" 0000:0f:00.0\n", BUSES[0]), ("", ""), ("[N/A]", "")]
)
def test_addresses_are_written_as_sys_does(text: str, bus: str) -> None:
    """The tool writes eight digits of the domain, CUDA four."""
    assert bus == bus_of(text)


def test_no_library_is_an_answer() -> None:
    """From a real child process."""
    assert CudaAnswer(problem="no library") == ask_cuda(library="libnowhere.so.1")


def test_a_library_that_is_another_is_an_answer() -> None:
    """The C library has none of the calls."""
    assert ask_cuda(library="libc.so.6").problem


def test_what_a_library_writes_itself_does_not_disturb(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is the last line."""
    output = 'some library: warning\n{"problem": "x", "cuda": "13.0", "gpus": []}\n'
    monkeypatch.setattr(module, "run_child", lambda *_, **__: ChildEnd(output=output, problem=""))

    assert ask_cuda() == CudaAnswer(problem="x", cuda="13.0")


@pytest.mark.parametrize("output", ["", "junk", "[]", "{}", '{"gpus": [{}]}', '{"gpus": [{"bus": "0:1", "x": 1}]}'])
def test_a_child_that_writes_something_else_is_a_problem(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made of it."""
    monkeypatch.setattr(module, "run_child", lambda *_, **__: ChildEnd(output=output, problem=""))

    assert ask_cuda() == CudaAnswer(problem="wrote something that is no answer")


class Library:
    """CUDA's calls as far as they are made, with two GPUs."""

    def __init__(self, **results: int) -> None:
        self.results = results

    def __getattr__(self, name: str):
        values = {
            "cuDriverGetVersion": 12_080,
            "cuDeviceGetCount": 2,
            "cuDeviceTotalMem_v2": 1 << 34,
            "cuDeviceGetName": b"Some GPU",
            "cuDeviceGetPCIBusId": b"0000:0F:00.0",
            "cuGetErrorName": b"CUDA_ERROR_SOME",
        }

        def call(*arguments):
            if name == "cuDeviceGet":
                arguments[0]._obj.value = arguments[1]
            elif name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = {16: 84, 36: 8_001_000, 37: 384, 75: 8, 76: 6}[arguments[1]]
            elif name == "cuGetErrorName":
                arguments[1]._obj.value = values[name]
            elif name in values:
                getattr(arguments[0], "_obj", arguments[0]).value = values[name]
            return self.results.get(name, 0)

        return call


def test_cuda_is_asked_for_each_gpu() -> None:
    """The child's answer is read as it is written."""
    found = cuda_child.describe(Library())  # type: ignore[arg-type]

    gpu = {
        "bus": "0000:0F:00.0",
        "name": "Some GPU",
        "memory_bytes": 1 << 34,
        "compute": "8.6",
        "multiprocessors": 84,
        "bandwidth_bytes_s": 768_096_000_000,
    }
    assert {"problem": "", "cuda": "12.8", "gpus": [gpu, gpu]} == json.loads(json.dumps(found))


@pytest.mark.parametrize("call", ["cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute"])
def test_cuda_errors_have_their_names(call: str) -> None:
    """And end the questions; the version was told before."""
    found = cuda_child.describe(Library(**{call: 802}))  # type: ignore[arg-type]

    assert {"problem": "CUDA_ERROR_SOME (802)", "cuda": "12.8", "gpus": []} == found
