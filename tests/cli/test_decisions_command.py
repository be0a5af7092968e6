"""antiphon decisions tells what waited and why, in a table, for programs and as a picture."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from antiphon.cli.decisions import add
from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.core.stamps import Stage
from antiphon.scheduling.decisions import Decision, DecisionLog

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def decision(number: int, asked_ms: int, began_ms: int, ended_ms: int, **more: Any) -> Decision:
    facts = {
        "caller": 1,
        "stage": str(Stage.RECOGNISE),
        "lane": "recognizer",
        "size": 10,
        "urgency": "draft",
        "deadline_ns": 150 * MILLISECOND_NS,
        "estimate_ns": 0,
    }
    return Decision(
        number=number,
        asked_ns=asked_ms * MILLISECOND_NS,
        began_ns=began_ms * MILLISECOND_NS,
        ended_ns=ended_ms * MILLISECOND_NS,
        **(facts | more),
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.jsonl"
    with DecisionLog(path) as log:
        log.write(decision(1, 0, 0, 100))
        log.write(decision(2, 20, 100, 200, caller=2, reason="recognizer is at work for others", ahead=(1,)))
        log.write(decision(3, 200, 200, 400, stage=str(Stage.THINK), lane="language_model", made_way=True))
        log.write(decision(4, 210, 210, 210, dropped=True))
    return path


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["decisions", *words])
    outcome: int = arguments.run(arguments)
    return outcome


def test_the_longest_waits_are_told_with_their_reasons(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(str(recorded), "--longest", "1")
    told = " ".join(capsys.readouterr().out.split())
    assert "0.02 s: speech_to_text for caller 2 waited 80.0 ms, because recognizer is at work for others" in told


def test_programs_get_a_row_for_each_stage_and_class(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nearest ranks; what was dropped before it began is no job."""
    assert 0 == run(str(recorded), "--json")
    found = json.loads(capsys.readouterr().out)
    rows = {row["stage"]: row for row in found["stages"]}
    assert {"chat", "speech_to_text"} == set(rows)
    heard = rows["speech_to_text"]
    assert (2, 0.0, 80.0, 100.0, 1, 0) == (
        *(heard[name] for name in ("jobs", "waited_p50_ms", "waited_p95_ms", "took_p95_ms", "late", "made_way")),
    )
    assert 1 == rows["chat"]["made_way"]
    assert [1] == found["longest"][0]["ahead"]


def test_one_caller_alone(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(str(recorded), "--caller", "2", "--json")
    assert 1 == sum(row["jobs"] for row in json.loads(capsys.readouterr().out)["stages"])


def test_a_stretch_is_drawn(recorded: Path, tmp_path: Path) -> None:
    picture = tmp_path / "jobs.png"
    assert 0 == run(str(recorded), "--picture", str(picture), "--from", "0", "--for", "0.5")
    with Image.open(picture) as image:
        assert image.width > image.height > 100


def test_what_cannot_be_shown_is_refused_with_the_remedy(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    for words, named in (
        ((str(tmp_path / "empty.jsonl"),), "holds no decision"),
        ((str(recorded), "--caller", "7"), "for caller 7"),
        ((str(recorded), "--picture", str(tmp_path / "a.png"), "--from", "9"), "nothing was decided"),
        ((str(recorded), "--for", "0"), "--for"),
        ((str(tmp_path / "none.jsonl"),), "cannot be read"),
    ):
        with pytest.raises(CallerError, match=named):
            run(*words)
