"""Who is let in and who is turned away, over real sockets."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import ssl
import time
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import pytest
from tests.serve.doubles import KEY, SAY, Place, caller, hear, house, loaded, running
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from antiphon import __version__
from antiphon.core.errors import CallerError, MachineError
from antiphon.serve import websocket
from antiphon.serve.log_lines import written
from antiphon.serve.server import listen
from antiphon.serve_settings import ServeSettings

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.runtime import Runtime

pytestmark = pytest.mark.e2e

LOCKED = ServeSettings(keys=("another-key", KEY), origins=("https://shop.example",))


async def get(place: Place, path: str, *, key: str = KEY) -> httpx.Response:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        return await client.get(place.http + path)


async def post_secret(place: Place, body: Any, *, key: str = KEY) -> httpx.Response:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        return await client.post(f"{place.http}/v1/realtime/client_secrets", content=body)


def test_a_key_opens_on_both_ways() -> None:
    """By header, and by subprotocol as a browser does it; unknown headers and query items do no harm."""

    async def main() -> None:
        async with running(house(LOCKED)) as place:
            headers = {"Authorization": f"Bearer {KEY}", "OpenAI-Beta": "realtime=v1", "X-Unknown": "\xe9"}
            url = f"{place.url}?model=gpt-realtime&unknown=1&model=again"
            async with connect(url, additional_headers=headers) as client:
                assert (await hear(client, "session.created"))["session"]["model"] in ("gpt-realtime", "again")
                assert client.subprotocol is None
            protocols: Any = ["realtime", f"openai-insecure-api-key.{KEY}", "openai-beta.realtime-v1"]
            async with connect(place.url, subprotocols=protocols, origin="https://shop.example") as client:
                created = await hear(client, "session.created")
                assert created["session"]["id"].startswith("sess_")
                assert "realtime" == client.subprotocol
            async with caller(place.url.replace("/v1", "")) as client:
                await hear(client, "session.created")
            await place.settle()
            assert 3 == place.sample("antiphon_sessions_total")

    asyncio.run(main())


def test_a_wrong_key_is_refused_so_that_it_shows() -> None:
    """By status where a program asks; as an error and a close code where a browser does, which sees no status."""

    async def main() -> None:
        async with running(house(LOCKED)) as place:
            for headers in ({}, {"Authorization": "Bearer wrong-key-here"}):
                with pytest.raises(InvalidStatus) as refused:
                    await connect(place.url, additional_headers=headers)
                assert 401 == refused.value.response.status_code
                body = json.loads(refused.value.response.body or b"")
                assert "invalid_api_key" == body["error"]["code"]
            protocols: Any = ["realtime", "openai-insecure-api-key.wrong-key-here"]
            async with connect(place.url, subprotocols=protocols) as client:
                assert "invalid_api_key" == json.loads(await client.recv())["error"]["code"]
                with pytest.raises(ConnectionClosed) as closed:
                    await client.recv()
                assert 3000 == closed.value.rcvd.code
            assert 3 == place.sample("antiphon_sessions_refused_total", reason="invalid_api_key")
            for path in ("/metrics", "/v1/models", "/v1/models/barista"):
                assert 401 == (await get(place, path, key="wrong-key-here")).status_code
            assert 200 == (await get(place, "/health", key="wrong-key-here")).status_code

    asyncio.run(main())


def test_a_foreign_page_is_refused() -> None:
    """A page that the user's browser happens to show cannot reach the server on the same machine."""

    async def main() -> None:
        async with running(house()) as place:
            with pytest.raises(InvalidStatus) as refused:
                await connect(place.url, origin="https://evil.example")  # type: ignore[arg-type]
            assert 403 == refused.value.response.status_code
            own: Any = place.http
            async with connect(place.url, origin=own) as client:
                await hear(client, "session.created")

    asyncio.run(main())


def test_a_client_secret_stands_in_for_a_key() -> None:
    """Only a key gets one; it opens conversations, which begin with its session; it is good for nothing else."""

    async def main() -> None:
        async with running(house(LOCKED)) as place:
            wanted = {"expires_after": {"anchor": "created_at", "seconds": 30}, "session": {"voice": "tones"}}
            given = await post_secret(place, json.dumps(wanted))
            assert 200 == given.status_code
            body = given.json()
            assert body["value"].startswith("ek_")
            assert {"type": "realtime", "object": "realtime.session", "model": "barista", "voice": "tones"} == body[
                "session"
            ]
            protocols: Any = ["realtime", f"openai-insecure-api-key.{body['value']}"]
            for _ in range(2):
                async with connect(place.url, subprotocols=protocols) as client:
                    updated = await hear(client, "session.updated")
                    assert {"voice": "tones"} == updated["session"]
            assert 401 == (await post_secret(place, "{}", key=body["value"])).status_code
            assert 401 == (await post_secret(place, "{}", key="wrong-key-here")).status_code
            wrong = await post_secret(place, '{"expires_after": {"seconds": 5}}')
            assert (400, True) == (wrong.status_code, "expires_after.seconds" in wrong.json()["error"]["message"])
            assert 400 == (await post_secret(place, "no json")).status_code
            assert 400 == (await post_secret(place, "[" * 100_000)).status_code
            assert 400 == (await post_secret(place, " " * 300_000)).status_code
            assert 200 == (await post_secret(place, "")).status_code

    asyncio.run(main())


def test_a_secret_that_has_expired_opens_no_more() -> None:
    """It is refused as a wrong key is, to a program and to a browser; a conversation that it had opened goes on."""

    async def main() -> None:
        async with running(house(LOCKED)) as place:
            secret = (await post_secret(place, '{"expires_after": {"seconds": 10}}')).json()["value"]
            headers = {"Authorization": f"Bearer {secret}"}
            async with connect(place.url, additional_headers=headers) as before:
                await hear(before, "session.created")
                place.server.reception.secrets._now_s = lambda: time.time() + 11
                with pytest.raises(InvalidStatus) as refused:
                    await connect(place.url, additional_headers=headers)
                assert 401 == refused.value.response.status_code
                assert "expired" in json.loads(refused.value.response.body or b"")["error"]["message"]
                protocols: Any = ["realtime", f"openai-insecure-api-key.{secret}"]
                async with connect(place.url, subprotocols=protocols) as client:
                    assert "invalid_api_key" == json.loads(await client.recv())["error"]["code"]
                    with pytest.raises(ConnectionClosed) as closed:
                        await client.recv()
                    assert 3000 == closed.value.rcvd.code
                await before.send(SAY)
                await hear(before, "response.output_audio.delta")

    asyncio.run(main())


def test_logs_hold_the_session_and_no_key() -> None:
    """The trace that a caller belongs to is on each line of its session; what was shown to get in is on none."""
    stream = io.StringIO()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async def main() -> str:
        async with running(house(LOCKED)) as place:
            headers = {"Authorization": f"Bearer {KEY}", "traceparent": trace}
            async with connect(f"{place.url}?api_key={KEY}", additional_headers=headers) as client:
                session = (await hear(client, "session.created"))["session"]["id"]
            for header in ("Bearer wrong-key-here", f"Bearer {KEY}-and-more"):
                with pytest.raises(InvalidStatus):
                    await connect(
                        place.url, additional_headers={"Authorization": header, "traceparent": "wrong-key-here"}
                    )
            protocols: Any = ["realtime", "openai-insecure-api-key.wrong-key-here"]
            async with connect(place.url, subprotocols=protocols) as client:
                await client.recv()
            await place.settle()
        return str(session)

    with written(stream, level=logging.DEBUG):
        session = asyncio.run(main())
    text = stream.getvalue()
    lines = [json.loads(line) for line in text.splitlines()]
    assert ["session.opened", "session.closed"] == [line["event"] for line in lines if line.get("session") == session]
    assert all(line["traceparent"] == trace for line in lines if line.get("session") == session)
    assert [key for key in (KEY, "wrong-key-here") if key in text] == []
    assert {line["level"] for line in lines} <= {"debug", "info", "warning"}  # a refusal is no error of ours


def test_a_connection_that_asks_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither silence nor half a request keeps a connection open; one more than may be is cut off at once."""
    monkeypatch.setattr(websocket, "FIRST_REQUEST_S", 0.3)
    monkeypatch.setattr(websocket, "MOST_CONNECTIONS", 3)

    async def main() -> None:
        async with running(house()) as place:
            port = int(place.http.rpartition(":")[2])
            conversing = await caller(place.url)
            silent, _ = await asyncio.open_connection("127.0.0.1", port)
            halfway, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /health HTTP/1.1\r\n")
            fourth, _ = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(0.2):
                assert b"" == await end_of(fourth)
            async with asyncio.timeout(2):
                assert [b"", b""] == [await end_of(silent), await end_of(halfway)]
            await hear(conversing, "session.created")
            await conversing.close()
            await place.settle()

    async def end_of(reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""

    asyncio.run(main())


def test_tls(certificate: tuple[str, str]) -> None:
    """With a certificate the address is wss://, and a conversation is held over it."""
    cert, key = certificate

    async def main() -> None:
        async with running(house(ServeSettings(certfile=cert, keyfile=key))) as place:
            assert place.url.startswith("wss://127.0.0.1:")
            trust = ssl.create_default_context(cafile=cert)
            async with connect(place.url, ssl=trust) as client:
                await hear(client, "session.created")
                await client.send(SAY)
                await hear(client, "response.output_audio.delta")
            await place.settle()

    asyncio.run(main())


def test_a_certificate_that_is_none_is_told_at_once(tmp_path: Path) -> None:
    """Before models are loaded, and without what the file holds."""
    (tmp_path / "cert.pem").write_text("no certificate")

    async def main() -> None:
        async with running(house(ServeSettings(certfile=str(tmp_path / "cert.pem")))):
            pass

    with pytest.raises(CallerError, match="the certificate cannot be used"):
        asyncio.run(main())


def test_secrets_are_bounded() -> None:
    """One too many: 429, and when to come back."""

    async def main() -> None:
        async with running(house(ServeSettings(client_secrets=1))) as place:
            assert 200 == (await post_secret(place, "{}")).status_code
            refused = await post_secret(place, "{}")
            assert (429, True) == (refused.status_code, "retry-after" in refused.headers)

    asyncio.run(main())


def test_a_full_house_says_so_and_frees_places_at_once() -> None:
    """One caller too many gets an error in words and 1013; when one goes, the next comes in."""

    async def main() -> None:
        async with running(house(conversations=2)) as place:
            first, second = await caller(place.url), await caller(place.url)
            await hear(first, "session.created")
            await hear(second, "session.created")
            for _ in range(3):
                async with caller(place.url) as third:
                    assert "session_limit_reached" == (await hear(third, "error"))["error"]["code"]
                    with pytest.raises(ConnectionClosed) as closed:
                        await third.recv()
                    assert (1013, True) == (closed.value.rcvd.code, "later" in closed.value.rcvd.reason)
            assert 3 == place.sample("antiphon_sessions_refused_total", reason="full")
            assert 2 == place.open_sessions
            await first.close()
            async with caller(place.url) as next_one:
                await hear(next_one, "session.created")
            await second.close()
            await place.settle()

    asyncio.run(main())


def test_health_models_and_metrics() -> None:
    """What a balancer, a client's list of models, and Prometheus ask for."""

    async def main() -> None:
        async with running(house(LOCKED)) as place:
            async with caller(place.url) as client:
                await hear(client, "session.created")
                health = await get(place, "/health")
                assert 200 == health.status_code
                assert {"status": "ok", "version": __version__, "sessions": 1, "capacity": 4} == health.json()
                assert b"antiphon_sessions_open 1.0" in (await get(place, "/metrics")).content
            models = (await get(place, "/v1/models")).json()
            assert ["barista", "scripted"] == [model["id"] for model in models["data"]]
            assert "barista" == (await get(place, "/v1/models/barista")).json()["id"]
            assert 404 == (await get(place, "/v1/models/other")).status_code
            assert 426 == (await get(place, "/v1/realtime")).status_code
            assert 404 == (await get(place, "/nothing")).status_code
            async with asyncio.timeout(3):
                while not place.sample("antiphon_event_loop_lag_seconds_count"):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    asyncio.run(main())


def test_the_capacity_is_the_runtimes() -> None:
    """How many it can hold is known once it is loaded, whatever was set."""

    async def main() -> None:
        async with running(house(conversations=2, load=lambda: loaded(3))) as place:
            assert 3 == (await get(place, "/health")).json()["capacity"]

    asyncio.run(main())


def test_while_models_load_callers_are_told() -> None:
    """It listens at once; health and callers get 503 and when to come back."""

    async def main() -> None:
        go_on = asyncio.Event()

        async def slowly() -> Runtime:
            await go_on.wait()
            return await loaded(4)

        (free,) = listen("127.0.0.1", 0)
        port = free.getsockname()[1]
        free.close()

        async def look() -> list[str]:
            async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=5)) as client:
                health = await client.get(f"http://127.0.0.1:{port}/health")
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://127.0.0.1:{port}/v1/realtime")
            go_on.set()
            response = refused.value.response
            return [f"{health.status_code} {health.json()['status']}", f"{response.status_code}"]

        looking = asyncio.create_task(look())
        async with running(house(load=slowly, port=port)):
            assert ["503 loading", "503"] == await looking

    asyncio.run(main())


def test_a_load_that_fails_ends_the_server_with_its_error() -> None:
    """Nothing hangs, and the error is the loader's own."""

    async def fails() -> Runtime:
        raise MachineError("a model is missing", hint="fetch it")

    async def main() -> None:
        async with running(house(load=fails)):
            pass

    with pytest.raises(MachineError, match="a model is missing"):
        asyncio.run(main())


def test_a_taken_port_is_told() -> None:
    """Before any model is loaded, with the address and a remedy."""
    (taken,) = listen("127.0.0.1", 0)
    with taken, pytest.raises(CallerError, match=r"cannot listen on 127\.0\.0\.1"):
        listen("127.0.0.1", taken.getsockname()[1])
