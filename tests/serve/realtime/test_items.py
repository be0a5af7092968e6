"""What the client does to the conversation: create, delete, retrieve, truncate."""

from __future__ import annotations

import base64

import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.mind import asked, mind

pytestmark = pytest.mark.unit

NUMBERS = [f"{word} " for word in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]]


def text_item(text: str, **fields: object) -> dict:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}], **fields}


async def speak_and_hear(client: Client) -> str:
    """One turn and its reply, which has numbers in it; the reply's item."""
    await client.sound((500, 2000), until_ms=2500)
    done = await client.until("response.done")
    return done["response"]["output"][0]["id"]


def test_items_stand_where_the_client_wants_them() -> None:
    async def act(client: Client) -> None:
        create = lambda **fields: client.send("conversation.item.create", **fields)  # noqa: E731
        assert create(item=text_item("B", id="b"))[0]["previous_item_id"] is None
        assert create(item=text_item("D", id="d"))[0]["previous_item_id"] == "b"
        assert create(item=text_item("A", id="a"), previous_item_id="root")[0]["previous_item_id"] is None
        assert create(item=text_item("C", id="c"), previous_item_id="b")[0]["previous_item_id"] == "b"

    assert [text for _, text in Talk().hold(act).session.history] == ["A", "B", "C", "D"]


def test_an_item_behind_a_turn_stands_behind_its_words() -> None:
    async def act(client: Client) -> None:
        await speak_and_hear(client)
        turn = client.of("input_audio_buffer.committed")[0]["item_id"]
        client.send("conversation.item.create", item=text_item("More."), previous_item_id=turn)

    history = Talk().hold(act).session.history
    assert [text for role, text in history if role == "user"] == ["A latte, please.", "More."]
    assert history[-1][0] == "assistant"


def test_a_deleted_item_is_gone_for_the_model_too() -> None:
    async def act(client: Client) -> None:
        reply = await speak_and_hear(client)
        turn = client.of("input_audio_buffer.committed")[0]["item_id"]
        for name in (reply, turn):
            (deleted,) = client.send("conversation.item.delete", item_id=name)
            assert (deleted["type"], deleted["item_id"]) == ("conversation.item.deleted", name)

    assert Talk().hold(act).session.history == ()


def test_an_item_that_is_being_made_cannot_be_deleted() -> None:
    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=2500)
        name = (await client.until("response.output_item.added"))["item"]["id"]
        (refused,) = client.send("conversation.item.delete", item_id=name)
        assert refused["error"]["param"] == "item_id"
        await client.until("response.done")

    Talk().hold(act)


def test_items_that_nobody_knows_are_refused_by_name() -> None:
    async def act(client: Client) -> None:
        for kind, more in (
            ("conversation.item.delete", {}),
            ("conversation.item.retrieve", {}),
            ("conversation.item.truncate", {"content_index": 0, "audio_end_ms": 0}),
        ):
            (refused,) = client.send(kind, item_id="nobody", event_id="e1", **more)
            error = refused["error"]
            code = "item_retrieve_invalid_item_id" if kind.endswith("retrieve") else "item_not_found"
            assert (error["code"], error["param"], error["event_id"]) == (code, "item_id", "e1")
        (refused,) = client.send("conversation.item.create", item=text_item("A"), previous_item_id="nobody")
        assert refused["error"]["param"] == "previous_item_id"
        client.send("conversation.item.create", item=text_item("A", id="a"))
        (refused,) = client.send("conversation.item.create", item=text_item("A", id="a"))
        assert (refused["error"]["code"], refused["error"]["param"]) == ("item_exists", "item.id")

    Talk().hold(act)


def test_an_item_comes_back_with_its_sound() -> None:
    """The caller's as it was heard, ours as it was sent."""

    async def act(client: Client) -> None:
        reply = await speak_and_hear(client)
        turn = client.of("input_audio_buffer.committed")[0]["item_id"]
        (of_turn,) = client.send("conversation.item.retrieve", item_id=turn)
        (part,) = of_turn["item"]["content"]
        assert part["transcript"] == "A latte, please."
        seconds = len(base64.b64decode(part["audio"])) / 48_000
        assert seconds == pytest.approx(2.0, abs=0.3)
        (of_reply,) = client.send("conversation.item.retrieve", item_id=reply)
        data = base64.b64decode(of_reply["item"]["content"][0]["audio"])
        assert len(data) == pytest.approx(len(client.heard(reply)) * 2, rel=0.01)

    Talk().hold(act)


@pytest.mark.parametrize("is_paced", [True, False])
def test_truncation_keeps_what_was_heard(is_paced: bool) -> None:
    """By the sample: an eighth of a second of each letter is said in 60 ms by this voice; the model sees a prefix."""
    model = mind(NUMBERS, ["Good."])

    async def act(client: Client) -> None:
        reply = await speak_and_hear(client)
        seconds = len(client.heard(reply)) / 24_000
        (cut,) = client.send(
            "conversation.item.truncate", item_id=reply, content_index=0, audio_end_ms=int(seconds * 250)
        )
        assert cut["audio_end_ms"] == int(seconds * 250)
        client.send("conversation.item.create", item=text_item("Go on."))
        client.send("response.create")
        await client.until("response.done", count=2)

    client = Talk(mind=model, is_paced=is_paced).hold(act)
    told = asked(model, "write")[-1][2].text
    assert " ".join(NUMBERS).replace("  ", " ").startswith(told)
    assert 0 < len(told) <= len("one two three four")
    assert not client.errors


def test_more_than_there_is_cannot_be_kept() -> None:
    """The error names the event; the item stays, and can still be truncated, as can a second one from its own zero."""

    async def act(client: Client) -> None:
        for count in (1, 2):
            client.send("conversation.item.create", item=text_item("Count."))
            client.send("response.create")
            done = await client.until("response.done", count=count)
            reply, whole = done["response"]["output"][0]["id"], client.session.history[-1]
            fields = {"item_id": reply, "content_index": 0}
            (refused,) = client.send("conversation.item.truncate", event_id="e1", audio_end_ms=60_000, **fields)
            assert (refused["error"]["param"], refused["error"]["event_id"]) == ("audio_end_ms", "e1")
            assert client.session.history[-1] == whole
            (cut,) = client.send("conversation.item.truncate", audio_end_ms=1000, **fields)
            assert (cut["type"], cut["audio_end_ms"]) == ("conversation.item.truncated", 1000)
            assert len(client.session.history[-1][1]) < len(whole[1])

    Talk(mind=mind(NUMBERS)).hold(act)


def test_only_sound_of_ours_can_be_truncated() -> None:
    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=text_item("A", id="a"))
        (refused,) = client.send("conversation.item.truncate", item_id="a", content_index=0, audio_end_ms=0)
        assert refused["error"]["param"] == "item_id"
        reply = await speak_and_hear(client)
        (refused,) = client.send("conversation.item.truncate", item_id=reply, content_index=1, audio_end_ms=0)
        assert refused["error"]["param"] == "content_index"

    Talk().hold(act)


def test_a_client_that_stops_playing_cancels_and_truncates_in_one_breath() -> None:
    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=text_item("Count."))
        client.send("response.create")
        await client.until("response.output_audio.delta")
        await client.wait(1500)
        client.send("response.cancel")
        reply = client.of("response.output_item.added")[0]["item"]["id"]
        client.send("conversation.item.truncate", item_id=reply, content_index=0, audio_end_ms=500)
        await client.until("response.done")

    for is_paced in (True, False):
        client = Talk(mind=mind(NUMBERS), is_paced=is_paced).hold(act)
        assert not client.errors
        assert client.session.history[-1][1] in {"one two", "one two t", "one tw"}


@pytest.mark.parametrize(
    ("item", "param", "code"),
    [
        (None, "item", "missing_required_parameter"),
        ({}, "item.type", "missing_required_parameter"),
        ({"type": "mcp_call"}, "item.type", "not_supported"),
        ({"type": "thing"}, "item.type", "invalid_value"),
        ({"type": "message"}, "item.role", "missing_required_parameter"),
        ({"type": "message", "role": "robot", "content": []}, "item.role", "invalid_value"),
        ({"type": "message", "role": "user", "content": []}, "item.content", "invalid_value"),
        ({"type": "message", "role": "user", "content": "x"}, "item.content", "invalid_type"),
        (text_item("  "), "item.content", "invalid_value"),
        (text_item("x", id=""), "item.id", "invalid_value"),
        (text_item("x", id=5), "item.id", "invalid_type"),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "data:"}]},
            "item.content[0].type",
            "not_supported",
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]},
            "item.content[0].transcript",
            "not_supported",
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "output_text", "text": "x"}]},
            "item.content[0].type",
            "invalid_value",
        ),
        ({"type": "function_call", "name": "x"}, "item.arguments", "missing_required_parameter"),
        ({"type": "function_call_output", "output": "x"}, "item.call_id", "missing_required_parameter"),
    ],
)
def test_an_item_that_cannot_be_is_refused_by_name(item: object, param: str, code: str) -> None:
    async def act(client: Client) -> None:
        (refused,) = client.send("conversation.item.create", item=item, event_id="e1")
        error = refused["error"]
        assert (error["code"], error["param"], error["event_id"]) == (code, param, "e1")

    assert Talk().hold(act).session.history == ()
