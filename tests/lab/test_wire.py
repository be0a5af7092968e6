"""Addresses, and who does not answer at them."""

from __future__ import annotations

import asyncio
import http
from typing import Any

import pytest
from tests.lab.fake_server import Script, on_socket

from antiphon.core.errors import AntiphonError, CallerError, PeerError
from antiphon.lab.wire import Address, FullError, connect


@pytest.mark.unit
@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("ws://host:8000", "ws://host:8000/v1/realtime?model=gpt-realtime"),
        ("ws://host:8000/v1/", "ws://host:8000/v1/realtime?model=gpt-realtime"),
        ("wss://host/v1/realtime?model=mine", "wss://host/v1/realtime?model=mine"),
        ("ws://host/other?a=b", "ws://host/other?a=b&model=gpt-realtime"),
    ],
)
def test_an_address_is_completed(given: str, full: str) -> None:
    """As clients do it: the path where there is none, the model where none is named."""
    assert full == Address(url=given).full_url


@pytest.mark.unit
def test_a_key_is_not_shown() -> None:
    """Not by the value's own words."""
    assert "secret" not in repr(Address(url="ws://host", key="secret"))


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (503, FullError, "status 503"),
        (429, FullError, "429"),
        (401, CallerError, "status 401"),
        (404, CallerError, "404"),
    ],
)
def test_a_status_says_who_is_to_blame(status: int, error: type[AntiphonError], words: str) -> None:
    """Full, a wrong key, a wrong path."""

    async def main() -> None:
        def deny(connection: Any, _request: Any) -> Any:
            return connection.respond(http.HTTPStatus(status), "")

        async with on_socket(Script(), process_request=deny) as url:
            await connect(Address(url=url))

    with pytest.raises(error, match=words):
        asyncio.run(main())


@pytest.mark.e2e
def test_nobody_at_home_is_the_peers_fault() -> None:
    """It can be tried again."""
    with pytest.raises(PeerError, match="cannot be reached") as caught:
        asyncio.run(connect(Address(url="ws://127.0.0.1:1/v1/realtime")))
    assert caught.value.retryable


@pytest.mark.e2e
def test_a_key_is_shown_to_the_server() -> None:
    """As a bearer token."""

    async def main() -> str:
        shown: list[str] = []

        def look(_connection: Any, request: Any) -> None:
            shown.append(request.headers["authorization"])

        async with on_socket(Script(), process_request=look) as url:
            wire = await connect(Address(url=url, key="a-key"))
            await wire.close()
        return shown[0]

    assert "Bearer a-key" == asyncio.run(main())
