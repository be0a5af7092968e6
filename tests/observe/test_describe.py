"""A timeline as JSON keeps every nanosecond, and its schema stays."""

from __future__ import annotations

import json

import pytest
from tests.observe.turns import answered, unanswered

from antiphon.core.stamps import Mark, TurnTimeline
from antiphon.observe.describe import SCHEMA, describe

pytestmark = pytest.mark.unit


def test_the_schema_is_what_its_documentation_says() -> None:
    record = json.loads(json.dumps(describe(answered()), allow_nan=False))
    assert record["schema"] == SCHEMA
    fields = ["schema", "turn", "voice_to_voice_ms", "note", "warning", "parts", "marks", "spans"]
    assert fields == list(record)
    assert {"name", "stage", "start_ms", "duration_ms"} == set(record["parts"][0])
    assert {"name", "stage", "model", "start_ms", "end_ms", "attributes"} == set(record["spans"][0])


def test_parts_and_marks_are_ms_from_the_last_word() -> None:
    record = describe(answered())
    assert record["voice_to_voice_ms"] == 400.0
    assert (record["parts"][0]) == {
        "name": "noticing the pause",
        "stage": "antiphon.vad",
        "start_ms": 0.0,
        "duration_ms": 100.0,
    }
    assert pytest.approx(sum(part["duration_ms"] for part in record["parts"]), abs=1e-9) == 400.0
    assert [str(mark) for mark in Mark] == list(record["marks"])
    assert record["marks"]["antiphon.speech.ended"] == 0.0
    assert record["spans"][1]["name"] == "speech_to_text whisper-tiny.en"
    assert record["spans"][1]["start_ms"] == -300.0


def test_no_reply_is_null_and_never_negative() -> None:
    record = describe(unanswered())
    assert (record["voice_to_voice_ms"], record["parts"], record["warning"]) == (None, [], False)
    assert record["note"]
    cut_in = describe(TurnTimeline(turn=1, marks={Mark.SPEECH_ENDED: 5, Mark.FIRST_SOUND: 1}, spans=()))
    assert (cut_in["voice_to_voice_ms"], cut_in["warning"]) == (None, True)
