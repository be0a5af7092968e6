"""Session.configure in the middle of a conversation: each setting has its effect, or is refused by its name."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.session.call import ORDER, TURN, Call, of
from tests.session.doubles import ScriptedJudge, ScriptedRecognizer, caller
from tests.session.mind import asked, mind, telling

from antiphon.act.tool import tool
from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.core.flow import AudioFrame, ToolSpec
from antiphon.dialogue.options import ReplyOptions
from antiphon.dialogue.stimuli import InputStalled
from antiphon.dialogue.turn_end import KINDS, Fit, TurnEndModel
from antiphon.hear.segmenter import SegmenterSettings
from antiphon.session import SessionSettings
from antiphon.session.events import (
    ReplyAudio,
    ReplyFinished,
    ReplyStarted,
    ReplyText,
    ToolUsed,
    TurnConfirmed,
    TurnStarted,
)
from antiphon.session.settings import FIXED
from antiphon.think.chunker import ChunkerSettings
from antiphon.think.spoken_form import SpokenFormSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.session import Session
    from antiphon.session.events import Event

pytestmark = pytest.mark.unit

NEVER_SURE = TurnEndModel({kind: Fit(-8.0, {}) for kind in KINDS})
LOOK_UP = ToolSpec(name="look_up", description="Looks up.", parameters={"type": "object", "properties": {}})
LONG = [
    f"{word} " for word in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
]


@dataclass(frozen=True)
class Change:
    """A setting's other value, and what can be seen of it: before the change it is `before`, after it `after`."""

    value: object
    seen: Callable[[Call, list[Event]], object]
    before: object
    after: object
    says: tuple[str, ...] = ("Coming ", "right ", "up. ", "Anything ", "else?")
    spoken: tuple[tuple[int, int], ...] = ((500, 2000),)


def silence_ms(_: Call, heard: list[Event]) -> list[int]:
    return [round(event.silence_ns / MILLISECOND_NS, -2) for event in of(TurnConfirmed, heard)]


def start_ms(_: Call, heard: list[Event]) -> list[int]:
    return [round(event.start_samples / 16, -2) for event in of(TurnStarted, heard)]


def reply(_: Call, heard: list[Event]) -> list[str]:
    return [event.heard for event in of(ReplyFinished, heard)]


CHANGES = {
    "turn_end": Change(NEVER_SURE, silence_ms, [300], [1000]),
    "instructions": Change("Rhyme.", lambda call, _: asked(call.mind, "write")[0][0].text, "Be brief.", "Rhyme."),
    "vocabulary": Change(("latte",), lambda call, _: call.ears.opened[-1].vocabulary, (), ("latte",)),
    "turn": Change(replace(TURN, shortest_wait_ms=900), silence_ms, [300], [900]),
    "ear": Change(SegmenterSettings(padding_samples=0), start_ms, [200], [500]),
    "chunker": Change(
        ChunkerSettings(first_least_words=20, first_most_words=20),
        lambda call, _: call.voice.asked[0].text.split()[:5],
        ["one", "two", "three"],
        ["one", "two", "three", "four", "five"],
        says=tuple(LONG),
    ),
    "spoken_form": Change(
        SpokenFormSettings(enabled=False),
        lambda call, _: call.voice.asked[0].text.strip(),
        "Fine.",
        "**Fine.**",
        says=("**Fine.**",),
    ),
    "max_tokens": Change(2, reply, ["Coming right up. Anything else?"], ["Coming right"]),
    "owner_tools": Change((LOOK_UP,), lambda call, _: call.mind.offered[0][0], (), (LOOK_UP,)),
    "interruptible": Change(
        False,
        lambda _, heard: next(event.interrupted for event in of(ReplyFinished, heard)),
        True,
        False,
        says=tuple(LONG),
        spoken=((500, 2000), (3500, 5500)),
    ),
    "by_hand": Change(True, lambda _, heard: len(of(TurnConfirmed, heard)), 1, 0),
    "answers": Change(False, lambda _, heard: len(of(ReplyStarted, heard)), 1, 0),
    "usual": Change(ReplyOptions(is_text=True), lambda _, heard: bool(of(ReplyAudio, heard)), True, False),
    "is_paced": Change(False, lambda _, heard: len(of(ReplyAudio, heard)[0].frame.pcm), 480, 960),
    "starts_thinking": Change(True, reply, ["Plan. Yes."], ["Yes."], says=("Plan. ", "</think>", "Yes.")),
}
FIXED_CHANGES = {"tools": (tool(lambda: None, name="t", description="Does."),), "greeting": "Hi."}


def test_every_setting_is_looked_at_here() -> None:
    """A setting that is added belongs into one of the two lists."""
    assert {field.name for field in fields(SessionSettings)} == {*CHANGES, *FIXED}
    assert set(FIXED) == set(FIXED_CHANGES)
    assert not set(CHANGES) & set(FIXED)


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_that_changes_has_its_effect(name: str, is_changed: bool) -> None:
    change = CHANGES[name]

    async def act(session: Session) -> None:
        await asyncio.sleep(0.1)
        if is_changed:
            session.configure(replace(session.settings, **{name: change.value}))

    call = Call(
        caller(*change.spoken, until_ms=12_000),
        ears=ScriptedRecognizer((*ORDER, (5000, "No, wait."))),
        mind=mind(change.says),
        judge=ScriptedJudge(delay_ms=0),
        act=act,
    )
    heard = call.hold()
    assert change.seen(call, heard) == (change.after if is_changed else change.before)


@pytest.mark.parametrize("name", FIXED)
def test_what_cannot_change_is_refused_by_name_and_changes_nothing(name: str) -> None:
    async def act(session: Session) -> None:
        before = session.settings
        with pytest.raises(CallerError, match=f"^{name} cannot change"):
            session.configure(replace(before, instructions="Other.", **{name: FIXED_CHANGES[name]}))
        assert session.settings is before

    call = Call(caller((500, 2000), until_ms=6000), act=act)
    call.hold()
    assert asked(call.mind, "write")[0][0].text == "Be brief."


# What is under way.


@pytest.mark.parametrize("at_ms", [2450, 2600, 3000, 4000, 5000])
@pytest.mark.parametrize("is_paced", [False, True])
def test_pacing_that_changes_in_a_reply_neither_drops_nor_repeats(at_ms: int, is_paced: bool) -> None:
    """The reply goes on as it was begun, the next is paced the other way; all of each is heard and told once."""
    ears = ScriptedRecognizer(((1500, "One."), (14_500, "Two.")))

    async def act(session: Session) -> None:
        session.configure(replace(session.settings, is_paced=is_paced))
        await asyncio.sleep(at_ms / 1000)
        session.configure(replace(session.settings, is_paced=not is_paced))

    heard = Call(caller((500, 1500), (14_000, 14_500), until_ms=26_000), ears=ears, mind=mind(LONG), act=act).hold()
    first, second = [finished.reply for finished in of(ReplyFinished, heard)]
    told = {one: "".join(event.text for event in of(ReplyText, heard) if event.reply == one) for one in (first, second)}
    assert told == {first: "".join(LONG), second: "".join(LONG)}
    sound = {
        one: np.concatenate([event.frame.pcm for event in of(ReplyAudio, heard) if event.reply == one])
        for one in (first, second)
    }
    length = min(map(len, sound.values()))
    np.testing.assert_array_equal(sound[first][:length], sound[second][:length])
    assert not any(rest[length:].any() for rest in sound.values())  # the last paced frame is filled up


@pytest.mark.parametrize(("before_ms", "after_ms"), [(5000, 200), (200, 5000)])
def test_a_microphone_that_goes_away_is_noticed_by_the_patience_of_now(before_ms: int, after_ms: int) -> None:
    """It changes while the wait is under way; 1.1 s is when the last sound came."""

    async def act(session: Session) -> None:
        await asyncio.sleep(1.2)
        session.configure(replace(session.settings, turn=replace(TURN, stalled_ms=after_ms)))

    call = Call(caller((500, 1100), until_ms=1100), turn=replace(TURN, stalled_ms=before_ms))
    frames, late = call.frames, AudioFrame(np.zeros(160, np.float32), 16_000, 17_600, 8_000 * MILLISECOND_NS)
    call.frames, call.act = [*frames, late], act
    call.hold()
    stalls = [stimulus.at_ns / MILLISECOND_NS for stimulus, _ in call.log if isinstance(stimulus, InputStalled)]
    assert stalls[0] == pytest.approx(1100 + after_ms, abs=1)


def test_a_vocabulary_holds_from_the_next_turn_on_and_hears_its_beginning() -> None:
    """It changes in the first turn, which goes on as it was; the second is heard anew from before it began."""
    ears = ScriptedRecognizer(((1000, "One"), (1900, "two."), (7000, "Three.")))

    async def act(session: Session) -> None:
        await asyncio.sleep(1.0)
        session.configure(replace(session.settings, vocabulary=("latte", "mocha")))
        session.configure(replace(session.settings, vocabulary=("mocha",)))
        assert len(ears.opened) == 1

    heard = Call(caller((500, 2000), (6500, 7000), until_ms=10_000), ears=ears, act=act).hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["One two.", "Three."]
    first, second = ears.opened
    assert (first.vocabulary, second.vocabulary, first.closed) == ((), ("mocha",), True)
    assert second.heard_from is not None
    assert second.heard_from <= of(TurnStarted, heard)[1].start_samples


def test_a_turn_that_begins_inside_the_last_one_keeps_the_old_vocabulary() -> None:
    """One that lasted too long goes on in the next, whose sound only the old recognition has; the one after changes."""
    ears = ScriptedRecognizer(((2400, "one"), (4400, "two."), (9000, "Three.")), delay_ms=1900)

    async def act(session: Session) -> None:
        await asyncio.sleep(1.0)
        session.configure(replace(session.settings, vocabulary=("mocha",)))

    turn = replace(TURN, longest_turn_s=2, hop_ms=10_000)
    heard = Call(caller((500, 4500), (8500, 9000), until_ms=16_000), ears=ears, turn=turn, act=act).hold()
    assert " ".join(event.text for event in of(TurnConfirmed, heard)) == "one two. Three."
    assert [one.vocabulary for one in ears.opened] == [(), ("mocha",)]


# Facts that events carry.


def test_a_turn_says_at_which_sample_its_voice_ended() -> None:
    """However late it is confirmed, and whatever clock the caller's sound came by."""
    (confirmed,) = of(TurnConfirmed, Call(caller((500, 2000), until_ms=8000)).hold())
    assert confirmed.end_samples == 63 * 512  # the end of the frame that holds the sample at 2000 ms


def test_a_turn_that_the_end_of_the_sound_cuts_ends_with_it() -> None:
    (confirmed,) = of(TurnConfirmed, Call(caller((500, 2100), until_ms=2100)).hold())
    assert confirmed.end_samples == 2100 * 16


def test_a_reply_that_reached_its_limit_says_so() -> None:
    """Not one that just ended, nor one of a model that does not tell, nor one that was interrupted."""
    for model, most, told in (
        (telling(mind(["A ", "b ", "c."])), 2, True),
        (telling(mind(["A ", "b ", "c."])), 9, False),
        (mind(["A ", "b ", "c."]), 2, False),
    ):

        async def act(session: Session, most: int = most) -> None:
            session.configure(replace(session.settings, max_tokens=most))

        (finished,) = of(ReplyFinished, Call(caller((500, 2000), until_ms=8000), mind=model, act=act).hold())
        assert finished.reached_limit is told

    async def cancel(session: Session) -> None:
        session.configure(replace(session.settings, max_tokens=10))
        await asyncio.sleep(3.5)
        session.cancel_reply()

    call = Call(caller((500, 2000), until_ms=8000), mind=telling(mind(LONG)), act=cancel)
    (finished,) = of(ReplyFinished, call.hold())
    assert (finished.interrupted, finished.reached_limit) == (True, False)


def test_a_used_tool_names_the_call_that_it_answers() -> None:
    from tests.session.test_tools import CALL, clerk, counting

    order, _ = counting()
    (used,) = of(ToolUsed, Call(caller((500, 2000), until_ms=9000), mind=clerk(CALL), tools=(order,)).hold())
    assert used.call == CALL
    assert (used.name, used.arguments) == (CALL.name, CALL.arguments)
