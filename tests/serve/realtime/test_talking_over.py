"""A caller over a reply that is long made, and sent: it counts as sounding until it has sounded."""

from __future__ import annotations

import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.call import ORDER
from tests.session.doubles import ScriptedRecognizer
from tests.session.mind import asked, mind

pytestmark = pytest.mark.unit

NUMBERS = [f"number{place} " for place in range(40)]  # 0.5 s each, 20 s in all, written in half a second
STOP = ((5600, "Wait,"), (6000, "stop it."))
ANSWER = ["Sure."]


def talk(*, is_paced: bool, model: object = None) -> Talk:
    ears = ScriptedRecognizer((*ORDER, *STOP), delay_ms=50)
    return Talk(mind=model or mind(NUMBERS, ANSWER), ears=ears, is_paced=is_paced)  # type: ignore[arg-type]


def played_ms(client: Client) -> int:
    """How much the caller has heard of the reply when the voice is told of, if their client plays as it should."""
    first = next(at for event, at in zip(client.got, client.at_ms, strict=True) if "audio.delta" in event["type"])
    told = [at for event, at in zip(client.got, client.at_ms, strict=True) if event["type"].endswith("speech_started")]
    return told[1] - first


@pytest.mark.parametrize("is_paced", [True, False])
def test_it_is_cut_where_the_caller_spoke(is_paced: bool) -> None:
    """The client is told to stop, gets nothing more of it, and may cut the item to what it had played."""
    model = mind(NUMBERS, ANSWER)

    async def act(client: Client) -> None:
        await client.sound((500, 2000), (5200, 6100), until_ms=6000)
        while len(client.of("input_audio_buffer.speech_started")) < 2:
            await client.sound((5200, 6100), until_ms=client.position_ms + 20)
        (done,) = client.of("response.done")
        (item,) = done["response"]["output"]
        cut_ms = played_ms(client)
        assert 2500 < cut_ms < 4500
        (cut,) = client.send("conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=cut_ms)
        assert (cut["type"], cut["audio_end_ms"]) == ("conversation.item.truncated", cut_ms)
        await client.sound((5200, 6100), until_ms=client.position_ms + 4000)

    client = talk(is_paced=is_paced, model=model).hold(act)
    done = client.of("response.done")[0]["response"]
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "turn_detected")
    assert done["output"][0]["status"] == "incomplete"
    kinds = [event["type"] for event in client.got]
    over = kinds.index("response.done")
    assert "input_audio_buffer.speech_started" in kinds[over + 1 : over + 3]
    old = {"response_id": done["id"], "item_id": done["output"][0]["id"]}
    deltas = [event for event in client.got if event["type"] == "response.output_audio.delta"]
    assert all({"response_id", "item_id"} <= set(event) for event in deltas)
    assert not [event for event in client.got[over:] if old.items() <= event.items() and "delta" in event["type"]]
    told = next(message.text for message in asked(model, "write")[-1] if message.role == "assistant")
    assert "".join(NUMBERS).startswith(told)
    assert len(told.split()) == pytest.approx(played_ms(client) / 540, abs=1.5)
    assert not client.errors


@pytest.mark.parametrize("is_paced", [True, False])
def test_it_is_whole_once_it_has_sounded(is_paced: bool) -> None:
    """Who speaks two seconds after it interrupts nothing: nothing is cut and nothing is forgotten."""
    words = NUMBERS[:6]

    async def act(client: Client) -> None:
        await client.sound((500, 2000), until_ms=2500)
        await client.until("response.done")
        over_ms = client.clock.now_ns() // 1_000_000
        begin = client.position_ms = over_ms + 2000
        await client.wait(2000)
        await client.sound((begin + 200, begin + 1200), until_ms=begin + 5000)

    ears = ScriptedRecognizer((*ORDER, *((at, "Thanks.") for at in range(3000, 12_000, 1000))))
    client = Talk(mind=mind(words, ANSWER), ears=ears, is_paced=is_paced).hold(act)
    assert [event["response"]["status"] for event in client.of("response.done")] == ["completed", "completed"]
    assert client.session.history[1] == ("assistant", "".join(words).strip())
    assert client.of("response.done")[0]["response"]["output"][0]["status"] == "completed"
