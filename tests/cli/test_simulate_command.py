"""antiphon simulate shows what each order would do on a machine, for people, for programs and as a picture."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from PIL import Image

from antiphon.cli import simulate as simulating
from antiphon.cli.simulate import add
from antiphon.core.errors import CallerError

pytestmark = pytest.mark.unit

VM = str(Path(__file__).parents[1] / "hardware" / "machines" / "vm_2_cores.json")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings, models or costs of the machine that the tests run on."""
    import os

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    for variable in [name for name in os.environ if name.startswith("ANTIPHON_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(simulating, "LEAST_REPLIES", 20)


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["simulate", "--machine", VM, "--seconds", "5", *words])
    outcome: int = arguments.run(arguments)
    return outcome


def test_each_order_and_number_of_callers_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run("--callers", "1,2", "--orders", "none,laxity")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 cores, ")
    starts = [tuple(line.split()[-10:-9] + line.split()[:1]) for line in lines if " ms " in line and "%" in line]
    assert 4 == len(starts)
    assert 2 == sum(line.startswith("no scheduler") for line in lines)


def test_json_holds_all_figures_and_the_same_seed_gives_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for _ in range(2):
        assert 0 == run("--callers", "4", "--orders", "edf", "--json", "-")
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    (row,) = found[0]["outcomes"]
    assert ("antiphon.simulation/1", "edf", 4) == (found[0]["schema"], row["order"], row["callers"])
    assert 0 < row["busy"] < 1


def test_more_cores_make_replies_sooner(capsys: pytest.CaptureFixture[str]) -> None:
    times = []
    for cores in ("2", "8"):
        assert 0 == run("--callers", "8", "--orders", "laxity", "--json", "-", "--cores", cores)
        times.append(json.loads(capsys.readouterr().out)["outcomes"][0]["ready_p95_ms"])
    assert times[1] < times[0]


def test_a_setting_of_the_scheduler_counts(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = []
    for value in ("true", "false"):
        assert 0 == run("--callers", "4", "--orders", "laxity", "--json", "-", "--set", f"scheduling.yielding={value}")
        jobs.append(json.loads(capsys.readouterr().out)["outcomes"][0]["jobs"])
    assert jobs[1] < jobs[0]  # nobody stops and goes on


def test_figures_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "capacity.png"
    assert 0 == run("--callers", "1,4", "--orders", "none,laxity", "--picture", str(path))
    assert capsys.readouterr().out
    with Image.open(path) as picture:
        assert 2000 == picture.width


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--slices", "nothing.jsonl"), "cannot be read"),
        (("--recorded-on", VM), "--recorded-on is for --slices"),
        (("--period", "0"), "--period"),
        (("--picture", "no/folder/x.png", "--callers", "1", "--orders", "edf"), "cannot be written"),
        (("--json", "no/folder/x.json", "--callers", "1", "--orders", "edf"), "cannot be written"),
        (("--set", "models.language_model=http://localhost:1/v1"), "behind an address"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(CallerError, match=message):
        run(*words)


@pytest.mark.parametrize("words", [("--callers", "257"), ("--callers", "x"), ("--orders", "lifo"), ("--cores", "0")])
def test_a_slip_in_a_flag_is_told(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(*words)
    assert words[1] in capsys.readouterr().err
