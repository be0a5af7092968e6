"""What a client is told beyond the protocol if it asks: how sure a turn's end is, and what nobody heard of a reply."""

from __future__ import annotations

import json

import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.serve.realtime.test_interruptions import LONG, STOP
from tests.session.call import ORDER
from tests.session.doubles import ScriptedRecognizer
from tests.session.mind import mind

from antiphon.serve.realtime.extras import EXTRAS, JUDGED_EVENT, TURN_END, UNHEARD, UNHEARD_EVENT

pytestmark = pytest.mark.unit


def one_turn(*wanted: str) -> Client:
    async def act(client: Client) -> None:
        client.update(include=list(wanted))
        await client.sound((500, 2000), until_ms=7000)

    return Talk().hold(act)


def cut_in(*wanted: str) -> Client:
    async def act(client: Client) -> None:
        client.update(include=list(wanted))
        await client.sound((500, 2000), (4500, 6500), until_ms=12_000)

    return Talk(mind=mind(LONG, ["Sure."]), ears=ScriptedRecognizer((*ORDER, *STOP))).hold(act)


def test_each_opinion_on_a_turns_end_is_told_as_it_comes() -> None:
    """With the silence until then, the wait that follows from it, and what it rests on; never the words."""
    client = one_turn(TURN_END)
    told = client.of(JUDGED_EVENT)
    assert told
    assert [1] * len(told) == [event["turn"] for event in told]
    assert ["words"] == told[0]["evidence"][:1]
    assert len({tuple(event["evidence"]) for event in told}) == len(told)
    for event in told:
        assert 0 < event["probability"] < 1
        assert 0 < event["silence_ms"] <= max(event["wait_ms"], event["silence_ms"])
        assert 100 <= event["wait_ms"] <= 1200
        turn = client.session.settings.turn
        assert (turn.pause_ms, turn.cut_in_risk) == (event["pause_ms"], event["cut_in_risk"])
    committed = client.got.index(client.of("input_audio_buffer.committed")[0])
    assert client.got.index(told[0]) <= committed
    (heard,) = client.of("conversation.item.input_audio_transcription.completed")
    assert [] == [word for word in heard["transcript"].split() if len(word) > 3 and word in json.dumps(told)]


def test_what_was_written_and_not_heard_follows_the_response_that_was_broken_off() -> None:
    client = cut_in(UNHEARD)
    (told,) = client.of(UNHEARD_EVENT)
    done = client.of("response.done")[0]["response"]
    (item,) = done["output"]
    assert (done["id"], item["id"]) == (told["response_id"], told["item_id"])
    heard = item["content"][0]["transcript"]
    assert "".join(LONG).split() == [*heard.split(), *told["text"].split()]
    assert client.got.index(client.of("response.done")[0]) < client.got.index(told)


def test_a_response_that_was_heard_to_its_end_leaves_nothing_unheard() -> None:
    assert [] == one_turn(UNHEARD).of(UNHEARD_EVENT)


def test_who_asks_for_one_kind_is_not_told_of_the_others() -> None:
    assert [] == one_turn(TURN_END).of("antiphon.turn.timeline")
    assert [] == cut_in().of(UNHEARD_EVENT)
    assert [] == cut_in().of(JUDGED_EVENT)


def test_what_was_asked_for_is_echoed_once_each() -> None:
    async def act(client: Client) -> None:
        (updated,) = client.update(include=[*EXTRAS, TURN_END])
        assert list(EXTRAS) == updated["session"]["include"]

    Talk().hold(act)
