"""The file of decisions."""

from __future__ import annotations

import json

import pytest

from antiphon.core.errors import CallerError
from antiphon.scheduling.decisions import Decision, DecisionLog, read_decisions

pytestmark = pytest.mark.unit

DECISION = Decision(
    number=3,
    caller=1,
    turn=2,
    claim=9,
    stage="speech_to_text",
    lane="recognizer",
    size=1000,
    urgency="draft",
    asked_ns=10,
    began_ns=30,
    ended_ns=130,
    deadline_ns=150,
    estimate_ns=90,
    kind="decode (500, 384) 4 0",
    most=4,
    can_yield=False,
    reason="recognizer is at work for others",
    ahead=(1, 2),
)


def test_what_is_written_is_read_again(tmp_path):
    file = tmp_path / "jobs.jsonl"
    for _ in range(2):  # a second run appends
        with DecisionLog(file) as log:
            log.write(DECISION)
    assert [DECISION, DECISION] == list(read_decisions(file))
    assert (DECISION.waited_ns, DECISION.took_ns) == (20, 100)


def test_fields_of_a_later_version_are_ignored(tmp_path):
    file = tmp_path / "jobs.jsonl"
    with DecisionLog(file) as log:
        log.write(DECISION)
    file.write_text(file.read_text().replace("{", '{"later":1,', 1))
    assert [DECISION] == list(read_decisions(file))


def test_fields_that_an_earlier_version_lacked_are_not_known(tmp_path):
    file = tmp_path / "jobs.jsonl"
    with DecisionLog(file) as log:
        log.write(DECISION)
    row = json.loads(file.read_text())
    file.write_text(json.dumps({name: row[name] for name in row if name not in {"kind", "most", "can_yield"}}) + "\n")
    (read,) = read_decisions(file)
    assert ("", None, None) == (read.kind, read.most, read.can_yield)


@pytest.mark.parametrize("line", ["{}", "[1]", "no json"])
def test_another_file_is_refused_by_its_line(tmp_path, line):
    file = tmp_path / "jobs.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(CallerError, match="line 1 is no decision"):
        list(read_decisions(file))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(CallerError, match="cannot be written"):
        DecisionLog(tmp_path / "nowhere" / "jobs.jsonl")
