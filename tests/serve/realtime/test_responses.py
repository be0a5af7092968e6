"""Responses that the client asks for and cancels, one at a time."""

from __future__ import annotations

import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.mind import asked, counting_late, mind
from tests.think.doubles import ScriptedModel

from antiphon.core.errors import EngineError
from antiphon.core.flow import Usage
from antiphon.serve.realtime.usage import estimate, text_usage

pytestmark = pytest.mark.unit

HELLO = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
LONG = [
    f"{word} "
    for word in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
]


def test_text_is_answered_when_asked_for() -> None:
    async def act(client: Client) -> None:
        added, done = client.send("conversation.item.create", item={**HELLO, "id": "mine"})
        assert added["item"]["id"] == done["item"]["id"] == "mine"
        client.send("response.create")
        await client.until("response.done")

    client = Talk().hold(act)
    assert client.session.history == (("user", "Hello."), ("assistant", "Coming right up. Anything else?"))


def test_a_text_response_has_text_events_alone() -> None:
    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create", response={"output_modalities": ["text"]})
        await client.until("response.done")

    client = Talk().hold(act)
    assert [kind for kind in client.kinds if kind.startswith("response.")] == [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    done = client.of("response.done")[0]["response"]
    text = "".join(event["delta"] for event in client.of("response.output_text.delta"))
    assert done["output"][0]["content"] == [{"type": "output_text", "text": text}]
    assert done["output_modalities"] == ["text"]


def test_a_session_of_text_answers_speech_in_text() -> None:
    async def act(client: Client) -> None:
        client.update(output_modalities=["text"])
        await client.sound((500, 2000), until_ms=4000)

    client = Talk().hold(act)
    assert client.of("response.output_text.done")[0]["text"].strip() == "Coming right up. Anything else?"
    assert client.of("response.output_audio.delta") == []


def test_what_is_particular_to_a_response_is_so() -> None:
    """Its instructions reach the model, its metadata comes back; the session keeps its own."""
    model = mind(["Bonjour."], ["Hello."])

    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        wanted = {"instructions": "Speak French.", "metadata": {"client_event_id": "e7"}, "max_output_tokens": 50}
        client.send("response.create", response=wanted)
        created = await client.until("response.created")
        assert created["response"]["metadata"] == {"client_event_id": "e7"}
        assert created["response"]["max_output_tokens"] == 50
        await client.until("response.done")
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create")
        done = await client.until("response.done", count=2)
        assert done["response"]["metadata"] is None

    Talk(mind=model).hold(act)
    assert [messages[0].text for messages in asked(model, "write")] == ["Speak French.", "Be brief."]


def test_a_response_may_begin_the_conversation() -> None:
    """Nobody has said anything: the model is told so, and the history holds its words alone."""
    model = mind(["Welcome."])

    async def act(client: Client) -> None:
        client.send("response.create", response={"instructions": "Greet the caller."})
        await client.until("response.done")

    client = Talk(mind=model).hold(act)
    assert client.of("response.done")[0]["response"]["status"] == "completed"
    assert asked(model, "write")[0][-1].role == "user"
    assert client.session.history == (("assistant", "Welcome."),)


def test_a_second_response_is_refused_and_the_first_goes_on() -> None:
    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create", event_id="first")
        for wait_ms in (0, 50, 500):
            await client.wait(wait_ms)
            (refused,) = client.send("response.create", event_id=f"after-{wait_ms}")
            assert refused["error"]["code"] == "conversation_already_has_active_response"
            assert refused["error"]["event_id"] == f"after-{wait_ms}"
        await client.until("response.done")

    client = Talk().hold(act)
    assert client.of("response.done")[0]["response"]["status"] == "completed"


def test_a_response_that_was_asked_for_in_a_turn_comes_after_it() -> None:
    """With its own metadata, whatever the session would have answered by itself."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=1500)
        client.send("response.create", response={"metadata": {"who": "asked"}})
        await client.sound((500, 2000), until_ms=7000)

    client = Talk().hold(act)
    (created,) = client.of("response.created")
    assert created["response"]["metadata"] == {"who": "asked"}
    assert client.kinds.index("input_audio_buffer.committed") < client.kinds.index("response.created")


def test_cancelling_ends_the_response_at_once() -> None:
    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create")
        await client.until("response.output_audio.delta")
        await client.wait(1000)
        client.send("response.cancel", response_id=client.of("response.created")[0]["response"]["id"])
        await client.wait(20)
        assert client.kinds[-1] == "response.done"
        await client.wait(2000)
        assert client.kinds[-1] == "response.done"

    client = Talk(mind=mind(LONG)).hold(act)
    done = client.of("response.done")[0]["response"]
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "client_cancelled")
    assert done["output"][0]["status"] == "incomplete"


def test_cancelling_before_any_word_keeps_the_item() -> None:
    """It has sounded, so the client knows it; it is incomplete, and its name is the one of its deltas."""

    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create")
        await client.until("response.output_audio.delta")
        client.send("response.cancel")
        await client.until("response.done")

    client = Talk(mind=mind(LONG)).hold(act)
    (item,) = client.of("response.done")[0]["response"]["output"]
    assert {event["item_id"] for event in client.of("response.output_audio.delta")} == {item["id"]}
    assert (item["status"], item["content"][0]["transcript"]) == ("incomplete", "")


def test_there_is_nothing_to_cancel() -> None:
    """Not in silence, not while the caller speaks, not by another's name, and not a second time."""

    async def act(client: Client) -> None:
        for until_ms in (300, 1500):
            await client.sound((500, 2000), until_ms=until_ms)
            (refused,) = client.send("response.cancel", event_id="e1")
            assert (refused["error"]["code"], refused["error"]["event_id"]) == ("response_cancel_not_active", "e1")
        await client.sound((500, 2000), until_ms=3000)
        (refused,) = client.send("response.cancel", response_id="resp_other")
        assert refused["error"]["param"] == "response_id"
        client.send("response.cancel")
        client.send("response.cancel")
        await client.until("response.done")
        (refused,) = client.send("response.cancel")
        assert refused["error"]["code"] == "response_cancel_not_active"

    assert len(Talk().hold(act).errors) == 4


def test_the_next_response_may_be_asked_for_in_the_same_breath_as_the_last_is_cancelled() -> None:
    """Before and after it has begun; each ends, and the last one is spoken."""

    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        for wait_ms in (1500, 0, 20, 3000):
            client.send("response.create", response={"metadata": {"wait": str(wait_ms)}})
            await client.wait(wait_ms)
            client.send("response.cancel") if wait_ms < 3000 else None
        await client.until("response.done", count=4)

    client = Talk(mind=mind(LONG)).hold(act)
    assert not client.errors
    done = [event["response"] for event in client.of("response.done")]
    assert [response["status"] for response in done] == ["cancelled", "cancelled", "cancelled", "completed"]
    assert [response["metadata"]["wait"] for response in done] == ["1500", "0", "20", "3000"]
    assert client.session.history[-1] == ("assistant", "".join(LONG).strip())


def test_what_was_asked_for_in_a_turn_can_be_cancelled_in_it() -> None:
    """It never began, so it begins and ends; the turn is answered as usual."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=1500)
        client.send("response.create", response={"metadata": {"who": "asked"}})
        created, done = client.send("response.cancel")
        assert created["response"]["metadata"] == done["response"]["metadata"] == {"who": "asked"}
        assert done["response"]["status_details"]["reason"] == "client_cancelled"
        await client.sound((500, 2000), until_ms=7000)

    client = Talk().hold(act)
    assert [event["response"]["status"] for event in client.of("response.done")] == ["cancelled", "completed"]


def test_a_response_that_fails_says_so() -> None:
    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create")
        await client.until("response.done")
        client.send("response.create")
        await client.until("response.done", count=2)

    client = Talk(mind=mind(EngineError("the mind broke"), ["Hello."])).hold(act)
    failed, completed = (event["response"] for event in client.of("response.done"))
    assert (failed["status"], failed["output"]) == ("failed", [])
    assert failed["status_details"]["error"] == {
        "type": "server_error",
        "code": "chat_failed",
        "message": "the mind broke",
    }
    assert completed["status"] == "completed"


def test_a_mind_that_fails_in_a_turn_leaves_nothing_hanging() -> None:
    """A response was asked for in the turn; whether it fails or comes, it ends, and the next one is not refused."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=1500)
        client.send("response.create")
        await client.sound((500, 2000), until_ms=7000)
        client.send("response.create")
        await client.sound(until_ms=14_000)

    client = Talk(mind=mind(EngineError("the mind broke"), EngineError("again"), ["Hello."])).hold(act)
    assert len(client.of("response.created")) == len(client.of("response.done")) >= 2
    assert not client.errors


def test_a_greeting_is_a_response() -> None:
    async def act(client: Client) -> None:
        await client.until("response.done")

    done = Talk(greeting="Good morning.").hold(act).of("response.done")[0]["response"]
    assert done["output"][0]["content"][0]["transcript"] == "Good morning."


def test_usage_counts_text_and_sound() -> None:
    """Text as the model counts it, here in words; 10 tokens a second of the caller's sound, 20 of ours."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=7000)

    client = Talk().hold(act)
    usage = client.of("response.done")[0]["response"]["usage"]
    assert usage["input_token_details"]["text_tokens"] == 5  # Be brief. A latte, please.
    assert usage["input_token_details"]["audio_tokens"] == 19
    spoken_s = len(client.heard(client.of("response.output_audio.delta")[0]["item_id"])) / 24_000
    assert usage["output_token_details"]["audio_tokens"] == pytest.approx(spoken_s * 20, abs=1)
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


@pytest.mark.parametrize(
    ("counted", "read", "cached", "written"),
    [
        (Usage(input_tokens=30, cached_tokens=20, output_tokens=7), 30, 20, 7),
        (None, 3 + 2, 0, 8),  # "Be brief." and "Hello." have 9 and 6 characters, the reply 32
    ],
)
def test_text_is_counted_by_the_server_or_estimated(
    counted: Usage | None, read: int, cached: int, written: int
) -> None:
    """A server counts behind the last word; where it does not, four characters are a token."""

    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create")
        await client.until("response.done")

    model = counting_late(mind(["Coming ", "right ", "up. ", "Anything ", "else?"]), counted)
    usage = Talk(mind=model).hold(act).of("response.done")[0]["response"]["usage"]
    assert (usage["input_token_details"]["text_tokens"], usage["input_token_details"]["cached_tokens"]) == (
        read,
        cached,
    )
    assert usage["output_token_details"]["text_tokens"] == written


def test_text_is_estimated_where_no_model_counts_it() -> None:
    """A token for every four characters, rounded up."""
    assert text_usage(estimate, read=["Be brief.", "abcd"], written=["", "a"]) == Usage(input_tokens=4, output_tokens=1)


@pytest.mark.parametrize(
    ("wanted", "param", "code"),
    [
        ({"conversation": "none"}, "response.conversation", "not_supported"),
        ({"conversation": "other"}, "response.conversation", "invalid_value"),
        ({"input": []}, "response.input", "not_supported"),
        ({"output_modalities": ["audio", "text"]}, "response.output_modalities", "invalid_value"),
        ({"output_modalities": "text"}, "response.output_modalities", "invalid_type"),
        ({"max_output_tokens": 0}, "response.max_output_tokens", "invalid_value"),
        ({"metadata": {"key": 5}}, "response.metadata.key", "invalid_type"),
        ({"metadata": {str(key): "" for key in range(17)}}, "response.metadata", "invalid_value"),
        ({"tool_choice": "required"}, "response.tool_choice", "invalid_value"),
        ({"tool_choice": {"type": "function", "name": "none_such"}}, "response.tool_choice", "invalid_value"),
        ({"prompt": {"id": "p"}}, "response.prompt", "not_supported"),
    ],
)
def test_what_cannot_be_is_refused_by_name(wanted: dict, param: str, code: str) -> None:
    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        (refused,) = client.send("response.create", event_id="e1", response=wanted)
        error = refused["error"]
        assert (error["code"], error["param"], error["event_id"]) == (code, param, "e1")
        await client.wait(500)

    assert Talk(mind=ScriptedModel(reply=lambda _: [])).hold(act).of("response.created") == []
