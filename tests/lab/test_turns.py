"""The lab against a server whose every delay is known, in virtual time: what it says is what happened.

The clip's last speech sample lies 5 ms into a frame, so the server has it 15 ms later.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.lab.fake_server import Answer, Script, speech
from tests.lab.stage import turns_with

from antiphon.core.errors import PeerError
from antiphon.lab.plan import SessionWishes, TurnDetection
from antiphon.lab.result import Outcome, Turn
from antiphon.lab.turns import NEVER_OVER

pytestmark = pytest.mark.unit

REST_MS = 15.0
NEAR = 0.05  # ms; a sample lasts 0.04


def only(script: Script, *said: object, **more: object) -> Turn:
    (turn,), _ = turns_with(script, list(said), **more)
    return turn


@pytest.mark.parametrize("padding_ms", [0, 40, 310])
def test_latency_runs_from_the_last_speech_sample_to_the_first_audible_one(padding_ms: float) -> None:
    """The rest of the frame, the server's delay, and the silence that its sound begins with."""
    turn = only(Script(answers=(Answer(delay_ms=300, padding_ms=padding_ms),)))
    assert (Outcome.ANSWERED, None, "", 600.0) == (turn.outcome, turn.cut_in_ms, turn.error, turn.reply_ms)
    assert pytest.approx(REST_MS + 300 + padding_ms, abs=NEAR) == turn.v2v_ms


def test_a_click_before_the_speech_is_no_answer() -> None:
    """It is too short to be sound of speech; what comes after the silence behind it is."""
    turn = only(Script(answers=(Answer(delay_ms=300, click_ms=3, padding_ms=100),)))
    assert pytest.approx(REST_MS + 300 + 103, abs=NEAR) == turn.v2v_ms


@pytest.mark.parametrize("is_paced", [True, False])
def test_a_reply_is_the_same_paced_or_all_at_once(is_paced: bool) -> None:
    """A client plays both alike, and neither has gaps."""
    turn = only(Script(answers=(Answer(sound_ms=(400, 150, 400), chunk_ms=40, is_paced=is_paced),)))
    assert (950.0, (), 0) == (turn.reply_ms, turn.gaps_ms, turn.splits)
    assert pytest.approx(REST_MS + 300, abs=NEAR) == turn.v2v_ms


def test_late_sound_inside_a_reply_is_a_gap() -> None:
    """As long as the listener waited; a pause of the voice's own is none, nor a stall that what has come covers."""
    stalled = Answer(sound_ms=(400, 150, 400), chunk_ms=100, is_paced=True, stalls=((2, 80),))
    assert (80.0,) == pytest.approx(only(Script(answers=(stalled,))).gaps_ms, abs=NEAR)
    covered = Answer(sound_ms=(900,), chunk_ms=300, stalls=((1, 200), (2, 350)))
    assert () == only(Script(answers=(covered,))).gaps_ms


def test_sound_before_the_true_end_is_a_cut_in() -> None:
    """It is told by how much, the turn has no latency, and the answer that follows is a split."""
    hesitant = speech(305, 600, 205)  # the voice stops at 405, speech ends at 1210 ms of the clip
    cut = Answer(delay_ms=350, sound_ms=(300,))
    turn = only(Script(answers=(cut, Answer())), hesitant)
    assert (Outcome.CUT_IN, None, 1) == (turn.outcome, turn.v2v_ms, turn.splits)
    assert pytest.approx(1110 + 100 - (420 + 350), abs=NEAR) == turn.cut_in_ms
    assert turn.transcript == "one latte one latte"


def test_sound_that_was_taken_back_before_it_was_audible_is_no_cut_in() -> None:
    """Silence came, the caller went on, the rest was never played."""
    hesitant = speech(305, 600, 205)
    retracted = Answer(delay_ms=550, padding_ms=400)  # silence from 370 before the voice goes on until 30 after
    turn = only(Script(answers=(retracted, Answer()), notices_ms=20), hesitant)
    assert (Outcome.ANSWERED, 0) == (turn.outcome, turn.splits)
    assert pytest.approx(REST_MS - 5 + 300, abs=20) == turn.v2v_ms


@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [
        (Answer(is_silent=True), Outcome.SILENT, ""),
        (Answer(sound_ms=(), padding_ms=400), Outcome.SILENT, ""),
        (Answer(sound_ms=(), padding_ms=100, click_ms=3), Outcome.SILENT, ""),
        (Answer(error="llm_failed"), Outcome.FAILED, "llm_failed: sorry"),
        (Answer(status="failed", sound_ms=(), padding_ms=20), Outcome.FAILED, "llm_failed: no"),
        (Answer(hangs_up=True), Outcome.FAILED, "the server closed the line with code 1011"),
    ],
)
def test_a_turn_without_a_reply_says_why(answer: Answer, outcome: Outcome, error: str) -> None:
    """Silence, sound that nobody can hear, an error, a failed response, a lost line."""
    turn = only(Script(answers=(answer,)), patience_s=1.0)
    assert (outcome, None, error) == (turn.outcome, turn.v2v_ms, turn.error)


@pytest.mark.parametrize(
    "script", [Script(refuses="session_limit_reached", close_code=1008), Script(close_code=1013, is_full=True)]
)
def test_a_full_server_is_asked_again_and_then_counted(script: Script) -> None:
    """By error code or by close code; a caller without a schedule comes back a few times, one with a schedule not."""
    (turn,), stage = turns_with(script)
    assert (Outcome.REFUSED, False, None) == (turn.outcome, stage.is_reached, turn.v2v_ms)
    assert 4.0 <= turn.started_s
    turns, _ = turns_with(script, [speech(205, name="a"), speech(205, name="b")], habits={"period_s": 5.0})
    assert [(Outcome.REFUSED, 1.0), (Outcome.REFUSED, 6.0)] == [(turn.outcome, turn.due_s) for turn in turns]


def test_a_server_that_refuses_the_session_ends_the_run() -> None:
    """With the server's own words."""
    with pytest.raises(BaseExceptionGroup) as caught:
        turns_with(Script(refuses_update="unsupported_vad"))
    assert caught.group_contains(PeerError, match="unsupported_vad: no")


def test_the_old_names_are_understood() -> None:
    """A server that shows a beta session is asked in the beta's words, and its events are read."""
    script = Script(beta=True, answers=(Answer(padding_ms=20),))
    turn = only(script, wishes=SessionWishes(turn_detection=TurnDetection.SERVER, silence_ms=300))
    asked = script.got[0]["session"]
    assert ({"type": "server_vad", "silence_duration_ms": 300}, "pcm16") == (
        asked["turn_detection"],
        asked["input_audio_format"],
    )
    assert pytest.approx(REST_MS + 300 + 20, abs=NEAR) == turn.v2v_ms
    assert turn.reply == "Coming up."


def test_telephone_sound_is_measured_as_well() -> None:
    """G.711 at 8 kHz in both directions."""
    said = speech(205, wire="audio/pcmu")
    turn = only(Script(answers=(Answer(padding_ms=20),)), said, wishes=SessionWishes(format="audio/pcmu"))
    assert pytest.approx(REST_MS + 300 + 20, abs=0.2) == turn.v2v_ms
    assert pytest.approx(600, abs=0.2) == turn.reply_ms


def test_the_rate_of_replies_is_what_the_server_says() -> None:
    """Whatever was asked for."""
    turn = only(Script(output={"type": "audio/pcm", "rate": 16_000}))
    assert pytest.approx(600, abs=0.2) == turn.reply_ms


def test_stamps_are_asked_for_by_themselves() -> None:
    """A server that does not know them refuses that alone."""
    stamped = Answer(stages={"antiphon.transcribed": 120.5})
    known, strange = Script(answers=(stamped,), knows_stamps=True), Script(answers=(stamped,))
    (turn,), stage = turns_with(known, manners={"wants_stamps": True})
    assert ({"antiphon.transcribed": 120.5}, []) == (turn.stages_ms, stage.notes)
    (turn,), stage = turns_with(strange, manners={"wants_stamps": True})
    assert (Outcome.ANSWERED, ["the server offers no stamps of its own"]) == (turn.outcome, stage.notes)


def test_by_hand_the_caller_commits_with_the_last_speech_sample() -> None:
    """And asks for the reply."""
    wishes = SessionWishes(turn_detection="none")  # type: ignore[arg-type]
    turn = only(Script(answers=(Answer(padding_ms=70),)), wishes=wishes)
    assert pytest.approx(REST_MS + 70, abs=NEAR) == turn.v2v_ms


def test_a_greeting_is_heard_out() -> None:
    """It is no cut-in, and no answer."""
    turn = only(Script(greeting=Answer(sound_ms=(900,))))
    assert (Outcome.ANSWERED, 0) == (turn.outcome, turn.splits)
    assert turn.started_s > 0.9


def test_several_turns_on_one_line_each_have_their_own() -> None:
    """The next one waits until the reply was played, though all of it came at once."""
    turns, _ = turns_with(Script(), [speech(205, name=name) for name in "abcd"], scenario="multi-turn")
    assert ["answered"] * 4 == [turn.outcome for turn in turns]
    assert [0, 1, 2, 3] == [turn.number for turn in turns]
    gaps_s = [after.started_s - before.started_s for before, after in pairwise(turns)]
    assert all(gap_s > 0.3 + 0.3 + 0.6 for gap_s in gaps_s)


@pytest.mark.parametrize(("is_paced", "stop_ms"), [(True, 200), (False, 20)])
def test_a_caller_that_talks_over_a_reply_knows_when_it_stopped(is_paced: bool, stop_ms: float) -> None:
    """From its first speech sample to the last audible one: the frame, and the server's time to notice.

    A server that had sent all of it takes no time here, but playback stops only when it says so.
    """
    script = Script(answers=(Answer(sound_ms=(4000,), is_paced=is_paced), Answer()), notices_ms=180)
    clips = [speech(205, name="a"), speech(205, name="b")]
    habits, manners = {"barge_in_ms": 1000}, {"checks_truncation": True}
    first, second = turns_with(script, clips, scenario="barge-in", habits=habits, manners=manners)[0]
    assert (Outcome.ANSWERED, None) == (first.outcome, first.stop_ms)
    assert pytest.approx(stop_ms, abs=20) == second.stop_ms
    assert second.heard_until_ms == pytest.approx(1000 + second.stop_ms, abs=1)
    assert pytest.approx(0, abs=1) == second.truncation_error_ms
    assert (Outcome.ANSWERED, None, 0) == (second.outcome, second.cut_in_ms, second.splits)
    assert pytest.approx(first.reply_ms, abs=1) == second.heard_until_ms


def test_a_server_that_keeps_more_than_was_heard_is_found_out() -> None:
    """By the item's own sound, which it shows when it is asked."""
    script = Script(answers=(Answer(sound_ms=(4000,)), Answer()), keeps_off_ms=250)
    habits, manners = {"barge_in_ms": 1000}, {"checks_truncation": True}
    clips = [speech(205, name="a"), speech(205, name="b")]
    _, second = turns_with(script, clips, scenario="barge-in", habits=habits, manners=manners)[0]
    assert pytest.approx(250, abs=1) == second.truncation_error_ms


def test_a_reply_that_is_too_short_to_talk_over_is_told() -> None:
    """The second clip is then said after it."""
    clips = [speech(205, name="a"), speech(205, name="b")]
    _, second = turns_with(Script(), clips, scenario="barge-in", habits={"barge_in_ms": 1000})[0]
    assert (Outcome.ANSWERED, None, NEVER_OVER) == (second.outcome, second.stop_ms, second.error)


def test_a_turn_that_begins_late_counts_from_when_it_was_due() -> None:
    """A slow answer makes the next turn late, and that is the server's fault."""
    slow = Answer(delay_ms=3000, sound_ms=(300,))
    clips = [speech(205, name="a"), speech(205, name="b")]
    first, second = turns_with(Script(answers=(slow, Answer())), clips, habits={"period_s": 2.0})[0]
    assert (1.0, 0.0) == (first.due_s, first.late_ms)
    assert pytest.approx(REST_MS + 3000, abs=NEAR) == first.v2v_ms
    assert second.due_s == 3.0
    assert second.late_ms > 1300
    assert pytest.approx(300 + second.late_ms, abs=21) == second.v2v_ms


def test_callers_are_measured_apart() -> None:
    """Each on its own line, by its own schedule."""
    clips = [speech(205, name=name) for name in "abcdef"]
    turns, stage = turns_with(Script(), clips, scenario="callers", callers=3)
    assert [2, 2, 2] == [sum(turn.caller == caller for turn in turns) for caller in range(3)]
    assert {3} == {turn.callers for turn in turns}
    assert all(turn.v2v_ms is not None and 300 <= turn.v2v_ms <= 320.1 for turn in turns)
    assert 0.0 == stage.lateness.percentile_ms(100)


def test_a_ramp_ends_where_turns_are_lost() -> None:
    """The level before is what the server holds."""
    answers = (*(Answer(sound_ms=(100,)),) * 40, Answer(error="overloaded"))
    turns, stage = turns_with(Script(answers=answers), scenario="ramp", ramp_limit=8, habits={"level_turns": 1})
    assert ({1, 2, 3}, ["2 of (1, 2, 3)"]) == ({turn.callers for turn in turns}, stage.notes)
    assert 60 == len(turns)


def test_a_server_that_fell_silent_before_it_heard_the_caller_is_measured_as_well() -> None:
    """All that it had sent was heard, and that is what it must have kept."""
    short = Answer(sound_ms=(1050,), is_paced=True, chunk_ms=50, ends=False)
    script = Script(answers=(short, Answer(delay_ms=800)), notices_ms=600)
    clips = [speech(205, name="a"), speech(205, name="b")]
    habits, manners = {"barge_in_ms": 1000}, {"checks_truncation": True}
    _, second = turns_with(script, clips, scenario="barge-in", habits=habits, manners=manners)[0]
    assert (1050.0, 0.0) == pytest.approx((second.heard_until_ms, second.truncation_error_ms), abs=NEAR)
    assert pytest.approx(50, abs=NEAR) == second.stop_ms


def test_a_turn_knows_its_place_on_its_line() -> None:
    """To the sample: speech ends 305 ms into the clip. A line whose server tells no name has none."""
    turn = only(Script())
    assert "" == turn.session
    assert turn.stream_start_s is not None
    assert turn.stream_end_s is not None
    assert pytest.approx(0.305, abs=1e-9) == turn.stream_end_s - turn.stream_start_s
