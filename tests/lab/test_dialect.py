"""What is asked for in either generation of the protocol, and how what comes is read."""

from __future__ import annotations

import json

import pytest

from antiphon.lab.dialect import is_beta, read_event, session_update
from antiphon.lab.kept import kept_ms
from antiphon.lab.plan import Eagerness, SessionWishes, TurnDetection
from antiphon.lab.sound_format import PCM, SoundFormat, echoed, format_named

pytestmark = pytest.mark.unit

PLAIN = format_named("audio/pcm")


def test_what_is_not_wished_for_is_not_mentioned() -> None:
    """A server keeps its defaults, but for the format, which has to be agreed on."""
    sound = {"format": {"type": "audio/pcm", "rate": 24000}}
    assert session_update(SessionWishes(), beta=False) == {
        "type": "session.update",
        "session": {"type": "realtime", "output_modalities": ["audio"], "audio": {"input": sound, "output": sound}},
    }


def test_all_wishes_are_said_in_both_dialects() -> None:
    """The same, nested or flat."""
    wishes = SessionWishes(
        turn_detection=TurnDetection.SEMANTIC,
        eagerness=Eagerness.HIGH,
        vocabulary="latte, mocha",
        instructions="Be short.",
        voice="heart",
        format="audio/pcmu",
    )
    ga, beta = (session_update(wishes, beta=beta)["session"] for beta in (False, True))
    detection = {"type": "semantic_vad", "eagerness": "high"}
    assert {
        "type": "realtime",
        "instructions": "Be short.",
        "output_modalities": ["audio"],
        "audio": {
            "input": {
                "format": {"type": "audio/pcmu"},
                "transcription": {"prompt": "latte, mocha"},
                "turn_detection": detection,
            },
            "output": {"format": {"type": "audio/pcmu"}, "voice": "heart"},
        },
    } == ga
    assert {
        "instructions": "Be short.",
        "modalities": ["audio", "text"],
        "voice": "heart",
        "input_audio_format": "g711_ulaw",
        "output_audio_format": "g711_ulaw",
        "input_audio_transcription": {"prompt": "latte, mocha"},
        "turn_detection": detection,
    } == beta
    json.dumps(ga)


def test_the_dialect_is_told_by_the_session() -> None:
    """One that says nothing is taken to be of today."""
    assert [True, False, False] == [
        is_beta({"modalities": ["text", "audio"]}),
        is_beta({"audio": {}, "modalities": None}),
        is_beta({}),
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"type": 1}', "{}"])
def test_what_is_no_event_is_none(text: str) -> None:
    """Whatever a server sends."""
    assert read_event(text) is None


@pytest.mark.parametrize(
    ("session", "found"),
    [
        ({}, PLAIN),
        ({"audio": None}, PLAIN),
        ({"audio": {"output": {"format": None}}}, PLAIN),
        ({"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}}, SoundFormat(PCM, 16_000)),
        ({"audio": {"output": {"format": {"type": "audio/pcm"}}}}, PLAIN),
        ({"audio": {"output": {"format": {"type": "audio/opus"}}}}, PLAIN),
        ({"output_audio_format": "g711_alaw"}, SoundFormat("audio/pcma", 8000)),
    ],
)
def test_the_echo_says_how_replies_are_written(session: dict[str, object], found: SoundFormat) -> None:
    """And where it does not, it is as asked for."""
    assert found == echoed(session, "output", PLAIN)


def test_what_a_server_kept_is_read_off_the_items_sound() -> None:
    """Or off the answer to the truncation; other items say nothing."""
    cut = {"type": "conversation.item.truncated", "item_id": "a", "audio_end_ms": 1250}
    assert (1250.0, None) == (kept_ms(cut, "a", PLAIN), kept_ms(cut, "b", PLAIN))
    shown = {"type": "conversation.item.retrieved", "item": {"id": "a", "content": [{"audio": "AAAA" * 16_000}]}}
    assert 1000.0 == kept_ms(shown, "a", PLAIN)
    assert kept_ms({**shown, "item": {"id": "a", "content": [{"transcript": "x"}]}}, "a", PLAIN) is None
