"""Figures by kind: the table's cells, the JSON, the picture."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from tests.lab.pauses import end, hold

from antiphon.core.errors import MachineError
from antiphon.lab.turn_end_report import ALL, Evaluation, as_json, cells, evaluate, show, write_evaluation

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

SURE = [end(*[1.0] * 5, clip="a"), end(*[1.0] * 5, clip="h", kind="hesitation")]
PAUSE = hold(0.55, *[0.0] * 5, clip="h", kind="hesitation")
BLIND = [end(*[0.5] * 5, clip="a"), end(*[0.5] * 5, clip="h", kind="hesitation")]
BLIND_PAUSE = hold(0.55, *[0.5] * 5, clip="h", kind="hesitation")


def evaluation() -> Evaluation:
    judged = {"sure": [*SURE, PAUSE], "blind": [*BLIND, BLIND_PAUSE]}
    return evaluate(judged, corpus="speech", step_s=0.1, up_to_s=0.5, notes=["mind this"])


def test_a_row_for_each_detector_in_each_kind() -> None:
    """All first; the sure one answers after 200 ms and cuts nobody off, the blind one waits the pause out."""
    found = evaluation()
    assert [ALL, "clean", "hesitation"] == list(found.groups)
    sure, blind = found.of(ALL)
    assert ["0.0", "0.0", "0.0", "200", "200", "0.000", "0.000"] == cells(sure)
    assert ["100.0", "100.0", "100.0", "600", "600", "0.000", "0.250"] == cells(blind)


def test_a_kind_without_pauses_borrows_a_policy() -> None:
    """Its waits stand in brackets, under the policy that is best over all kinds."""
    _, blind = evaluation().of("clean")
    assert ["-", "-", "-", "(600)", "(600)", "-", "-"] == cells(blind)


def test_a_single_kind_is_not_told_twice() -> None:
    """All would say the same."""
    found = evaluate({"sure": [SURE[1], PAUSE]}, corpus="speech", step_s=0.1, up_to_s=0.5)
    assert ["hesitation"] == list(found.groups)


def test_json_holds_the_policies_their_intervals_and_every_pause() -> None:
    """So that a program can do it again."""
    plain = json.loads(json.dumps(as_json(evaluation()), allow_nan=False))
    first = plain["groups"][0]
    best = first["fewest_cut_offs_within_mean"][0]
    assert ("sure", ALL, 2, 1, 2) == (first["detector"], first["kind"], first["turns"], first["pauses"], first["ends"])
    assert (0.2, True, 0, 0.0) == (best["budget"], best["reached"], best["cut_offs"], best["cut_off_share"])
    assert {"threshold", "delay_s", "timeout_s"} == set(best["policy"])
    assert {"clip": "h", "kind": "hesitation", "start_s": 0.5, "duration_s": 0.55, "scores": [0.0] * 5} == plain[
        "pauses"
    ]["sure"][2]
    assert plain["pauses"]["sure"][0]["duration_s"] is None


def test_the_table_says_what_it_rests_on() -> None:
    """The corpus, the counts and every note."""
    written = io.StringIO()
    show(evaluation(), Console(file=written, width=160))
    text = written.getvalue()
    for expected in ("speech, all: 2 ends, 1 pauses", "mind this", "eot-bench", "same corpus are comparable"):
        assert expected in text


def test_files_are_written(tmp_path: Path) -> None:
    """The JSON always, the picture where it can be drawn."""
    files = write_evaluation(evaluation(), tmp_path / "new")
    assert "turn-end.json" == files[0].name
    assert all(path.stat().st_size > 100 for path in files)
    assert not files[1:] or files[1].read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot be written"):
        write_evaluation(evaluation(), tmp_path / "file")


def test_without_any_pause_there_is_no_picture() -> None:
    """There would be nothing in it."""
    pytest.importorskip("matplotlib")
    from antiphon.lab.turn_end_charts import picture

    assert picture(evaluate({"sure": SURE[:1]}, corpus="speech", step_s=0.1, up_to_s=0.5)) is None
