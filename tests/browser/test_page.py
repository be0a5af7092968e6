"""Somebody opens the page in Chromium and talks: what they see, hear and are told when something is in the way."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.browser.conftest import clip, silence
from tests.browser.site import ROOT, Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.browser.conftest import Visit
    from tests.think.chat_server_double import LoopbackServer

    Open = Callable[..., AbstractContextManager[Visit]]

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(180)]

AGREE_MS = 40.0  # the page's figure with the server's
BUFFER_MS = """(async () => {
  for (const one of (await antiphon.transport.peer.getStats()).values()) {
    if (one.type === "inbound-rtp") return 1000 * one.jitterBufferDelay / one.jitterBufferEmittedCount;
  }
})()"""
HAS_WEBRTC = find_spec("aiortc") is not None
WAYS = ("websocket", pytest.param("webrtc", marks=pytest.mark.skipif(not HAS_WEBRTC, reason="scripts/setup webrtc")))
ways = pytest.mark.parametrize("way", WAYS)
PICTURE = ROOT / "docs" / "page.png"
# An order, a long reply to it, another order over that reply, and the short reply to that.
TALKING_OVER = (silence(1.5), clip("order"), silence(3.0), clip("short_order"), silence(5.0))


@ways
def test_a_turn_is_heard_and_its_time_is_shown(way: str, site: Site, visit: Open, pictures: Path) -> None:
    """One click; both sides are written down, and the silence is laid out in parts that add up."""
    with visit(site.url, silence(1.5), clip("short_order"), silence(3.0), way=way) as here:
        assert here.page.is_visible("text=Press Talk and say something.")
        here.page.screenshot(path=pictures / "idle.png")
        here.talk()
        here.state("hearing")
        here.state("speaking")
        here.until("window.antiphon.turns.all[0]?.page > 0")
        here.state("listening")
        here.page.screenshot(path=pictures / "answered.png")
        asked, answered = here.entries()
        assert ("user", "assistant", "Skim milk it is.") == (asked["kind"], answered["kind"], answered["text"].strip())
        assert "cappuccino" in asked["text"]
        (turn,) = here.turns()
        assert turn["page"] > turn["server"] > 0
        assert here.page.inner_text("#last").strip() == str(round(turn["page"]))
        assert turn["opinions"]
        assert here.page.locator("#chart svg rect").count() > 5
        assert "milliseconds from the last word" in here.page.get_attribute("#chart svg", "aria-label")
        assert here.page.locator("#history button").count() == 1
        here.talk()
        here.state("idle")
        assert [] == here.complaints


@ways
def test_talking_over_a_reply_strikes_out_what_nobody_heard(way: str, site: Site, visit: Open, pictures: Path) -> None:
    """The reply stops, its unheard rest is struck through, the next order is answered: the picture in docs."""
    with visit(site.url, *TALKING_OVER, device_scale_factor=2, way=way) as here:
        here.talk()
        here.until("window.antiphon.turns.all[0]?.page > 0")
        here.page.wait_for_timeout(700)
        here.page.screenshot(path=pictures / "mid_turn.png")
        here.until("window.antiphon.transcript.entries.some((one) => one.unheard)")
        here.until("window.antiphon.turns.all[1]?.page > 0")
        here.until("window.antiphon.transcript.entries[3]?.text")
        here.page.wait_for_timeout(250)
        here.page.screenshot(path=pictures / "after_barge_in.png")
        if way == "websocket":
            here.page.screenshot(path=PICTURE)
        entries = here.entries()
        assert ["user", "assistant", "user", "assistant"] == [entry["kind"] for entry in entries]
        cut = entries[1]
        assert "interrupted" == cut["state"]
        assert cut["text"]
        assert "and we grind them when you order" in cut["unheard"]
        assert here.page.inner_text("#transcript del").strip() == cut["unheard"].strip()
        here.state("listening")
        assert "Skim milk it is." == here.entries()[3]["text"].strip()


@ways
def test_the_page_and_the_server_agree_on_the_latency(way: str, site: Site, visit: Open) -> None:
    """The page measures from the captured sample to the played one; the server from what came to what left.

    Over WebRTC the browser holds what comes back in a buffer of its own, tells how long, and nobody can take it out.
    """
    parts = [part for _ in range(4) for part in (clip("short_order"), silence(1.5))]
    with visit(site.url, silence(1.5), *parts, way=way) as here:
        here.talk()
        here.until("window.antiphon.turns.all.filter((turn) => turn.page > 0).length >= 4", within_s=60)
        apart = sorted(turn["page"] - turn["server"] for turn in here.turns() if turn["page"])
        held_ms = here.value(BUFFER_MS) if way == "webrtc" else 0.0
        print(
            f"{way}: page - server {[round(ms, 1) for ms in apart]} ms, of that the browser's buffer {held_ms:.1f} ms"
        )
        assert abs(apart[len(apart) // 2] - held_ms) <= AGREE_MS


@ways
def test_a_tool_is_shown_with_what_came_of_it(way: str, tool_site: Site, visit: Open, pictures: Path) -> None:
    with visit(tool_site.url, silence(1.5), clip("short_order"), silence(4.0), way=way) as here:
        here.talk()
        here.until("window.antiphon.transcript.entries.some((one) => one.kind === 'tool' && one.output)")
        here.until("window.antiphon.transcript.entries.at(-1).text.includes('three dollars')")
        (call,) = [entry for entry in here.entries() if entry["kind"] == "tool"]
        assert ("look_up_price", "A cappuccino is three dollars.") == (call["name"], call["output"])
        here.page.screenshot(path=pictures / "tool.png")
        assert 'look_up_price(drink: "cappuccino")' in here.page.inner_text("#transcript .tool")


def test_a_microphone_that_is_denied(site: Site, visit: Open, pictures: Path) -> None:
    """In words, with what to do; nothing was asked of the server."""
    with visit(site.url, microphone="denied") as here:
        here.talk()
        here.state("failed")
        assert here.page.inner_text("#problem-title") == "The microphone is blocked for this page"
        assert "Allow it" in here.page.inner_text("#problem-remedy")
        assert here.page.is_visible("#problem-retry")
        here.page.screenshot(path=pictures / "denied.png")
        assert not [url for url in here.requests if "/v1/" in url]


LATE_MICROPHONE = """(() => {
  const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = await ask(wanted);
    await new Promise((lend) => { window.lend = lend; });
    window.lent = stream;
    return stream;
  };
})()"""


def test_a_microphone_that_is_lent_too_late_is_given_back(site: Site, visit: Open) -> None:
    """Whoever ends while the browser still asks is not listened to afterwards, whatever they answer it."""
    with visit(site.url) as here:
        here.page.evaluate(LATE_MICROPHONE)
        here.talk()
        here.until("Boolean(window.lend)")
        here.talk()
        here.state("idle")
        here.page.evaluate("() => window.lend()")
        here.until("window.lent?.getTracks().every((track) => track.readyState === 'ended')")
        assert "idle" == here.value("antiphon.state")
        assert not [url for url in here.requests if "/v1/" in url]


def test_an_insecure_page(site: Site, visit: Open) -> None:
    """A name that is not this machine's own, over plain http, gets no microphone from any browser."""
    flags = ("--host-resolver-rules=MAP shop.example 127.0.0.1",)
    with visit(f"http://shop.example:{site.port}/", flags=flags) as here:
        here.talk()
        here.state("failed")
        assert "secure pages only" in here.page.inner_text("#problem-title")
        assert "shop.example" in here.page.inner_text("#problem-remedy")
        assert not here.page.is_visible("#problem-retry")


@ways
def test_a_full_server(way: str, language_model: LoopbackServer, visit: Open, tmp_path: Path, pictures: Path) -> None:
    """Whoever comes too late is told that, and gets in once somebody has left."""
    flags = ("--set", f"models.language_model={language_model.url}", "--set", "capacity.conversations=1")
    with (
        Site(ROOT / "examples" / "barista.py", tmp_path / "full", flags) as site,
        visit(site.url, silence(60.0), way=way) as first,
        visit(site.url, silence(60.0), way=way) as second,
    ):
        first.talk()
        first.state("listening")
        second.talk()
        second.state("failed")
        assert "All places are taken" == second.page.inner_text("#problem-title")
        second.page.screenshot(path=pictures / "full.png")
        first.talk()
        first.state("idle")
        second.page.click("#problem-retry")
        second.state("listening")


def test_a_server_with_keys_asks_for_one(
    language_model: LoopbackServer, visit: Open, tmp_path: Path, pictures: Path
) -> None:
    """A wrong one is told; the right one is nowhere but in the page's memory."""
    key = "the-key-for-this-test"
    flags = ("--set", f"models.language_model={language_model.url}")
    with Site(ROOT / "examples" / "barista.py", tmp_path / "keyed", flags, keys=key) as site, visit(site.url) as here:
        here.page.wait_for_load_state("networkidle")
        here.talk()
        assert here.page.is_visible("#key")
        here.page.fill("#key", "a-wrong-key-for-it")
        here.page.keyboard.press("Enter")
        here.state("failed")
        assert "does not know this key" in here.page.inner_text("#problem-title")
        assert here.page.is_visible("#key")
        here.page.screenshot(path=pictures / "key.png")
        here.page.fill("#key", key)
        here.page.keyboard.press("Enter")
        here.state("listening")
        kept = here.value(
            "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, document.body.outerHTML])"
        )
        assert key not in kept
        here.page.goto(f"{site.url}status")
        here.page.wait_for_selector("#key", state="visible")
        here.page.fill("#key", key)
        here.page.keyboard.press("Enter")
        here.page.wait_for_selector("#tiles .tile")


@ways
def test_keys_of_the_keyboard(way: str, site: Site, visit: Open) -> None:
    """Space holds the floor as long as it is down, and its release ends the turn; Escape ends the reply."""
    with visit(site.url, silence(3.0), clip("order"), silence(20.0), way=way) as here:
        here.talk()
        here.state("listening")
        here.page.keyboard.down("Space")
        assert here.value("window.antiphon.isHeld")
        here.page.wait_for_timeout(8500)
        assert [] == here.turns()  # the voice has paused long ago, and nobody took that for the end
        here.page.keyboard.up("Space")
        here.until("window.antiphon.isSounding")
        assert "triple" in here.entries()[0]["text"]
        here.page.wait_for_timeout(1500)
        here.page.keyboard.press("Escape")
        here.until("window.antiphon.transcript.entries[1].state === 'interrupted'", within_s=5)
        here.until("!window.antiphon.isSounding", within_s=2)
        here.state("listening")
        assert here.value("window.antiphon.isOn")
        here.page.keyboard.press("Enter")  # the button that was clicked has the focus still
        here.state("idle")


def test_settings_reach_the_server_and_stay(
    site: Site, language_model: LoopbackServer, visit: Open, pictures: Path
) -> None:
    with visit(site.url, silence(3.0), clip("short_order"), silence(4.0)) as here:
        here.page.click("#settings-open")
        here.page.fill("#instructions", "You are a pirate who sells coffee.")
        here.page.select_option("#eagerness", "high")
        here.page.screenshot(path=pictures / "settings.png")
        here.page.click("#settings button[type=submit]")
        here.talk()
        here.until("window.antiphon.turns.all.length === 1")
        messages = [asked.body["messages"] for asked in language_model.asked if "messages" in asked.body][-1]
        assert "pirate" in str(messages[0]["content"])
        here.page.reload()
        here.page.click("#settings-open")
        assert "You are a pirate who sells coffee." == here.page.input_value("#instructions")
        assert "high" == here.page.input_value("#eagerness")


def test_a_telephones_width_in_the_dark(site: Site, visit: Open, pictures: Path) -> None:
    """Nothing is wider than the screen, the button is in reach, and colours follow the system."""
    phone = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
    with visit(site.url, *TALKING_OVER, color_scheme="dark", reduced_motion="reduce", **phone) as here:
        here.page.screenshot(path=pictures / "phone_idle.png")
        here.talk()
        here.until("window.antiphon.turns.all[1]?.page > 0", within_s=40)
        here.page.screenshot(path=pictures / "phone.png")
        assert here.value("document.documentElement.scrollWidth") <= 390
        assert here.page.locator("#talk").is_visible()
        box = here.page.locator("#talk").bounding_box()
        assert min(box["width"], box["height"]) >= 44
        assert here.value("getComputedStyle(document.body).backgroundColor") == "rgb(19, 22, 26)"
        here.page.screenshot(path=pictures / "phone_full.png", full_page=True)
        here.page.set_viewport_size({"width": 1360, "height": 860})
        here.page.screenshot(path=pictures / "dark.png")


def test_nothing_is_asked_of_anybody_else_and_no_markup_runs(site: Site, visit: Open) -> None:
    """All requests are the server's own, and a script that found its way in would not be run."""
    with visit(site.url) as here:
        here.page.goto(f"{site.url}status")
        here.page.wait_for_selector("#tiles .tile")
        here.page.goto(site.url)
        assert {f"127.0.0.1:{site.port}"} == {urlsplit(url).netloc for url in here.requests}
        smuggled = (
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\\'window.x = 1\\'>')",
            "document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.x = 1'}))",
        )
        for line in smuggled:
            refused = here.value(f"(() => {{ try {{ {line}; }} catch (error) {{ return error.name; }} }})()")
            assert "TypeError" == refused
        assert here.value("window.x") is None


def test_every_control_has_a_name(site: Site, visit: Open) -> None:
    """What a screen reader says of each; the state is announced, too."""
    with visit(site.url) as here:
        here.page.click("#settings-open")
        nameless = here.value(
            "[...document.querySelectorAll('button, input, select, textarea, a')].filter((one) => !(one.labels?.length"
            " || one.getAttribute('aria-label') || one.textContent.trim())).map((one) => one.id)"
        )
        assert [] == nameless
        assert "polite" == here.page.get_attribute("#announce", "aria-live")
        assert "alert" == here.page.get_attribute("#problem", "role")


def test_the_status_page_follows(site: Site, visit: Open, pictures: Path) -> None:
    """Who is here, how fast turns were, the engines: while it happens."""
    with (
        visit(site.url, silence(1.0), clip("short_order"), silence(20.0)) as caller,
        visit(f"{site.url}status") as here,
    ):
        caller.talk()
        caller.until("window.antiphon.turns.all[0]?.page > 0")
        here.until("document.querySelector('#sessions td')", within_s=6)
        assert here.page.inner_text("#sessions td").startswith("sess_")
        here.until("document.querySelectorAll('#latency circle').length >= 1", within_s=15)
        assert "whisper" in here.page.inner_text("#plan")
        here.page.screenshot(path=pictures / "status.png", full_page=True)
        assert [] == here.complaints
