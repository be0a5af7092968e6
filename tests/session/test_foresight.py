"""Where the voice falters the turn is heard, and its end is judged, before anybody knows whether a pause follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.session.call import ORDER, TURN, Call, of
from tests.session.doubles import ScriptedJudge, ScriptedRecognizer, caller
from tests.session.mind import asked, mind
from tests.speak.doubles import ToneVoice
from tests.think.doubles import ScriptedModel, pieces

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.stamps import Mark, Stage
from antiphon.dialogue.stimuli import DraftTranscribed, EndMassMeasured, ProsodyJudged, TranscriptGrew, WordsCorrected
from antiphon.session.events import ReplyFinished, TurnConfirmed, TurnMeasured

if TYPE_CHECKING:
    from antiphon.dialogue.settings import TurnSettings

pytestmark = pytest.mark.unit

SLOW = ScriptedJudge(delay_ms=200.0)  # its verdict on the tone never comes with the words
COMING = ["Coming ", "right ", "up, ", "sir."]


def call(*spoken: tuple[int, int], turn: TurnSettings = TURN, delay_ms: float = 40.0, **more: object) -> Call:
    quick = ScriptedRecognizer(ORDER, delay_ms=delay_ms, name="quick-ears", foresees=True)
    return Call(caller(*spoken, until_ms=8000), quick=quick, turn=turn, **more)  # type: ignore[arg-type]


def of_log(kind: type, held: Call) -> list[object]:
    return [stimulus for stimulus, _ in held.log if isinstance(stimulus, kind)]


def test_the_end_is_judged_before_the_pause_is_noticed() -> None:
    """The words and their end mass come together, and the model is not asked again."""
    held = call((500, 2000), mind=mind(COMING, masses=[0.97]), turn=replace(TURN, doubt_ms=0))
    held.hold()
    (known,) = of_log(DraftTranscribed, held)
    assert isinstance(known, DraftTranscribed)
    assert known.end_mass == 0.97
    assert [] == of_log(EndMassMeasured, held)
    assert ["A latte, please."] == [messages[-1].text for messages in asked(held.mind, "sentence_end_mass")]


def test_the_tone_is_judged_with_the_words_and_not_again() -> None:
    """One core hears the words, another the tone; a low verdict tells against words that seem an end."""
    held = call((500, 2000), mind=mind(COMING, masses=[0.97]), judge=ScriptedJudge(opinion=0.02, delay_ms=60.0))
    confirmed = of(TurnConfirmed, held.hold())
    (known,) = of_log(DraftTranscribed, held)
    assert isinstance(known, DraftTranscribed)
    assert known.prosody == 0.02
    assert [] == of_log(ProsodyJudged, held)
    assert confirmed[0].evidence.prosody == 0.02


def test_a_verdict_on_the_tone_that_comes_too_late_is_asked_for_in_the_pause() -> None:
    """Nothing waits for it longer than that; there it is asked for if the end is in doubt."""
    held = call((500, 2000), mind=mind(COMING, masses=[0.5]), judge=SLOW, turn=replace(TURN, doubt_ms=0))
    held.hold()
    (known,) = of_log(DraftTranscribed, held)
    assert isinstance(known, DraftTranscribed)
    assert known.prosody is None
    assert 1 == len(of_log(ProsodyJudged, held))


def test_the_mass_of_other_words_says_nothing() -> None:
    """What was foreseen in mid-turn is not taken for the turn's end: that is asked for again."""
    held = call((500, 1560), (1610, 2000), mind=mind(COMING, masses=[0.01, 0.97]), turn=replace(TURN, doubt_ms=0))
    held.hold()
    (known,) = of_log(DraftTranscribed, held)
    assert isinstance(known, DraftTranscribed)
    assert known.end_mass == 0.97
    assert ["A latte,", "A latte, please."] == [messages[-1].text for messages in asked(held.mind, "sentence_end_mass")]


@pytest.mark.parametrize("change", [{"read_ahead": False}, {"foresee": False}])
def test_without_reading_ahead_or_foresight_the_end_is_judged_in_the_pause(change: dict[str, bool]) -> None:
    turn = replace(TURN, doubt_ms=0, **change)  # type: ignore[arg-type]
    held = call((500, 2000), mind=mind(COMING, masses=[0.97]), judge=SLOW, turn=turn)
    held.hold()
    (known,) = of_log(DraftTranscribed, held)
    assert isinstance(known, DraftTranscribed)
    assert known.end_mass is None
    assert 1 == len(of_log(EndMassMeasured, held))


def test_a_model_that_cannot_go_on_is_not_asked_at_every_faltering() -> None:
    """It may be somebody else's, and paid for by the question; in the pause itself it is."""
    model = mind(COMING)
    model.can_go_on = False
    held = call((500, 1560), (1610, 2000), mind=model, judge=SLOW)
    held.hold()
    assert ["A latte, please."] == [messages[-1].text for messages in asked(model, "sentence_end_mass")]


def latency_ms(held: Call) -> float:
    (measured,) = of(TurnMeasured, held.hold())
    assert measured.timeline.voice_to_voice_ns is not None
    return measured.timeline.voice_to_voice_ns / MILLISECOND_NS


def repeating() -> ScriptedModel:
    """Says the same as often as it is asked, a word in 20 ms."""
    words = pieces("Coming right up, sir. Anything else?", delay_s=0.02)
    return ScriptedModel(reply=lambda _: words, mass=lambda _: 0.99)


@pytest.mark.parametrize("delay_ms", [20.0, 90.0])
def test_a_reply_is_begun_where_the_voice_falters(delay_ms: float) -> None:
    """To the words that were heard there: the model is not asked for its beginning again, and nothing else is said."""
    voice = ToneVoice(work_ns=lambda _chunk, _sound_ns: 20 * MILLISECOND_NS)
    opens = replace(TURN, open_ahead=True, hop_ms=5000)
    held = call((500, 2000), mind=repeating(), voice=voice, turn=opens, delay_ms=delay_ms)
    heard = [finished.heard for finished in of(ReplyFinished, held.hold())]
    assert ["Coming right up, sir. Anything else?"] == heard
    assert ["A latte, please."] * 2 == [messages[-1].text for messages in asked(held.mind, "write")]
    assert held.mind.begun[-1] == "Coming right up, sir."
    assert 1 == sum(chunk.index == 0 for chunk in voice.asked)
    late = call((500, 2000), mind=repeating(), voice=voice, turn=replace(opens, open_ahead=False), delay_ms=delay_ms)
    assert latency_ms(held) <= latency_ms(late) - (40 if delay_ms == 20.0 else 0)


def test_a_reply_that_was_begun_in_mid_turn_is_given_up() -> None:
    """The caller goes on, and says something else with it."""
    opens = replace(TURN, open_ahead=True, hop_ms=5000)
    held = call((500, 1560), (1630, 2000), mind=repeating(), turn=opens, delay_ms=20.0)
    (finished,) = of(ReplyFinished, held.hold())
    assert finished.heard == "Coming right up, sir. Anything else?"
    assert asked(held.mind, "write")[-1][-1].text == "A latte, please."
    assert held.left_over == (0, 0)


def test_a_model_that_has_begun_the_reply_is_asked_in_doubt_before_the_careful_ear_hears_again() -> None:
    """The beginning is voiced and held meanwhile; what follows it is written when the turn is over."""
    model = repeating()
    turn = replace(TURN, open_ahead=True, hop_ms=5000, doubt_ms=0, cut_in_risk=0.001)
    held = call((500, 2000), mind=model, turn=turn, delay_ms=20.0)
    held.hold()
    assert ["A latte, please."] == [messages[-1].text for messages in asked(model, "sentence_end_mass")]
    assert ["", "Coming right up, sir."] == model.begun
    (asked_mass,), (corrected,) = of_log(EndMassMeasured, held), of_log(WordsCorrected, held)
    assert asked_mass.at_ns < corrected.at_ns  # type: ignore[attr-defined]


def test_a_look_gives_way_where_the_voice_falters_and_is_made_up_for_where_it_goes_on() -> None:
    """The words are looked at every 300 ms for 250; one such look is under way when the voice falters."""
    held = call((500, 1560), (1630, 2000), turn=replace(TURN, hop_ms=300), delay_ms=250.0)
    (confirmed,) = of(TurnConfirmed, held.hold())
    assert confirmed.text == "A latte, please."
    looks = [look for look in of_log(TranscriptGrew, held) if isinstance(look, TranscriptGrew)]
    assert "A latte," in [look.transcript.text for look in looks]


def test_the_voice_is_judged_before_the_careful_ear_hears_again() -> None:
    """Both wait for the first sound; the caller waits for the verdict, and nobody for the correction."""
    held = call(
        (500, 2000),
        mind=mind(COMING, masses=[0.5]),
        judge=ScriptedJudge(opinion=0.95, delay_ms=200.0),
        voice=ToneVoice(work_ns=lambda _chunk, _sound_ns: 30 * MILLISECOND_NS),
        turn=replace(TURN, doubt_ms=0),
    )
    (measured,) = of(TurnMeasured, held.hold())[:1]
    judged = max((s for s in measured.timeline.spans if s.stage is Stage.PROSODY), key=lambda span: span.start_ns)
    (corrected,) = of_log(WordsCorrected, held)
    assert corrected.at_ns > judged.end_ns  # type: ignore[attr-defined]
    assert measured.timeline.marks[Mark.VOICED] <= judged.start_ns
