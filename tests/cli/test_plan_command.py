"""antiphon plan prints every choice with its reason, for people and for programs."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon import calibrate as measuring
from antiphon.cli.plan import add
from antiphon.core.errors import CallerError
from antiphon.hardware.stage_costs import REFERENCE

pytestmark = pytest.mark.unit

MACHINES = Path(__file__).parents[1] / "hardware" / "machines"
VM = str(MACHINES / "vm_2_cores.json")
ONE_EAR = ("--set", "models.quick_recognizer=")
QUICK = ("--set", "models.quick_recognizer=moonshine-tiny.en")
MEASURED = replace(REFERENCE, origin="measured", taken="2026-12-02T10:00:00+00:00", waited=0.0)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings, models or costs of the machine that the tests run on."""
    import os

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    for variable in [name for name in os.environ if name.startswith("ANTIPHON_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["plan", *words])
    outcome: int = arguments.run(arguments)
    return outcome


def test_every_choice_has_a_line_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Piped, a choice is one line, however long."""
    assert 0 == run("--machine", VM, *ONE_EAR)
    lines = capsys.readouterr().out.splitlines()
    rows = lines[next(number for number, line in enumerate(lines) if line.startswith("choice")) + 1 :]

    assert lines[0].startswith("AMD EPYC, 2 logical cores")
    assert 3 + 6 * 6 + 4 == len(rows)
    assert all(row.endswith(".") for row in rows)
    (line,) = (row for row in rows if row.startswith("recognizer threads"))
    assert "plan; cpu.recognizer_threads" in line


def test_a_quick_recognizer_has_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Six choices more, each with its reason; without one no word tells of it."""
    assert 0 == run("--machine", VM, *ONE_EAR)
    without = capsys.readouterr().out
    assert 0 == run("--machine", VM, *QUICK)
    lines = capsys.readouterr().out.splitlines()
    rows = lines[next(number for number, line in enumerate(lines) if line.startswith("choice")) + 1 :]

    assert "quick" not in without
    assert 3 + 6 * 7 + 4 == len(rows)
    assert all(row.endswith(".") for row in rows)
    (nice,) = (row.split() for row in rows if row.startswith("quick recognizer nice"))
    assert ["quick", "recognizer", "nice", "2", "plan;", "cpu.quick_recognizer_nice"] == nice[:6]


def test_json_tells_of_a_quick_recognizer_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run("--machine", VM, "--json", *ONE_EAR)
    assert "quick" not in capsys.readouterr().out
    assert 0 == run("--machine", VM, "--json", *QUICK)
    data = json.loads(capsys.readouterr().out)

    assert "moonshine-tiny.en" == {stage["stage"]: stage["model"] for stage in data["stages"]}["quick_recognizer"]
    assert (True, 2) == (data["costs"]["quick_recognition"]["median_ns"] > 0, data["costs"]["quick_recognizer_threads"])


def test_overrides_are_marked_with_their_origin(capsys: pytest.CaptureFixture[str]) -> None:
    Path("antiphon.toml").write_text("[cpu]\nrecognizer_threads = 1\n", encoding="utf-8")
    assert 0 == run("--machine", VM, "--set", "cpu.voice_nice=2")
    out = capsys.readouterr().out

    assert "cpu.recognizer_threads (antiphon.toml:2)" in out
    assert "cpu.voice_nice (--set)" in out
    (stage,) = (line for line in out.splitlines() if line.startswith("recognizer   "))
    assert "1*" in stage


def test_a_warning_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == run("--machine", str(MACHINES / "container_1_5_of_64_cores.json"), *ONE_EAR)
    assert "warning: 1.5 cores for five engines" in capsys.readouterr().out


def test_json_holds_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run("--machine", VM, "--json", "--set", "capacity.conversations=3")
    data = json.loads(capsys.readouterr().out)

    assert "antiphon.plan/1" == data["schema"]
    assert 3 == data["callers"]
    assert {"capacity.conversations": "--set"} == data["overridden"]
    stages = {stage["stage"]: stage for stage in data["stages"]}
    assert (2, [], 5) == tuple(stages["recognizer"][name] for name in ("threads", "cores", "nice"))
    assert {"choice", "value", "text", "setting", "is_overridden"} == set(stages["voice"]["reasons"][0])


def test_this_machine_can_be_planned_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever machine runs the tests, there is a plan."""
    assert run("--json") in {0, 1}
    assert "reference" == json.loads(capsys.readouterr().out)["costs"]["origin"]


def test_measured_costs_are_kept_and_used(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A later plan uses them and says so with their date."""
    monkeypatch.setattr(measuring, "calibrate", measured_as(MEASURED))
    run("--calibrate", *ONE_EAR)
    first = capsys.readouterr()
    run(*ONE_EAR)
    later = capsys.readouterr().out

    assert "measuring: the models" in first.err
    assert "kept in " in first.err
    assert "measured 2026-12-02" in later
    assert "generated token" in later
    assert "quick" not in later


def test_the_costs_of_quick_recognition_are_shown_where_there_is_any(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "calibrate", measured_as(MEASURED))
    run("--calibrate", *QUICK)

    assert "quick recognition" in capsys.readouterr().out


def test_measurements_spoiled_by_others_are_not_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "calibrate", measured_as(replace(MEASURED, waited=0.4)))
    run("--calibrate")
    assert "not kept: other programs kept the engines waiting for 40%" in capsys.readouterr().err
    run("--json")
    assert "reference" == json.loads(capsys.readouterr().out)["costs"]["origin"]


def measured_as(costs):
    async def calibrate(config, facts, *, note):
        note("the models")
        await asyncio.sleep(0)
        return costs

    return calibrate


def test_a_recorded_machine_is_not_measured() -> None:
    with pytest.raises(CallerError, match="cannot be measured"):
        run("--machine", VM, "--calibrate")


def test_a_file_that_is_no_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="nowhere"):
        run("--machine", str(tmp_path / "nowhere.json"))


def test_what_the_machine_does_not_have_is_refused() -> None:
    with pytest.raises(CallerError, match=r"cpu\.recognizer_threads is 9"):
        run("--machine", VM, "--set", "cpu.recognizer_threads=9")
