"""A reply is begun while the caller still speaks, and its sound is there at once where the reply begins alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.session.call import Call, of
from tests.session.doubles import ScriptedRecognizer, caller
from tests.session.mind import asked
from tests.speak.doubles import ToneVoice
from tests.think.doubles import ScriptedModel, pieces

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import EngineError
from antiphon.dialogue.settings import TurnSettings
from antiphon.session.events import ReplyFinished, StageFailed, TurnMeasured

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.session import Session

pytestmark = pytest.mark.unit

WORDS = ((800, "I"), (1100, "want"), (1400, "a"), (1700, "large"), (1950, "latte."))
TURN = TurnSettings(hop_ms=300, stalled_ms=500, shortest_wait_ms=100)
COMING = "Coming right up, sir. Anything else?"


def model(reply: Callable[[str], str | EngineError], *, token_s: float = 0.02) -> ScriptedModel:
    """What it says to the words of the last message, a word in `token_s`."""

    def written(text: str | EngineError) -> tuple[object, ...]:
        return (text,) if isinstance(text, EngineError) else pieces(text, delay_s=token_s)

    return ScriptedModel(reply=lambda messages: written(reply(messages[-1].text)), mass=lambda _: 0.99)  # type: ignore[arg-type,return-value]


def call(reply: Callable[[str], str | EngineError], *, turn: TurnSettings = TURN, **more: object) -> Call:
    voice = ToneVoice(work_ns=lambda _chunk, _sound_ns: 60 * MILLISECOND_NS)
    ears = ScriptedRecognizer(WORDS, delay_ms=60.0)
    return Call(caller((500, 2000), until_ms=8000), ears=ears, mind=model(reply), voice=voice, turn=turn, **more)  # type: ignore[arg-type]


def latency_ms(held: Call) -> float:
    (measured,) = of(TurnMeasured, held.hold())
    assert measured.timeline.voice_to_voice_ns is not None
    return measured.timeline.voice_to_voice_ns / MILLISECOND_NS


def heard(held: Call) -> str:
    (finished,) = of(ReplyFinished, held.hold())
    return finished.heard


def test_a_reply_that_begins_alike_sounds_sooner_and_is_the_same() -> None:
    """One token shows that it does: the words after it and 60 ms of voicing are not waited for."""
    off = replace(TURN, open_ahead=False)
    without, with_it = latency_ms(call(lambda _: COMING, turn=off)), latency_ms(call(lambda _: COMING))
    assert 60 + 2 * 20 <= without - with_it
    assert heard(call(lambda _: COMING)) == heard(call(lambda _: COMING, turn=off)) == COMING


def test_the_rest_is_written_behind_the_opening() -> None:
    """It answers all that was said, and is counted with what the opening says."""
    held = call(lambda _: COMING)
    (finished,) = of(ReplyFinished, held.hold())
    *_, whole, rest = asked(held.mind, "write")
    assert whole[-1].text == rest[-1].text == "I want a large latte."
    assert held.mind.begun[-1] == "Coming right up, sir."
    assert finished.usage is not None
    assert finished.usage.output_tokens == len(COMING.split())


def test_an_opening_to_which_the_last_words_bring_another_answer_is_never_heard() -> None:
    """The reply is what it would be without."""

    def reply(words: str) -> str:
        return COMING if words.endswith("latte.") else "What would you like to drink today?"

    with_it, without = call(reply), call(reply, turn=replace(TURN, open_ahead=False))
    assert heard(with_it) == COMING
    assert latency_ms(with_it) == pytest.approx(latency_ms(without), abs=21)  # a token that was under way


def test_what_was_begun_alike_goes_on_from_what_was_said() -> None:
    """The third word would have been another: what is heard is one sentence all the same."""

    def reply(words: str) -> str:
        return "Coming right away, madam. More?" if words.endswith("latte.") else COMING

    assert heard(call(reply)) == "Coming right up, sir.Coming right away, madam. More?"


def test_an_opening_is_not_voiced_twice() -> None:
    """However long the turn takes to be confirmed, the sound that is there serves."""
    voiced: list[int] = []

    def reply(_: str) -> str:
        voiced.append(sum(chunk.index == 0 for chunk in held.voice.asked))
        return COMING

    held = call(reply, turn=replace(TURN, shortest_wait_ms=600, longest_wait_ms=600))
    assert heard(held) == COMING
    assert voiced[-1] == sum(chunk.index == 0 for chunk in held.voice.asked) >= 1


def test_an_opening_that_fails_is_told_and_the_reply_comes() -> None:
    def reply(words: str) -> str | EngineError:
        return COMING if words.endswith("latte.") else EngineError("it broke", hint="as the test wants it")

    held = call(reply)
    events = held.hold()
    assert of(StageFailed, events)
    (finished,) = of(ReplyFinished, events)
    assert finished.heard == COMING


@pytest.mark.parametrize("can_go_on", [True, False])
def test_a_model_that_cannot_go_on_begins_nothing(can_go_on: bool) -> None:
    held = call(lambda _: COMING)
    held.mind.can_go_on = can_go_on
    assert heard(held) == COMING
    early = [messages for messages in asked(held.mind, "write") if not messages[-1].text.endswith("latte.")]
    assert bool(early) is can_go_on


def test_a_reply_within_its_limit_takes_no_opening_beyond_it() -> None:
    """Three tokens are asked for, and the opening has five."""

    async def limit(session: Session) -> None:
        session.configure(replace(session.settings, max_tokens=3))

    held = call(lambda _: COMING, act=limit)
    assert heard(held) == "Coming right up,"


def test_other_instructions_make_an_opening_void() -> None:
    """What was begun by the old ones is given up; nothing of it is heard."""

    async def other(session: Session) -> None:
        session.configure(replace(session.settings, instructions="Be long."))

    held = call(lambda _: COMING, act=other)
    assert heard(held) == COMING
    assert held.left_over == (0, 0)


def test_none_is_begun_once_the_reply_is_written() -> None:
    """The words are still being read when the pause comes: what was to be begun behind that would hold the reply up."""
    held = call(lambda _: COMING)
    held.mind.prefill_s = 1.0
    assert heard(held) == COMING
    assert [messages[-1].text for messages in asked(held.mind, "write")] == ["I want a large latte."]
