"""result.json: a run survives it whole, and what is no run is refused with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, nan

import pytest
from tests.lab.runs import large, run, turn

from antiphon.core.errors import CallerError, MachineError
from antiphon.lab.result import Outcome, Run, Turn
from antiphon.lab.store import from_json, read_run, to_json, write_files, write_run

pytestmark = pytest.mark.unit


def test_a_run_comes_back_as_it_was(tmp_path) -> None:
    """All fields of all turns, through the file and through its folder."""
    written = large(turns=40, notes=("one", "two"))
    path = write_run(written, tmp_path / "new")

    assert written == replace(read_run(path), settings=written.settings)
    assert read_run(path) == read_run(path.parent)
    assert [path] == list(path.parent.iterdir())


def test_no_turns() -> None:
    assert run() == from_json(to_json(run()))


def test_infinities_are_null_and_the_outcome_tells() -> None:
    """JSON has no infinity: None comes back, and `silent` still counts as infinite."""
    text = to_json(run((turn(inf, outcome=Outcome.SILENT, gaps_ms=(nan, 5.0), events_ms={"a": inf, "b": 1.0}),)))
    [back] = from_json(text).turns

    assert "Infinity" not in text
    assert "NaN" not in text
    assert (None, Outcome.SILENT, (5.0,), {"b": 1.0}) == (back.v2v_ms, back.outcome, back.gaps_ms, back.events_ms)


def test_fields_of_later_versions_are_skipped() -> None:
    plain = json.loads(to_json(run((turn(),))))
    plain["weather"] = "fine"
    plain["turns"][0]["mood"] = 3

    assert run((turn(),)) == from_json(json.dumps(plain))


def test_fields_that_were_missing_have_their_defaults() -> None:
    least = {"schema": 1, "name": "x", "scenario": "single", "settings": {}}
    turns = [{"clip": "a", "kind": "b", "outcome": "answered", "started_s": 0}]

    assert Run(
        name="x",
        scenario="single",
        settings={},
        turns=(Turn(clip="a", kind="b", outcome=Outcome.ANSWERED, started_s=0),),
    ) == from_json(json.dumps({**least, "turns": turns}))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema": 2}, "has schema 2, this Antiphon reads 1"),
        ({"schema": None}, "has schema None"),
        ({"turns": {}}, "turns is no list"),
        ({"turns": ["x"]}, r"turns\[0\] is no turn"),
        ({"name": 3}, "name is 3"),
        ({"turns": [{"clip": "a"}]}, r"turns\[0\] has no kind"),
        ({"turns": [{"clip": "a", "kind": "b", "outcome": "great", "started_s": 0}]}, r"outcome is 'great'"),
        ({"turns": [{"clip": "a", "kind": "b", "outcome": "silent", "started_s": "x"}]}, r"started_s is 'x'"),
        ({"turns": [{"clip": "a", "kind": "b", "outcome": "silent", "started_s": 0, "gaps_ms": ["x"]}]}, "gaps_ms"),
        ({"turns": [{"clip": "a", "kind": "b", "outcome": "silent", "started_s": 0, "slots": []}]}, "slots"),
    ],
)
def test_what_is_no_run_is_refused(change: dict, complaint: str) -> None:
    """The message names the field."""
    plain = {**json.loads(to_json(run())), **change}

    with pytest.raises(CallerError, match=complaint):
        from_json(json.dumps(plain))


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", '{"schema": 1}'])
def test_other_files_are_refused(text: str, tmp_path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)

    with pytest.raises(CallerError, match=r"other\.json"):
        read_run(path)


def test_a_missing_file_is_refused(tmp_path) -> None:
    with pytest.raises(CallerError, match="cannot be read"):
        read_run(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(MachineError, match="cannot be written"):
        write_run(run(), tmp_path / "file")


def test_files_are_replaced_as_a_whole(tmp_path) -> None:
    """Those that are not written stay, and no half of one is left."""
    folder = tmp_path / "new"
    write_files({"a": b"one", "b": b"two"}, folder)
    assert [folder / "b"] == write_files({"b": b"three"}, folder)
    assert {"a": b"one", "b": b"three"} == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_file_that_cannot_be_written_is_named(tmp_path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(MachineError, match="b cannot be written"):
        write_files({"a": b"one", "b": b"two"}, tmp_path)
