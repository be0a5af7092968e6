"""A client that asks for the stamps of its turns gets them; nobody else does."""

from __future__ import annotations

import json

import pytest
from tests.serve.realtime.talk import Client, Talk

from antiphon.core.stamps import Mark, Span, Stage, TurnTimeline
from antiphon.serve.realtime.timeline import EVENT, MOST_SPANS, SCHEMA, STAMPS, timeline_wire

pytestmark = pytest.mark.unit

FIRST_MS, SECOND_MS = 7000, 14_000


async def one_turn(client: Client) -> None:
    await client.sound((500, 2000), until_ms=FIRST_MS)


async def asked(client: Client) -> None:
    client.update(include=[STAMPS])
    await one_turn(client)


def test_who_asks_is_told_once_for_each_turn() -> None:
    """Each moment that the turn has passed, in ms after the last speech sample, and whose turn and reply it is."""
    client = Talk().hold(asked)
    (told,) = client.of(EVENT)
    assert (SCHEMA, 1) == (told["schema"], told["turn"])
    assert {str(mark) for mark in Mark} - {"antiphon.speech.ended"} == set(told["stages"])
    assert list(told["stages"].values()) == sorted(told["stages"].values())
    assert told["stages"]["antiphon.pause.noticed"] > 0
    assert told["item_id"] == client.of("input_audio_buffer.committed")[0]["item_id"]
    response = client.of("response.done")[0]["response"]
    assert (response["id"], response["output"][0]["id"]) == (told["response_id"], told["response_item_id"])


def test_its_first_sound_is_when_the_sound_was_sent() -> None:
    client = Talk().hold(asked)
    (told,) = client.of(EVENT)
    sent_ms = client.at_ms[client.got.index(client.of("response.output_audio.delta")[0])]
    told_ms = client.at_ms[client.got.index(told)]
    assert abs(told_ms - sent_ms) <= 100
    # The tone ends at 2000 ms of a stream that began with the clock.
    assert told["stages"]["antiphon.reply.first_sound"] == pytest.approx(told_ms - 2000, abs=60)


def test_it_holds_no_words() -> None:
    client = Talk().hold(asked)
    (told,) = client.of(EVENT)
    (heard,) = client.of("conversation.item.input_audio_transcription.completed")
    words = [word for word in (*heard["transcript"].split(), "Coming", "right", "else?") if len(word) > 2]
    assert len(words) > 4
    assert [] == [word for word in words if word in json.dumps(told)]


def test_who_does_not_ask_is_not_told() -> None:
    assert [] == Talk().hold(one_turn).of(EVENT)


@pytest.mark.parametrize("nothing", [[], None])
def test_it_can_be_switched_off_again(nothing: list[str] | None) -> None:
    async def act(client: Client) -> None:
        (updated,) = client.update(include=[STAMPS])
        assert [STAMPS] == updated["session"]["include"]
        (updated,) = client.update(instructions="Be brief still.")
        assert [STAMPS] == updated["session"]["include"]  # what an update does not name stays
        await one_turn(client)
        (updated,) = client.update(include=nothing)
        assert updated["session"]["include"] is None
        await client.sound((7500, 9000), until_ms=SECOND_MS)

    client = Talk().hold(act)
    assert (2, 1) == (len(client.of("input_audio_buffer.committed")), len(client.of(EVENT)))


def test_a_refused_update_does_not_switch_it_on() -> None:
    async def act(client: Client) -> None:
        (refused,) = client.update(include=[STAMPS, "x" * 5000])
        assert "session.include" == refused["error"]["param"]
        assert "x" * 41 not in refused["error"]["message"]
        await one_turn(client)

    assert [] == Talk().hold(act).of(EVENT)


def test_spans_are_those_that_ended_after_the_speech_and_are_bounded() -> None:
    """Hundreds may have ended while the caller spoke; no engine's name is told."""
    marks = {Mark.SPEECH_ENDED: 10_000_000, Mark.TRANSCRIBED: 12_345_678, Mark.PAUSE_NOTICED: 11_000_000}
    early = [Span(Stage.RECOGNISE, number, number + 1, "whisper") for number in range(400)]
    late = [Span(Stage.JUDGE, 9_000_000 + number, 13_000_000, "a model") for number in range(40)]
    told = timeline_wire(TurnTimeline(turn=3, marks=marks, spans=(*early, *late)))
    assert told is not None
    assert {"antiphon.pause.noticed": 1.0, "antiphon.transcribed": 2.346} == told["stages"]
    spans = told["spans"]
    assert isinstance(spans, list)
    assert MOST_SPANS == len(spans)
    assert {"stage": "antiphon.turn_end", "start_ms": -1.0, "end_ms": 3.0} == spans[0]
    assert "model" not in json.dumps(told)


def test_what_answers_nobody_has_no_moments() -> None:
    assert timeline_wire(TurnTimeline(turn=1, marks={Mark.FIRST_TOKEN: 5}, spans=())) is None
