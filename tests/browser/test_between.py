"""What lies between the page and the server: networks that drop, a server that restarts, a NAT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.browser.conftest import clip, silence
from tests.browser.media_wire import MediaWire
from tests.browser.site import ROOT, Site, Wire
from tests.browser.test_page import HAS_WEBRTC, ways

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.browser.conftest import Visit
    from tests.think.chat_server_double import LoopbackServer

    Open = Callable[..., AbstractContextManager[Visit]]

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(180)]


def test_a_network_that_drops_is_waited_for_and_nothing_is_forgotten(
    site: Site, language_model: LoopbackServer, visit: Open, pictures: Path
) -> None:
    """The page says so, opens another connection, and tells the server what was said before."""
    heard = (silence(1.5), clip("short_order"), silence(11.0), clip("short_order"), silence(4.0))
    with Wire(site.port) as wire, visit(wire.url, *heard) as here:
        here.talk()
        here.until("window.antiphon.turns.all.length === 1")
        here.state("listening")
        wire.cut()
        here.state("reconnecting", within_s=5)
        here.page.screenshot(path=pictures / "reconnecting.png")
        wire.mend()
        here.state("listening", within_s=12)
        here.until("window.antiphon.turns.all.length === 2")
        here.state("listening")
        messages = [asked.body["messages"] for asked in language_model.asked if "messages" in asked.body][-1]
        said = [str(message["content"]) for message in messages if message["role"] == "assistant"]
        assert "Skim milk it is." in said[0]


@pytest.mark.skipif(not HAS_WEBRTC, reason="scripts/setup webrtc")
def test_media_that_no_longer_come_through_are_noticed_and_the_call_is_made_again(
    site: Site, language_model: LoopbackServer, visit: Open
) -> None:
    """Over WebRTC nothing tells that the network is gone but silence: the page waits for it a little, then calls."""
    heard = (silence(1.5), clip("short_order"), silence(30.0), clip("short_order"), silence(4.0))
    with visit(site.url, *heard, way="webrtc") as here, MediaWire(here.page) as wire:
        here.talk()
        here.until("window.antiphon.turns.all.length === 1")
        here.state("listening")
        wire.cut()
        here.state("reconnecting", within_s=15)
        wire.mend()
        here.state("listening", within_s=12)
        assert "WebRTC" == here.value("antiphon.transport.kind")
        here.until("window.antiphon.turns.all.length === 2", within_s=40)
        here.state("listening")
        messages = [asked.body["messages"] for asked in language_model.asked if "messages" in asked.body][-1]
        said = [str(message["content"]) for message in messages if message["role"] == "assistant"]
        assert "Skim milk it is." in said[0]


@ways
def test_a_server_that_restarts_is_found_again(
    way: str, language_model: LoopbackServer, visit: Open, tmp_path: Path
) -> None:
    """It says that it ends; the page tries again until it is back."""
    flags = ("--set", f"models.language_model={language_model.url}")
    with (
        Site(ROOT / "examples" / "barista.py", tmp_path, flags) as site,
        visit(site.url, silence(30.0), clip("short_order"), silence(9.0), way=way) as here,
    ):
        here.talk()
        here.state("listening")
        site.stop()
        here.state("reconnecting", within_s=5)
        site.start()
        here.state("listening", within_s=40)
        here.until("window.antiphon.turns.all.length === 1", within_s=40)


@pytest.mark.skipif(not HAS_WEBRTC, reason="scripts/setup webrtc")
def test_a_page_behind_a_nat_asks_the_servers_stun_server(
    language_model: LoopbackServer, visit: Open, tmp_path: Path
) -> None:
    """What is set for the server counts for the page's end of a call, too."""
    from tests.serve.webrtc.stun_server import StunServer

    with StunServer(("203.0.113.7", 4242)) as stun:
        address = f"stun:127.0.0.1:{stun.port}"
        flags = ("--set", f"models.language_model={language_model.url}", "--set", f"serve.webrtc_stun={address}")
        with (
            Site(ROOT / "examples" / "barista.py", tmp_path / "stun", flags) as site,
            visit(site.url, silence(20.0), way="webrtc") as here,
        ):
            here.talk()
            here.state("listening")
            assert [[address]] == here.value(
                "antiphon.transport.peer.getConfiguration().iceServers.map((one) => one.urls)"
            )
            assert "203.0.113.7 4242 typ srflx" in here.value("antiphon.transport.peer.localDescription.sdp")
            assert [] == here.complaints
