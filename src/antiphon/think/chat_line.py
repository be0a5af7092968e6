"""A request to a language model's server in -> the bytes of its response out, and our error for whatever goes wrong.

HTTP/1.1 with connections that are kept. Whoever stops reading, by closing or by being cancelled, closes the
connection at once, which tells the server to stop. Redirects are not followed: the key would go along. Proxies of the
environment are used for hosted servers alone. Threads: made anywhere, used on one event loop at a time.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2

from antiphon.core.errors import CallerError, EngineError, PeerError
from antiphon.think.chat_address import OPENAI_HOST
from antiphon.think.chat_failure import KEY_VARIABLE, ServerFailure, cut_off, refusal, too_slow, unreachable
from antiphon.think.chat_settings import check_key
from antiphon.think.event_stream import MOST_CHARS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from antiphon.think.chat_address import ServerAddress
    from antiphon.think.chat_settings import ChatServerSettings

CLOSED = "the language model is closed"
MOST_REFUSAL_BYTES = 1 << 16
MOST_LIST_BYTES = 1 << 22  # the model lists of the largest hosted services are some 500 KB
_CONNECTIONS = 512  # two for each conversation that one process may hold
_KEPT_S = 30.0  # a connection without work


class ChatLine:
    """The connections to one server."""

    def __init__(
        self,
        address: ServerAddress,
        settings: ChatServerSettings,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Make no connection yet, but read the certificate authorities, which takes a quarter of a second.

        Raises:
            CallerError: the key would travel in the clear.
        """
        self.address = address
        self.is_closed = False
        self._settings = settings
        self._transport = transport
        self._headers = _headers(address, settings)
        # A context without authorities trusts nobody; without TLS nobody asks it.
        self._tls = httpx2.create_ssl_context() if address.is_secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._keeper: AsyncGenerator[None, None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def response(
        self, path: str, body: Mapping[str, object] | None, *, deadline: float
    ) -> AsyncIterator[httpx2.Response]:
        """Post `body`, or get without one; the response's head has come by `deadline` on the loop's clock.

        Raises:
            EngineError: the line is, or is being, closed.
            PeerError: there is no such response; while it is read, that the connection ended.
        """
        response: httpx2.Response | None = None
        try:
            response = await self._send(path, body, deadline)
            if response.status_code != 200:
                told = await self._read(response, MOST_REFUSAL_BYTES, deadline)
                raise refusal(response.status_code, response.headers, told, asked=body or {})
            yield response
        except httpx2.HTTPError as error:
            if self.is_closed:
                raise EngineError(f"{CLOSED} in the middle of a reply") from None
            raise cut_off(in_reply=response is not None) from error
        finally:
            if response is not None:
                await response.aclose()

    async def chunks(self, response: httpx2.Response, limit: Callable[[], float]) -> AsyncGenerator[bytes, None]:
        """The response's bytes as they come, each by `limit()` on the loop's clock, which is asked before each.

        Raises:
            EngineError: the line was closed.
            TimeoutError: nothing came by then.
        """
        chunks = response.aiter_bytes()
        try:
            while True:
                async with asyncio.timeout_at(limit()):
                    chunk = await anext(chunks, None)
                self.check()
                if chunk is None:
                    return
                yield chunk
                self.check()
        finally:
            await chunks.aclose()

    async def whole(self, path: str, body: Mapping[str, object] | None, *, deadline: float) -> dict[str, object]:
        """A response that is one JSON object.

        Raises:
            EngineError: the line is closed.
            PeerError: there is none by `deadline`, or it is none.
        """
        async with self.response(path, body, deadline=deadline) as response:
            told = await self._read(response, MOST_CHARS if body else MOST_LIST_BYTES, deadline)
        try:
            found = json.loads(told)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ServerFailure(
                f"{self.address.base}{path} answers with something that is not a JSON object",
                hint="check that it is the address of an OpenAI-compatible server; most want /v1 at its end",
            )
        return found

    def check(self) -> None:
        """Raises EngineError once the line is closed, whatever had come before."""
        if self.is_closed:
            raise EngineError(f"{CLOSED} in the middle of a reply")

    def close(self) -> None:
        """Refuse all from here on and end what is at work."""
        self.is_closed = True
        keeper, self._keeper, self._client = self._keeper, None, None
        if keeper is not None and self._loop is not None and self._loop.is_running():
            self._closing = self._loop.create_task(_end(keeper))  # kept, or it might be collected at work

    async def _send(self, path: str, body: Mapping[str, object] | None, deadline: float) -> httpx2.Response:
        client = await self._open_client()
        content = None if body is None else json.dumps(body).encode()
        request = client.build_request(
            "GET" if body is None else "POST", self.address.base + path, content=content, headers=self._headers
        )
        try:
            async with asyncio.timeout_at(deadline):
                return await client.send(request, stream=True)
        except TimeoutError:
            raise too_slow("was silent", self._settings.first_token_s, "first_token_s") from None
        except httpx2.ConnectTimeout:
            raise too_slow("took no connection", self._settings.connect_s, "connect_s") from None
        except (httpx2.ConnectError, httpx2.ProxyError) as error:
            raise unreachable(error, self.address) from None
        except RuntimeError:
            if self.is_closed:  # the client says so in a word of its own
                raise EngineError(CLOSED) from None
            raise

    async def _read(self, response: httpx2.Response, most_bytes: int, deadline: float) -> bytes:
        """The whole body.

        Raises:
            PeerError: it is longer than `most_bytes`, or not there by `deadline`.
        """
        read = bytearray()
        try:
            async with asyncio.timeout_at(deadline):
                async for chunk in response.aiter_bytes():
                    read += chunk
                    if len(read) > most_bytes:
                        if response.status_code != 200:
                            break  # what is known of it is enough to tell what is wrong
                        raise PeerError(f"the language model's server answers with more than {most_bytes} bytes")
        except TimeoutError:
            raise too_slow("was silent", self._settings.first_token_s, "first_token_s") from None
        return bytes(read)

    async def _open_client(self) -> httpx2.AsyncClient:
        if self.is_closed:
            raise EngineError(CLOSED)
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # connections cannot change to another loop
            self._loop = loop
            self._client = httpx2.AsyncClient(
                verify=self._tls,
                trust_env=not self.address.is_own,
                timeout=httpx2.Timeout(None, connect=self._settings.connect_s),
                limits=httpx2.Limits(
                    max_connections=_CONNECTIONS, max_keepalive_connections=None, keepalive_expiry=_KEPT_S
                ),
                transport=self._transport,
            )
            client, self._keeper = self._client, _keep(self._client)
            await anext(self._keeper)
            return client
        return self._client


async def _keep(client: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
    """Holds a client open; a loop that ends closes the generators that it has seen begin, and with it the client."""
    try:
        yield
    finally:
        await client.aclose()
        await asyncio.sleep(0)  # only then are the sockets closed


async def _end(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()


def _headers(address: ServerAddress, settings: ChatServerSettings) -> dict[str, str]:
    headers = {
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",  # packed text would wait for its packet
        "Content-Type": "application/json",
        "User-Agent": "antiphon",
    }
    key = settings.api_key.strip()
    if not key and address.host == OPENAI_HOST and address.is_secure:
        key = settings.openai_key.strip()
        check_key("OPENAI_API_KEY", key)
    if key and not (address.is_secure or address.is_own):
        raise CallerError(
            f"the key for {address.base} would travel in the clear",
            hint=f"write https:// in models.language_model, or unset {KEY_VARIABLE}",
        )
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return headers
