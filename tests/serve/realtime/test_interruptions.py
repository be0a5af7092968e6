"""A voice over a response: the response ends first and whole, then the voice is told of, and nothing old follows."""

from __future__ import annotations

import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.call import ORDER
from tests.session.doubles import ScriptedRecognizer
from tests.session.mind import mind

pytestmark = pytest.mark.unit

LONG = [
    f"{word} "
    for word in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
]
STOP = ((4900, "Wait,"), (5800, "stop"), (6400, "it."))
ENDING = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "conversation.item.done",
    "response.output_item.done",
    "response.done",
    "input_audio_buffer.speech_started",
]


async def cuts_in(client: Client) -> None:
    await client.sound((500, 2000), (4500, 6500), until_ms=12_000)


def cut_in(**options: object) -> Client:
    return Talk(mind=mind(LONG, ["Sure."]), ears=ScriptedRecognizer((*ORDER, *STOP)), **options).hold(cuts_in)


@pytest.mark.parametrize("is_paced", [True, False])
def test_an_interrupted_response_ends_before_the_voice_is_told_of(is_paced: bool) -> None:
    client = cut_in(is_paced=is_paced)
    at = next(place for place, event in enumerate(client.got) if event["type"] == "response.output_audio.done")
    assert [event["type"] for event in client.got[at : at + 7]] == ENDING
    done = client.of("response.done")[0]["response"]
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "turn_detected")
    (item,) = done["output"]
    assert item["status"] == "incomplete"
    later = [event for event in client.got[at:] if event["type"].endswith(".delta")]
    assert not [event for event in later if event.get("item_id") == item["id"]]


def test_the_transcript_is_what_was_heard() -> None:
    client = cut_in()
    (item,) = client.of("response.done")[0]["response"]["output"]
    said = item["content"][0]["transcript"].strip()
    assert said
    assert " ".join(LONG).replace("  ", " ").startswith(said)
    assert client.session.history[1] == ("assistant", said)


def test_a_voice_after_the_response_interrupts_nothing() -> None:
    """Everything that was said stays."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), (6000, 7500), until_ms=11_000)

    ears = ScriptedRecognizer((*ORDER, (7400, "Thanks a lot.")))
    client = Talk(mind=mind(["Done."], ["Sure."]), ears=ears).hold(act)
    assert [event["response"]["status"] for event in client.of("response.done")] == ["completed", "completed"]
    assert client.of("conversation.item.deleted") == []


def test_a_hum_leaves_no_trace() -> None:
    """No voice is announced, no response ends, and all of the sound comes."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), (4500, 5000), until_ms=12_000)

    client = Talk(mind=mind(LONG), ears=ScriptedRecognizer((*ORDER, (4900, "mhm")))).hold(act)
    assert len(client.of("input_audio_buffer.speech_started")) == 1
    (done,) = client.of("response.done")
    assert done["response"]["status"] == "completed"
    assert done["response"]["output"][0]["content"][0]["transcript"].endswith("twelve ")


def test_a_sentence_with_a_pause_gets_one_answer() -> None:
    """What came too early is cancelled, taken back, and never heard of again."""
    script = ((1000, "I would like"), (3000, "a latte, please."))
    ears = ScriptedRecognizer(script)

    async def act(client: Client) -> None:
        await client.sound((500, 1000), (1310, 3000), until_ms=8000)

    client = Talk(mind=mind(["Which ", "one?"], ["Coming."]), ears=ears).hold(act)
    first, last = client.of("response.done")[0], client.of("response.done")[-1]
    assert first["response"]["status_details"]["reason"] == "turn_detected"
    assert last["response"]["status"] == "completed"
    deleted = {event["item_id"] for event in client.of("conversation.item.deleted")}
    assert {item["id"] for item in first["response"]["output"]} == deleted
    assert [text for role, text in client.session.history if role == "assistant"] == ["Coming."]


def test_a_retracted_item_may_still_be_truncated() -> None:
    """A client does so when it hears of the voice; of the item nothing was heard."""
    ears = ScriptedRecognizer(((1000, "I would like"), (3000, "a latte, please.")))

    async def act(client: Client) -> None:
        await client.sound((500, 1000), (1310, 3000), until_ms=8000)
        for gone in client.of("conversation.item.deleted"):
            (answer,) = client.send(
                "conversation.item.truncate", item_id=gone["item_id"], content_index=0, audio_end_ms=0
            )
            assert answer["type"] == "conversation.item.truncated"

    Talk(mind=mind(["Which ", "one?"], ["Coming."]), ears=ears).hold(act)


def test_who_may_not_interrupt_is_answered_after() -> None:
    async def act(client: Client) -> None:
        vad = {"type": "semantic_vad", "interrupt_response": False}
        client.update(audio={"input": {"turn_detection": vad}})
        await cuts_in(client)

    client = Talk(mind=mind(LONG, ["Sure."]), ears=ScriptedRecognizer((*ORDER, *STOP))).hold(act)
    assert [event["response"]["status"] for event in client.of("response.done")] == ["completed", "completed"]
    assert client.session.history[2] == ("user", "Wait, stop it.")


def test_responses_never_overlap() -> None:
    client = cut_in()
    active = 0
    for event in client.got:
        active += (event["type"] == "response.created") - (event["type"] == "response.done")
        assert active in {0, 1}
