"""`antiphon bench`: what its flags make of a plan, what they refuse, and what it does with results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.lab.runs import large, run, turn

from antiphon.cli import main, parser
from antiphon.cli.bench.flags import habits_of, plan_of
from antiphon.cli.bench.measuring import cut_short, turns_of
from antiphon.core.errors import CallerError
from antiphon.lab.plan import BenchPlan, Eagerness, Line, TurnDetection
from antiphon.lab.result import Outcome
from antiphon.lab.store import read_run, write_run

if TYPE_CHECKING:
    import argparse

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Away from any antiphon.toml."""
    monkeypatch.chdir(tmp_path)


def arguments(*words: str) -> argparse.Namespace:
    return parser().parse_args(["bench", *words])


def plan(*words: str) -> BenchPlan:
    return plan_of(arguments(*words))


def test_flags_make_a_plan() -> None:
    """Everything that the line says stands in the plan."""
    made = plan(
        "--url", "ws://localhost:1/v1/realtime", "--key", "secret", "--corpus", "speech", "--kinds", "clean, noisy",
        "--callers", "4", "--turns", "20", "--scenario", "barge-in", "--seed", "7", "--out", "here", "--name", "theirs",
        "--delay-ms", "40", "--jitter-ms", "5", "--loss", "0.01", "--eagerness", "high", "--vocabulary", "latte",
    )  # fmt: skip

    assert ("ws://localhost:1/v1/realtime", "secret", Path("speech"), ("clean", "noisy"), 4, 20) == (
        made.url,
        made.key,
        made.corpus,
        made.kinds,
        made.callers,
        made.turns,
    )
    assert ("barge-in", 7, Path("here"), "theirs", Line(delay_ms=40, jitter_ms=5, loss=0.01)) == (
        made.scenario,
        made.seed,
        made.out,
        made.shown_name,
        made.line,
    )
    assert (TurnDetection.SEMANTIC, Eagerness.HIGH) == (made.wishes.turn_detection, made.wishes.eagerness)


def test_the_key_stays_out_of_the_settings(tmp_path: Path) -> None:
    """Neither the result nor a traceback's view of the plan holds it; a file keeps it out of the list of processes."""
    (tmp_path / "key").write_text("secret\n")
    made = plan("--url", "ws://x", "--key-file", "key")

    assert "secret" == made.key
    assert "secret" not in json.dumps(made.settings())
    assert "secret" not in repr(made)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), TurnDetection.DEFAULT),
        (("--silence-ms", "300"), TurnDetection.SERVER),
        (("--by-hand",), TurnDetection.BY_HAND),
    ],
)
def test_who_ends_turns(words: tuple[str, ...], expected: TurnDetection) -> None:
    assert expected == plan(*words).wishes.turn_detection


def test_our_own_server_gets_its_settings() -> None:
    made = plan("--agent", "a.py", "--set", "turn.pause_ms=64", "--without", "prefill")

    assert ("--set", "turn.pause_ms=64", "--without", "prefill", "--agent", "a.py") == made.own_server


def test_our_own_server_is_measured_as_it_comes() -> None:
    """How many callers it takes on is a part of what is measured."""
    assert () == plan("--callers", "9").own_server


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--url", "http://x"), "the address is 'http://x'"),
        (("--url", "ws://x", "--agent", "a.py"), "do not reach the one at --url"),
        (("--callers", "0"), "--callers is 0"),
        (("--turns", "0"), "--turns is 0"),
        (("--loss", "2"), "--loss is 2"),
        (("--format", "mp3"), "--format is 'mp3'"),
        (("--silence-ms", "1"), "--silence-ms is 1"),
        (("--set", "turn.nonsense=1"), "nonsense"),
        (("--url", "ws://x", "--key-file", "nowhere"), "nowhere cannot be read"),
    ],
)
def test_what_is_wrong_is_named(words: tuple[str, ...], complaint: str) -> None:
    """Before anything is started."""
    with pytest.raises(CallerError, match=complaint):
        plan(*words)


def test_how_many_turns_there_will_be() -> None:
    """As the bar needs it; of a ramp nobody knows."""
    assert [5, 3, None] == [turns_of(plan(*words)) for words in (("--turns", "5"), (), ("--scenario", "ramp"))]


def test_flags_make_habits() -> None:
    made = habits_of(
        arguments("--barge-in-ms", "900", "--turns-per-line", "7", "--listens-s", "2", "--ruler-turns", "0")
    )

    assert (900.0, 7, 2.0, 0) == (made.barge_in_ms, made.turns_per_line, made.listens_s, made.ruler_turns)


def test_our_own_server_records_beside_the_result() -> None:
    """Another one cannot be told to."""
    assert ("--record", str(Path("here") / "logs")) == plan("--record", "--out", "here").own_server
    with pytest.raises(CallerError, match="--record is for a server of our own"):
        plan("--record", "--url", "ws://x")


def test_an_interrupted_run_says_so() -> None:
    left = cut_short(plan("--turns", "5"), [turn()])

    assert 1 == len(left.turns)
    assert "interrupted" in left.notes[0]


def test_a_report_is_made_again_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 if the requirements are met, 1 if not, 2 if they cannot be read."""
    monkeypatch.setattr("antiphon.lab.charts.find_spec", lambda _name: None)
    write_run(large(turns=30), tmp_path / "a")
    codes = [main(["bench", "report", "a", "--require", text]) for text in ("p50=5000", "p50=1", "p5=1")]
    out = capsys.readouterr()

    assert [0, 1, 2] == codes
    assert "p50=1: not met" in out.out
    assert "no figure 'p5'" in out.err
    assert (tmp_path / "a" / "report.html").is_file()


def test_results_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, or as JSON for programs."""
    write_run(large(turns=40, name="one"), tmp_path / "a")
    write_run(large(turns=40, name="two", speed=2.0), tmp_path / "b")
    said = main(["bench", "compare", "a/result.json", "b"]), capsys.readouterr().out
    plain = main(["bench", "compare", "a", "b", "--json"]), capsys.readouterr().out

    assert (0, 0) == (said[0], plain[0])
    assert "one's P50 is 0.50 of two's (0.50-0.50" in said[1]
    assert "one's P50" in json.loads(plain[1])["words"][0]


def test_what_is_measured_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes to the folder that --out names, and the requirements decide the exit code."""
    measured = large(turns=30)

    async def measure(plan: BenchPlan, *, on_turn, habits) -> object:
        for one in measured.turns:
            await on_turn(one)
        return measured

    monkeypatch.setattr("antiphon.lab.measure.measure", measure)
    monkeypatch.setattr("antiphon.lab.charts.find_spec", lambda _name: None)
    code = main(["bench", "--turns", "30", "--out", "results", "--require", "silent=0"])

    assert 1 == code
    assert measured.turns == read_run(tmp_path / "results").turns
    assert "silent=0: not met (1 of 30 turns)" in capsys.readouterr().out


def test_refusals_of_our_own_server_get_a_hint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server would not take so many on; the line says how it would."""

    async def measure(plan: BenchPlan, *, on_turn, habits) -> object:
        return run((turn(), turn(None, outcome=Outcome.REFUSED)))

    monkeypatch.setattr("antiphon.lab.measure.measure", measure)
    monkeypatch.setattr("antiphon.lab.charts.find_spec", lambda _name: None)

    assert 0 == main(["bench", "--out", "results"])
    assert "hint: --set capacity.conversations=N" in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run that is ended early leaves its turns behind."""

    async def measure(plan: BenchPlan, *, on_turn, habits) -> object:
        await on_turn(turn())
        raise KeyboardInterrupt

    monkeypatch.setattr("antiphon.lab.measure.measure", measure)

    assert 130 == main(["bench", "--out", "results"])
    assert (turn(),) == read_run(tmp_path / "results").turns
