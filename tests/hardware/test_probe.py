"""The whole probe, on whole machines: what their kernels write gives the machine as it was recorded."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.hardware.linux_trees import SHAPES, pretend

from antiphon.hardware import probe as module
from antiphon.hardware.machine_file import machine_text, read_machine
from antiphon.hardware.probe import probe

pytestmark = pytest.mark.unit

MACHINES = Path(__file__).parent / "machines"


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_machine_is_found_as_recorded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading is where faults hide; RECORD_MACHINES=1 writes the files anew, to be read before they are kept."""
    pretend(SHAPES[name], tmp_path, monkeypatch)

    found = probe(tmp_path)

    if os.environ.get("RECORD_MACHINES"):
        (MACHINES / f"{name}.json").write_text(machine_text(found), encoding="utf-8")
    assert machine_text(read_machine(MACHINES / f"{name}.json")) == machine_text(found)


def test_a_container_has_its_quota_and_not_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 cores are there and may all be run on, but 1.5 of them at a time, with 4 GiB."""
    pretend(SHAPES["container_1_5_of_64_cores"], tmp_path, monkeypatch)

    facts = probe(tmp_path)

    assert (facts.quota_cores, facts.cpu.usable_cores, facts.cpu.logical_cores) == (1.5, 1, 64)
    assert (len(facts.cores), all(core.is_usable for core in facts.cores)) == (64, True)
    assert (facts.cpu.memory_bytes, facts.container) == (4 << 30, "docker")


def test_nothing_readable_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc and /sys the cores are still counted."""
    pretend(SHAPES["arm_board_4_cores"], tmp_path, monkeypatch)

    facts = probe(tmp_path / "nowhere")

    assert [0, 1, 2, 3] == [core.number for core in facts.cores]
    assert ((), (), ()) == (facts.caches, facts.nodes, facts.audio)
    assert facts.system.startswith("Linux ")


def test_a_probe_that_breaks_becomes_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes nothing else with it."""
    pretend(SHAPES["laptop_4_cores"], tmp_path, monkeypatch)
    for name in ("probe_cpu", "probe_cores", "probe_caches", "probe_rights", "probe_gpus", "read_group_limits"):
        monkeypatch.setattr(module, name, _break)

    facts = probe(tmp_path)

    assert "cores could not be looked at: ZeroDivisionError: no luck" in facts.notes
    assert (6, 1, 4 + 2) == (len(facts.notes), facts.cpu.usable_cores, len(facts.audio))


def _break(*_: object) -> None:
    raise ZeroDivisionError("no luck")


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_tell_what_they_can(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores are counted; what only Linux tells is empty, even where files of its names lie about."""
    pretend(SHAPES["laptop_4_cores"], tmp_path, monkeypatch)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.delattr(os, "sched_getaffinity")

    facts = probe(tmp_path)

    assert (8, None, ()) == (len(facts.cores), facts.quota_cores, facts.audio)
    assert facts.rights.least_nice is None
    assert facts.notes == ()


def test_this_machine_has_an_answer() -> None:
    """The real probe runs here, and its answer can be kept."""
    facts = probe()

    assert facts.cores
    assert any(core.is_usable for core in facts.cores)
    assert not [note for note in facts.notes if "could not be looked at" in note]
