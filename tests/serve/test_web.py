"""What browsers get besides conversations: the page's files, what other sites may fetch, how the server does."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest
from tests.serve.doubles import KEY, SAY, Place, caller, hear, house, running

from antiphon.serve.web_files import POLICY, WebFiles
from antiphon.serve_settings import ServeSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.e2e

SHOP = "https://shop.example"
LOCKED = ServeSettings(keys=(KEY,), origins=(SHOP,))
WITH_KEY = {"authorization": f"Bearer {KEY}"}


def serving(act: Callable[[Place, httpx.AsyncClient], Awaitable[None]], settings: ServeSettings = LOCKED) -> None:
    async def main() -> None:
        async with running(house(settings)) as place, httpx.AsyncClient(base_url=place.http) as client:
            await act(place, client)

    asyncio.run(main())


def test_the_pages_come_with_a_strict_policy_and_hold_no_secret() -> None:
    """To anybody: what they show needs a key, they do not. Nothing in them is run that the server did not send."""

    async def act(_place: Place, client: httpx.AsyncClient) -> None:
        for path in ("/", "/status"):
            page = await client.get(path)
            assert (200, "text/html; charset=utf-8") == (page.status_code, page.headers["content-type"])
            assert POLICY == page.headers["content-security-policy"]
            assert "nosniff" == page.headers["x-content-type-options"]
            assert KEY not in page.text
            assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=|javascript:", page.text)
            for name in re.findall(r'(?:src|href)="(web/[^"]+)"', page.text):
                assert 200 == (await client.get(f"/{name}")).status_code

    serving(act)
    assert "unsafe" not in POLICY
    assert "http" not in POLICY


def test_every_module_that_is_imported_is_there() -> None:
    """By a relative path, and from nowhere else; worklets among them."""
    files = WebFiles()
    for name in files.names:
        if name.endswith(".js"):
            text = files._files[name].body.decode()
            for wanted in re.findall(r'^(?:import|export)\b[^";]*\bfrom "([^"]+)";', text, re.MULTILINE):
                assert wanted.startswith("./"), f"{name} imports {wanted}"
                assert wanted[2:] in files.names, f"{name} imports {wanted}"
            assert "http://" not in text.replace("http://localhost", "").replace("http://www.w3.org/2000/svg", "")
    assert {"capture-worklet.js", "playback-worklet.js", "meter-worklet.js", "socket_worker.js"} <= set(files.names)


def test_files_are_asked_for_again_and_not_sent_again() -> None:
    async def act(_place: Place, client: httpx.AsyncClient) -> None:
        first = await client.get("/web/main.js")
        assert ("no-cache", 200) == (first.headers["cache-control"], first.status_code)
        again = await client.get("/web/main.js", headers={"if-none-match": first.headers["etag"]})
        assert (304, b"") == (again.status_code, again.content)

    serving(act)


@pytest.mark.parametrize("path", ["/web/../app.py", "/web/%2e%2e/app.py", "/web/", "/web/nothing.js", "/web/index"])
def test_nothing_but_the_files_is_served(path: str) -> None:
    async def act(_place: Place, client: httpx.AsyncClient) -> None:
        assert 404 == (await client.get(path)).status_code

    serving(act)


@pytest.mark.parametrize("path", ["/web/conversation.js", "/embed.js", "/about.json"])
def test_pages_of_listed_sites_may_fetch_what_a_talk_button_needs(path: str) -> None:
    """Theirs is the only origin that is named; any other gets no leave, and the browser keeps the answer from it."""

    async def act(_place: Place, client: httpx.AsyncClient) -> None:
        asks = {"access-control-request-method": "GET", "access-control-request-headers": "authorization"}
        allowed = await client.options(path, headers={"origin": SHOP, **asks})
        assert (204, SHOP) == (allowed.status_code, allowed.headers["access-control-allow-origin"])
        assert "authorization" in allowed.headers["access-control-allow-headers"]
        assert SHOP == (await client.get(path, headers={"origin": SHOP})).headers["access-control-allow-origin"]
        for origin in ("https://evil.example", "null"):
            for method in ("OPTIONS", "GET"):
                answer = await client.request(method, path, headers={"origin": origin, **asks})
                assert "access-control-allow-origin" not in answer.headers

    serving(act)


@pytest.mark.parametrize("path", ["/status.json", "/metrics", "/v1/models", "/v1/realtime/client_secrets"])
def test_what_is_for_back_ends_is_for_no_page(path: str) -> None:
    """Not even of a listed site: a page has no key to show, and should have none."""

    async def act(_place: Place, client: httpx.AsyncClient) -> None:
        answer = await client.get(path, headers={"origin": SHOP, **WITH_KEY})
        assert "access-control-allow-origin" not in answer.headers

    serving(act)


def test_status_needs_a_key_as_metrics_do() -> None:
    async def act(_place: Place, client: httpx.AsyncClient) -> None:
        assert 401 == (await client.get("/status.json")).status_code
        about = (await client.get("/about.json")).json()
        assert {"key_needed": True, "condition": "ready", "webrtc": about["webrtc"]} == about
        about = (await client.get("/about.json", headers=WITH_KEY)).json()
        assert (["barista", "scripted"], ["tones"]) == (about["models"], about["voices"])

    serving(act)


def test_status_says_who_is_here_and_how_it_went() -> None:
    """By numbers and names of ours alone: no words, no addresses."""

    async def act(place: Place, client: httpx.AsyncClient) -> None:
        async with caller(place.url) as guest:
            created = await hear(guest, "session.created")
            await guest.send(SAY)
            await hear(guest, "ReplyStarted")
            told = (await client.get("/status.json", headers=WITH_KEY)).json()
            assert ("antiphon.status/1", "ready") == (told["schema"], told["condition"])
            assert (1, 4) == (told["sessions"]["open"], told["sessions"]["capacity"])
            (here,) = told["sessions"]["now"]
            assert (created["session"]["id"], "speaking") == (here["id"], here["phase"])
            assert "morning" not in str(told)
            assert {"recognizer", "language_model", "synthesizer"} <= {engine["role"] for engine in told["engines"]}
        await place.settle()
        told = (await client.get("/status.json", headers=WITH_KEY)).json()
        assert (0, 1, []) == (told["sessions"]["open"], told["sessions"]["begun"], told["sessions"]["now"])
        assert {"client_left": 1} == told["sessions"]["ended"]

    serving(act)


def test_turns_are_kept_for_status_up_to_a_bound() -> None:
    from antiphon.serve.recent_turns import MOST, RecentTurns

    turns = RecentTurns(now_s=lambda: 12.345)
    for number in range(MOST + 3):
        turns.add("heard", float(number))
    kept = turns.wire()
    assert MOST == len(kept)
    assert {"at_s": 12.35, "outcome": "heard", "voice_to_voice_ms": 3.0} == kept[0] | {"at_s": 12.35}
