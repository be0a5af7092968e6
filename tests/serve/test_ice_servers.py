"""STUN and TURN servers that are set: what clients are told of them, and what a relay is shown."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest
from tests.serve.doubles import KEY, house, running

from antiphon.core.errors import CallerError
from antiphon.serve.ice_servers import PASS_S, for_clients, relay_pass
from antiphon.serve_settings import ServeSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.e2e

STUN, TURN = "stun:stun.example.org:3478", "turn:turn.example.org:3478?transport=udp"
SHARED = "shared-with-the-relay"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(
            ("webrtc_stun", value)
            for value in ("stun:", "stun:host:0", "stun:host:70000", "stun:host name", STUN + "?x")
        ),
        *(("webrtc_turn", value) for value in ("turn:", "turn:host?transport=sctp", "turns:host?transport=udp")),
        *((f"webrtc_turn_{what}", "x") for what in ("username", "password", "secret")),
    ],
)
def test_what_cannot_be_is_refused_before_anybody_calls(setting: str, value: str) -> None:
    with pytest.raises(CallerError, match=r"webrtc_(stun|turn)"):
        ServeSettings(**{setting: value})


@pytest.mark.parametrize(
    "turn", ["turn:host", "turn:192.0.2.7:3478", TURN, "turns:host:443", "turns:host?transport=tcp"]
)
def test_what_may_be_is_taken(turn: str) -> None:
    assert turn == ServeSettings(webrtc_stun=STUN, webrtc_turn=turn).webrtc_turn


def test_a_shared_secret_goes_with_no_name() -> None:
    with pytest.raises(CallerError, match="beside a name"):
        ServeSettings(webrtc_turn=TURN, webrtc_turn_secret=SHARED, webrtc_turn_username="us")


def test_a_password_follows_from_the_secret_and_does_not_last() -> None:
    """As coturn's `use-auth-secret` checks it: HMAC-SHA1 of a name that begins with when it expires."""
    settings = ServeSettings(webrtc_stun=STUN, webrtc_turn=TURN, webrtc_turn_secret=SHARED)
    stun, turn = for_clients(settings, now_s=1000.9)
    assert {"urls": STUN} == stun
    assert (TURN, f"{1000 + PASS_S}:antiphon") == (turn["urls"], turn["username"])
    checked = hmac.digest(SHARED.encode(), turn["username"].encode(), hashlib.sha1)
    assert base64.b64encode(checked).decode() == turn["credential"]
    assert (turn["username"], turn["credential"]) == relay_pass(settings, now_s=1000.9)


def test_a_password_that_was_set_is_told_to_nobody() -> None:
    settings = ServeSettings(webrtc_turn=TURN, webrtc_turn_username="us", webrtc_turn_password="ours alone")
    assert [] == for_clients(settings, now_s=0)
    assert ("us", "ours alone") == relay_pass(settings, now_s=0)
    assert "ours alone" not in repr(settings)


def test_pages_learn_of_them_with_what_lets_them_in() -> None:
    """A key or a client secret; to anybody else nothing is said, and no shared secret is ever."""
    settings = ServeSettings(keys=(KEY,), webrtc_stun=STUN, webrtc_turn=TURN, webrtc_turn_secret=SHARED)

    async def main() -> None:
        async with running(house(settings)) as place, httpx.AsyncClient(base_url=place.http) as client:

            async def about(headers: Mapping[str, str]) -> httpx.Response:
                return await client.get("/about.json", headers=headers)

            bearer = {"authorization": f"Bearer {KEY}"}
            made = await client.post("/v1/realtime/client_secrets", headers=bearer)
            secret = {"authorization": f"Bearer {made.json()['value']}"}
            assert "ice_servers" not in (await about({})).json()
            assert "ice_servers" not in (await about({"authorization": "Bearer nobody-knows-it"})).json()
            for headers in (bearer, secret):
                told = await about(headers)
                assert [STUN, TURN] == [server["urls"] for server in told.json()["ice_servers"]]
                assert SHARED not in told.text
            assert "models" not in (await about(secret)).json()

    asyncio.run(main())
