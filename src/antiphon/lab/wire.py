"""An address in -> a line to a Realtime server, on which messages of text go both ways.

Who cannot be reached, is full, or wants another key is told apart here and nowhere else.
Threads: the event loop. What it does not know: what the messages say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from websockets.asyncio.client import connect as websocket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from antiphon.core.errors import CallerError, PeerError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OPEN_S = 10.0
CLOSE_S = 2.0
LARGEST_MESSAGE_BYTES = 64 * 2**20  # an item with its sound, asked back
TRY_LATER = 1013  # close code
FULL_STATUS = {429, 503}


class LineLostError(PeerError):
    """The line was closed, in order or not."""

    def __init__(self, message: str, *, close_code: int = 1006) -> None:
        super().__init__(message, hint="read the server's log", retryable=True)
        self.close_code = close_code


class FullError(PeerError):
    """The server says that it takes no more callers."""


class Wire(Protocol):
    """A line that is open."""

    async def send(self, text: str) -> None:
        """Raises LineLostError when it is closed."""
        ...

    async def receive(self) -> str:
        """The next message. Raises LineLostError when it is closed and all messages were read."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """How a server is reached."""

    url: str
    key: str | None = field(default=None, repr=False)
    host: str | None = None  # in the address's place, and the port: a relay
    port: int | None = None

    @property
    def full_url(self) -> str:
        """With a path and the model that clients have to name."""
        scheme, place, path, query, _ = urlsplit(self.url)
        path = path if path.strip("/") else "/v1/realtime"
        path = path if not path.rstrip("/").endswith("/v1") else path.rstrip("/") + "/realtime"
        asked = parse_qsl(query)
        if not any(name == "model" for name, _ in asked):
            asked.append(("model", "gpt-realtime"))
        return urlunsplit((scheme, place, path, urlencode(asked), ""))


class SocketWire:
    """Over a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, text: str) -> None:
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise _lost(error) from error

    async def receive(self) -> str:
        try:
            message = await self._socket.recv()
        except ConnectionClosed as error:
            raise _lost(error) from error
        return message if isinstance(message, str) else ""  # no event is binary

    async def close(self) -> None:
        await self._socket.close()


async def connect(address: Address) -> Wire:
    """Open a line.

    Raises:
        CallerError: the address or the key is wrong.
        FullError: the server says by HTTP status that it takes no more callers now.
        PeerError: nobody answers there, or no Realtime server.
    """
    headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
    place: dict[str, Any] = {"host": address.host, "port": address.port} if address.host else {}
    url = address.full_url
    try:
        socket = await websocket(
            url,
            additional_headers=headers,
            compression=None,  # speech does not shrink, and would wait for the attempt
            proxy=None,
            open_timeout=OPEN_S,
            close_timeout=CLOSE_S,
            ping_interval=None,  # frames go all the time
            max_size=LARGEST_MESSAGE_BYTES,
            max_queue=1024,
            **place,
        )
    except InvalidURI as error:
        raise CallerError(f"{address.url} is no address", hint="use ws://HOST:PORT/v1/realtime") from error
    except InvalidStatus as error:
        raise _status(address.url, error.response.status_code) from error
    except (InvalidHandshake, TimeoutError) as error:
        raise PeerError(f"{address.url} does not speak WebSocket", hint="check the address", retryable=True) from error
    except OSError as error:
        what = error.strerror or type(error).__name__
        raise PeerError(f"{address.url} cannot be reached: {what}", hint="is it running?", retryable=True) from error
    return SocketWire(socket)


def _status(url: str, status: int) -> Exception:
    if status in FULL_STATUS:
        return FullError(f"{url} answers with status {status}", hint="it is full or still loads", retryable=True)
    if status in {401, 403}:
        return CallerError(f"{url} answers with status {status}", hint="give the right key with --key")
    hint = "the path is mostly /v1/realtime"
    return CallerError(f"{url} answers with status {status}", hint=hint)


def _lost(error: ConnectionClosed) -> LineLostError:
    code = error.rcvd.code if error.rcvd else 1006
    return LineLostError(f"the server closed the line with code {code}", close_code=code)
