"""Replay: the same settings lead to the same commands, other settings to what they would have led to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialogue.conversation import MODEL, SETTINGS, Conversation, ns
from tests.dialogue.test_log import values
from tests.session.call import Call
from tests.session.doubles import ScriptedJudge, ScriptedRecognizer, caller
from tests.session.mind import mind
from tests.session.test_interruptions import over_the_reply
from tests.session.test_tools import CALL, clerk, counting
from tests.virtual_time import VirtualClock, run

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.dialogue.commands import CorrectTurn, WriteOn
from antiphon.dialogue.log import Log, Step, StimulusLog, read_log
from antiphon.dialogue.replay import Fate, compare, first_difference
from antiphon.dialogue.rerun import rerun
from antiphon.dialogue.state import Dialogue
from antiphon.dialogue.stimuli import ReplyBegan, Stimulus, WordsCorrected
from antiphon.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.replay import Pause

pytestmark = pytest.mark.unit

START = Dialogue(settings=SETTINGS, turn_end=MODEL, instructions="Be brief.")


def log_of(said: Sequence[tuple[Stimulus, tuple[Command, ...]]], start: Dialogue = START) -> Log:
    steps = [Step(line=line, stimulus=one, commands=led) for line, (one, led) in enumerate(said, 2)]
    return Log(antiphon="0", began="", start=start, steps=tuple(steps))


def held(call: Call, folder: Path) -> Log:
    """The call, held in virtual time, recorded and read back."""

    async def hold(log: StimulusLog) -> None:
        clock = VirtualClock()
        opened = Session(call.engines, call.settings, clock=clock, watch=log.watch)
        log.begin(opened.dialogue, version="0")
        async with opened as session:
            feeding = asyncio.create_task(call._feed(session, clock))
            async for _ in session:
                pass
            await feeding

    with StimulusLog.create(folder, warn=pytest.fail) as log:
        run(hold(log))
    return read_log(log.path)


def hesitating(**changes: object) -> Call:
    """ "I want ... a latte.", with 600 ms between, then after the reply "Thank you.": two turns, three pauses."""
    ears = ScriptedRecognizer(((1000, "I"), (1500, "want"), (2700, "a"), (3000, "latte."), (9000, "Thank you.")))
    model = mind(["Coming up."], ["Coming up."], ["Bye."], masses=[0.02, 0.99, 0.99])
    made = Call(caller((500, 1500), (2100, 3000), (8500, 9000), until_ms=14_000), ears=ears, mind=model)
    made.judge = ScriptedJudge(opinion=0.5)
    made.turn = replace(made.turn, **changes)
    return made


CALLS = {
    "an order": lambda: Call(caller((500, 2000), until_ms=8000)),
    "a hesitation": hesitating,
    "without speculation": lambda: hesitating(speculate=False),
    "a cough": lambda: Call(caller((500, 800), until_ms=4000), ears=ScriptedRecognizer(())),
    "a barge-in": lambda: Call(
        caller((500, 1000), (3000, 5000), until_ms=12_000),
        ears=ScriptedRecognizer(((1000, "Tell me."), (5000, "Stop, please."))),
        mind=mind(["This is a very long reply with a great many words in it that goes on."], ["Sorry."]),
    ),
    "words over the reply": lambda: over_the_reply("No, tea.", end_ms=5600),
    "a word over the reply": lambda: over_the_reply("Stop.", end_ms=4750),
    "a backchannel": lambda: over_the_reply("Mm-hmm."),
    "a cough over the reply": lambda: over_the_reply(""),
    "a cough before the reply is heard": lambda: over_the_reply("", start_ms=2450, end_ms=2600),
    "a reply that is not to be interrupted": lambda: over_the_reply("No, tea.", end_ms=5600, interruptible=False),
    "a greeting": lambda: Call(caller((2500, 4000), until_ms=9000), greeting="Welcome."),
    "a tool": lambda: with_tool(takes_s=0.005),
    "a slow tool": lambda: with_tool(takes_s=3.0, preamble="Let me see."),
    "a tool without side effects": lambda: with_tool(takes_s=0.3, side_effects=False),
    "a turn that goes on at once": lambda: Call(
        caller((500, 1000), (1400, 2000), until_ms=9000),
        ears=ScriptedRecognizer(((1000, "One."), (2000, "two.")), delay_ms=20),
        mind=mind(["Yes."], first_s=0.4),
    ),
    "a turn that is too long": lambda: replace_turn(Call(caller((500, 4500), until_ms=9000)), longest_turn_s=2),
}


def with_tool(**options: object) -> Call:
    order, _ = counting(**options)
    return Call(caller((500, 2000), until_ms=14_000), mind=clerk(CALL), tools=(order,))


def replace_turn(call: Call, **changes: object) -> Call:
    call.turn = replace(call.turn, **changes)
    return call


@pytest.mark.parametrize("name", CALLS)
def test_a_recorded_conversation_gives_the_same_commands(name: str, tmp_path: Path) -> None:
    """A whole session through `watch`, a file and back: bit for bit."""
    log = held(CALLS[name](), tmp_path)
    assert len(log.steps) > 3
    assert first_difference(log) is None


@pytest.mark.parametrize("name", CALLS)
def test_the_world_that_is_rebuilt_decides_as_the_real_one_did(name: str, tmp_path: Path) -> None:
    """With the settings it was held with, each pause of a rerun ends as it had, to the millisecond."""
    log = held(CALLS[name](), tmp_path)
    for pause in compare(log, log.start.settings).pauses:
        assert pause.recorded.fate is pause.replayed.fate
        assert pause.recorded.cut_in is pause.replayed.cut_in
        assert abs((pause.recorded.after_ns or 0) - (pause.replayed.after_ns or 0)) < MILLISECOND_NS


@settings(max_examples=200, deadline=None)
@given(st.lists(values(Stimulus), max_size=40), st.lists(st.integers(0, 2000), min_size=1, max_size=40), st.booleans())
def test_any_order_can_be_replayed(happenings: list[Stimulus], steps_ms: list[int], speculate: bool) -> None:
    """Whatever happened, the same settings give the same, and other settings come to an end."""
    talk, now_ms = Conversation(), 0
    for place, happening in enumerate(happenings):
        now_ms += steps_ms[place % len(steps_ms)]
        talk.happens(replace(happening, at_ns=ns(now_ms)))
    log = log_of(talk.log)
    assert first_difference(log) is None
    compare(log, replace(SETTINGS, longest_wait_ms=400, speculate=speculate))


def test_the_first_difference_is_found(tmp_path: Path) -> None:
    """The line, what the log says, and what comes now."""
    talk = Conversation()
    talk.speaks(0)
    talk.pauses(1000, 900)
    log = log_of(
        [(stimulus, commands[:-1] if place else commands) for place, (stimulus, commands) in enumerate(talk.log)]
    )
    found = first_difference(log)
    assert found is not None
    assert 3 == found.line
    assert "VoiceStopped" in found.stimulus
    assert "StartDraft" not in found.recorded
    assert "StartDraft" in found.replayed


def by_hand(**changes: object) -> Log:
    """Falls silent at 1000 ms, unfinished; goes on at 1800; falls silent at 2500, finished."""
    talk = Conversation(replace(SETTINGS, **changes))
    talk.speaks(0)
    talk.pauses(1100, 1000)
    talk.transcribed(1300, "I want")
    talk.mass(1350, 0.02)
    talk.speaks(1800)
    talk.pauses(2600, 2500)
    talk.transcribed(2750, "I want a latte.")
    talk.mass(2800, 0.9999)
    return log_of(talk.log, replace(START, settings=talk.state.settings))


def rows(log: Log, **changes: object) -> tuple[Pause, ...]:
    return compare(log, replace(log.start.settings, **changes)).pauses


def test_each_pause_is_a_row_with_what_was_heard() -> None:
    first, second = rows(by_hand())
    assert ("I want", "I want a latte.") == (first.heard, second.heard)
    assert (Fate.WENT_ON, ns(800)) == (first.recorded.fate, first.recorded.after_ns)
    assert (Fate.ANSWERED, ns(300)) == (second.recorded.fate, second.recorded.after_ns)
    assert (ns(1000), ns(2500)) == (first.ended_ns, second.ended_ns)


def test_a_shorter_wait_cuts_in_and_that_is_counted() -> None:
    """Who waits no longer than 500 ms answers into the hesitation; the log knows that the caller went on."""
    comparison = compare(by_hand(), replace(SETTINGS, longest_wait_ms=500))
    first, second = comparison.pauses
    assert (Fate.ANSWERED, ns(500), True) == (first.replayed.fate, first.replayed.after_ns, first.replayed.cut_in)
    assert (Fate.ANSWERED, False) == (second.replayed.fate, second.replayed.cut_in)
    assert (0, 1) == (comparison.recorded.cut_ins, comparison.replayed.cut_ins)
    assert (ns(300), ns(400)) == (comparison.recorded.median_ns, comparison.replayed.median_ns)
    assert (ns(300), ns(500)) == (comparison.recorded.p95_ns, comparison.replayed.p95_ns)


def test_a_longer_wait_waits() -> None:
    _, second = rows(by_hand(), shortest_wait_ms=900)
    assert (Fate.ANSWERED, ns(900)) == (second.replayed.fate, second.replayed.after_ns)


def heard_twice(*careful: str) -> Log:
    """As `by_hand`, but by a quick ear; a careful one has heard the second pause 500 ms after it was noticed."""
    talk = Conversation()
    talk.speaks(0)
    talk.pauses(1100, 1000)
    talk.transcribed(1300, "I want", provisional=True)
    talk.mass(1350, 0.02)
    talk.corrected(1700, "I want")
    talk.speaks(1800)
    talk.pauses(2600, 2500)
    talk.transcribed(2750, "I want a lathe.", provisional=True)
    talk.mass(2800, 0.9999)
    for text in careful:
        talk.corrected(3100, text, draft=2)
    return log_of(talk.log)


def corrections(log: Log, **changes: object) -> list[tuple[int, int, int, tuple[Command, ...]]]:
    return [
        (each.stimulus.at_ns, each.stimulus.draft, each.stimulus.turn, each.commands)
        for each in rerun(log, replace(log.start.settings, **changes)).happened
        if isinstance(each.stimulus, WordsCorrected)
    ]


def test_a_correction_comes_as_long_after_its_draft_began_as_it_did() -> None:
    """With the same settings bit for bit; it is the draft's, whatever number that has, and its turn's."""
    log = heard_twice("I want a latte.")
    assert first_difference(log) is None
    kinds = [(at_ns, draft, turn, [type(one) for one in led]) for at_ns, draft, turn, led in corrections(log)]
    assert [(ns(1700), 1, 1, [WriteOn]), (ns(3100), 2, 1, [CorrectTurn, WriteOn])] == kinds
    # who answers into the hesitation has its words corrected afterwards, and then hears of a second turn
    kinds = [
        (at_ns, draft, turn, [type(one) for one in led])
        for at_ns, draft, turn, led in corrections(log, longest_wait_ms=500)
    ]
    assert [(ns(1700), 1, 1, [CorrectTurn, WriteOn]), (ns(3100), 2, 2, [CorrectTurn, WriteOn])] == kinds


def test_the_words_of_a_pause_are_those_of_the_best_ear() -> None:
    """Where the careful one heard none in a turn that was over, the quick one's are."""
    assert ["I want", "I want a latte."] == [pause.heard for pause in rows(heard_twice("I want a latte."))]
    assert ["I want", "I want a lathe."] == [pause.heard for pause in rows(heard_twice(" "))]


def test_corrections_do_not_move_a_decision() -> None:
    """Pauses are answered when they were without."""
    for changes in ({}, {"longest_wait_ms": 500}, {"shortest_wait_ms": 900}, {"speculate": False}):
        plain = [pause.replayed for pause in rows(by_hand(), **changes)]
        assert plain == [pause.replayed for pause in rows(heard_twice("I want a latte."), **changes)]


def test_a_result_comes_as_long_after_its_order_as_it_did() -> None:
    """Without speculation the end mass is asked for once the turn is over, so it decides nothing."""
    _, second = rows(by_hand(), speculate=False)
    assert Fate.ANSWERED is second.replayed.fate
    assert (second.replayed.after_ns or 0) > ns(300)


def test_a_pause_that_was_none_has_no_words_and_that_is_said() -> None:
    """A voice that came over the reply was not transcribed; if the reply comes later, it is a turn without words."""
    talk = Conversation()
    talk.speaks(0)
    talk.pauses(1100, 1000)
    talk.transcribed(1200, "Yes.")
    talk.mass(1250, 0.9999)
    talk.voiced(1300)
    talk.happens(ReplyBegan(at_ns=ns(1300), draft=1))
    talk.speaks(2500)
    talk.pauses(2600, 2550)
    comparison = compare(log_of(talk.log), replace(SETTINGS, shortest_wait_ms=2000, longest_wait_ms=2000))
    assert Fate.NO_WORDS is comparison.pauses[-1].replayed.fate
    assert Fate.NO_PAUSE is comparison.pauses[-1].recorded.fate
    assert 1 == comparison.without_words


def test_the_tone_of_voice_that_was_not_asked_is_said_to_be_missing() -> None:
    comparison = compare(by_hand(), replace(SETTINGS, cut_in_risk=0.0001))
    assert comparison.without_voice


def test_what_a_log_cannot_tell_is_refused() -> None:
    with pytest.raises(CallerError, match="stalled_ms cannot be replayed"):
        rows(by_hand(), stalled_ms=700)


def test_a_log_that_ends_while_the_caller_speaks_comes_to_an_end() -> None:
    """The look at the words that repeats itself does not go on for ever."""
    talk = Conversation()
    talk.speaks(0)
    assert () == compare(log_of(talk.log), replace(SETTINGS, pause_ms=400)).pauses


def test_nothing_answered_has_no_median() -> None:
    comparison = compare(log_of([]), replace(SETTINGS, pause_ms=400))
    assert (0, None, None, 0) == (
        comparison.recorded.answered,
        comparison.recorded.median_ns,
        comparison.recorded.p95_ns,
        comparison.recorded.cut_ins,
    )
