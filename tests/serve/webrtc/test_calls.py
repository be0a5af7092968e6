"""Calls by WebRTC against a server with doubles behind it: a turn, a barge-in, and every way for a call to end."""

from __future__ import annotations

import asyncio
import gc
import threading
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest

aiortc = pytest.importorskip("aiortc", reason="calls by WebRTC need the extra: scripts/setup webrtc")

from aioice.ice import get_host_addresses  # noqa: E402
from tests.serve.doubles import KEY, Place, house, running  # noqa: E402
from tests.serve.webrtc.caller import Caller, Microphone, calling, offered, post  # noqa: E402
from tests.serve.webrtc.relay import Relay  # noqa: E402
from tests.serve.webrtc.stun_server import StunServer  # noqa: E402
from tests.session.call import ORDER  # noqa: E402
from tests.session.call import Call as Engines  # noqa: E402
from tests.session.doubles import ScriptedRecognizer  # noqa: E402
from tests.session.mind import mind  # noqa: E402

from antiphon.runtime import Runtime  # noqa: E402
from antiphon.serve.protocol import pick_up  # noqa: E402
from antiphon.serve_settings import ServeSettings  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.serve.server import House

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

KEYS = ServeSettings(keys=(KEY,))


def served(
    act: Callable[[Place], Awaitable[None]],
    settings: ServeSettings = KEYS,
    *,
    conversations: int = 4,
    load: Callable[[], Awaitable[Runtime]] | None = None,
) -> None:
    async def main() -> None:
        a_house: House = house(settings, pick_up=pick_up, conversations=conversations, load=load)
        async with running(a_house) as place:
            await act(place)

    asyncio.run(main())


async def settled(place: Place) -> None:
    async with asyncio.timeout(8):
        while place.open_sessions or place.sample("antiphon_calls_open"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_a_turn_is_heard_and_answered_over_the_track() -> None:
    """Speech over the track is a turn; the reply sounds on the track, and no event carries sound."""

    async def act(place: Place) -> None:
        async with calling(place.http) as caller:
            caller.microphone.say(2.0)
            await caller.until("input_audio_buffer.speech_started")
            await caller.until("response.created")
            began_s, began = await caller.until("output_audio_buffer.started")
            _, done = await caller.until("response.done")
            await caller.until("output_audio_buffer.stopped")
            kinds = [event["type"] for _, event in caller.events]
            assert "response.output_audio.delta" not in kinds
            assert "response.output_audio_transcript.delta" in kinds
            assert began["response_id"] == done["response"]["id"]
            assert "completed" == done["response"]["status"]
            assert kinds.index("response.done") < kinds.index("output_audio_buffer.stopped")
            sounding = caller.sounding()
            assert abs(sounding[0].at_s - began_s) < 0.08
            ticks = [heard.ticks for heard in caller.packets]
            assert {960} == {(after - before) % 2**32 for before, after in pairwise(ticks)}
        await settled(place)
        assert 1 == place.sample("antiphon_sessions_ended_total", reason="client_left")

    served(act)


def test_a_barge_in_empties_the_track_within_60_ms() -> None:
    """Behind `output_audio_buffer.cleared` at most 60 ms pass until nothing sounds any more."""

    async def act(place: Place) -> None:
        async with calling(place.http) as caller:
            caller.microphone.say(2.0)
            caller.microphone.say(2.5, level=0)
            caller.microphone.say(2.0)
            await caller.until("output_audio_buffer.started")
            cleared_s, cleared = await caller.until("output_audio_buffer.cleared")
            await caller.until("response.done")
            await asyncio.sleep(0.3)
            response = next(event for _, event in caller.events if event["type"] == "response.created")
            assert cleared["response_id"] == response["response"]["id"]
            late = [heard for heard in caller.sounding(cleared_s) if heard.at_s < cleared_s + 0.3]
            assert all(heard.at_s - cleared_s <= 0.06 for heard in late)

    words = [f"{number} " for number in range(20)]

    async def load() -> Runtime:
        ears = ScriptedRecognizer((*ORDER, (4900, "Wait,"), (5800, "stop"), (6400, "it.")))
        return Runtime(Engines(frames=[], ears=ears, mind=mind(words, ["Sure."])).engines, conversations=4)

    served(act, load=load)


def test_the_client_empties_the_track() -> None:
    """`output_audio_buffer.clear` ends the response and its sound, and sound inside events is refused."""

    async def act(place: Place) -> None:
        async with calling(place.http) as caller:
            caller.microphone.say(2.0)
            await caller.until("output_audio_buffer.started")
            caller.send(type="output_audio_buffer.clear")
            cleared_s, _ = await caller.until("output_audio_buffer.cleared")
            _, done = await caller.until("response.done")
            assert ("cancelled", "client_cancelled") == (
                done["response"]["status"], done["response"]["status_details"]["reason"])  # fmt: skip
            await asyncio.sleep(0.2)
            assert all(heard.at_s - cleared_s <= 0.06 for heard in caller.sounding(cleared_s))
            caller.send(type="input_audio_buffer.append", audio="AAAA")
            _, error = await caller.until("error")
            assert "type" == error["error"]["param"]
            assert "audio track" in error["error"]["message"]

    served(act)


@pytest.mark.parametrize("verb", ["POST", "DELETE"])
def test_a_call_is_hung_up_by_its_address(verb: str) -> None:
    async def act(place: Place) -> None:
        async with calling(place.http) as caller:
            where = place.http + caller.location + ("/hangup" if verb == "POST" else "")
            async with httpx.AsyncClient(headers={"authorization": f"Bearer {KEY}"}) as web:
                assert 200 == (await web.request(verb, where)).status_code
                await settled(place)
                assert 404 == (await web.request(verb, where)).status_code
        assert 1 == place.sample("antiphon_sessions_ended_total", reason="hung_up")

    served(act)


def test_a_secret_begins_the_call_with_its_session() -> None:
    """A client secret stands in for the key, and what a form's session says goes before it."""

    async def act(place: Place) -> None:
        async with httpx.AsyncClient() as web:
            made = await web.post(
                f"{place.http}/v1/realtime/client_secrets",
                headers={"authorization": f"Bearer {KEY}"},
                json={"session": {"type": "realtime", "instructions": "Be brief."}},
            )
        async with calling(place.http, key=made.json()["value"]) as caller:
            _, updated = await caller.until("session.updated")
            assert "Be brief." == updated["session"]["instructions"]

    served(act)


def test_a_form_holds_offer_and_session() -> None:
    async def act(place: Place) -> None:
        caller = await offered()
        async with httpx.AsyncClient() as web:
            answer = await web.post(
                f"{place.http}/v1/realtime/calls?model=barista",
                headers={"authorization": f"Bearer {KEY}"},
                files={
                    "sdp": (None, caller.connection.localDescription.sdp, "application/sdp"),
                    "session": (None, '{"type": "realtime", "instructions": "Sing."}', "application/json"),
                },
            )
        assert 201 == answer.status_code
        await caller.connection.setRemoteDescription(aiortc.RTCSessionDescription(answer.text, "answer"))
        _, updated = await caller.until("session.updated")
        assert "Sing." == updated["session"]["instructions"]
        await caller.connection.close()
        await settled(place)

    served(act)


def test_whoever_is_turned_away_is_told_why() -> None:
    async def act(place: Place) -> None:
        caller = await offered()
        offer = caller.connection.localDescription.sdp

        async def refused(status: int, code: str, words: str, sdp: str = offer, **headers: str) -> None:
            answer = await post(place.http, sdp, **headers)
            error = answer.json()["error"]
            assert (status, code) == (answer.status_code, error["code"])
            assert words in error["message"]

        await refused(401, "invalid_api_key", "key", authorization="Bearer wrong-key")
        await refused(403, "origin_not_allowed", "serve.origins", origin="https://elsewhere.example")
        await refused(400, "invalid_value", "content-type is text/plain", **{"content-type": "text/plain"})
        await refused(400, "invalid_value", "sdp is no session description", "hello")
        await refused(400, "invalid_value", "createDataChannel", offer.split("m=application")[0])
        await refused(400, "invalid_value", "sdp", "v=0\r\nm=application nonsense\r\n")
        async with calling(place.http):
            await refused(503, "session_limit_reached", "all places are taken")
        await settled(place)
        await caller.connection.close()

    served(act, conversations=1)


def test_a_listed_page_may_call_from_elsewhere() -> None:
    settings = ServeSettings(keys=(KEY,), origins=("https://shop.example",))

    async def act(place: Place) -> None:
        async with httpx.AsyncClient(headers={"origin": "https://shop.example"}) as web:
            asked = await web.options(f"{place.http}/v1/realtime/calls")
            told = await web.post(f"{place.http}/v1/realtime/calls", content=b"", headers={"content-type": "text/x"})
        assert 204 == asked.status_code
        assert "authorization" in asked.headers["access-control-allow-headers"]
        assert (401, "https://shop.example") == (told.status_code, told.headers["access-control-allow-origin"])

    served(act, settings)


def test_twenty_calls_that_are_dropped_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose client vanishes without a word, or never comes: no place, task, thread, or port is kept."""
    import aioice.ice

    from antiphon.serve.webrtc import peer

    monkeypatch.setattr(aioice.ice, "CONSENT_FAILURES", 2)
    monkeypatch.setattr(aioice.ice, "CONSENT_INTERVAL", 0.4)
    monkeypatch.setattr(peer, "CONNECT_S", 1.0)

    def traces() -> tuple[int, int, int]:
        gc.collect()
        sockets = 0
        for name in Path("/proc/self/fd").iterdir():
            try:
                sockets += str(name.readlink()).startswith("socket:")
            except OSError:
                continue
        return len(asyncio.all_tasks()), threading.active_count(), sockets

    async def act(place: Place) -> None:
        async with calling(place.http):  # the first one loads what stays
            pass
        await settled(place)
        await asyncio.sleep(0.5)
        before = traces()
        for number in range(20):
            caller: Caller = await offered()
            answer = await post(place.http, caller.connection.localDescription.sdp)
            assert 201 == answer.status_code, answer.text
            if number % 2:
                description = aiortc.RTCSessionDescription(answer.text, "answer")
                await caller.connection.setRemoteDescription(description)
                await caller.until("session.created")
            await vanish(caller)
        await settled(place)
        await asyncio.sleep(0.5)
        after = traces()
        assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)
        assert 21 == place.sample("antiphon_sessions_total")

    served(act, conversations=20)


async def vanish(caller: Caller) -> None:
    """Nothing leaves the client any more, not even a goodbye; then its own end is cleared away."""
    for transceiver in caller.connection.getTransceivers():
        ice = transceiver.receiver.transport.transport.iceGatherer._connection
        for protocol in ice._protocols:
            protocol.transport.abort()
    await caller.connection.close()


def test_a_drain_ends_calls_with_a_reason() -> None:
    """A reply is heard to its end; then the last event says that the server goes."""

    async def act(place: Place) -> None:
        async with calling(place.http) as caller:
            caller.microphone.say(2.0)
            await caller.until("output_audio_buffer.started")
            place.stop()
            _, error = await caller.until("error", within_s=40)
            assert "server_shutting_down" == error["error"]["code"]
            assert 1 == caller.count("response.done")

    served(act, ServeSettings(keys=(KEY,), drain_s=40))


def test_ports_keep_to_their_range_and_the_public_address_is_offered() -> None:
    settings = ServeSettings(keys=(KEY,), webrtc_ports="42310-42329", webrtc_address="203.0.113.7")

    async def act(place: Place) -> None:
        caller = await offered()
        answer = await post(place.http, caller.connection.localDescription.sdp)
        lines = [line.split() for line in answer.text.splitlines() if line.startswith("a=candidate:")]
        assert all(42310 <= int(words[5]) <= 42329 for words in lines)
        others = any(words[4] != "127.0.0.1" for words in lines)
        assert not others or "203.0.113.7" in {words[4] for words in lines}
        await caller.connection.close()

    served(act, settings)


def test_a_stun_server_tells_the_address_from_outside() -> None:
    """It is asked from the port that the call has, and what it answers is offered beside the machine's own."""

    async def act(place: Place) -> None:
        caller = await offered()
        answer = await post(place.http, caller.connection.localDescription.sdp)
        await caller.connection.close()
        candidates = [line.split() for line in answer.text.splitlines() if line.startswith("a=candidate:")]
        ours = {(words[4], words[5]) for words in candidates if words[7] == "host" and words[4] != "127.0.0.1"}
        told = [words for words in candidates if words[7] == "srflx"]
        assert ours
        assert {("203.0.113.7", "4242")} == {(words[4], words[5]) for words in told}
        for words in told:
            assert (words[9], words[11]) in ours

    if not get_host_addresses(use_ipv4=True, use_ipv6=False):
        pytest.skip("this machine has no address but its own, for which no STUN server is asked")
    with StunServer(("203.0.113.7", 4242)) as stun:
        served(act, ServeSettings(keys=(KEY,), webrtc_stun=f"stun:127.0.0.1:{stun.port}"))
        assert stun.asked


def test_a_stun_server_that_is_away_keeps_no_call() -> None:
    """A call is answered with the addresses that are known."""

    async def act(place: Place) -> None:
        async with calling(place.http) as caller:
            await caller.until("session.created")

    served(act, ServeSettings(keys=(KEY,), webrtc_stun="stun:127.0.0.1:9"))


def test_the_microphones_clock_may_drift() -> None:
    """A client whose clock is 2000 ppm fast is answered as any other."""

    async def act(place: Place) -> None:
        async with calling(place.http, microphone=Microphone(ppm=2000)) as caller:
            caller.microphone.say(2.0)
            _, done = await caller.until("response.done")
            assert "completed" == done["response"]["status"]

    served(act)


def test_a_conversation_holds_over_a_lossy_line() -> None:
    """2 % of all packets lost, the others up to 40 ms late: turns are answered, loss is concealed, no delay grows."""

    async def act(place: Place) -> None:
        async with (
            Relay(loss=0.02, jitter_s=0.04, seed=9) as relay,
            calling(place.http, through=relay.stand_between, hide=True) as caller,
        ):
            relay.is_bad = True
            caller.microphone.say(2.0)
            _, first = await caller.until("response.done", within_s=40)
            assert "completed" == first["response"]["status"]
            await asyncio.sleep(1.5)
            relay.is_bad = False  # so that the goodbye arrives
            sent = place.sample("antiphon_call_packets_total", fate="played")
            assert relay.lost > 5
            assert sent > 300
            assert place.sample("antiphon_call_packets_total", fate="lost") > 0
            assert 0 < place.sample("antiphon_call_concealed_seconds_total") < 0.1 * sent / 50
            # What comes at the end is no later behind its timestamp than what came at the beginning.
            lies = [heard.at_s - (heard.ticks - caller.packets[0].ticks) / 48_000 for heard in caller.packets]
            fifth = len(lies) // 5
            assert abs(min(lies[-fifth:]) - min(lies[:fifth])) < 0.06
            await caller.connection.close()
            await asyncio.sleep(0.2)
        await settled(place)

    served(act)
