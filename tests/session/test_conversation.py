"""Whole conversations in virtual time: doubles for all engines, the real dialogue, chunker and playout between."""

from __future__ import annotations

import asyncio
import itertools

import numpy as np
import pytest
from tests.dialogue.conversation import MODEL
from tests.session.call import ORDER, TURN, Call, of
from tests.session.doubles import LevelDetector, ScriptedJudge, ScriptedRecognizer, caller
from tests.session.mind import asked, mind
from tests.speak.doubles import ToneVoice
from tests.virtual_time import VirtualClock, run

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import AudioFrame, Message
from antiphon.core.stamps import Mark
from antiphon.session import Engines, Session, SessionSettings
from antiphon.session.events import (
    ReplyAudio,
    ReplyFinished,
    ReplyStarted,
    ReplyText,
    SessionEnded,
    StageFailed,
    TurnAbandoned,
    TurnConfirmed,
    TurnMeasured,
    TurnStarted,
    WordsHeard,
)

pytestmark = pytest.mark.unit


def test_a_turn_is_heard_answered_and_measured() -> None:
    """One spoken order gives one turn, one reply, its sound, and stamps whose parts add up."""
    call = Call(caller((500, 2000), until_ms=8000))
    heard = call.hold()
    (started,) = of(TurnStarted, heard)
    (confirmed,) = of(TurnConfirmed, heard)
    (finished,) = of(ReplyFinished, heard)
    (measured,) = of(TurnMeasured, heard)
    assert (started.turn, confirmed.turn, confirmed.text) == (1, 1, "A latte, please.")
    assert finished.heard == "Coming right up. Anything else?"
    assert not finished.interrupted
    assert "".join(event.text for event in of(ReplyText, heard)) == "Coming right up. Anything else?"
    marks = measured.timeline.marks
    assert marks[Mark.SPEECH_ENDED] <= marks[Mark.PAUSE_NOTICED] < marks[Mark.TRANSCRIBED] < marks[Mark.FIRST_TOKEN]
    assert measured.timeline.voice_to_voice_ns == marks[Mark.FIRST_SOUND] - marks[Mark.SPEECH_ENDED]
    assert isinstance(heard[-1], SessionEnded)
    assert call.history == (("user", "A latte, please."), ("assistant", "Coming right up. Anything else?"))


def test_latency_counts_from_the_last_speech_sample() -> None:
    """The voice ends at 2000 ms; the stamp says so to within one detector frame, and the endpoint wait is in it."""
    (measured,) = of(TurnMeasured, Call(caller((500, 2000), until_ms=8000)).hold())
    assert abs(measured.timeline.marks[Mark.SPEECH_ENDED] - 2000 * MILLISECOND_NS) <= 32 * MILLISECOND_NS
    assert measured.timeline.voice_to_voice_ns is not None
    assert measured.timeline.voice_to_voice_ns >= (200 + 96) * MILLISECOND_NS  # transcribing, after noticing


def test_the_sound_is_whole_and_on_time() -> None:
    """Reply frames lie end to end on the clock while the reply lasts, and none comes before it is confirmed."""
    heard = Call(caller((500, 2000), until_ms=8000)).hold()
    (confirmed,) = of(TurnConfirmed, heard)
    frames = [event.frame for event in of(ReplyAudio, heard)]
    assert frames
    assert frames[0].captured_ns >= confirmed.at_ns
    assert {frame.rate_hz for frame in frames} == {24_000}
    for before, after in itertools.pairwise(frames):
        assert after.captured_ns - before.captured_ns >= 20 * MILLISECOND_NS


def test_a_hesitation_is_waited_for() -> None:
    """A pause after unfinished words drafts and drops; one turn with both halves is answered once."""
    ears = ScriptedRecognizer(((1000, "I"), (1500, "want"), (2700, "a"), (3000, "latte.")))
    model = mind(["Sure."], masses=[0.02, 0.99])
    judge = ScriptedJudge(opinion=0.5)
    heard = Call(caller((500, 1500), (2100, 3000), until_ms=8000), ears=ears, mind=model, judge=judge).hold()
    (confirmed,) = of(TurnConfirmed, heard)
    assert confirmed.text == "I want a latte."
    assert len(of(ReplyStarted, heard)) == 1
    assert len(of(TurnMeasured, heard)) == 1


def test_a_dropped_draft_leaves_no_trace() -> None:
    """What was drafted in the hesitation was neither told nor remembered, and the model was stopped."""
    ears = ScriptedRecognizer(((1000, "I"), (1500, "want"), (2700, "a"), (3000, "latte.")))
    model = mind(["Wrong."], ["Right."], masses=[0.02, 0.99])
    call = Call(
        caller((500, 1500), (2100, 3000), until_ms=8000), ears=ears, mind=model, judge=ScriptedJudge(opinion=0.5)
    )
    heard = call.hold()
    said = "".join(event.text for event in of(ReplyText, heard))
    assert said == "Right."
    assert call.history == (("user", "I want a latte."), ("assistant", "Right."))


def test_stable_words_are_told_and_read_ahead() -> None:
    """While the caller speaks, growing transcripts are told, and what two agree on reaches the model early."""
    ears = ScriptedRecognizer(
        (
            (1000, "One"),
            (2000, "two"),
            (3000, "three."),
        ),
        delay_ms=50,
    )
    model = mind(["Yes."])
    heard = Call(caller((500, 3200), until_ms=8000), ears=ears, mind=model).hold()
    told = [event.transcript.text for event in of(WordsHeard, heard)]
    assert told == ["One", "One two"]
    assert any(messages[-1] == Message("user", "One") for messages in asked(model, "prefill"))


def test_a_second_turn_remembers_the_first() -> None:
    """Two turns of one call: the second prompt holds both sides of the first."""
    ears = ScriptedRecognizer(((1000, "One."), (7000, "Two.")))
    model = mind(["First."], ["Second."])
    call = Call(caller((500, 1000), (6500, 7000), until_ms=12_000), ears=ears, mind=model)
    heard = call.hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["One.", "Two."]
    assert asked(model, "write")[-1] == (
        Message("system", "Be brief."),
        Message("user", "One."),
        Message("assistant", "First."),
        Message("user", "Two."),
    )


def test_a_cough_is_no_turn() -> None:
    """Voice without words: nothing is confirmed, nothing is asked of the model, and the next turn is answered."""
    ears = ScriptedRecognizer(((5000, "Hello."),))
    model = mind(["Hi."])
    heard = Call(caller((500, 800), (4500, 5000), until_ms=9000), ears=ears, mind=model).hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["Hello."]
    assert [event.turn for event in of(TurnAbandoned, heard)] == [1]
    assert len(asked(model, "write")) == 1


def test_frames_that_stop_end_the_turn() -> None:
    """A microphone muted in mid-word closes the turn by time; what comes ten seconds later is a turn of its own."""
    frames = caller((500, 2000), until_ms=1900)
    later = [
        AudioFrame(
            frame.pcm, frame.rate_hz, frame.pos_samples + frames[-1].end_samples, frame.captured_ns + 12 * SECOND_NS
        )
        for frame in caller((500, 1000), until_ms=6000)
    ]
    ears = ScriptedRecognizer(((1500, "First."), (2800, "Second.")))
    model = mind(["One."], ["Two."])
    heard = Call(frames + later, ears=ears, mind=model).hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["First.", "Second."]
    assert [event.heard for event in of(ReplyFinished, heard)] == ["One.", "Two."]


def test_a_caller_who_hangs_up_in_mid_word_is_still_answered() -> None:
    """The sound ends in speech; the turn is answered without a wait, then the session ends."""
    heard = Call(caller((500, 2000), until_ms=2000)).hold()
    (confirmed,) = of(TurnConfirmed, heard)
    assert confirmed.forced
    assert of(ReplyFinished, heard)[0].heard == "Coming right up. Anything else?"


def test_talking_over_the_reply_takes_the_turn_back() -> None:
    """The reply stops within one frame of the decision, and the history holds only what was heard."""
    ears = ScriptedRecognizer((*ORDER, (5000, "No,"), (5500, "tea.")))
    model = mind(["One two three four five six seven eight nine ten eleven twelve thirteen."], ["Tea it is."])
    call = Call(caller((500, 2000), (4500, 5500), until_ms=12_000), ears=ears, mind=model)
    heard = call.hold()
    first, second = of(ReplyFinished, heard)
    assert first.interrupted
    assert "One two three four five six seven eight nine ten eleven twelve thirteen.".startswith(first.heard)
    assert 0 < len(first.heard) < 60
    late = [event.frame for event in of(ReplyAudio, heard) if event.turn == 1 and event.frame.captured_ns > first.at_ns]
    assert late == []
    assert second.heard == "Tea it is."
    assert call.history[1] == ("assistant", first.heard)


def test_going_on_before_the_first_sound_gives_one_answer_to_both_halves() -> None:
    """A sentence whose second half comes after the decision but before the sound is answered once, in whole."""
    ears = ScriptedRecognizer(((1500, "I want."), (2700, "a"), (3000, "latte.")))
    model = mind(["Never heard."], ["Sure."], first_s=0.9)
    call = Call(caller((500, 1500), (2100, 3000), until_ms=9000), ears=ears, mind=model)
    heard = call.hold()
    assert len(of(ReplyStarted, heard)) == 1
    assert of(ReplyFinished, heard)[-1].heard == "Sure."
    assert asked(model, "write")[-1][-1] == Message("user", "I want. a latte.")


def test_one_chunk_that_cannot_be_voiced_is_left_out() -> None:
    """The voice fails on one sentence: it is reported, and the rest of the reply is said."""
    model = mind(["First part here. ", "Broken part here. ", "Last part here."])
    voice = ToneVoice(fails=lambda chunk: "Broken" in chunk.text)
    heard = Call(caller((500, 2000), until_ms=12_000), mind=model, voice=voice).hold()
    (failed,) = of(StageFailed, heard)
    assert isinstance(failed.error, EngineError)
    assert len(of(ReplyFinished, heard)) == 1
    assert of(ReplyAudio, heard)


@pytest.mark.parametrize("reply", [[], [" ", "\n"], ["..."], ["\U0001f600"]])
def test_a_reply_with_nothing_to_say_is_silence(reply: list[str]) -> None:
    """White space, marks or a picture as a reply: the turn ends without sound, is measured, and the call goes on."""
    call = Call(caller((500, 2000), until_ms=6000), mind=mind(reply))
    heard = call.hold()
    assert of(ReplyAudio, heard) == []
    (measured,) = of(TurnMeasured, heard)
    assert measured.timeline.voice_to_voice_ns is None
    assert call.history == (("user", "A latte, please."),)


def test_a_failing_recognizer_is_reported_and_survived() -> None:
    """The ears fail once; the next sentence is heard."""
    ears = ScriptedRecognizer(((1000, "One."), (5000, "Two.")), fails_times=1)
    heard = Call(caller((500, 1000), (4500, 5000), until_ms=9000), ears=ears).hold()
    assert len(of(StageFailed, heard)) == 1
    assert [event.text for event in of(TurnConfirmed, heard)] == ["Two."]


def test_a_failing_model_is_reported_and_the_turn_ends() -> None:
    """The model fails before its first word: the turn is confirmed without a reply, the next one is answered."""
    ears = ScriptedRecognizer(((1000, "One."), (6000, "Two.")))
    model = mind(EngineError("the mind broke"), ["Better."])
    heard = Call(caller((500, 1000), (5500, 6000), until_ms=11_000), ears=ears, mind=model).hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["One.", "Two."]
    assert [(event.heard, event.failed) for event in of(ReplyFinished, heard)] == [("", True), ("Better.", False)]
    assert len(of(StageFailed, heard)) == 1


def test_a_reader_who_never_reads_is_told() -> None:
    """Events are bounded: a session whose events are not read fails with a remedy instead of growing."""

    async def main() -> None:
        call = Call(caller((500, 2000), until_ms=4000))
        engines = Engines(
            voice_detector=LevelDetector(),
            recognizer=call.ears,
            language_model=mind(["word " * 4000]),
            synthesizer=call.voice,
        )
        async with Session(engines, SessionSettings(turn_end=MODEL, turn=TURN), clock=VirtualClock()) as session:
            for frame in call.frames:
                await asyncio.sleep(0.02)
                session.feed(frame)
            await asyncio.sleep(600)

    with pytest.raises(CallerError, match="events"):
        run(main())


def test_leaving_early_stops_everything() -> None:
    """Leaving the context in mid-reply closes ears and mind and leaves no task behind."""
    ears = ScriptedRecognizer(ORDER)
    model = mind(["A very long reply that nobody waits for, with many words."])

    async def main() -> int:
        engines = Engines(
            voice_detector=LevelDetector(), recognizer=ears, language_model=model, synthesizer=ToneVoice()
        )
        settings = SessionSettings(turn_end=MODEL, turn=TURN)
        async with Session(engines, settings, clock=VirtualClock()) as session:
            for frame in caller((500, 2000), until_ms=3500):
                await asyncio.sleep(0.02)
                session.feed(frame)
        return len(asyncio.all_tasks())

    assert run(main()) == 1  # the test itself
    assert ears.opened[0].closed


def test_an_error_of_the_owner_stays_what_it_was() -> None:
    """What is raised inside the session's context leaves it unwrapped."""

    async def main() -> None:
        engines = Engines(
            voice_detector=LevelDetector(),
            recognizer=ScriptedRecognizer(ORDER),
            language_model=mind(["Hi."]),
            synthesizer=ToneVoice(),
        )
        async with Session(engines, SessionSettings(turn_end=MODEL), clock=VirtualClock()):
            raise KeyError("the owner's")

    with pytest.raises(KeyError, match="the owner's"):
        run(main())


def test_any_rate_is_heard_alike() -> None:
    """A caller at 48 kHz has the same turn as one at 16 kHz."""
    heard = Call(caller((500, 2000), until_ms=8000, rate_hz=48_000)).hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["A latte, please."]


def test_a_rate_that_changes_is_refused() -> None:
    """Two rates in one stream are the caller's mistake, and the message says so."""

    async def main() -> None:
        engines = Engines(
            voice_detector=LevelDetector(),
            recognizer=ScriptedRecognizer(ORDER),
            language_model=mind(["Hi."]),
            synthesizer=ToneVoice(),
        )
        async with Session(engines, SessionSettings(turn_end=MODEL), clock=VirtualClock()) as session:
            session.feed(AudioFrame(np.zeros(160, np.float32), 8000, 0, 0))
            with pytest.raises(CallerError):
                session.feed(AudioFrame(np.zeros(480, np.float32), 24_000, 160, 0))

    run(main())
