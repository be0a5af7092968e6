"""antiphon probe: a table for people, and a file that keeps the machine."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from antiphon.cli import probe
from antiphon.cli.probe import rows
from antiphon.hardware.facts import AudioDevice, Core, GpuFacts, MachineFacts
from antiphon.hardware.machine_file import facts_from_dict, read_machine
from antiphon.hardware.probe_cpu import CpuFacts

pytestmark = pytest.mark.unit

MACHINES = Path(__file__).parents[1] / "hardware" / "machines"
BARE = MachineFacts(
    cpu=CpuFacts(model="", architecture="arm64", logical_cores=8, usable_cores=8, flags=None, memory_bytes=None)
)


def antiphon(*words: str) -> int:
    parser = argparse.ArgumentParser()
    probe.add(parser.add_subparsers())
    arguments = parser.parse_args(["probe", *words])
    return int(arguments.run(arguments))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> MachineFacts:
    """The probe finds the container."""
    facts = read_machine(MACHINES / "container_1_5_of_64_cores.json")
    monkeypatch.setattr("antiphon.hardware.probe.probe", lambda: facts)
    return facts


def test_json_is_the_machine_and_nothing_else(machine: MachineFacts, capsys: pytest.CaptureFixture[str]) -> None:
    """`antiphon probe --json > machine.json` keeps it."""
    assert antiphon("--json") == 0
    assert machine == facts_from_dict(json.loads(capsys.readouterr().out))


@pytest.mark.usefixtures("machine")
def test_without_a_terminal_each_row_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """However long it is."""
    assert antiphon() == 0

    lines = capsys.readouterr().out.splitlines()

    assert "quota         1.5 cores by control group" in lines
    assert "cores         1 of 64 logical cores usable, 32 physical, to 3.7 GHz" in lines


def test_a_terminal_gets_a_table(
    machine: MachineFacts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same rows."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert antiphon() == 0

    out = capsys.readouterr().out

    assert all(subject in out for subject, _ in rows(machine))


@pytest.mark.parametrize("file", sorted(MACHINES.glob("*.json")), ids=lambda file: file.stem)
def test_every_machine_has_its_rows(file: Path) -> None:
    """None of them empty."""
    assert all(subject and text for subject, text in rows(read_machine(file)))


def test_what_is_not_known_is_said() -> None:
    """As on a system that tells little."""
    found = dict(rows(BARE))

    assert ("not known",) * 4 == tuple(found[name] for name in ("cpu", "instructions", "memory", "real time"))
    assert ("none", "none") == (found["gpu"], found["sound"])
    assert found["cores"] == "8 of 8 logical cores usable"


def test_cores_of_two_kinds_affinity_and_a_gpu() -> None:
    """How many of each, which may be used, and all of the GPU on its line."""
    cores = tuple(Core(number=n, most_mhz=3000 if n < 2 else 2000, is_usable=n not in {1, 2}) for n in range(6))
    gpu = GpuFacts(
        index=0, name="Some GPU", memory_bytes=24 * 10**9, multiprocessors=84, compute="8.6", bus="0000:01:00.0"
    )
    sound = tuple(AudioDevice(name=f"card {n}", system="alsa", can_play=True) for n in range(14))

    found = list(rows(MachineFacts(cpu=BARE.cpu, cores=cores, gpus=(gpu,), audio=sound, notes=("some [bold]note",))))

    assert ("cores", "8 of 8 logical cores usable, affinity to 0,3-5, 2 to 3.0 GHz, 4 to 2.0 GHz") in found
    assert ("gpu 0", "Some GPU, 24.0 GB, 84 multiprocessors, compute 8.6, 0000:01:00.0") in found
    assert [("sound", "card 11 (alsa: out)"), ("sound", "and 2 more; --json lists all")] == found[-3:-1]
    assert ("note", "some [bold]note") == found[-1]


def test_two_sockets_show_their_memory() -> None:
    """Which cores are near to which."""
    found = dict(rows(read_machine(MACHINES / "two_sockets_64_cores.json")))

    assert found["node 1"] == "270.1 GB, near to cores 32-63,96-127"
