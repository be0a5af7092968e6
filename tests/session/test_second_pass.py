"""A quick recognizer finds what a reply begins with, a careful one what it goes on with and what is remembered."""

from __future__ import annotations

import pytest
from tests.session.call import ORDER, Call, of
from tests.session.doubles import ForeseeingRecognition, ScriptedJudge, ScriptedRecognizer, caller
from tests.session.mind import asked, mind

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.stamps import Mark
from antiphon.dialogue.settings import TurnSettings
from antiphon.session.events import (
    ReplyFinished,
    ReplyStarted,
    StageFailed,
    TurnConfirmed,
    TurnCorrected,
    TurnMeasured,
)

pytestmark = pytest.mark.unit

MISHEARD = ((1000, "A"), (1500, "lot,"), (2000, "please."))


def two_pass(quick: tuple[tuple[int, str], ...] = MISHEARD, **more: object) -> Call:
    frames = caller((500, 2000), until_ms=8000)
    return Call(frames, quick=ScriptedRecognizer(quick, delay_ms=60.0, name="quick-ears"), **more)  # type: ignore[arg-type]


def test_the_reply_begins_on_the_quick_words_and_goes_on_from_the_careful_ones() -> None:
    """What was written when the first chunk was there is the beginning of what is asked for next."""
    sure = ["Coming ", "right ", "up. ", "One ", "latte."]
    call = two_pass(mind=mind(["Coming ", "right ", "up. ", "One ", "lot."], sure))
    heard = call.hold()
    (finished,) = of(ReplyFinished, heard)
    assert finished.heard == "Coming right up. One latte."
    first, second = asked(call.mind, "write")
    assert (first[-1].text, second[-1].text) == ("A lot, please.", "A latte, please.")
    assert call.history == (("user", "A latte, please."), ("assistant", "Coming right up. One latte."))


def test_the_turn_is_confirmed_by_the_quick_words_and_corrected_once() -> None:
    heard = two_pass().hold()
    (confirmed,) = of(TurnConfirmed, heard)
    (corrected,) = of(TurnCorrected, heard)
    assert (confirmed.text, confirmed.provisional) == ("A lot, please.", True)
    assert (corrected.turn, corrected.text) == (confirmed.turn, "A latte, please.")
    assert corrected.at_ns >= confirmed.at_ns


def test_only_the_quick_pass_is_waited_for() -> None:
    """With ears that take 200 ms and quick ones that take 60 the first sound comes 140 ms sooner."""

    def latency_ns(call: Call) -> int:
        (measured,) = of(TurnMeasured, call.hold())
        assert measured.timeline.voice_to_voice_ns is not None
        return measured.timeline.voice_to_voice_ns

    alone = Call(caller((500, 2000), until_ms=8000))
    assert pytest.approx(140, abs=1) == (latency_ns(alone) - latency_ns(two_pass(ORDER))) / MILLISECOND_NS


@pytest.mark.parametrize(("foresee", "sooner_ms"), [(True, 60), (False, 0)])
def test_words_that_were_heard_where_the_voice_faltered_are_there_when_the_pause_is_noticed(
    foresee: bool, sooner_ms: float
) -> None:
    """The pass of 60 ms begins 64 ms before the pause is known for one."""
    settings = TurnSettings(stalled_ms=500, foresee=foresee)
    frames = caller((500, 2000), until_ms=8000)
    call = Call(
        frames,
        quick=ScriptedRecognizer(ORDER, delay_ms=60.0, foresees=True),
        judge=ScriptedJudge(delay_ms=60.0),
        turn=settings,
    )
    plain = Call(frames, quick=ScriptedRecognizer(ORDER, delay_ms=60.0), turn=settings)
    known_ms = []
    for one in (plain, call):
        (measured,) = of(TurnMeasured, one.hold())
        known_ms.append(measured.timeline.marks[Mark.TRANSCRIBED] / MILLISECOND_NS)
    assert pytest.approx(sooner_ms, abs=1) == known_ms[0] - known_ms[1]


def test_a_voice_that_falters_and_goes_on_is_heard_to_its_end() -> None:
    """What was foreseen in mid-turn is not taken for the turn."""
    words = ((1000, "I"), (1500, "want"), (1700, "a"), (2500, "latte."))
    quick = ScriptedRecognizer(words, delay_ms=60.0, foresees=True)
    call = Call(caller((500, 1560), (1610, 2600), until_ms=8000), quick=quick, ears=ScriptedRecognizer(words))
    heard = call.hold()
    (confirmed,) = of(TurnConfirmed, heard)
    assert confirmed.text == "I want a latte."
    (recognition,) = quick.opened
    assert isinstance(recognition, ForeseeingRecognition)
    assert ["I want", "I want a latte."] == [foreseen.text for foreseen in recognition.foreseen.values()]


def test_careful_words_that_come_before_the_confirmation_are_what_is_confirmed() -> None:
    """The quick ear is in doubt and the turn's end is waited for: the second pass is through by then."""
    call = two_pass(judge=ScriptedJudge(opinion=0.2), mind=mind(["Coming ", "right ", "up."], masses=[0.1]))
    heard = call.hold()
    (confirmed,) = of(TurnConfirmed, heard)
    assert (confirmed.text, confirmed.provisional) == ("A latte, please.", False)
    assert [] == of(TurnCorrected, heard)


def test_a_pause_that_goes_on_leaves_no_second_pass_behind() -> None:
    """The draft was dropped, and so was what was to be heard again; the whole turn is heard again at its end."""
    words = ((1000, "I"), (1500, "want"), (2700, "a"), (3000, "latte."))
    call = Call(
        caller((500, 1500), (2100, 3000), until_ms=8000),
        ears=ScriptedRecognizer(words),
        quick=ScriptedRecognizer(words, delay_ms=60.0),
        mind=mind(["Wrong."], ["Right."], masses=[0.02, 0.99]),
        judge=ScriptedJudge(opinion=0.5),
    )
    heard = call.hold()
    assert call.history == (("user", "I want a latte."), ("assistant", "Right."))
    assert 1 == len(of(ReplyStarted, heard))
    assert 1 == len(of(TurnConfirmed, heard))


def test_if_the_careful_ear_fails_the_quick_words_stand() -> None:
    call = two_pass(ears=ScriptedRecognizer(ORDER, fails_times=1))
    heard = call.hold()
    assert 1 == len(of(StageFailed, heard))
    (finished,) = of(ReplyFinished, heard)
    assert finished.heard
    assert call.history[0] == ("user", "A lot, please.")


def test_a_model_that_cannot_go_on_waits_for_the_careful_words() -> None:
    model = mind(["Coming ", "right ", "up."])
    model.can_go_on = False
    call = two_pass(mind=model)
    heard = call.hold()
    assert ["A latte, please."] == [messages[-1].text for messages in asked(call.mind, "write")]
    (measured,) = of(TurnMeasured, heard)
    assert Mark.FIRST_SOUND in measured.timeline.marks


def test_without_speculation_the_second_pass_follows_the_first_chunk_all_the_same() -> None:
    call = two_pass(turn=TurnSettings(speculate=False, stalled_ms=500))
    heard = call.hold()
    assert call.history[0] == ("user", "A latte, please.")
    assert 1 == len(of(TurnCorrected, heard))


def test_who_talks_over_the_first_chunk_is_still_heard_right() -> None:
    """The reply is stopped before the careful ear had its turn; what the turn said is corrected nevertheless."""
    words = (*ORDER, (3600, "No"), (4200, "wait."))
    call = Call(
        caller((500, 2000), (2500, 4200), until_ms=9000),
        ears=ScriptedRecognizer(words, delay_ms=900.0),
        quick=ScriptedRecognizer((*MISHEARD, (3600, "No"), (4200, "wait.")), delay_ms=60.0),
    )
    heard = call.hold()
    assert ("user", "A latte, please.") in call.history or any("A latte" in text for _, text in call.history)
    assert len(of(TurnConfirmed, heard)) == len(of(TurnCorrected, heard)) + sum(
        not event.provisional for event in of(TurnConfirmed, heard)
    )
