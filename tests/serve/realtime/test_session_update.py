"""session.update: only what is there changes, a wrong field changes nothing, and the answer is always complete."""

from __future__ import annotations

import pytest
from tests.serve.realtime.talk import SETUP, Client, Talk

pytestmark = pytest.mark.unit

MULAW = {"type": "audio/pcmu"}


def session_of(events: list[dict]) -> dict:
    (event,) = events
    assert event["type"] == "session.updated", event
    return event["session"]


def test_the_first_events_say_what_is_in_effect() -> None:
    async def act(client: Client) -> None:
        created, conversation = client.got
        assert (created["type"], conversation["type"]) == ("session.created", "conversation.created")
        session = created["session"]
        assert (session["id"], session["model"], session["instructions"]) == (SETUP.id, "antiphon", "Be brief.")
        assert session["audio"]["input"]["turn_detection"]["type"] == "semantic_vad"
        assert session["audio"]["output"] == {
            "format": {"type": "audio/pcm", "rate": 24000},
            "voice": "hibari",
            "speed": 1.0,
        }

    Talk().hold(act)


def test_an_update_leaves_alone_what_it_does_not_name() -> None:
    """Turn detection that was turned off stays off, and the format stays, whatever else is updated."""

    async def act(client: Client) -> None:
        client.update(audio={"input": {"turn_detection": None}, "output": {"format": MULAW}})
        session = session_of(client.update(instructions="Other."))
        assert session["audio"]["input"]["turn_detection"] is None
        assert session["audio"]["output"]["format"] == MULAW
        assert session["instructions"] == client.session.settings.instructions == "Other."
        await client.sound((500, 2000), until_ms=5000)
        assert client.of("input_audio_buffer.committed") == []

    Talk().hold(act)


def test_a_nested_update_leaves_its_neighbours_alone() -> None:
    async def act(client: Client) -> None:
        vad = {"type": "server_vad", "silence_duration_ms": 800}
        client.update(audio={"input": {"turn_detection": vad}})
        client.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
        session = session_of(client.update(audio={"input": {"format": MULAW}}))
        now = session["audio"]["input"]["turn_detection"]
        assert (now["silence_duration_ms"], now["create_response"], now["interrupt_response"]) == (800, False, True)
        session = session_of(client.update(audio={"input": {"turn_detection": {"type": "semantic_vad"}}}))
        assert session["audio"]["input"]["turn_detection"]["create_response"] is True

    Talk().hold(act)


def test_names_that_are_not_here_fall_back_and_the_echo_says_to_what() -> None:
    async def act(client: Client) -> None:
        audio = {
            "input": {"transcription": {"model": "gpt-4o-mini-transcribe", "language": "de"}},
            "output": {"voice": "ash", "speed": 1.2},
        }
        session = session_of(client.update(model="gpt-realtime", audio=audio))
        assert session["model"] == "antiphon"
        assert session["audio"]["output"]["voice"] == "hibari"
        assert session["audio"]["output"]["speed"] == 1.0
        assert session["audio"]["input"]["transcription"] == {"model": "whisper", "language": "en"}
        session = session_of(client.update(audio={"output": {"voice": {"id": "other"}}}))
        assert session["audio"]["output"]["voice"] == "other"

    Talk().hold(act)


def test_null_goes_back_to_the_agents_own() -> None:
    async def act(client: Client) -> None:
        client.update(instructions="Other.", max_output_tokens=10, output_modalities=["text"])
        assert client.session.settings.max_tokens == 10
        session = session_of(client.update(instructions=None, max_output_tokens=None, output_modalities=None))
        assert (session["instructions"], session["max_output_tokens"]) == ("Be brief.", "inf")
        assert session["output_modalities"] == ["audio"]
        assert client.session.settings.max_tokens == SETUP.max_tokens

    Talk().hold(act)


def test_fields_that_nobody_knows_are_ignored() -> None:
    async def act(client: Client) -> None:
        session_of(client.update(temperature=0.8, audio={"input": {"wind_shield": True}}))

    Talk().hold(act)


def test_what_client_libraries_send_at_first_is_taken() -> None:
    """As three of them do, without a type, with one, with everything."""

    async def act(client: Client) -> None:
        session_of(client.send("session.update", session={"instructions": "Hi."}))
        audio = {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "transcription": {"model": "gpt-4o-mini-transcribe"},
                "noise_reduction": {"type": "near_field"},
                "turn_detection": {
                    "type": "semantic_vad",
                    "create_response": True,
                    "eagerness": "medium",
                    "interrupt_response": True,
                },
            },
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "speed": 1.0, "voice": "marin"},
        }
        session = session_of(
            client.update(
                model="gpt-realtime",
                output_modalities=["audio"],
                max_output_tokens="inf",
                tool_choice="auto",
                tools=[],
                audio=audio,
                tracing=None,
                truncation={"type": "retention_ratio", "retention_ratio": 0.8},
            )
        )
        assert session["audio"]["input"]["turn_detection"]["interrupt_response"] is True

    Talk().hold(act)


@pytest.mark.parametrize(
    ("session", "param", "code"),
    [
        ({"type": "transcription"}, "session.type", "not_supported"),
        ({"type": "other"}, "session.type", "invalid_value"),
        ({"instructions": 5}, "session.instructions", "invalid_type"),
        ({"audio": []}, "session.audio", "invalid_type"),
        ({"audio": {"input": {"format": {"type": "audio-pcmu"}}}}, "session.audio.input.format.type", "invalid_value"),
        ({"audio": {"output": {"format": "pcm16"}}}, "session.audio.output.format", "invalid_type"),
        (
            {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 44_100}}}},
            "session.audio.input.format.rate",
            "invalid_value",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 1.5}}}},
            "session.audio.input.turn_detection.threshold",
            "invalid_value",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": "500"}}}},
            "session.audio.input.turn_detection.silence_duration_ms",
            "invalid_type",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "wild"}}}},
            "session.audio.input.turn_detection.eagerness",
            "invalid_value",
        ),
        ({"audio": {"output": {"speed": 3}}}, "session.audio.output.speed", "invalid_value"),
        ({"audio": {"output": {"voice": 5}}}, "session.audio.output.voice", "invalid_type"),
        ({"output_modalities": ["audio", "text"]}, "session.output_modalities", "invalid_value"),
        ({"max_output_tokens": 1.5}, "session.max_output_tokens", "invalid_type"),
        ({"max_output_tokens": True}, "session.max_output_tokens", "invalid_type"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "session.tools[0].type", "not_supported"),
        ({"tools": [{"type": "function"}]}, "session.tools[0].name", "missing_required_parameter"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "session.tools[0].name", "invalid_value"),
        (
            {"tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "a"}]},
            "session.tools[1].name",
            "invalid_value",
        ),
        ({"tool_choice": "sometimes"}, "session.tool_choice", "invalid_value"),
        ({"tool_choice": "required"}, "session.tool_choice", "invalid_value"),
        ({"tool_choice": {"type": "mcp", "server_label": "x"}}, "session.tool_choice", "not_supported"),
        ({"parallel_tool_calls": "no"}, "session.parallel_tool_calls", "invalid_type"),
        ({"prompt": {"id": "p"}}, "session.prompt", "not_supported"),
        ({"include": ["item.input_audio_transcription.logprobs"]}, "session.include", "not_supported"),
        ({"include": ["antiphon.timeline", "antiphon.words"]}, "session.include", "not_supported"),
        ({"include": [5]}, "session.include", "invalid_type"),
        ({"truncation": "never"}, "session.truncation", "invalid_value"),
        ({"truncation": "disabled"}, "session.truncation", "not_supported"),
        (
            {"truncation": {"type": "retention_ratio", "retention_ratio": 2}},
            "session.truncation.retention_ratio",
            "invalid_value",
        ),
        (
            {"audio": {"input": {"transcription": {"keywords": "latte"}}}},
            "session.audio.input.transcription.keywords",
            "invalid_type",
        ),
        (
            {"audio": {"input": {"transcription": {"delay": "none"}}}},
            "session.audio.input.transcription.delay",
            "invalid_value",
        ),
        ({"tracing": 5}, "session.tracing", "invalid_type"),
        ({"reasoning": {"effort": "much"}}, "session.reasoning.effort", "invalid_value"),
    ],
)
def test_a_wrong_field_is_named_and_changes_nothing(session: dict, param: str, code: str) -> None:
    async def act(client: Client) -> None:
        settings = client.session.settings
        wanted = {"type": "realtime", "instructions": "Changed.", "tools": [], **session}
        (refused,) = client.send("session.update", event_id="e1", session=wanted)
        error = refused["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", code)
        assert (error["param"], error["event_id"]) == (param, "e1")
        assert client.session.settings == settings
        assert session_of(client.update())["instructions"] == "Be brief."

    Talk().hold(act)
