"""Tools that the client runs, and those of the agent that it must not run."""

from __future__ import annotations

import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.mind import asked
from tests.think.doubles import Piece, ScriptedModel

from antiphon.act.tool import tool
from antiphon.core.flow import ToolCall

pytestmark = pytest.mark.unit

SEARCH = {
    "type": "function",
    "name": "search",
    "description": "Look something up.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
CALL = ToolCall("call_7", "search", '{"query": "latte"}')
OTHER = ToolCall("call_8", "search", '{"query": "milk"}')


def clerk(*pieces: str | ToolCall) -> ScriptedModel:
    """Calls before it has a result, tells of it after."""

    def reply(messages: object) -> list[Piece]:
        last = messages[-1]
        if last.role == "tool":
            return [Piece(f"It says {last.text}.", 0.01)]
        return [Piece(piece, 0.02) for piece in pieces]

    return ScriptedModel(reply=reply)


async def asks_and_answers(client: Client) -> None:
    client.update(tools=[SEARCH])
    await client.sound((500, 2000), until_ms=2000)
    await client.sound((500, 2000), until_ms=6000)
    output = {"type": "function_call_output", "call_id": "call_7", "output": "espresso"}
    client.send("conversation.item.create", item=output)
    client.send("response.create")
    await client.sound(until_ms=10_000)


def test_a_call_comes_as_items_and_events_in_order() -> None:
    """The item is in the conversation before its arguments are done; both say all that is needed to run it."""
    client = Talk(mind=clerk(CALL)).hold(asks_and_answers)
    at = client.kinds.index("response.created")
    assert client.kinds[at : at + 8] == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]
    (arguments,) = client.of("response.function_call_arguments.done")
    assert (arguments["name"], arguments["arguments"], arguments["call_id"]) == ("search", CALL.arguments, "call_7")
    done = client.of("response.done")[0]["response"]
    assert done["output"] == [client.of("response.output_item.done")[0]["item"]]
    assert done["status"] == "completed"
    assert not [event for event in client.got[: client.got.index(arguments)] if "audio.d" in event["type"]]


def test_the_output_is_told_of() -> None:
    client = Talk(mind=clerk(CALL)).hold(asks_and_answers)
    assert client.session.history[1:] == (
        ("assistant", 'search({"query": "latte"})'),
        ("tool", "espresso"),
        ("assistant", "It says espresso."),
    )
    assert client.of("response.done")[1]["response"]["output"][0]["content"][0]["transcript"] == "It says espresso."
    assert not client.errors


def test_names_and_places_agree_where_something_is_said_before_a_call() -> None:
    client = Talk(mind=clerk("One moment. ", CALL)).hold(asks_and_answers)
    done = client.of("response.done")[0]["response"]
    places = {item["id"]: place for place, item in enumerate(done["output"])}
    assert {item["type"] for item in done["output"]} == {"message", "function_call"}
    of_response = [event for event in client.got if event.get("response_id") == done["id"] and "item_id" in event]
    assert {(event["item_id"], event["output_index"]) for event in of_response} == set(places.items())


def test_an_answer_in_the_middle_of_the_preamble_waits_for_its_end() -> None:
    """A client answers as soon as it can, long before a spoken preamble has sounded: it is not refused."""

    async def act(client: Client) -> None:
        client.update(tools=[SEARCH])
        client.append(client.tone(0, 3000, ((500, 2000),)))
        await client.until("response.function_call_arguments.done")
        output = {"type": "function_call_output", "call_id": "call_7", "output": "espresso"}
        client.send("conversation.item.create", item=output)
        client.send("response.create", response={"metadata": {"n": "2"}})
        assert client.of("response.done") == []
        await client.until("response.done", count=2)

    client = Talk(mind=clerk("One moment, please, I am looking. ", CALL)).hold(act)
    assert not client.errors
    assert client.session.history[-1] == ("assistant", "It says espresso.")
    assert client.of("response.created")[1]["response"]["metadata"] == {"n": "2"}


def test_one_call_at_a_time_where_the_client_wants_that() -> None:
    async def act(client: Client) -> None:
        client.update(tools=[SEARCH], parallel_tool_calls=False)
        await client.sound((500, 2000), until_ms=5000)

    client = Talk(mind=clerk(CALL, OTHER)).hold(act)
    assert [event["call_id"] for event in client.of("response.function_call_arguments.done")] == ["call_7"]
    assert "one tool at a time" in client.session.history[-1][1]


def test_calls_side_by_side_are_numbered() -> None:
    async def act(client: Client) -> None:
        client.update(tools=[SEARCH])
        await client.sound((500, 2000), until_ms=5000)

    client = Talk(mind=clerk(CALL, OTHER)).hold(act)
    done = client.of("response.function_call_arguments.done")
    assert [(event["call_id"], event["output_index"]) for event in done] == [("call_7", 0), ("call_8", 1)]


def test_tools_of_one_response_are_not_those_of_the_next() -> None:
    model = clerk("Well.")

    async def act(client: Client) -> None:
        client.send("response.create", response={"tools": [SEARCH], "tool_choice": "required"})
        await client.until("response.done")
        client.send("response.create")
        await client.until("response.done", count=2)

    client = Talk(mind=model).hold(act)
    assert [([spec.name for spec in specs], choice) for specs, choice in model.offered] == [
        (["search"], "required"),
        ([], "auto"),
    ]
    assert not client.errors


def test_the_choice_of_a_tool_reaches_the_model() -> None:
    model = clerk("Well.")

    async def act(client: Client) -> None:
        choice = {"type": "function", "name": "search"}
        (updated,) = client.update(tools=[SEARCH], tool_choice=choice)
        assert updated["session"]["tool_choice"] == choice
        await client.sound((500, 2000), until_ms=5000)

    Talk(mind=model).hold(act)
    assert model.offered[-1][1] == "search"


def test_the_agents_own_tool_shows_and_asks_nothing_of_the_client() -> None:
    """Two items in the conversation; no event that makes a client run anything, and no answer from outside."""

    @tool
    def order(drink: str) -> str:
        """Place an order."""
        return f"number 1, {drink}"

    call = ToolCall("1", "order", '{"drink": "latte"}')

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=8000)
        shown = [event["item"] for event in client.of("conversation.item.added")]
        assert [item["type"] for item in shown] == ["message", "function_call", "function_call_output", "message"]
        assert shown[2]["output"] == "number 1, latte"
        assert not [kind for kind in client.kinds if "function_call_arguments" in kind]
        assert [item["type"] for item in client.of("response.done")[0]["response"]["output"]] == ["message"]
        output = {"type": "function_call_output", "call_id": shown[1]["call_id"], "output": "mine"}
        (refused,) = client.send("conversation.item.create", item=output)
        assert refused["error"]["param"] == "item.call_id"
        client.send("conversation.item.delete", item_id=shown[1]["id"])
        assert [role for role, _ in client.session.history] == ["user", "assistant"]

    Talk(mind=clerk(call), tools=(order,)).hold(act)


def test_a_reply_around_a_tool_is_one_item_and_is_truncated_as_one() -> None:
    """What was said before the tool is cut, what came after is gone, what was done stays."""

    @tool
    def order(drink: str) -> str:
        """Place an order."""
        return f"number 1, {drink}"

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=10_000)
        (item,) = client.of("response.done")[0]["response"]["output"]
        assert item["content"][0]["transcript"] == "One moment, please. It says number 1, latte."
        client.send("conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=500)

    call = ToolCall("1", "order", '{"drink": "latte"}')
    history = Talk(mind=clerk("One moment, please. ", call), tools=(order,)).hold(act).session.history
    assert [role for role, _ in history] == ["user", "assistant", "assistant", "tool"]
    assert "One moment, please.".startswith(history[1][1])
    assert len(history[1][1]) < 12


def test_an_output_needs_a_call_and_comes_once() -> None:
    async def act(client: Client) -> None:
        output = {"type": "function_call_output", "call_id": "call_7", "output": "x"}
        (unknown,) = client.send("conversation.item.create", item=output, event_id="e1")
        assert (unknown["error"]["code"], unknown["error"]["event_id"]) == ("item_not_found", "e1")
        call = {"type": "function_call", "call_id": "call_7", "name": "search", "arguments": "{}"}
        client.send("conversation.item.create", item=call)
        client.send("conversation.item.create", item=output)
        (twice,) = client.send("conversation.item.create", item=output)
        assert twice["error"]["code"] == "item_exists"

    client = Talk().hold(act)
    assert client.session.history == (("assistant", "search({})"), ("tool", "x"))


def test_the_model_reads_a_history_that_the_client_brought() -> None:
    model = clerk("Well.")

    async def act(client: Client) -> None:
        for role, kind, text in (("user", "input_text", "Hi."), ("assistant", "output_text", "Hello, caller.")):
            item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            client.send("conversation.item.create", item=item)
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "How are you?"}]}
        client.send("conversation.item.create", item=item)
        client.send("response.create")
        await client.until("response.done")

    Talk(mind=model).hold(act)
    assert [message.text for message in asked(model, "write")[0]] == [
        "Be brief.",
        "Hi.",
        "Hello, caller.",
        "How are you?",
    ]


def test_the_agents_own_calls_have_one_name_for_client_and_model() -> None:
    """Of two calls that are the same to the letter the client deletes the first: the second stays, with its output."""

    @tool(side_effects=False)
    async def price() -> str:
        """Ask for the price."""
        return "four"

    calls = iter([ToolCall("own_1", "price", "{}"), ToolCall("own_2", "price", "{}")])

    def reply(messages: object) -> list[Piece]:
        call = next(calls, None)
        return [Piece(call, 0.02)] if call else [Piece("Four.", 0.01)]

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=6000)
        items = [event["item"] for event in client.of("conversation.item.added")]
        about = [item for item in items if item["type"].startswith("function_call")]
        assert [item["call_id"] for item in about] == ["own_1", "own_1", "own_2", "own_2"]
        client.send("conversation.item.delete", item_id=about[0]["id"])

    client = Talk(mind=ScriptedModel(reply=reply), tools=(price,)).hold(act)
    assert [message.call.id for message in client.session.messages if message.call] == ["own_2", "own_2"]
