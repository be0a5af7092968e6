"""Messages of every kind: those of the protocol are understood, others answered with an error, none ends a call."""

from __future__ import annotations

import json

import pytest
from tests.serve.realtime.oracle import CLIENT_EVENTS
from tests.serve.realtime.talk import Client, Talk

from antiphon.serve.realtime.client_events import KINDS, MOST_LEVELS, MOST_MESSAGE_BYTES

pytestmark = pytest.mark.unit

DEEP = "[" * 100_000


def test_all_events_of_the_protocol_are_known() -> None:
    assert set(CLIENT_EVENTS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_without_anything_in_it_does_no_harm(kind: str) -> None:
    """It does what it says, or an error says what is missing."""

    async def act(client: Client) -> None:
        client.send(kind, event_id="e1")
        await client.wait(100)
        assert all(error["event_id"] == "e1" for error in client.errors)

    Talk().hold(act)


def test_the_output_buffer_is_not_here() -> None:
    async def act(client: Client) -> None:
        (refused,) = client.send("output_audio_buffer.clear", event_id="e1")
        assert refused["error"]["code"] == "not_supported"
        assert "WebRTC" in refused["error"]["message"]

    Talk().hold(act)


@pytest.mark.parametrize(
    ("message", "code", "param"),
    [
        ("", "invalid_json", None),
        ("{", "invalid_json", None),
        (b"\xff\xfe\x00", "invalid_json", None),
        ("[]", "invalid_json", None),
        ("null", "invalid_json", None),
        ('"text"', "invalid_json", None),
        ('{"type": NaN}', "invalid_json", None),
        (DEEP, "invalid_json", None),
        ('{"type": "response.create", "x": ' + "[" * MOST_LEVELS + "]" * MOST_LEVELS + "}", "invalid_json", None),
        ('{"type": "session.update", "session": {"instructions": "\\ud800"}}', "invalid_json", None),
        ('{"x": ' + "9" * 5000 + "}", "invalid_json", None),
        (" " * (MOST_MESSAGE_BYTES + 1), "message_too_large", None),
        ("{}", "missing_required_parameter", "type"),
        ('{"type": null}', "missing_required_parameter", "type"),
        ('{"type": 5}', "invalid_type", "type"),
        ('{"type": "nothing.known"}', "invalid_value", "type"),
        ('{"type": "response.cancel", "event_id": 5}', "invalid_type", "event_id"),
        ('{"type": "response.cancel", "response_id": []}', "invalid_type", "response_id"),
        ('{"type": "response.create", "response": []}', "invalid_type", "response"),
        ('{"type": "session.update"}', "missing_required_parameter", "session"),
        (
            '{"type": "conversation.item.truncate", "item_id": "x"}',
            "missing_required_parameter",
            "content_index",
        ),
        (
            '{"type": "conversation.item.truncate", "item_id": "x", "content_index": 0, "audio_end_ms": -1}',
            "invalid_value",
            "audio_end_ms",
        ),
        (
            '{"type": "conversation.item.truncate", "item_id": "x", "content_index": 0, "audio_end_ms": 1e999}',
            "invalid_value",
            "audio_end_ms",
        ),
    ],
)
def test_a_message_that_is_none_is_answered_with_an_error(message: str | bytes, code: str, param: str | None) -> None:
    async def act(client: Client) -> None:
        client.call.take(message)
        (error,) = client.errors
        assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", code, param)
        client.call.take(json.dumps({"type": "session.update", "session": {}}))
        assert client.kinds[-1] == "session.updated"

    Talk().hold(act)


def test_bad_messages_during_a_reply_do_not_disturb_it() -> None:
    """As many errors as bad messages, and each response's events in order."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=2500)
        for _ in range(200):
            client.call.take("{")
            await client.wait(5)
        await client.until("response.done")

    client = Talk().hold(act)
    assert len(client.errors) == 200
    assert client.of("response.done")[0]["response"]["status"] == "completed"


def test_the_server_may_say_what_is_wrong_with_itself() -> None:
    async def act(client: Client) -> None:
        client.call.fail("session_expired", "the session has lasted an hour")

    (error,) = Talk().hold(act).errors
    assert (error["type"], error["code"]) == ("server_error", "session_expired")


def test_what_the_caller_said_is_in_no_error() -> None:
    """A message that cannot be read is not quoted."""

    async def act(client: Client) -> None:
        client.call.take('{"type": "response.create", "response": {"instructions": "my secret"')
        client.call.take(
            '{"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": "my secret"}}'
        )

    assert "secret" not in json.dumps(Talk().hold(act).errors)
