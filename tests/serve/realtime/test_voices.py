"""Voices that are hard to handle: soft, short, close together, cut off in a word, understood late, none at all."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.call import ORDER
from tests.session.doubles import ScriptedRecognizer
from tests.session.mind import asked, mind

if TYPE_CHECKING:
    from antiphon.core.flow import Transcript

pytestmark = pytest.mark.unit

SAMPLES_PER_MS = 24


async def listen_to(client: Client, sound: np.ndarray) -> None:
    """A microphone in real time, 20 ms an append."""
    step = 20 * SAMPLES_PER_MS
    for start in range(0, len(sound), step):
        client.append(sound[start : start + step])
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("padding_ms", [300, 600])
def test_a_soft_beginning_is_part_of_the_turn(padding_ms: int) -> None:
    """A hiss that is too soft to be a voice comes before a loud vowel: the item begins with it, and says where."""
    hiss_ms, vowel_ms, rng = 120, 1000, np.random.default_rng(1)
    hiss = rng.uniform(-0.015, 0.015, hiss_ms * SAMPLES_PER_MS)
    vowel = 0.5 * np.sin(np.arange(vowel_ms * SAMPLES_PER_MS) * 0.05)
    quiet = np.zeros(1000 * SAMPLES_PER_MS)

    async def act(client: Client) -> None:
        vad = {"type": "server_vad", "prefix_padding_ms": padding_ms}
        client.update(audio={"input": {"turn_detection": vad}})
        await listen_to(client, np.concatenate([quiet, hiss, vowel, quiet, quiet]))
        turn = client.of("input_audio_buffer.committed")[0]["item_id"]
        client.send("conversation.item.retrieve", item_id=turn)

    client = Talk(ears=ScriptedRecognizer(((2100, "Six, please."),))).hold(act)
    (started,) = client.of("input_audio_buffer.speech_started")
    assert started["audio_start_ms"] == pytest.approx(1000 + hiss_ms - padding_ms, abs=33)
    (part,) = client.of("conversation.item.retrieved")[0]["item"]["content"]
    kept = np.frombuffer(base64.b64decode(part["audio"]), "<i2") / 32768
    hiss_at = (1000 - started["audio_start_ms"]) * SAMPLES_PER_MS
    before, soft = kept[: hiss_at - 240], kept[hiss_at + 240 :][: len(hiss) - 480]  # 10 ms for filters
    assert float(np.abs(before).mean()) < 0.001
    assert float(np.abs(soft).mean()) > 0.005


@pytest.mark.parametrize("padding_ms", [0, 300, 900])
def test_turns_close_together_share_no_sound(padding_ms: int) -> None:
    """The second word begins a little after the silence that ends a turn: the padding reaches back no further than the
    first one's end, and the first one's to the beginning of the stream."""
    vad = {"type": "server_vad", "silence_duration_ms": 200, "prefix_padding_ms": padding_ms}

    async def act(client: Client) -> None:
        (updated,) = client.update(audio={"input": {"turn_detection": {**vad, "create_response": False}}})
        assert updated["type"] == "session.updated"
        await client.sound((0, 600), (850 + 64, 1500), until_ms=4000)

    client = Talk(ears=ScriptedRecognizer(((500, "One."), (1400, "Two.")), delay_ms=10)).hold(act)
    spans = [
        (started["audio_start_ms"], stopped["audio_end_ms"])
        for started, stopped in zip(
            client.of("input_audio_buffer.speech_started"),
            client.of("input_audio_buffer.speech_stopped"),
            strict=True,
        )
    ]
    (first, second) = spans
    assert first[0] == 0
    assert first[0] < first[1] <= second[0] < second[1]


def test_a_microphone_that_goes_silent_in_a_word_ends_the_turn() -> None:
    """No append for ten seconds: the turn is over without them, and what comes then is a turn of its own."""
    ears = ScriptedRecognizer(((900, "I would like"), (1900, "A tea, please.")))

    async def act(client: Client) -> None:
        await client.sound((500, 1000), until_ms=1000)
        first = await client.until("response.created", most_ms=3000)
        assert first["response"]["status"] == "in_progress"
        await client.wait(10_000)
        await client.sound((1200, 2000), until_ms=6000)

    client = Talk(ears=ears, mind=mind(["Like ", "what?"], ["Coming."])).hold(act)
    completed = client.of("conversation.item.input_audio_transcription.completed")
    assert [event["transcript"] for event in completed] == ["I would like", "A tea, please."]
    assert [event["item_id"] for event in client.of("input_audio_buffer.speech_started")] == [
        event["item_id"] for event in completed
    ]
    assert [event["response"]["status"] for event in client.of("response.done")] == ["completed", "completed"]


@pytest.mark.parametrize("length_ms", [200, 225, 250])
@pytest.mark.parametrize("detection", ["server_vad", "semantic_vad"])
def test_one_syllable_is_one_item_and_one_response(length_ms: int, detection: str) -> None:
    """Although its words are known only 400 ms after it is over."""
    ears = ScriptedRecognizer(((500 + length_ms - 20, "Yes."),), delay_ms=400)

    async def act(client: Client) -> None:
        client.update(audio={"input": {"turn_detection": {"type": detection}}})
        await client.sound((500, 500 + length_ms), until_ms=5000)

    client = Talk(ears=ears, mind=mind(["Fine."])).hold(act)
    (completed,) = client.of("conversation.item.input_audio_transcription.completed")
    assert completed["transcript"] == "Yes."
    (done,) = client.of("response.done")
    assert done["response"]["status"] == "completed"
    assert client.session.history == (("user", "Yes."), ("assistant", "Fine."))


def test_a_cough_asks_nothing_of_the_model_and_the_sentence_after_it_is_answered() -> None:
    ears = ScriptedRecognizer(((3500, "A latte, please."),))
    model = mind(["Coming."])

    async def act(client: Client) -> None:
        await client.sound((500, 700), (2500, 3600), until_ms=2400)
        assert client.of("response.created") == []
        assert asked(model, "write") == []
        await client.sound((500, 700), (2500, 3600), until_ms=6000)

    client = Talk(ears=ears, mind=model).hold(act)
    (done,) = client.of("response.done")
    assert done["response"]["status"] == "completed"
    assert client.session.history == (("user", "A latte, please."), ("assistant", "Coming."))


@dataclass(slots=True)
class FirstIsSlow(ScriptedRecognizer):
    """The first turn takes its time, later ones do not."""

    slow: float = field(default=3000.0)

    def open(self, vocabulary: object = ()) -> object:  # type: ignore[override]
        recognition = ScriptedRecognizer.open(self)
        transcribe = recognition.transcribe

        async def slowly(until_samples: int, *, final: bool) -> Transcript:
            if recognition._begin < 1500 * 16:
                await asyncio.sleep(self.slow / 1000)
            return await transcribe(until_samples, final=final)

        recognition.transcribe = slowly  # type: ignore[method-assign]
        return recognition


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_transcript_that_comes_late_belongs_to_its_own_turn(by_hand: bool) -> None:
    """Three seconds for the first turn, next to nothing for the second; the history has them in their order."""
    ears = FirstIsSlow(((900, "One."), (6900, "Two.")), delay_ms=200)

    async def act(client: Client) -> None:
        if by_hand:
            client.update(audio={"input": {"turn_detection": None}})
        await client.sound((500, 1000), (6500, 7000), until_ms=1500)
        if by_hand:
            client.send("input_audio_buffer.commit")
            client.send("response.create")
        await client.sound((500, 1000), (6500, 7000), until_ms=7500)
        if by_hand:
            client.send("input_audio_buffer.commit")
            client.send("response.create")
        await client.sound(until_ms=10_000)

    client = Talk(ears=ears, mind=mind(["First."], ["Second."])).hold(act)
    committed = [event["item_id"] for event in client.of("input_audio_buffer.committed")]
    completed = client.of("conversation.item.input_audio_transcription.completed")
    assert committed == [event["item_id"] for event in completed]
    assert [event["transcript"] for event in completed] == ["One.", "Two."]
    assert [text for _, text in client.session.history] == ["One.", "First.", "Two.", "Second."]
    assert not client.errors


@pytest.mark.parametrize("fed_ms", [0, 60, 400])
def test_a_commit_behind_the_one_that_the_voice_made_loses_nothing(fed_ms: int) -> None:
    """It is refused by its own code, and the turn that was committed keeps its words and its response."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=2100)
        while not client.of("input_audio_buffer.committed"):
            await client.sound(until_ms=client.position_ms + 20)
        await client.sound(until_ms=client.position_ms + fed_ms)
        (refused,) = client.send("input_audio_buffer.commit", event_id="again")
        error = refused["error"]
        assert (error["code"], error["event_id"]) == ("input_audio_buffer_commit_empty", "again")
        await client.sound(until_ms=client.position_ms + 4000)

    client = Talk(ears=ScriptedRecognizer(ORDER)).hold(act)
    (completed,) = client.of("conversation.item.input_audio_transcription.completed")
    assert completed["transcript"] == "A latte, please."
    (done,) = client.of("response.done")
    assert done["response"]["status"] == "completed"
