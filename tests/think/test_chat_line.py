"""The engine for servers of others over real sockets: what is lost on the way, and who hears of the end of a reply."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import aclosing

import pytest
from tests.think.chat_server_double import LoopbackServer, delta, event, head, parrot, part, reply, said, whole

from antiphon.core.errors import EngineError, PeerError
from antiphon.core.flow import Message
from antiphon.think.chat_server import ChatServer
from antiphon.think.chat_settings import ChatServerSettings

pytestmark = pytest.mark.e2e

ASK = (Message("user", "Tell me all that you know."),)
ENDLESS = [head(), part(event(delta(content="It "))), 60.0]
SOON_S = 5.0  # far more than it takes, for a busy machine; without a stop it would be 60


async def written(model: ChatServer) -> list[object]:
    async with aclosing(model.open().write(ASK, max_tokens=50)) as pieces:
        return [piece async for piece in pieces]


def chat(url: str, **settings: object) -> ChatServer:
    return ChatServer.load(url, settings=ChatServerSettings(**{"model": "m", **settings}))


def test_connections_are_kept():
    """The second reply needs no new one."""
    with LoopbackServer(parrot) as server:

        async def twice() -> None:
            model = chat(server.url)
            assert await written(model) == await written(model)
            model.close()

        asyncio.run(twice())
        assert (1, 2) == (server.connections, len(server.asked))


def test_bytes_in_any_pieces():
    """Each byte in a packet of its own."""
    data = b"".join(said("ä模😀", "!"))
    with LoopbackServer(lambda _: reply(*(data[at : at + 1] for at in range(len(data))))) as server:
        assert ["ä模😀", "!"] == asyncio.run(written(chat(server.url)))


@pytest.mark.parametrize("how", ["close", "cancel", "break", "close model", "supersede"])
def test_the_server_hears_at_once_when_nobody_listens_any_more(how):
    """That is how it is told to stop: the connection is closed."""
    with LoopbackServer(lambda _: ENDLESS) as server:

        async def left() -> None:
            model = chat(server.url)
            thinking = model.open()
            if how == "supersede":
                ahead = asyncio.ensure_future(thinking.prefill(ASK))
                assert await asyncio.to_thread(server.heard.wait, SOON_S)
                assert await thinking.sentence_end_mass(ASK) is None
                await ahead
            else:
                pieces = thinking.write(ASK, max_tokens=50)
                assert "It " == await anext(pieces)
                waiting = asyncio.ensure_future(anext(pieces))
                await asyncio.sleep(0.01)
                if how == "close model":
                    model.close()
                    with pytest.raises(EngineError, match="in the middle"):
                        await waiting
                else:
                    waiting.cancel()
                    await asyncio.wait({waiting})
                    if how == "close":
                        await pieces.aclose()
            assert await asyncio.to_thread(server.gone.wait, SOON_S)

        asyncio.run(left())


def test_a_server_that_is_reset_in_mid_reply_and_comes_back():
    """The cut reply is an error, the next one is whole."""
    from tests.think.chat_server_double import Act

    answers = [[head(), part(event(delta(content="It "))), 0.05, Act.RESET], reply(*said("Yes."))]
    with LoopbackServer(lambda _: answers.pop(0)) as server:

        async def both() -> list[object]:
            model = chat(server.url)
            with pytest.raises(PeerError, match="in the middle") as caught:
                await written(model)
            assert caught.value.retryable
            return await written(model)

        assert ["Yes."] == asyncio.run(both())


def test_an_idle_connection_that_the_server_closed_is_made_anew():
    """As uvicorn does after five seconds; the reply does not suffer."""
    from tests.think.chat_server_double import Act

    with LoopbackServer(lambda _: [*reply(*said("Yes.")), 0.01, Act.CLOSE]) as server:

        async def twice() -> None:
            model = chat(server.url)
            for _ in range(2):
                assert ["Yes."] == await written(model)
                await asyncio.sleep(0.1)

        asyncio.run(twice())
        assert 2 == server.connections


def failure(url: str, **settings: object) -> PeerError:
    async def failing() -> PeerError:
        with pytest.raises(PeerError) as caught:
            await written(chat(url, **{"retries": 0, **settings}))
        await asyncio.sleep(0.05)  # for the loop to close what was given up
        return caught.value

    return asyncio.run(asyncio.wait_for(failing(), 30))


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = failure(f"http://127.0.0.1:{taken.getsockname()[1]}")

    assert "cannot be reached: nobody listens there" in error.message
    assert (True, True) == (error.retryable, "start the server" in error.hint)


def test_a_name_that_nobody_has():
    error = failure("http://no-such-host.invalid/v1")

    assert "the name no-such-host.invalid is unknown" in error.message


def test_a_server_that_takes_no_connection_in_time():
    """TLS is part of the connection, and this one waits for the other to begin."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"https://127.0.0.1:{silent.getsockname()[1]}"
        error = failure(address, connect_s=0.2, first_token_s=5.0)

    assert ("took no connection for 0.2 s" in error.message, True) == (True, error.retryable)


def test_a_server_without_tls():
    """The remedy is in the address; one that stays silent is slow, for all that can be known."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_plainly() -> None:
            connection, _ = listening.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer_plainly)
        thread.start()
        error = failure(f"https://127.0.0.1:{listening.getsockname()[1]}")
        thread.join(10)

    assert "no TLS connection can be made" in error.message
    assert "http://" in error.hint


def test_a_certificate_of_nobody_we_know(tmp_path):
    """It is refused, and the error says why."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = self_signed(tmp_path)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def shake_hands() -> None:
            connection, _ = listening.accept()
            with pytest.raises((ssl.SSLError, OSError)):
                context.wrap_socket(connection, server_side=True)
            connection.close()

        thread = threading.Thread(target=shake_hands)
        thread.start()
        error = failure(f"https://127.0.0.1:{listening.getsockname()[1]}")
        thread.join(10)

    assert "its certificate is not accepted: self-signed certificate" in error.message.replace(
        "self signed", "self-signed"
    )
    assert not error.retryable


def self_signed(folder) -> tuple[str, str]:
    import shutil
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate of this test")
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key]
    subprocess.run([*request, *names], check=True, capture_output=True)
    return certificate, key


def test_a_redirect_is_not_followed():
    """The key would go along."""
    with LoopbackServer(lambda _: whole({}, 308, Location="http://elsewhere.invalid/v1")) as server:
        assert "sends us elsewhere" in failure(server.url).message
        assert 1 == len(server.asked)


def test_a_refusal_without_end_is_read_no_further_than_needed():
    """Nor is an endless list of models."""
    endless = [part(b"x" * 60_000)] * 10_000
    with LoopbackServer(lambda _: [head(400), *endless]) as server:
        assert "answers 400" in failure(server.url).message
    with LoopbackServer(lambda _: [head(200), *endless]) as server:
        assert "more than" in failure(server.url, model="").message
