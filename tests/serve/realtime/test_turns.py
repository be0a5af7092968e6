"""The caller's turns as the client sees them: announced, committed, transcribed, in this order and by the same name."""

from __future__ import annotations

import numpy as np
import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.call import ORDER
from tests.session.doubles import ScriptedRecognizer
from tests.session.mind import mind

from antiphon.dialogue.settings import TurnSettings

pytestmark = pytest.mark.unit

A_TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.input_audio_transcription.delta",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.done",
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
]
ITS_END = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "conversation.item.done",
    "response.output_item.done",
    "response.done",
]
BY_HAND = {"audio": {"input": {"turn_detection": None}}}


async def one_turn(client: Client) -> None:
    await client.sound((500, 2000), until_ms=7000)


def test_a_turn_has_its_events_in_order() -> None:
    """Speech, item, transcript, response; the deltas lie between."""
    client = Talk().hold(one_turn)
    kinds = [kind for kind in client.kinds if kind not in {"session.created", "conversation.created"}]
    deltas = {"response.output_audio.delta", "response.output_audio_transcript.delta"}
    assert [*A_TURN, *ITS_END] == [kind for kind in kinds if kind not in deltas]
    assert deltas < set(kinds)


def test_a_turn_has_one_name_from_its_first_sound() -> None:
    client = Talk().hold(one_turn)
    (started,) = client.of("input_audio_buffer.speech_started")
    of_turn = [event for event in client.got if event.get("item_id") == started["item_id"]]
    assert len(of_turn) == 5
    added, reply = client.of("conversation.item.added")
    assert added["item"]["id"] == started["item_id"]
    assert reply["previous_item_id"] == started["item_id"]


def test_positions_count_the_sound_of_the_whole_session() -> None:
    """The start lies before the voice by the padding; the end is where the voice ended."""
    client = Talk().hold(one_turn)
    (started,) = client.of("input_audio_buffer.speech_started")
    (stopped,) = client.of("input_audio_buffer.speech_stopped")
    assert started["audio_start_ms"] == pytest.approx(200, abs=64)
    assert stopped["audio_end_ms"] == pytest.approx(2000, abs=64)


def test_event_names_rise() -> None:
    client = Talk().hold(one_turn)
    names = [event["event_id"] for event in client.got]
    assert sorted(set(names)) == names


def test_a_late_transcript_has_the_name_of_its_turn() -> None:
    """Slow ears for the first turn, and a second turn right behind."""
    ears = ScriptedRecognizer(((1500, "One."), (4500, "Two.")), delay_ms=1500)

    async def act(client: Client) -> None:
        await client.sound((500, 1500), (3700, 4500), until_ms=12_000)

    client = Talk(ears=ears, mind=mind(["Yes."])).hold(act)
    committed = [event["item_id"] for event in client.of("input_audio_buffer.committed")]
    completed = client.of("conversation.item.input_audio_transcription.completed")
    assert committed == [event["item_id"] for event in completed]
    assert [event["transcript"] for event in completed] == ["One.", "Two."]


def test_a_transcript_that_nobody_wants_is_not_sent() -> None:
    """The item still holds it."""

    async def act(client: Client) -> None:
        client.update(audio={"input": {"transcription": None}})
        await one_turn(client)

    client = Talk().hold(act)
    assert not [kind for kind in client.kinds if "transcription" in kind]
    done = client.of("conversation.item.done")[0]["item"]
    assert done["content"] == [{"type": "input_audio", "transcript": "A latte, please."}]


def test_a_commit_by_hand_makes_the_item_at_once_and_no_reply_until_asked() -> None:
    async def act(client: Client) -> None:
        client.update(**BY_HAND)
        await client.sound((500, 2000), until_ms=3000)
        assert client.kinds[-1] == "session.updated"
        made = client.send("input_audio_buffer.commit")
        assert [event["type"] for event in made] == ["input_audio_buffer.committed", "conversation.item.added"]
        done = await client.until("conversation.item.done")
        assert done["item"]["id"] == made[0]["item_id"]
        await client.sound(until_ms=6000)
        assert client.of("response.created") == []
        client.send("response.create")
        await client.until("response.done")

    client = Talk().hold(act)
    (completed,) = client.of("conversation.item.input_audio_transcription.completed")
    assert completed["transcript"] == "A latte, please."
    assert client.session.history[0] == ("user", "A latte, please.")
    assert not client.errors


def test_commits_close_together_are_turns_of_their_own() -> None:
    """The second waits until the first is transcribed; so does what is added between."""
    ears = ScriptedRecognizer(((900, "One."), (2900, "Two.")), delay_ms=900)

    async def act(client: Client) -> None:
        client.update(**BY_HAND)
        await client.sound((500, 900), until_ms=2000)
        client.send("input_audio_buffer.commit")
        part = {"type": "input_text", "text": "Between."}
        client.send("conversation.item.create", item={"type": "message", "role": "user", "content": [part]})
        client.append(client.tone(2000, 3000, ((2500, 2900),)))
        client.send("input_audio_buffer.commit")
        client.send("response.create")
        await client.until("response.done")

    client = Talk(ears=ears).hold(act)
    assert client.session.history[:3] == (("user", "One."), ("user", "Between."), ("user", "Two."))
    assert [event["previous_item_id"] for event in client.of("conversation.item.added")][:2] == [
        None,
        client.of("input_audio_buffer.committed")[0]["item_id"],
    ]
    assert not client.errors


def test_an_empty_commit_is_an_error_and_no_more() -> None:
    """With less than 100 ms by hand, and where the voice has committed already."""

    async def act(client: Client) -> None:
        await one_turn(client)
        (by_voice,) = client.send("input_audio_buffer.commit", event_id="e1")
        client.update(**BY_HAND)
        client.append(np.zeros(24 * 99))
        (too_short,) = client.send("input_audio_buffer.commit", event_id="e2")
        for error, name in ((by_voice["error"], "e1"), (too_short["error"], "e2")):
            assert (error["code"], error["event_id"]) == ("input_audio_buffer_commit_empty", name)
        client.append(np.zeros(24))
        assert client.send("input_audio_buffer.commit")[0]["type"] == "input_audio_buffer.committed"
        await client.wait(2000)

    client = Talk().hold(act)
    assert client.of("conversation.item.input_audio_transcription.completed")[0]["transcript"] == "A latte, please."


def test_a_commit_while_the_voice_is_there_ends_the_turn() -> None:
    async def act(client: Client) -> None:
        await client.sound((500, 5000), until_ms=2200)
        client.send("input_audio_buffer.commit")
        await client.until("response.created", most_ms=1500)

    client = Talk().hold(act)
    assert len(client.of("input_audio_buffer.committed")) == 1


def test_what_was_cleared_is_no_turn() -> None:
    async def act(client: Client) -> None:
        client.update(**BY_HAND)
        await client.sound((500, 2000), until_ms=2500)
        assert client.send("input_audio_buffer.clear")[-1]["type"] == "input_audio_buffer.cleared"
        client.append(np.zeros(24 * 200))
        client.send("input_audio_buffer.commit")
        done = await client.until("conversation.item.done")
        assert done["item"]["content"][0]["transcript"] == ""

    assert not Talk().hold(act).errors


def test_clearing_by_voice_takes_the_turn_back() -> None:
    """It was announced, so its end is as well; it never becomes an item."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=1500)
        client.send("input_audio_buffer.clear")
        await client.sound(until_ms=5000)

    client = Talk().hold(act)
    assert client.of("input_audio_buffer.committed") == []
    assert len(client.of("input_audio_buffer.speech_stopped")) == len(client.of("input_audio_buffer.speech_started"))


def test_a_full_buffer_refuses_each_append_and_works_again_when_cleared() -> None:
    async def act(client: Client) -> None:
        client.update(**BY_HAND)
        minute = np.zeros(24_000 * 60)
        for _ in range(6):
            client.append(minute)
        for _ in range(10):
            (refused,) = client.append(np.zeros(2400))
            assert refused["error"]["code"] == "input_audio_buffer_full"
        client.send("input_audio_buffer.clear")
        client.append(np.zeros(24_000))
        client.send("input_audio_buffer.commit")
        await client.until("conversation.item.done")

    assert len(Talk().hold(act).errors) == 10


def test_a_burst_is_heard_as_of_now() -> None:
    """Eight seconds that come at once are no eight seconds of past time: the voice in them has just ended."""

    async def act(client: Client) -> None:
        client.append(client.tone(0, 8000, ((500, 2000),)))
        await client.until("response.created", most_ms=3000)

    client = Talk().hold(act)
    (stopped,) = client.of("input_audio_buffer.speech_stopped")
    assert stopped["audio_end_ms"] <= 8000
    assert client.session.history[0] == ("user", "A latte, please.")


def test_a_voice_that_says_nothing_has_an_empty_transcript_and_no_response() -> None:
    """Whoever waits for its words learns that there are none; the history knows nothing of it."""

    async def act(client: Client) -> None:
        await client.sound((500, 900), until_ms=4000)

    client = Talk(ears=ScriptedRecognizer(())).hold(act)
    assert client.kinds[2:] == [kind for kind in A_TURN[:7] if not kind.endswith("transcription.delta")]
    (completed,) = client.of("conversation.item.input_audio_transcription.completed")
    assert completed["transcript"] == ""
    assert client.session.history == ()


def test_ears_that_fail_are_told_of() -> None:
    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=4000)

    client = Talk(ears=ScriptedRecognizer(ORDER, fails_times=99)).hold(act)
    (failed,) = client.of("conversation.item.input_audio_transcription.failed")
    assert failed["item_id"] == client.of("input_audio_buffer.committed")[0]["item_id"]


def test_silence_for_too_long_becomes_a_turn_and_is_answered() -> None:
    async def act(client: Client) -> None:
        vad = {"type": "server_vad", "idle_timeout_ms": 2000}
        client.update(audio={"input": {"turn_detection": vad}})
        await client.sound((500, 2000), until_ms=9500)

    client = Talk(mind=mind(["Right ", "away."], ["Are ", "you ", "there?"])).hold(act)
    triggered = client.of("input_audio_buffer.timeout_triggered")[0]
    assert triggered["audio_end_ms"] - triggered["audio_start_ms"] == pytest.approx(2000, abs=100)
    after = client.got[client.got.index(triggered) :]
    assert [event["type"] for event in after][1:5] == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]


def test_turn_detection_becomes_turn_settings() -> None:
    """server_vad waits for exactly its silence; eagerness shifts what the agent does; null leaves it to the client."""
    turn = TurnSettings(shortest_wait_ms=100, longest_wait_ms=1200, cut_in_risk=0.04)
    seen: list[tuple[int, int, float]] = []

    async def act(client: Client) -> None:
        for detection in (
            {"type": "server_vad", "silence_duration_ms": 700},
            {"type": "semantic_vad", "eagerness": "low"},
            {"type": "semantic_vad", "eagerness": "medium"},
            {"type": "semantic_vad", "eagerness": "high"},
        ):
            client.update(audio={"input": {"turn_detection": detection}})
            now = client.session.settings.turn
            seen.append((now.shortest_wait_ms, now.longest_wait_ms, now.cut_in_risk))
        client.update(**BY_HAND)
        assert client.session.settings.by_hand

    Talk(turn=turn).hold(act)
    assert seen == [(700, 700, 0.04), (100, 3600, 0.01), (100, 1200, 0.04), (100, 800, 0.08)]


def test_a_commit_over_a_reply_is_a_turn_after_it() -> None:
    """Its item is there at once; its words are known when the reply has sounded."""
    ears = ScriptedRecognizer(((1000, "One."), (3200, "Two.")))

    async def act(client: Client) -> None:
        client.update(**BY_HAND)
        await client.sound((500, 1000), until_ms=1500)
        client.send("input_audio_buffer.commit")
        client.send("response.create")
        await client.until("response.output_audio.delta")
        await client.sound((2500, 3200), until_ms=3500)
        assert client.of("response.done") == []
        client.send("input_audio_buffer.commit")
        await client.until("conversation.item.input_audio_transcription.completed", count=2)

    client = Talk(ears=ears, mind=mind([f"word{number} " for number in range(12)])).hold(act)
    assert [text for role, text in client.session.history if role == "user"] == ["One.", "Two."]
    completed = client.of("conversation.item.input_audio_transcription.completed")
    assert [event["item_id"] for event in client.of("input_audio_buffer.committed")] == [
        event["item_id"] for event in completed
    ]


def test_a_turn_that_the_voice_began_may_be_ended_by_hand() -> None:
    """It keeps its name, and what was said before counts."""

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=1200)
        client.update(**BY_HAND)
        await client.sound((500, 2000), until_ms=3500)
        client.send("input_audio_buffer.commit")
        await client.until("conversation.item.done")

    client = Talk().hold(act)
    (started,) = client.of("input_audio_buffer.speech_started")
    (completed,) = client.of("conversation.item.input_audio_transcription.completed")
    assert (completed["item_id"], completed["transcript"]) == (started["item_id"], "A latte, please.")
    assert len(client.of("input_audio_buffer.speech_stopped")) == 1
    assert not client.errors


def test_a_turn_that_is_just_ending_ends_by_itself() -> None:
    """The client takes over in the pause behind it, and its own first turn is the next one."""
    ears = ScriptedRecognizer(((1400, "One."), (3600, "Two.")), delay_ms=400)

    async def act(client: Client) -> None:
        await client.sound((500, 1400), until_ms=1640)
        client.update(**BY_HAND)
        await client.sound((3000, 3600), until_ms=4000)
        client.send("input_audio_buffer.commit")
        await client.until("conversation.item.input_audio_transcription.completed", count=2)

    client = Talk(ears=ears).hold(act)
    completed = client.of("conversation.item.input_audio_transcription.completed")
    assert [event["transcript"] for event in completed] == ["One.", "Two."]
    assert len(client.of("input_audio_buffer.speech_started")) == 1
    assert not client.errors


def test_the_voice_may_take_over_again() -> None:
    async def act(client: Client) -> None:
        client.update(**BY_HAND)
        await client.sound(until_ms=400)
        client.update(audio={"input": {"turn_detection": {"type": "semantic_vad"}}})
        await client.sound((500, 2000), until_ms=7000)

    client = Talk().hold(act)
    assert client.session.history[0] == ("user", "A latte, please.")
    assert client.of("response.done")[0]["response"]["status"] == "completed"


@pytest.mark.parametrize("step_ms", [20, 200, 1500, 6000])
def test_the_end_of_a_turn_is_exact_however_the_sound_comes(step_ms: int) -> None:
    """It is a position in the sound, and no reckoning from times of arrival: 64 frames of 32 ms end at 2048 ms."""

    async def act(client: Client) -> None:
        while client.position_ms < 6000:
            client.append(client.tone(client.position_ms, client.position_ms + step_ms, ((512, 2048),)))
            client.position_ms += step_ms
            await client.wait(20)
        await client.until("conversation.item.done")

    client = Talk(ears=ScriptedRecognizer(((1900, "A latte, please."),))).hold(act)
    (stopped,) = client.of("input_audio_buffer.speech_stopped")
    assert stopped["audio_end_ms"] == 2048
