"""Fields of the session that are not only echoed: what each does, and when it may not change any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.serve.realtime.talk import SETUP, Client, Talk
from tests.session.doubles import ScriptedRecognizer
from tests.session.mind import mind, telling

from antiphon.hear.segmenter import SegmenterSettings
from antiphon.serve.realtime.formats import WireFormat
from antiphon.serve.realtime.transcription import MOST_HINTS, hints
from antiphon.serve.realtime.turn_taking import SemanticVad, ServerVad

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

pytestmark = pytest.mark.unit

HELLO = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
WORDS = ["one ", "two ", "three ", "four ", "five ", "six ", "seven ", "eight ", "nine ", "ten "]
MULAW = WireFormat("audio/pcmu", 8000)


class UnsureDetector:
    """The tone of these tests is a voice by 0.38, silence by 0.0."""

    name = "unsure"
    frame_samples = 512

    def open(self) -> UnsureDetector:
        return self

    def probability(self, pcm: Pcm) -> float:
        return 0.38 if float(np.abs(pcm).mean()) > 0.1 else 0.0

    def reset(self) -> None:
        pass

    def close(self) -> None:
        pass


def detection(**fields: object) -> dict:
    return {"input": {"turn_detection": {"type": "server_vad", **fields}}}


# How a voice is found.


@pytest.mark.parametrize(
    ("threshold", "on", "off"),
    [(0.5, 0.5, 0.35), (0.9, 0.9, 0.35), (0.2, 0.2, 0.2), (0.0, 0.01, 0.01), (1.0, 0.99, 0.35)],
)
def test_a_threshold_is_where_a_voice_begins(threshold: float, on: float, off: float) -> None:
    """It ends where it would otherwise, or at the threshold if that lies lower."""
    heard = ServerVad(threshold=threshold, prefix_padding_ms=250).heard(SegmenterSettings(start_frames=4))
    assert heard == SegmenterSettings(on_probability=on, off_probability=off, padding_samples=4000, start_frames=4)


def test_detection_by_meaning_hears_as_the_agent_does() -> None:
    ear = SegmenterSettings(on_probability=0.7)
    assert SemanticVad(eagerness="low").heard(ear) is ear


def test_a_threshold_takes_effect_in_the_middle_of_a_call() -> None:
    """The same sound is no voice, then it is one, then it is none again."""

    async def act(client: Client) -> None:
        await client.sound((500, 1500), until_ms=2500)
        client.update(audio=detection(threshold=0.3))
        await client.sound((3000, 4000), until_ms=5000)
        client.update(audio=detection(threshold=0.6))
        await client.sound((5500, 6500), until_ms=7500)

    ears = ScriptedRecognizer(((3900, "A latte, please."),))
    client = Talk(ears=ears, detector=UnsureDetector()).hold(act)
    (started,) = client.of("input_audio_buffer.speech_started")
    assert started["audio_start_ms"] == pytest.approx(2700, abs=33)
    assert client.session.history[0] == ("user", "A latte, please.")


@pytest.mark.parametrize("padding_ms", [0, 100, 300, 900])
def test_the_padding_lies_before_the_voice(padding_ms: int) -> None:
    async def act(client: Client) -> None:
        client.update(audio=detection(prefix_padding_ms=padding_ms))
        await client.sound((1500, 2500), until_ms=4000)

    (started,) = Talk().hold(act).of("input_audio_buffer.speech_started")
    assert started["audio_start_ms"] == pytest.approx(1500 - padding_ms, abs=33)


def test_more_padding_than_can_be_looked_back_at_is_cut_and_the_echo_says_to_what() -> None:
    async def act(client: Client) -> None:
        (updated,) = client.update(audio=detection(prefix_padding_ms=2000))
        assert updated["session"]["audio"]["input"]["turn_detection"]["prefix_padding_ms"] == 900

    Talk().hold(act)


@pytest.mark.parametrize("silence_ms", [400, 900, 2000])
def test_a_turn_is_over_after_exactly_the_silence(silence_ms: int) -> None:
    async def act(client: Client) -> None:
        client.update(audio=detection(silence_duration_ms=silence_ms))
        await client.sound((500, 2000), until_ms=5000)

    client = Talk().hold(act)
    at_ms = client.at_ms[client.got.index(client.of("input_audio_buffer.speech_stopped")[0])]
    assert at_ms == pytest.approx(2000 + silence_ms, abs=33)


# What the recognizer is told.


def test_prompt_and_keywords_are_hints_before_the_agents_own() -> None:
    transcription = {"prompt": "flat white, oat milk\nmacchiato.", "keywords": ["mocha", "oat milk"]}

    async def act(client: Client) -> None:
        (updated,) = client.update(audio={"input": {"transcription": transcription}})
        assert updated["session"]["audio"]["input"]["transcription"] == {
            "model": "whisper",
            "language": "en",
            **transcription,
        }
        await client.sound((500, 2000), until_ms=7000)
        client.update(audio={"input": {"transcription": {"prompt": "tea", "keywords": None}}})
        await client.sound((7500, 9000), until_ms=12_000)
        client.update(audio={"input": {"transcription": None}})
        await client.sound((12_500, 14_000), until_ms=17_000)

    ears = ScriptedRecognizer(((1500, "One."), (8500, "Two."), (13_500, "Three.")))
    Talk(ears=ears, mind=mind(["Yes."]), vocabulary=("decaf", "mocha")).hold(act)
    assert [one.vocabulary for one in ears.opened] == [
        ("decaf", "mocha"),
        ("mocha", "oat milk", "flat white", "macchiato", "decaf"),
        ("tea", "decaf", "mocha"),
        ("decaf", "mocha"),
    ]


def test_hints_are_few_and_short() -> None:
    """Prose is none; of too many the first are kept."""
    assert hints({"prompt": "word " * 50 + ", latte,, ,\n mocha "}) == ("latte", "mocha")
    assert len(hints({"prompt": ",".join(map(str, range(1000)))})) == MOST_HINTS
    assert hints(None) == hints({"model": "whisper"}) == hints({"prompt": ""}) == ()


@pytest.mark.parametrize(("language", "echoed"), [("de", {"language": "de"}), ("", {})])
def test_the_language_is_the_servers(language: str, echoed: dict) -> None:
    """Whatever is asked for; where it is not known, nothing is said of it."""

    async def act(client: Client) -> None:
        (updated,) = client.update(audio={"input": {"transcription": {"language": "fr", "languages": ["fr"]}}})
        assert updated["session"]["audio"]["input"]["transcription"] == {"model": "whisper", **echoed}

    Talk(setup=replace(SETUP, language=language)).hold(act)


# The voice.


def test_a_voice_may_change_until_one_was_heard() -> None:
    """Then another is refused, for the session and for a response; the same one, by any name that means it, is not."""

    async def act(client: Client) -> None:
        (updated,) = client.update(audio={"output": {"voice": "other"}})
        assert updated["session"]["audio"]["output"]["voice"] == "other"
        client.update(audio={"output": {"voice": "hibari"}})
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create", response={"output_modalities": ["text"]})
        await client.until("response.done")
        client.update(audio={"output": {"voice": "other"}})
        client.send("response.create")
        await client.until("response.output_audio.delta")
        for sent, param in (
            (("session.update", {"session": {"audio": {"output": {"voice": "hibari"}}}}), "session.audio.output.voice"),
            (("session.update", {"session": {"audio": {"output": {"voice": "ash"}}}}), "session.audio.output.voice"),
        ):
            (refused,) = client.send(sent[0], event_id="e1", **sent[1])
            error = refused["error"]
            assert (error["code"], error["param"], error["event_id"]) == ("cannot_update_voice", param, "e1")
        (updated,) = client.update(audio={"output": {"voice": "other"}}, instructions="Rhyme.")
        assert updated["session"]["instructions"] == "Rhyme."
        await client.until("response.done", count=2)
        (refused,) = client.send("response.create", response={"audio": {"output": {"voice": "hibari"}}})
        assert (refused["error"]["code"], refused["error"]["param"]) == (
            "cannot_update_voice",
            "response.audio.output.voice",
        )
        client.send("response.create", response={"audio": {"output": {"voice": "other"}}})
        await client.until("response.done", count=3)

    Talk().hold(act)


def test_where_there_is_one_voice_any_name_means_it_at_any_time() -> None:
    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create")
        await client.until("response.done")
        (updated,) = client.update(audio={"output": {"voice": "ash"}})
        assert updated["session"]["audio"]["output"]["voice"] == "hibari"

    Talk(setup=replace(SETUP, voices=("hibari",))).hold(act)


# The limit of a response.


@pytest.mark.parametrize("modality", ["audio", "text"])
def test_a_response_that_reached_its_limit_is_incomplete(modality: str) -> None:
    """All that was made of it comes, and the next response is whole."""

    async def act(client: Client) -> None:
        client.update(output_modalities=[modality])
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create", response={"max_output_tokens": 4})
        await client.until("response.done")
        client.send("response.create")
        await client.until("response.done", count=2)

    client = Talk(mind=telling(mind(WORDS))).hold(act)
    cut, whole = (event["response"] for event in client.of("response.done"))
    assert (cut["status"], cut["status_details"]) == (
        "incomplete",
        {"type": "incomplete", "reason": "max_output_tokens"},
    )
    (item,) = cut["output"]
    part = item["content"][0]
    assert (item["status"], part.get("text") or part.get("transcript")) == ("incomplete", "one two three four ")
    assert (whole["status"], whole["output"][0]["status"]) == ("completed", "completed")
    if modality == "audio":
        heard_s = len(client.heard(item["id"])) / 24_000
        assert heard_s == pytest.approx(18 * 0.06, abs=0.25)


# In the middle of a response.


def test_a_format_holds_from_the_next_response_on() -> None:
    """The present one keeps its own to its last sample."""

    async def act(client: Client) -> None:
        client.send("conversation.item.create", item=HELLO)
        client.send("response.create")
        await client.until("response.output_audio.delta", count=3)
        (updated,) = client.update(audio={"output": {"format": MULAW.wire}})
        assert updated["session"]["audio"]["output"]["format"] == MULAW.wire
        await client.until("response.done")
        client.send("response.create")
        await client.until("response.done", count=2)

    client = Talk(mind=mind(WORDS)).hold(act)
    first, second = (event["response"] for event in client.of("response.done"))
    assert first["audio"]["output"]["format"]["type"] == "audio/pcm"
    assert second["audio"]["output"]["format"] == MULAW.wire
    before = client.heard(first["output"][0]["id"], WireFormat("audio/pcm", 24_000))
    after = client.heard(second["output"][0]["id"], MULAW)
    assert len(before) / 24_000 == pytest.approx(len(after) / 8000, abs=0.025)
    assert not client.errors


def test_what_has_no_effect_is_not_echoed_as_if_it_had() -> None:
    async def act(client: Client) -> None:
        (updated,) = client.update(
            include=None,
            reasoning={"effort": "low"},
            truncation={"type": "retention_ratio", "retention_ratio": 0.8},
            audio={"input": {"noise_reduction": {"type": "near_field"}}, "output": {"speed": 1.2}},
        )
        session = updated["session"]
        assert (session["truncation"], session["include"], session.get("reasoning")) == ("auto", None, None)
        assert (session["audio"]["input"]["noise_reduction"], session["audio"]["output"]["speed"]) == (None, 1.0)

    Talk().hold(act)
