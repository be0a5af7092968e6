"""What of the server's events belongs to a turn: the last utterance of one that was split, and no cough behind it."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

import pytest

from antiphon.lab.exchange import COMMITTED, TRANSCRIBED, Exchange
from antiphon.lab.loudspeaker import Loudspeaker
from antiphon.lab.microphone import Said
from antiphon.lab.sound_format import format_named

if TYPE_CHECKING:
    from antiphon.lab.dialect import Json

pytestmark = pytest.mark.unit

STARTED, STOPPED = "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"


def after(*events: tuple[int, Json]) -> Exchange:
    exchange = Exchange(said=Said(0, 0, 0, 0, 0))
    for at_ns, event in events:
        exchange.take(event, at_ns, Loudspeaker(), format_named("audio/pcm"))
    return exchange


def utterance(item: str, from_ns: int, transcript: str | None) -> list[tuple[int, Json]]:
    """Heard, paused, committed and transcribed 10 ns apart; without words that are known, no transcript comes."""
    kinds = [STARTED, STOPPED, COMMITTED]
    events: list[tuple[int, Json]] = [
        (from_ns + 10 * place, {"type": kind, "item_id": item}) for place, kind in enumerate(kinds)
    ]
    if transcript is not None:
        events.append((from_ns + 30, {"type": TRANSCRIBED, "item_id": item, "transcript": transcript}))
    return events


REPLY: Json = {"type": "response.created", "response": {"id": "r"}}
ORDER = utterance("order", 100, "A latte.")


def test_the_last_utterance_counts() -> None:
    assert {STARTED: 200, STOPPED: 210, COMMITTED: 220, TRANSCRIBED: 230} == after(
        *ORDER, *utterance("more", 200, "Please.")
    ).came_ns


def test_a_cough_is_no_utterance() -> None:
    """It was committed without a word in it, and nothing was replied to it."""
    of_order = after(*ORDER).came_ns

    assert of_order == after(*ORDER, (140, REPLY), *utterance("cough", 200, " ")).came_ns
    assert of_order == after(*utterance("cough", 0, ""), *ORDER, (140, REPLY)).came_ns
    assert 220 == after(*ORDER, *utterance("words", 200, ""), (240, REPLY)).came_ns[COMMITTED]


def test_a_voice_that_came_to_nothing_is_no_utterance() -> None:
    """It was never committed; where nothing was, what is known counts."""
    noise = utterance("noise", 200, None)[:2]

    assert after(*ORDER).came_ns == after(*ORDER, *noise).came_ns
    assert {STARTED: 200, STOPPED: 210} == after(*noise).came_ns


def test_a_server_without_transcripts_is_believed() -> None:
    assert 220 == after(*utterance("one", 100, None), *utterance("two", 200, None)).came_ns[COMMITTED]


def test_a_reply_that_the_server_takes_back_is_no_answer() -> None:
    """It answered half of the turn; what comes in its place is the answer. One that the caller talks over stays one."""
    sound = b64encode(b"\x00\x40" * 4800).decode()

    def reply(name: str, from_ns: int, status: str) -> list[tuple[int, Json]]:
        delta: Json = {"type": "response.output_audio.delta", "response_id": name, "item_id": name, "delta": sound}
        done: Json = {"type": "response.done", "response": {"id": name, "status": status}}
        return [(from_ns, delta), (from_ns + 200_000_000, done)]

    taken_back, kept = reply("half", 100, "cancelled"), reply("whole", 500_000_000, "completed")
    whole = after(*taken_back, *kept)
    assert whole.answer is whole.replies["whole"]
    assert after(*taken_back).answer is None

    talked_over = after(*taken_back[:1])
    talked_over.talked_over_ns = 150_000_000
    talked_over.take(taken_back[1][1], taken_back[1][0], Loudspeaker(), format_named("audio/pcm"))
    assert talked_over.answer is talked_over.replies["half"]
