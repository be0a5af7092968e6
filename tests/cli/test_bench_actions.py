"""`antiphon bench` replay, sweep and ablate: what their flags ask for, what they refuse, and what they leave behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.hindsight.recorded import turn as recorded_turn
from tests.hindsight.recorded import write_log
from tests.lab.runs import run, turn

from antiphon.cli import main, parser
from antiphon.cli.bench.flags import LOGS
from antiphon.cli.bench.sweep import wishes
from antiphon.lab.plan import BenchPlan, Eagerness, TurnDetection
from antiphon.lab.store import read_run, write_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from antiphon.lab.clips import Clip
    from antiphon.lab.result import Run
    from antiphon.lab.schedule import Habits

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Away from any antiphon.toml, and without pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("antiphon.lab.charts.find_spec", lambda _name: None)


def measured_by(monkeypatch: pytest.MonkeyPatch, latencies_ms: Sequence[float]) -> list[BenchPlan]:
    """Live runs of one turn each that come out so; the plans that were carried out."""
    plans: list[BenchPlan] = []

    async def measure(plan: BenchPlan, *, on_turn: Any, habits: Habits) -> Run:
        plans.append(plan)
        found = turn(latencies_ms[len(plans) - 1])
        await on_turn(found)
        return run((found,))

    monkeypatch.setattr("antiphon.lab.measure.measure", measure)
    return plans


# replay


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A run of one turn, with its log."""
    folder = tmp_path / "run"
    settings = {**BenchPlan(turns=1).settings(), "habits": {}}
    write_run(run((recorded_turn(),), settings=settings), folder)
    write_log(folder / LOGS)
    return folder


def test_replay_shows_the_frontier(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every combination, the baselines, how well the recorded settings come out, and where it was written."""
    code = main(["bench", "replay", str(recorded), "--sweep", "turn.shortest_wait_ms=100,600"])
    out = capsys.readouterr().out
    told = json.loads((recorded / "replay" / "trade.json").read_text())

    assert 0 == code
    assert "ours        shortest_wait_ms=100" in out
    assert "The recorded settings again: 1 of 1 turns come out as they were, latencies within 0.0 ms." in out
    assert ["ours", "silence", "smart-turn"] == [family["name"] for family in told["families"]]
    assert [520, 620] == [trial["p95_ms"] for trial in told["families"][0]["trials"]]
    assert {"turns": 1, "same_outcome": 1, "worst_ms": 0.0, "own_lags": 1} == told["check"]


def test_replay_as_json(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["bench", "replay", str(recorded), "--no-baselines", "--json", "--out", "elsewhere"])
    told = json.loads(capsys.readouterr().out)

    assert [("ours", "as recorded")] == [(each["name"], each["trials"][0]["name"]) for each in told["families"]]


@pytest.mark.parametrize(("live_ms", "code"), [(535.0, 0), (560.0, 1)])
def test_replay_is_validated_live(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], live_ms: float, code: int
) -> None:
    """The point is measured with its settings; too far off is a finding."""
    plans = measured_by(monkeypatch, [live_ms])
    words = ["--no-baselines", "--sweep", "turn.shortest_wait_ms=100", "--validate", "1"]

    assert code == main(["bench", "replay", str(recorded), *words])
    assert ("--set", "turn.shortest_wait_ms=100") == plans[0].own_server
    assert f"P95 {live_ms:.0f} ms live, 520 ms replayed (+{live_ms - 520:.0f} ms)" in capsys.readouterr().out
    (told,) = json.loads((recorded / "replay" / "validation.json").read_text())
    assert (live_ms - 520, code == 0) == (told["p95_apart_ms"], told["is_near"])


def test_replay_refuses_what_it_cannot_know(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["bench", "replay", str(recorded), "--sweep", "whisper.beams=1,2"])
    assert 2 == main(["bench", "replay", "nowhere"])
    assert 2 == main(["bench", "replay", str(recorded), "--logs", "nowhere"])
    assert "`antiphon bench --record` makes one" in capsys.readouterr().err


# sweep


def test_sweep_measures_each_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder each, and the frontier of all."""
    plans = measured_by(monkeypatch, [300.0, 500.0])
    code = main(["bench", "sweep", "--url", "ws://x", "--silence-ms", "200,500", "--out", "found", "--name", "theirs"])
    told = json.loads((tmp_path / "found" / "trade.json").read_text())

    assert 0 == code
    assert [200, 500] == [plan.wishes.silence_ms for plan in plans]
    assert [300.0] == [one.v2v_ms for one in read_run(tmp_path / "found" / "silence-200-ms").turns]
    assert [("theirs", ["silence 200 ms"])] == [(each["name"], each["frontier"]) for each in told["families"]]
    assert "theirs" in capsys.readouterr().out


def test_sweep_asks_for_eagerness() -> None:
    arguments = parser().parse_args(["bench", "sweep", "--url", "ws://x", "--eagerness", "low, high"])

    assert [Eagerness.LOW, Eagerness.HIGH] == [wish.eagerness for _, _, wish in wishes(arguments)]
    assert {TurnDetection.SEMANTIC} == {wish.turn_detection for _, _, wish in wishes(arguments)}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--eagerness", "low,keen"], "--eagerness keen is none"),
        (["--silence-ms", "200,soon"], "--silence-ms soon is no number"),
        (["--silence-ms", "1"], "--silence-ms is 1"),
        (["--silence-ms", ","], "0 values are listed"),
    ],
)
def test_sweep_says_what_is_wrong(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["bench", "sweep", "--url", "ws://x", *words])
    assert complaint in capsys.readouterr().err


# ablate


def test_ablate_tells_what_each_mechanism_is_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each group has a server with everything beside it; every run is kept."""
    asked: list[dict[str, tuple[str, ...]]] = []

    async def side_by_side(
        variants: Mapping[str, tuple[str, ...]], clips: Sequence[Clip], *_: object, on_turn: Any
    ) -> dict[str, Run]:
        asked.append(dict(variants))
        return {
            name: run(tuple(turn(800.0 if name == "prefill" else 400.0, clip=clip.name) for clip in clips), name=name)
            for name in variants
        }

    monkeypatch.setattr("antiphon.lab.side_by_side.side_by_side", side_by_side)
    words = ["--mechanisms", "speculation,prefill", "--alive", "2", "--clips", "2", "--out", "found"]

    assert 0 == main(["bench", "ablate", *words])
    assert [
        {"everything": (), "speculation": ("--without", "speculation")},
        {"everything": (), "prefill": ("--without", "prefill")},
    ] == asked
    told = json.loads((tmp_path / "found" / "ablation.json").read_text())
    assert [("speculation", 1.0), ("prefill", 2.0)] == [
        (each["name"], each["percentiles"]["95"]["ratio"]) for each in told["mechanisms"]
    ]
    assert 2 == len(told["clips"])
    assert {
        "speculation",
        "prefill",
        "everything-beside-speculation",
        "everything-beside-prefill",
        "ablation.json",
    } == {path.name for path in (tmp_path / "found").iterdir()}
    assert "prefill" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--mechanisms", "prefil"], "did you mean 'prefill'"),
        (["--mechanisms", "prefill,prefill"], "named twice"),
        (["--alive", "1"], "--alive is 1"),
        (["--clips", "0"], "--clips is 0"),
    ],
)
def test_ablate_says_what_is_wrong(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["bench", "ablate", *words])
    assert complaint in capsys.readouterr().err
