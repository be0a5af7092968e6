"""A format that there is not is refused by its field, and the one that was agreed on stays in force."""

from __future__ import annotations

import base64

import pytest
from tests.serve.realtime.talk import Client, Talk

from antiphon.serve.realtime.formats import WireFormat

pytestmark = pytest.mark.unit

MULAW = WireFormat("audio/pcmu", 8000)


def test_a_misspelt_format_changes_nothing() -> None:
    """The turn that follows is heard and spoken as mu-law, a byte for each of 8000 samples a second."""

    async def act(client: Client) -> None:
        both = {"format": MULAW.wire}
        client.update(audio={"input": both, "output": both})
        client.wire_format = MULAW
        for side in ("input", "output"):
            for misspelt in ("audio-pcmu", "audio/PCMU", "g711_ulaw", "g711-ulaw", "pcm16", ""):
                (refused,) = client.update(audio={side: {"format": {"type": misspelt}}})
                assert refused["error"]["param"] == f"session.audio.{side}.format.type"
        (after,) = client.update()
        assert [MULAW.wire] * 2 == [after["session"]["audio"][one]["format"] for one in ("input", "output")]
        await client.sound((500, 2000), until_ms=6000)

    client = Talk().hold(act)
    assert client.session.history[0] == ("user", "A latte, please.")
    size = sum(len(base64.b64decode(event["delta"])) for event in client.of("response.output_audio.delta"))
    came_ms = [
        at for event, at in zip(client.got, client.at_ms, strict=True) if event["type"] == "response.output_audio.delta"
    ]
    assert size / 8000 == pytest.approx((came_ms[-1] - came_ms[0]) / 1000, abs=0.15)


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_format_by_its_former_name_is_refused_and_not_passed_over(side: str) -> None:
    """Whoever asks for G.711 so would take PCM for it; null asks for nothing."""

    async def act(client: Client) -> None:
        (refused,) = client.update(**{f"{side}_audio_format": "g711_ulaw"}, instructions="Other.")
        error = refused["error"]
        assert ("not_supported", f"session.{side}_audio_format") == (error["code"], error["param"])
        assert f"audio.{side}.format" in error["message"]
        (updated,) = client.update(**{f"{side}_audio_format": None})
        assert updated["session"]["instructions"] == "Be brief."
        (refused,) = client.send("response.create", response={f"{side}_audio_format": "g711_ulaw"})
        assert refused["error"]["param"] == f"response.{side}_audio_format"

    Talk().hold(act)
