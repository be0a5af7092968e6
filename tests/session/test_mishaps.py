"""What goes wrong in the middle of a conversation, and what must not be lost by it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.session.call import ORDER, TURN, Call, of
from tests.session.doubles import LevelDetector, LevelStream, ScriptedJudge, ScriptedRecognizer, caller
from tests.session.mind import mind
from tests.speak.doubles import ToneVoice
from tests.think.doubles import Piece, ScriptedModel
from tests.virtual_time import VirtualClock, run

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError, EngineError, MachineError
from antiphon.core.flow import AudioFrame
from antiphon.core.stamps import Mark, Stage
from antiphon.runtime import Runtime
from antiphon.scheduling.job import Job
from antiphon.scheduling.lanes import ThreadLane
from antiphon.session import Session
from antiphon.session.events import (
    ReplyFinished,
    ReplyStarted,
    ReplyText,
    StageFailed,
    TurnAbandoned,
    TurnConfirmed,
    TurnMeasured,
    WordsHeard,
)

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

pytestmark = pytest.mark.unit

LONG = "One two three four five six seven eight nine ten eleven twelve thirteen."


@pytest.mark.parametrize("interrupt_ms", [247, 248, 249, 250, 251, 252, 253])
def test_an_interruption_at_the_replys_last_sample_is_survived(interrupt_ms: int) -> None:
    """The voice has lasted long enough in the very moment that the reply ends: it ends once, and the call goes on."""
    (ended,) = of(ReplyFinished, Call(caller((500, 2000), until_ms=12_000), mind=mind([LONG])).hold())
    began_ms = ended.at_ns // MILLISECOND_NS - 250 - 40
    call = Call(
        caller((500, 2000), (began_ms, began_ms + 600), until_ms=14_000),
        mind=mind([LONG]),
        turn=replace(TURN, interrupt_ms=interrupt_ms),
    )
    assert len(of(ReplyFinished, call.hold())) == 1


def test_ears_that_fail_at_the_longest_turn_hear_what_follows() -> None:
    """The forced transcription fails while the caller speaks on: their further words are a turn that is answered."""
    ears = ScriptedRecognizer(((1000, "One"), (2500, "two"), (3500, "three.")), fails_times=1, delay_ms=100)
    turn = replace(TURN, longest_turn_s=2, hop_ms=10_000)
    heard = Call(caller((500, 3600), until_ms=9000), ears=ears, turn=turn).hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["three."]


def test_words_spoken_over_the_reply_before_hanging_up_are_answered() -> None:
    """The sound ends in the midst of a voice over our reply: after the reply, that is answered."""
    ears = ScriptedRecognizer((*ORDER, (4600, "Cancel"), (4700, "that.")))
    call = Call(caller((500, 2000), (4500, 4720), until_ms=4720), ears=ears, mind=mind([LONG], ["Cancelled."]))
    assert [event.text for event in of(TurnConfirmed, call.hold())] == ["A latte, please.", "Cancel that."]


def test_sound_after_hanging_up_is_ignored() -> None:
    """Frames that come late begin no turn, and a second hang-up changes nothing."""

    async def main() -> list[object]:
        call = Call([])
        async with Session(call.engines, call.settings, clock=VirtualClock()) as session:
            session.hang_up()
            for frame in caller((0, 500), until_ms=500):
                session.feed(frame)
            session.hang_up()
            return [event async for event in session]

    assert len(run(main())) == 1


def test_a_session_that_is_over_cannot_be_entered() -> None:
    """Hanging up before entering ends the session; entering it then is refused with a remedy."""

    async def main() -> None:
        call = Call([])
        session = Session(call.engines, call.settings, clock=VirtualClock())
        session.hang_up()
        with pytest.raises(CallerError, match="over"):
            await session.__aenter__()

    run(main())


def test_what_could_not_be_voiced_was_not_heard() -> None:
    """The voice fails on one sentence of three: neither the text told nor the history holds it."""
    model = mind(["First part here. ", "Broken part here. ", "Last part here."])
    voice = ToneVoice(fails=lambda chunk: "Broken" in chunk.text)
    call = Call(caller((500, 2000), until_ms=12_000), mind=model, voice=voice)
    heard = call.hold()
    (finished,) = of(ReplyFinished, heard)
    assert "Broken" not in "".join(event.text for event in of(ReplyText, heard))
    assert finished.heard.split() == ["First", "part", "here.", "Last", "part", "here."]
    assert "Broken" not in call.history[-1][1]


def test_half_a_reply_is_remembered_as_half() -> None:
    """The model fails in mid-reply: what was chunked by then is said, and only that is remembered."""
    model = ScriptedModel(reply=lambda _: [Piece("First part here. "), Piece("Second"), EngineError("broke")])
    call = Call(caller((500, 2000), until_ms=9000), mind=model)
    heard = call.hold()
    assert of(ReplyFinished, heard)[0].heard == "First part here."
    assert call.history[-1] == ("assistant", "First part here.")


def test_an_error_in_a_timer_ends_the_session_and_is_told() -> None:
    """Whatever is raised where the loop would only log it comes out of the session's context."""

    async def main() -> None:
        call = Call(caller((500, 2000), until_ms=6000), judge=ScriptedJudge(opinion=0.1))

        def watch(stimulus: object, _: object) -> None:
            if type(stimulus).__name__ == "TimerFired":
                raise LookupError("the watcher's")

        async with Session(call.engines, call.settings, clock=VirtualClock(), watch=watch) as session:
            for frame in call.frames:
                await asyncio.sleep(0.02)
                session.feed(frame)

    with pytest.raises(LookupError, match="the watcher's"):
        run(main())


def test_a_stereo_frame_is_refused_and_harms_nothing() -> None:
    """Two channels are the owner's mistake; the next frames are heard as if it had not been."""

    async def main() -> None:
        call = Call(caller((500, 2000), until_ms=4000))
        async with Session(call.engines, call.settings, clock=VirtualClock()) as session:
            with pytest.raises(CallerError, match="mix it down"):
                session.feed(AudioFrame(np.zeros((320, 2), np.float32), 16_000, 0, 0))
            for frame in call.frames:
                await asyncio.sleep(0.02)
                session.feed(frame)
            assert session.history[0] == ("user", "A latte, please.")

    run(main())


@dataclass
class FailingDetector(LevelDetector):
    """Fails on the frames whose numbers are given."""

    fails_at: tuple[int, ...] = ()
    count: int = 0

    def open(self) -> LevelStream:
        outer = self

        class Stream(LevelStream):
            def probability(self, pcm: Pcm) -> float:
                outer.count += 1
                if outer.count in outer.fails_at:
                    raise EngineError("the detector broke")
                return super().probability(pcm)

        return Stream()


def test_one_frame_that_voice_detection_fails_on_is_reported_and_survived() -> None:
    """The call goes on, and the turn around the failure is heard."""
    heard = Call(caller((500, 2000), until_ms=8000), detector=FailingDetector(fails_at=(30,))).hold()
    assert [event.stage for event in of(StageFailed, heard)] == [Stage.VAD]
    assert [event.text for event in of(TurnConfirmed, heard)] == ["A latte, please."]


def test_noise_delays_the_answer_and_no_more() -> None:
    """A clap between question and answer: the reply waits until it is understood to be one, and is said."""
    call = Call(caller((500, 2000), (2450, 2600), until_ms=9000), mind=mind(["Here it is."], ["No."], first_s=0.7))
    heard = call.hold()
    assert [event.turn for event in of(TurnAbandoned, heard)] == [2]
    assert [event.turn for event in of(ReplyStarted, heard)] == [1]
    assert of(ReplyFinished, heard)[-1].heard == "Here it is."
    assert call.left_over == (0, 0)


def test_one_failed_look_at_the_words_is_not_the_last() -> None:
    """A hop that fails is reported; the next one tells the words."""
    ears = ScriptedRecognizer(((1000, "One"), (2000, "two"), (3000, "three.")), fails_times=1, delay_ms=50)
    heard = Call(caller((500, 3200), until_ms=8000), ears=ears).hold()
    assert of(WordsHeard, heard)
    assert [event.text for event in of(TurnConfirmed, heard)] == ["One two three."]


def test_a_turn_taken_back_before_its_sound_is_measured_as_unanswered() -> None:
    """Such a turn counts as infinite, so its timeline is told too."""
    ears = ScriptedRecognizer(((1500, "I want."), (2700, "a"), (3000, "latte.")))
    model = mind(["Never heard."], ["Sure."], first_s=0.9)
    heard = Call(caller((500, 1500), (2100, 3000), until_ms=9000), ears=ears, mind=model).hold()
    first, second = [event.timeline for event in of(TurnMeasured, heard)]
    assert Mark.FIRST_SOUND not in first.marks
    assert second.voice_to_voice_ns is not None


def test_a_mind_that_cannot_judge_still_answers() -> None:
    """Without the sentence-end mass the other evidence decides, and the reply comes."""

    def broken(_: str) -> float | None:
        raise EngineError("the mass broke")

    model = replace(mind(["Sure."]), mass=broken)
    heard = Call(caller((500, 2000), until_ms=9000), mind=model).hold()
    assert [event.stage for event in of(StageFailed, heard)] == [Stage.JUDGE]
    assert [event.heard for event in of(ReplyFinished, heard)] == ["Sure."]


@dataclass
class BrokenDetector(LevelDetector):
    opened: list[int] = field(default_factory=list)

    def open(self) -> LevelStream:
        raise EngineError("no detector")


def test_places_are_counted_by_conversations_that_are_there() -> None:
    """One that could not be opened, was never entered or has ended takes no place; one more than may be is refused."""

    async def main() -> None:
        call = Call([])
        broken = Runtime(replace(call.engines, voice_detector=BrokenDetector()), conversations=1)
        for _ in range(2):
            with pytest.raises(EngineError):
                broken.open(call.settings)
        runtime = Runtime(call.engines, conversations=1)
        waiting = runtime.open(call.settings)
        async with runtime.open(call.settings):
            with pytest.raises(MachineError, match="1 conversations are open"):
                runtime.open(call.settings)
            with pytest.raises(MachineError, match="1 conversations are open"):
                await waiting.__aenter__()
        async with runtime.open(call.settings):
            pass

    run(main())


def test_a_closed_lane_refuses_instead_of_hanging() -> None:
    """A call that was queued when its lane closed fails as an engine's error, and so does a later one."""

    async def main() -> list[object]:
        lane, begun, go = ThreadLane("test"), asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def busy() -> str:
            loop.call_soon_threadsafe(begun.set)
            go.wait(5)
            return "done"

        job = Job(stage=Stage.SPEAK)
        first = asyncio.create_task(lane.run(job, busy))
        queued = asyncio.create_task(lane.run(job, lambda: "never"))
        await begun.wait()
        closing = asyncio.create_task(asyncio.to_thread(lane.close))
        await asyncio.sleep(0.05)
        go.set()
        results = await asyncio.gather(first, queued, return_exceptions=True)
        await closing
        with pytest.raises(EngineError):
            await lane.run(job, lambda: "late")
        return list(results)

    first, queued = asyncio.run(main())
    assert first == "done"
    assert isinstance(queued, EngineError)
