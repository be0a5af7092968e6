"""Recorded decisions become scripts: who follows whom, how much each computes, by when it is wanted."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from tests.scheduling.tickets import ns

from antiphon.core.errors import CallerError
from antiphon.core.stamps import Stage
from antiphon.scheduling.batching import ONE_MORE
from antiphon.scheduling.decisions import Decision
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.workload import read_workload, workload_of

pytestmark = pytest.mark.unit


def row(number, stage, begins_ms, ends_ms, **others):
    """A decision of caller 1, turn 1 and claim 1; it begins when it is asked for."""
    what = {"claim": 1, "turn": 1, "caller": 1, "urgency": "draft", "due_ms": begins_ms + 150, "size": 0} | others
    return Decision(
        number=number,
        stage=str(stage),
        lane={Stage.RECOGNISE: "recognizer", Stage.SPEAK: "voice"}.get(stage, "language_model"),
        asked_ns=ns(begins_ms),
        began_ns=ns(begins_ms),
        ended_ns=ns(ends_ms),
        deadline_ns=ns(what.pop("due_ms")),
        estimate_ns=0,
        **what,
    )


def slices(*rows):
    (turn,) = workload_of(rows).turns
    return turn.slices


def test_a_job_follows_the_last_of_its_claim_that_had_ended_and_the_time_between_is_kept():
    first, second = slices(row(1, Stage.RECOGNISE, 1000, 1080), row(2, Stage.RECOGNISE, 1083, 1100))
    assert (first.after, first.gap_ns, first.work_ns) == (None, 0, ns(80))
    assert (second.after, second.gap_ns, second.work_ns) == (0, ns(3), ns(17))


def test_a_claim_s_first_job_keeps_its_place_in_the_turn():
    _, other = slices(row(1, Stage.RECOGNISE, 1000, 1080), row(2, Stage.RECOGNISE, 3000, 3100, claim=2))
    assert (other.claim, other.after, other.gap_ns) == (1, None, ns(2000))


def test_jobs_that_run_side_by_side_follow_the_same_one():
    _, second, third = slices(
        row(1, Stage.RECOGNISE, 0, 100), row(2, Stage.PROSODY, 100, 200), row(3, Stage.JUDGE, 110, 150)
    )
    assert (second.after, third.after, third.gap_ns) == (0, 0, ns(10))


def test_a_chunk_is_asked_for_when_so_much_is_written_and_the_one_before_is_voiced():
    writing, first, second = slices(
        row(1, Stage.THINK, 0, 400), row(2, Stage.SPEAK, 100, 130), row(3, Stage.SPEAK, 200, 240)
    )
    assert (first.along, first.part, first.after) == (0, 0.25, None)
    assert (second.along, second.part, second.after, second.gap_ns) == (0, 0.5, 1, 0)
    assert writing.work_ns == ns(400)


def test_stretches_of_a_job_that_made_way_are_one_again():
    (whole, chunk) = slices(
        row(1, Stage.THINK, 0, 100, made_way=True),
        row(2, Stage.SPEAK, 100, 150),
        row(3, Stage.THINK, 150, 350),
    )
    assert (whole.work_ns, whole.stage) == (ns(300), Stage.THINK)
    assert (chunk.along, chunk.part) == (0, pytest.approx(1 / 3))


def test_work_is_what_one_takes_alone():
    (one,) = slices(row(1, Stage.RECOGNISE, 0, 100 * (1 + ONE_MORE), size=20, company=1))
    assert one.work_ns == ns(100)


def test_batches_and_yielding_are_as_the_recording_says_whatever_the_stage():
    one, two, three = slices(
        row(1, Stage.RECOGNISE, 0, 80, size=1000, kind="encode (1000, 80)", most=8, can_yield=True),
        row(2, Stage.RECOGNISE, 80, 160, size=20, kind="", most=1, can_yield=False),
        row(3, Stage.THINK, 160, 300, most=1, can_yield=False),
    )
    assert [("encode (1000, 80)", 8), (None, 1), (None, 1)] == [(each.kind, each.most) for each in (one, two, three)]
    assert [True, False, False] == [one.can_yield, two.can_yield, three.can_yield]


def test_what_an_older_recording_does_not_say_is_told_from_stage_and_size():
    """Whisper's decodings behind encodings of one length go together; writing and reading yield."""
    encoding, decoding, writing = slices(
        row(1, Stage.RECOGNISE, 0, 80, size=1000),
        row(2, Stage.RECOGNISE, 80, 160, size=20),
        row(3, Stage.THINK, 160, 300),
    )
    assert [1, 4, 1] == [encoding.most, decoding.most, writing.most]
    assert ("decode", 1000) == decoding.kind
    assert [False, False, True] == [encoding.can_yield, decoding.can_yield, writing.can_yield]


def test_deadlines_by_urgency_are_told_from_those_of_the_reply():
    first, second, last = slices(
        row(1, Stage.RECOGNISE, 0, 200),
        row(2, Stage.SPEAK, 210, 250, due_ms=150),
        row(3, Stage.SPEAK, 300, 340, due_ms=2000, urgency="confirmed"),
    )
    assert (first.due_ns, second.due_ns, last.due_ns) == (None, ns(150), ns(2000))
    assert [False, False, True] == [first.is_after_sound, second.is_after_sound, last.is_after_sound]
    assert last.urgency is Urgency.CONFIRMED


def test_what_never_began_or_failed_or_is_nobody_s_is_left_out():
    kept = slices(
        row(1, Stage.RECOGNISE, 0, 100),
        row(2, Stage.RECOGNISE, 100, 100, dropped=True),
        row(3, Stage.RECOGNISE, 100, 120, failed=True),
        row(4, Stage.RECOGNISE, 100, 120, caller=0),
    )
    assert 1 == len(kept)


def test_what_a_call_begins_with_comes_with_its_first_turn():
    """Else a period of its own would pass with next to nothing to compute."""
    (turn,) = workload_of([row(1, Stage.PREFILL, 0, 100, turn=0), row(2, Stage.RECOGNISE, 3000, 3080, claim=2)]).turns
    assert [each.gap_ns for each in turn.slices] == [0, ns(3000)]


def test_what_nobody_was_answered_to_is_part_of_the_turn_before_it():
    """A cough, or the room's noise behind the last turn, is no turn that comes once a period."""
    rows = [
        row(1, Stage.RECOGNISE, 0, 100),
        row(2, Stage.SPEAK, 110, 150),
        row(3, Stage.RECOGNISE, 3000, 3100, turn=2, claim=2),
        row(4, Stage.RECOGNISE, 9000, 9100, turn=3, claim=3),
        row(5, Stage.SPEAK, 9110, 9150, turn=3, claim=3),
    ]
    first, second = workload_of(rows).turns
    assert [0, 110, 3000] == [each.gap_ns // 10**6 if each.after is None else 110 for each in first.slices]
    assert (1, 1) == (len(first.sounds), len(second.sounds))


def test_the_period_is_the_mean_from_turn_to_turn():
    rows = [
        row(turn, Stage.RECOGNISE, at_ms, at_ms + 100, turn=turn) for turn, at_ms in ((1, 0), (2, 4000), (3, 12_000))
    ]
    assert ns(6000) == workload_of(rows).period_ns


def test_a_slower_machine_takes_longer():
    work = workload_of([row(1, Stage.RECOGNISE, 0, 100), row(2, Stage.JUDGE, 101, 151)])
    assert [ns(200), ns(50)] == [each.work_ns for each in work.at_speed({Stage.RECOGNISE: 2.0}).turns[0].slices]


def test_a_recording_without_turns_is_refused(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps(asdict(row(1, Stage.THINK, 0, 10, caller=0))) + "\n", encoding="utf-8")
    with pytest.raises(CallerError, match="no turn of a caller"):
        read_workload(path)


def test_an_unknown_stage_is_refused():
    with pytest.raises(CallerError, match="unknown stage"):
        workload_of([row(1, "singing", 0, 10)])


def test_the_turns_that_come_along_all_have_sound_and_say_where_they_come_from():
    work = read_workload()
    assert all(turn.sounds and 0 < turn.pause_ns < work.period_ns for turn in work.turns)
    assert all(each.work_ns > 0 for turn in work.turns for each in turn.slices)
