"""The engine for servers of others: what it asks, what it makes of the answer, how it begins and ends."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from tests.think.chat_server_double import (
    LAST_PART,
    Act,
    Asked,
    NoNetwork,
    delta,
    event,
    head,
    part,
    reply,
    said,
    whole,
)
from tests.think.chat_server_talk import (
    ASK,
    HOSTED,
    KEY,
    OWN,
    ROOM,
    SECRET,
    chat,
    posts,
    read,
    refused,
    scripted,
    written,
)
from tests.virtual_time import run

from antiphon.core.errors import CallerError, EngineError, PeerError
from antiphon.core.flow import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.think.language_model import Written

pytestmark = pytest.mark.unit


# What is asked.


def test_a_request_says_what_is_needed_and_no_more():
    server = scripted(reply(*said("Yes.")))

    assert ["Yes."] == read(server, extra='{"top_p": 0.5}', api_key=KEY)
    assert ["/v1/models", "/v1/chat/completions"] == [asked.path for asked in server.asked]
    assert {
        "model": "double",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": SECRET}],
        "max_tokens": 50,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "top_p": 0.5,
    } == server.asked[1].body
    assert f"Bearer {KEY}" == server.asked[1].headers["authorization"]


def test_a_model_that_was_named_is_not_asked_for():
    server = scripted(reply(*said("Yes.")))
    read(server, model="big")

    assert ["big"] == [asked.body["model"] for asked in server.asked]


def test_of_several_models_a_hosted_service_wants_one_named():
    """Of one's own server the first will do."""
    listed = whole({"data": [{"id": "first"}, {"id": "second"}]})

    def script(asked: Asked) -> Sequence[bytes | float | Act]:
        return listed if asked.path.endswith("/models") else reply(*said("Yes."))

    own = NoNetwork(script)
    read(own)
    assert "first" == own.asked[1].body["model"]
    with pytest.raises(CallerError, match=r"2 models, such as first, second\nhint: set chat_server\.model"):
        read(NoNetwork(script), HOSTED)


def test_a_list_without_models_names_the_remedy():
    for listed in (whole({"data": []}), whole({}), whole([1]), whole(b"<html>")):
        assert "hint" in str(refused(NoNetwork(lambda _, listed=listed: listed)))
    missing = NoNetwork(lambda _: whole({}, 404))
    assert "chat_server.model" in refused(missing).hint


def test_a_servers_wishes_are_met_and_remembered():
    """One that wants another name for the limit, and one that draws by its own lot."""
    other_name = whole({"error": {"message": "Use 'max_completion_tokens' instead.", "param": "max_tokens"}}, 400)
    no_temperature = whole({"error": {"message": "Only the default.", "param": "temperature"}}, 400)
    server = scripted(other_name, no_temperature, reply(*said("Yes.")))
    model = chat(server)

    assert ["Yes."] == run(written(model))
    assert ["Yes."] == run(written(model))
    last = posts(server)[-1].body
    assert (4, 50, True) == (
        len(posts(server)),
        last["max_completion_tokens"],
        {"max_tokens", "temperature"}.isdisjoint(last),
    )


# What comes out.


def test_thoughts_roles_and_usage_are_left_out():
    """So are other choices, and whatever has the wrong type."""
    server = scripted(
        reply(
            event(delta(role="assistant", content=None)),
            event(delta(role="assistant", content="")),
            event(delta(reasoning_content="They want")),
            event(delta(reasoning="They want")),
            event(delta(thinking="They want")),
            event(delta(content=[{"type": "thinking", "text": "They"}, {"type": "text", "text": "Y"}])),
            event({"choices": [{"index": 1, "delta": {"content": "No"}}]}),
            event({"choices": [{"delta": {"content": "e"}, "finish_reason": ""}]}),
            event({"choices": [None]}),
            event({"choices": [{"index": 0, "delta": {"content": 5}}]}),
            event(delta(content="s", finish="stop")),
            event({"choices": [], "usage": {"total_tokens": 9}}),
            event(b"[DONE]"),
        )
    )

    assert ["Y", "e", "s"] == read(server)


@pytest.mark.parametrize("cut", range(1, 12))
def test_characters_come_out_whole(cut):
    """However the bytes are cut, and even if the server cuts a character in two escapes; no replacement marks."""
    text = said("ä模😀", "b\ufffd")
    halves = [event(b'{"choices": [{"index": 0, "delta": {"content": "\\ud83d"}}]}')]
    halves += [event(b'{"choices": [{"index": 0, "delta": {"content": "\\ude00!\\ud83d"}}]}')]
    data = b"".join(halves + text)
    server = scripted(reply(*(data[at : at + cut] for at in range(0, len(data), cut))))

    assert ["😀!", "ä模😀", "b"] == read(server)


@pytest.mark.parametrize(
    "events",
    [
        [event(delta(content="Yes.")), event(delta(finish="stop"))],
        [event(delta(content="Yes.")), event(b"[DONE]")],
        [event(delta(content="Yes.", finish="length"))],
        [event(delta(content="Yes.", finish="stop")), Act.RESET],
        [event(delta(content="Yes.", finish="stop")), 3600.0],
        [event(delta(content="Yes.", finish="stop")), event(b"[DONE]").rstrip()],
        [event(delta(content="Yes.", finish="stop")), b"data: nonsense\n\n"],
    ],
)
def test_a_reply_is_whole_once_the_server_says_so(events):
    """By its reason or by its last word; how the connection ends behind that does not matter."""
    acts = [act if isinstance(act, float | Act) else part(act) for act in events]

    assert ["Yes."] == read(scripted([head(), *acts, LAST_PART]))


def test_a_server_that_knows_no_streams_is_understood():
    """The reply comes late, but it comes."""
    call = {"id": "a1", "function": {"name": "book_room", "arguments": {"beds": 2}}}
    message = {"role": "assistant", "content": "Yes.", "tool_calls": [call]}
    server = scripted(whole({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))

    assert ["Yes.", ToolCall("a1", "book_room", '{"beds": 2}')] == read(server, tools=[ROOM])


def test_a_server_that_pays_no_heed_to_the_limit_is_cut_off():
    """Nobody talks for ever."""
    server = scripted([head(), *[part(event(delta(content="word " * 20)))] * 10_000, LAST_PART])

    assert 16 == len(run(written(chat(server), max_tokens=50)))


def test_calls_come_after_the_text_each_when_it_is_whole():
    """Text behind a call is left out, and so is a call of what was not offered."""

    def call(index: int, name: str) -> bytes:
        function = {"name": name, "arguments": "{}"}
        return event(delta(tool_calls=[{"index": index, "id": f"c{index}", "function": function}]))

    events = [event(delta(content="One moment.")), call(0, "book_room"), call(1, "hack"), 1.0, call(2, "book_room")]
    server = scripted(reply(*events, event(delta(content="\n")), 1.0, event(delta(finish="tool_calls"))))

    async def timed() -> list[tuple[float, Written]]:
        loop = asyncio.get_running_loop()
        async with aclosing(chat(server).open().write(ASK, max_tokens=9, tools=[ROOM])) as pieces:
            return [(loop.time(), piece) async for piece in pieces]

    first, last = ToolCall("c0", "book_room", "{}"), ToolCall("c2", "book_room", "{}")
    assert [(0.0, "One moment."), (0.0, first), (2.0, last)] == run(timed())


def test_the_old_form_of_a_call_is_understood():
    events = [
        delta(function_call={"name": "book_room"}),
        delta(function_call={"arguments": "{}"}, finish="function_call"),
    ]
    (call,) = read(scripted(reply(*map(event, events))), tools=[ROOM])

    assert isinstance(call, ToolCall)
    assert ("book_room", "{}") == (call.name, call.arguments)


def test_a_reply_of_nothing_but_unknown_calls_is_an_error_that_names_them():
    """Unless the name is none that a tool can have: then it may be anything."""
    for name, shown in (("hack", "called hack,"), (SECRET, "called something,")):
        events = event(delta(tool_calls=[{"index": 0, "function": {"name": name, "arguments": "{}"}}], finish="stop"))
        error = refused(scripted(reply(events)))
        assert (True, False) == (shown in error.message, error.retryable)


def test_none_of_the_tools_means_none():
    """Though all of them are told to the server."""
    events = event(delta(content="No.", tool_calls=[{"index": 0, "function": {"name": "book_room"}}], finish="stop"))
    server = scripted(reply(events))

    assert ["No."] == run(written(chat(server), tools=[ROOM], tool_choice="none"))
    assert ("none", 1) == (server.asked[1].body["tool_choice"], len(server.asked[1].body["tools"]))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([delta(reasoning="Well"), delta(finish="length")], "thought for all of its tokens"),
        ([delta(content="Yes"), delta(finish="content_filter")], "content filter"),
        ([delta(tool_calls=[{"function": {"name": "x", "arguments": '{"a'}}], finish="length")], "longer than"),
    ],
)
def test_a_reply_that_ended_for_a_bad_reason_says_so(events, message):
    assert message in refused(scripted(reply(*map(event, events)))).message


def test_half_a_reply_is_no_request():
    """Which servers would go on with it, and in which way, is not guessed."""
    server = scripted(reply(*said("x")))
    with pytest.raises(CallerError, match="cannot go on") as caught:
        run(written(chat(server), begins_with=f"Your number is {SECRET}"))

    assert "begins_with" in caught.value.hint
    assert SECRET not in str(caught.value)
    assert [] == server.asked


# What else is asked of a server.


def test_reading_ahead_is_one_token_and_makes_way():
    """For a write, and for words that came later."""

    def script(asked: Asked) -> Sequence[bytes | float | Act]:
        return reply(*said("x")) if asked.body["max_tokens"] != 1 else reply(2.0, *said("x"))

    server = NoNetwork(script)

    async def ahead() -> list[float]:
        loop = asyncio.get_running_loop()
        thinking = chat(server, model="m").open()
        ends = []

        async def prefill() -> None:
            await thinking.prefill(ASK)
            ends.append(loop.time())

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(prefill())
            await asyncio.sleep(0.5)
            tasks.create_task(prefill())
            await asyncio.sleep(0.5)
            async with aclosing(thinking.write(ASK, max_tokens=5)) as pieces:
                assert ["x"] == [piece async for piece in pieces]
        return ends

    assert [0.5, 1.0] == run(ahead())
    assert [1, 1, 5] == [asked.body["max_tokens"] for asked in server.asked]


@pytest.mark.parametrize(
    ("address", "switch", "asked"), [(OWN, "auto", 1), (HOSTED, "auto", 0), (HOSTED, "on", 1), (OWN, "off", 0)]
)
def test_a_hosted_server_is_not_asked_for_more_than_replies(address, switch, asked):
    """Each request costs there; who wants it may have it."""
    server = scripted(reply(*said("x")))
    run(chat(server, address, model="m", read_ahead=switch).open().prefill(ASK))

    assert asked == len(server.asked)


def test_reading_ahead_ends_for_good_where_it_is_refused_and_tells_of_passing_failures():
    server = scripted(whole({}, 503), whole({}, 400), reply(*said("x")))
    thinking = chat(server, model="m").open()

    async def ahead() -> None:
        with pytest.raises(PeerError):
            await thinking.prefill(ASK)
        await thinking.prefill(ASK)
        await thinking.prefill(ASK)

    run(ahead())
    assert 2 == len(server.asked)


# Start and end.


def test_warming_up_names_the_server_and_the_remedy():
    """Whatever is wrong with it."""
    for answer, hint in ((whole({}, 401), "ANTIPHON_CHAT_SERVER_API_KEY"), ([Act.CLOSE], "log")):
        with pytest.raises(PeerError) as caught:
            run(chat(NoNetwork(lambda _, answer=answer: answer), HOSTED).warm_up())
        assert "https://llm.example.com/v1" in caught.value.message
        assert hint in caught.value.hint


def test_warming_up_needs_no_sense_from_the_one_token_it_asks_for():
    """A model that thinks first begins with a thought."""
    server = scripted(reply(event(delta(reasoning="W")), event(delta(finish="length"))))
    run(chat(server).warm_up())

    assert 1 == server.asked[1].body["max_tokens"]


def test_a_closed_model_refuses_and_cuts_off():
    """Even what had come already."""
    server = scripted(reply(b"".join(said("a", "b", "c"))))

    async def closed() -> None:
        model = chat(server)
        async with aclosing(model.open().write(ASK, max_tokens=9)) as pieces:
            assert "a" == await anext(pieces)
            model.close()
            with pytest.raises(EngineError, match="in the middle"):
                await anext(pieces)
        with pytest.raises(EngineError, match="closed"):
            await model.warm_up()

    run(closed())


def test_a_closed_conversation_says_so():
    async def closed() -> None:
        thinking = chat(scripted(reply())).open()
        thinking.close()
        with pytest.raises(EngineError, match="conversation is closed"):
            await thinking.prefill(ASK)

    run(closed())
