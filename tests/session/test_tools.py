"""Tools in whole conversations: what is heard, what is remembered, and that nothing runs twice."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.session.call import ORDER, Call, of
from tests.session.doubles import ScriptedRecognizer, caller
from tests.session.mind import asked
from tests.speak.doubles import ToneVoice
from tests.think.doubles import Piece, ScriptedModel
from tests.virtual_time import run

from antiphon.act.tool import Tool, tool
from antiphon.core.flow import Message, ToolCall
from antiphon.session.events import ReplyFinished, ReplyStarted, StageFailed, ToolUsed

pytestmark = pytest.mark.unit

SEEDS = range(50)


def clerk(
    call: ToolCall,
    *,
    preamble: str = "",
    answer: str = "Your number is {output}.",
    first_s: float = 0.03,
    answer_s: float = 0.01,
) -> ScriptedModel:
    """A model that uses a tool once for each turn of the caller's, and then tells what came of it."""

    def reply(messages: object) -> list[Piece]:
        last = messages[-1]
        if last.role == "tool":
            return [Piece(word + " ", answer_s) for word in answer.format(output=last.text).split()]
        spoken = [Piece(preamble, first_s)] if preamble else []
        return [*spoken, Piece(call, first_s)]

    return ScriptedModel(reply=reply)


def hesitant(model: ScriptedModel) -> ScriptedModel:
    """Takes nothing for finished that does not end in "please."."""
    model.mass = lambda text: 0.99 if text.endswith("please.") else 0.001
    return model


def counting(*, takes_s: float = 0.0, **options: object) -> tuple[Tool, list[str]]:
    """A tool that counts its runs."""
    runs: list[str] = []

    @tool(**options)
    async def order(drink: str) -> str:
        """Place an order."""
        runs.append(drink)
        await asyncio.sleep(takes_s)
        return str(len(runs))

    return order, runs


CALL = ToolCall("1", "order", '{"drink": "latte"}')
EXCHANGE = (("assistant", 'order({"drink": "latte"})'), ("tool", "1"))


def test_a_tools_result_is_spoken_and_remembered() -> None:
    """User, call, output, answer; one event tells the owner."""
    order, runs = counting()
    call = Call(caller((500, 2000), until_ms=9000), mind=clerk(CALL), tools=(order,))
    heard = call.hold()
    assert runs == ["latte"]
    assert [event.heard for event in of(ReplyFinished, heard)] == ["Your number is 1."]
    (used,) = of(ToolUsed, heard)
    assert (used.name, used.arguments, used.output, used.failed) == ("order", CALL.arguments, "1", False)
    assert call.history == (("user", "A latte, please."), *EXCHANGE, ("assistant", "Your number is 1."))
    assert call.mind.offered[0][0] == (order.spec,)


def test_a_preamble_is_said_once_and_before_the_answer() -> None:
    """The model says something, calls, and a fast tool returns at once."""
    order, _ = counting(takes_s=0.005)
    call = Call(caller((500, 2000), until_ms=12_000), mind=clerk(CALL, preamble="One moment."), tools=(order,))
    heard = call.hold()
    assert [event.heard for event in of(ReplyFinished, heard)] == ["One moment. Your number is 1."]
    assert asked(call.mind, "write")[-1][1:] == (
        Message("user", "A latte, please."),
        Message("assistant", "One moment."),
        Message("assistant", "", CALL),
        Message("tool", "1", CALL),
    )
    assert call.history == (
        ("user", "A latte, please."),
        ("assistant", "One moment."),
        *EXCHANGE,
        ("assistant", "Your number is 1."),
    )


def test_a_slow_tool_is_bridged_by_its_preamble() -> None:
    """The first sound comes long before the result."""
    order, _ = counting(takes_s=3.0, preamble="Let me see.")
    call = Call(caller((500, 2000), until_ms=14_000), mind=clerk(CALL), tools=(order,))
    heard = call.hold()
    (started,), (used,) = of(ReplyStarted, heard), of(ToolUsed, heard)
    assert started.at_ns < used.at_ns
    assert [event.heard for event in of(ReplyFinished, heard)] == ["Let me see. Your number is 1."]


@pytest.mark.parametrize("kind", ["raises", "too slow", "unknown"])
def test_a_failing_tool_tells_the_model(kind: str) -> None:
    """The conversation goes on, and the model knows why there is no result."""

    @tool(timeout_s=0.2, name="nothing" if kind == "unknown" else "order")
    async def order(drink: str) -> str:
        """Place an order."""
        if kind == "raises":
            raise ValueError("we are out of milk")
        await asyncio.sleep(60)
        return drink

    call = Call(caller((500, 2000), until_ms=9000), mind=clerk(CALL, answer="Sorry."), tools=(order,))
    heard = call.hold()
    (used,) = of(ToolUsed, heard)
    assert used.failed
    told = asked(call.mind, "write")[-1][-1]
    assert told.role == "tool"
    assert {"raises": "out of milk", "too slow": "0.2 s", "unknown": "no tool"}[kind] in told.text
    assert [event.heard for event in of(ReplyFinished, heard)] == ["Sorry."]
    assert of(StageFailed, heard) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_barge_in_neither_loses_a_result_nor_repeats_a_call(seed: int) -> None:
    """Just after the tool returned, while its result is told, or while it still runs: one run, call and output kept."""
    random = Random(seed)
    takes_s = random.choice([0.0, 0.2, 2.0])
    order, runs = counting(takes_s=takes_s)
    start_ms = random.randrange(2500, 4200)
    ears = ScriptedRecognizer((*ORDER, (start_ms + 600, "Wait, wait.")), delay_ms=random.uniform(40, 300))
    model = clerk(CALL, answer="Your number is {output} and it will be ready at the counter in ten minutes.")
    replies = model.reply
    model.reply = lambda messages: [Piece("Yes?")] if "Wait" in messages[-1].text else replies(messages)
    frames = caller((500, 2000), (start_ms, start_ms + 700), until_ms=16_000)
    call = Call(frames, ears=ears, mind=model, tools=(order,))
    call.hold()
    assert runs == ["latte"]
    assert call.history[0] == ("user", "A latte, please.")
    at = call.history.index(EXCHANGE[0])
    assert call.history[at : at + 2] == EXCHANGE
    assert call.history.count(EXCHANGE[0]) == call.history.count(EXCHANGE[1]) == 1
    assert call.left_over == (0, 0)


@pytest.mark.parametrize("seed", range(10))
def test_a_tool_with_effects_never_runs_for_a_draft_that_is_dropped(seed: int) -> None:
    """A hesitation starts drafts; only the confirmed one acts. One without effects may have acted before."""
    random = Random(seed)
    order, runs = counting()
    ears = ScriptedRecognizer(((1000, "A"), (1500, "latte"), (2600, "please.")), delay_ms=random.uniform(40, 200))
    call = Call(
        caller((500, 1500), (1500 + random.randrange(200, 450), 2700), until_ms=9000),
        ears=ears,
        mind=hesitant(clerk(CALL)),
        tools=(order,),
    )
    heard = call.hold()
    assert runs == ["latte"]
    assert len(of(ToolUsed, heard)) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_turn_that_was_answered_too_early_does_not_act_twice(seed: int) -> None:
    """The tool ran when the caller goes on; the model calls for the same again and is told what came of it."""
    random = Random(seed)
    order, runs = counting(takes_s=random.choice([0.0, 0.3, 1.5]))
    ears = ScriptedRecognizer(((1000, "A"), (1500, "latte"), (2600, "please.")), delay_ms=random.uniform(40, 200))
    start_ms = 1500 + random.randrange(300, 700)
    call = Call(
        caller((500, 1500), (start_ms, 2700), until_ms=12_000),
        ears=ears,
        mind=clerk(CALL, answer_s=0.3),
        tools=(order,),
    )
    heard = call.hold()
    assert runs == ["latte"]
    assert [event.heard for event in of(ReplyFinished, heard) if not event.interrupted][-1].endswith("number is 1.")


def test_a_tool_without_effects_runs_in_the_draft_and_once() -> None:
    """Its result is there when the turn is confirmed; a dropped draft's finding serves the next one."""
    runs: list[str] = []

    @tool(side_effects=False)
    async def order(drink: str) -> str:
        """Find a price."""
        runs.append(drink)
        await asyncio.sleep(0.05)
        return "four dollars"

    ears = ScriptedRecognizer(((1000, "A"), (1500, "latte"), (2600, "please.")), delay_ms=60)
    model = hesitant(clerk(CALL, answer="{output}"))
    call = Call(caller((500, 1500), (1900, 2700), until_ms=9000), ears=ears, mind=model, tools=(order,))
    heard = call.hold()
    assert runs == ["latte"]
    assert len(of(ToolUsed, heard)) == 1
    assert [event.heard for event in of(ReplyFinished, heard)] == ["four dollars"]
    assert len(asked(model, "write")) >= 3


def test_the_end_of_the_session_does_not_break_off_a_tool_with_effects() -> None:
    """It is waited for; one without effects is not."""
    done: list[str] = []

    @tool
    async def order(drink: str) -> str:
        """Place an order."""
        await asyncio.sleep(5)
        done.append(drink)
        return "done"

    call = Call(caller((500, 2000), until_ms=3000), mind=clerk(CALL), tools=(order,))
    call.hold()
    assert done == ["latte"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_preamble_and_what_follows_it_are_voiced_one_after_the_other(seed: int) -> None:
    """The tool returns while the preamble is still being made: nothing is lost, and nothing is mixed up."""
    random = Random(seed)
    order, _ = counting(takes_s=random.uniform(0.38, 0.9), preamble="One moment.")
    voice = ToneVoice(work_ns=lambda _chunk, _sound_ns: round(random.uniform(0.01, 0.4) * 1e9))
    call = Call(caller((500, 2000), until_ms=14_000), mind=clerk(CALL), tools=(order,), voice=voice)
    heard = call.hold()
    assert next(event.heard for event in of(ReplyFinished, heard)) in {
        "One moment. Your number is 1.",
        "Your number is 1.",
    }


def test_a_tool_with_effects_outlives_a_session_that_is_torn_down() -> None:
    """Whoever holds the session is cancelled; the tool comes to its end."""
    done: list[str] = []

    @tool
    async def order(drink: str) -> str:
        """Place an order."""
        await asyncio.sleep(5)
        done.append(drink)
        return "done"

    async def main() -> None:
        call = Call(caller((500, 2000), until_ms=60_000), mind=clerk(CALL), tools=(order,))
        holding = asyncio.create_task(call._hold())
        await asyncio.sleep(3)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        await asyncio.sleep(10)

    run(main())
    assert done == ["latte"]
