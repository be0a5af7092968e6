"""A recorded machine is the machine: what is written is read back, and slips in a file written by hand are found."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from antiphon.core.errors import CallerError
from antiphon.hardware.facts import AudioDevice, Cache, Core, GpuFacts, MachineFacts, MemoryNode, Rights
from antiphon.hardware.machine_file import facts_from_dict, facts_to_dict, machine_text, read_machine
from antiphon.hardware.probe_cpu import CpuFacts

pytestmark = pytest.mark.unit

RECORDED = sorted((Path(__file__).parent / "machines").glob("*.json"))
CPU = CpuFacts(
    model="Prozessor für alle",
    architecture="x86_64",
    logical_cores=4,
    usable_cores=2,
    flags=frozenset({"avx2", "avx"}),
    memory_bytes=8 << 30,
)
FULL = MachineFacts(
    cpu=CPU,
    quota_cores=1.5,
    cores=(Core(number=0, physical=0, socket=0, node=0, most_mhz=4000), Core(number=1, is_usable=False)),
    caches=(Cache(level=3, kind="unified", size_bytes=1 << 25, shared_by=(0, 1)),),
    nodes=(MemoryNode(number=0, size_bytes=8 << 30, cores=(0, 1)),),
    rights=Rights(fifo_priority=95, deadline=True, least_nice=-11, locked_memory_bytes=1 << 23, rtkit=True),
    gpus=(GpuFacts(index=1, name="Some GPU", memory_bytes=1 << 34, compute="9.0", multiprocessors=132, node=0),),
    audio=(AudioDevice(name="Card: Line", system="alsa", can_play=True),),
    system="Linux 6.12.0",
    container="docker",
    notes=("something is hidden",),
)
BARE = MachineFacts(
    cpu=CpuFacts(model="", architecture="", logical_cores=1, usable_cores=1, flags=None, memory_bytes=None)
)


@pytest.mark.parametrize("facts", [FULL, BARE])
def test_what_is_written_is_read_back(facts: MachineFacts) -> None:
    """Through a dictionary and through text, to the last field."""
    assert facts == facts_from_dict(facts_to_dict(facts))
    assert facts == facts_from_dict(json.loads(machine_text(facts)))
    assert machine_text(facts).isascii()  # so it survives whatever a shell makes of a redirected text


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_every_recorded_machine_is_read(file: Path) -> None:
    """And is written as it stands, so that a new recording shows only what changed."""
    assert file.read_text(encoding="utf-8") == machine_text(read_machine(file))


def test_the_schema_is_named_first() -> None:
    """Whoever opens the file sees what it is."""
    assert ["schema", "version", "cpu"] == list(facts_to_dict(BARE))[:3]
    assert ("antiphon-machine", 1) == tuple(facts_to_dict(BARE).values())[:2]


def test_fields_with_defaults_may_be_left_out() -> None:
    """A machine written by hand is short."""
    cpu = {"model": "X", "architecture": "x86_64", "logical_cores": 2, "usable_cores": 2, "flags": None}
    data = {"schema": "antiphon-machine", "version": 1, "cpu": {**cpu, "memory_bytes": None}, "quota_cores": 1}

    facts = facts_from_dict(data)

    assert (facts.cpu.model, facts.quota_cores, facts.cores) == ("X", 1.0, ())
    assert isinstance(facts.quota_cores, float)


def changed(**changes: object) -> dict[str, object]:
    return {**facts_to_dict(FULL), **changes}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "no recorded machine"),
        (None, "no recorded machine"),
        ({}, "no recorded machine"),
        (changed(schema="other"), "no recorded machine"),
        (changed(version=2), "version 2"),
        (changed(version=True), "version True"),
        (changed(version="x" * 500), "version 'xxx"),
        (changed(qouta_cores=1), "did you mean 'quota_cores'?"),
        (changed(sails=1), "a newer antiphon"),
        (changed(cpu=None), "machine.cpu is None"),
        (changed(cpu={}), "machine.cpu lacks its field 'model'"),
        (changed(quota_cores="2"), "machine.quota_cores is '2'"),
        (changed(quota_cores=True), "machine.quota_cores is True"),
        (changed(quota_cores=math.nan), "machine.quota_cores is nan"),
        (changed(quota_cores=10**400), "a finite number"),
        (changed(quota_cores=0), "machine.quota_cores is 0"),
        (changed(cores={}), "machine.cores is {}"),
        (changed(cores=[{"number": 0}, {"number": 0}]), "a number twice"),
        (changed(cores=[{"number": -1}]), "below 0"),
        (changed(cores=[{"number": 0}, {"number": 1.5}]), "machine.cores[1].number is 1.5"),
        (changed(caches=[{"level": 1, "kind": "data", "size_bytes": -1, "shared_by": []}]), "-1"),
        (changed(notes=[1]), "machine.notes[0] is 1"),
        (changed(rights={"deadline": 1}), "machine.rights.deadline is 1"),
        (changed(system="x", cpu={**facts_to_dict(FULL)["cpu"], "usable_cores": 0}), "usable_cores is 0"),  # type: ignore[dict-item]
    ],
)
def test_slips_are_found(data: object, said: str) -> None:
    """Each with the field's place, and no more of its value than a line holds."""
    with pytest.raises(CallerError) as caught:
        facts_from_dict(data)

    assert said in str(caught.value)
    assert caught.value.hint
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\0\xff", "[1]"])
def test_a_file_that_is_no_machine_is_refused(tmp_path: Path, text: str) -> None:
    """By name, with the command that makes one."""
    file = tmp_path / "machine.json"
    file.write_text(text, encoding="latin-1")

    with pytest.raises(CallerError, match=r"machine\.json"):
        read_machine(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """As the other files that a user names."""
    with pytest.raises(CallerError, match="cannot be read"):
        read_machine(tmp_path / "nowhere.json")
