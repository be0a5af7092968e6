"""Pages of other sites: a shop with our talk button, and one that was written with OpenAI's own browser client."""

from __future__ import annotations

import importlib.util
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from tests.browser.conftest import clip, silence
from tests.browser.site import ROOT, Site
from tests.browser.test_page import HAS_WEBRTC, ways

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.browser.conftest import Visit
    from tests.think.chat_server_double import LoopbackServer

    Open = Callable[..., AbstractContextManager[Visit]]

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(180)]

HERE = ROOT / "tests" / "browser"
BUNDLE = HERE / "node_modules" / "@openai" / "agents-realtime" / "dist" / "bundle"
KEY = "the-key-of-the-shop"


@contextmanager
def _web_site(handler: type[SimpleHTTPRequestHandler]) -> Iterator[str]:
    """A web server on loopback: its origin."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, name="web-site")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@contextmanager
def _shop(
    language_model: LoopbackServer, folder: Path, handler: type[SimpleHTTPRequestHandler]
) -> Iterator[tuple[str, Site]]:
    """A site, and a voice server with a key that lets it in."""
    with _web_site(handler) as origin:
        flags = ("--set", f"models.language_model={language_model.url}", "--origin", origin)
        with Site(ROOT / "examples" / "barista.py", folder, flags, keys=KEY) as site:
            yield origin, site


@pytest.fixture
def shop_example(monkeypatch: pytest.MonkeyPatch) -> type:
    """The web site of examples/embed."""
    monkeypatch.setenv("VOICE_KEY", KEY)
    specification = importlib.util.spec_from_file_location("shop", ROOT / "examples" / "embed" / "shop.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    shop: type = type("Shop", (module.Shop,), {"log_message": lambda *_: None})
    return shop


@ways
def test_a_talk_button_on_a_shops_page(
    way: str, shop_example: type, language_model: LoopbackServer, visit: Open, tmp_path: Path, pictures: Path
) -> None:
    """One script and one element; the shop's back end has the key, and the session is as the shop wants it."""
    with (
        _shop(language_model, tmp_path / "shop", shop_example) as (origin, site),
    ):
        shop_example.voice_server = site.url.rstrip("/")
        with visit(origin, silence(1.5), clip("short_order"), silence(4.0)) as here:
            here.page.evaluate(f"document.querySelector('antiphon-talk').setAttribute('transport', '{way}')")
            here.page.evaluate("window.told = []")
            here.page.evaluate(
                "for (const kind of ['antiphon-state', 'antiphon-transcript'])"
                " document.addEventListener(kind, (event) => window.told.push(event.detail))"
            )
            here.page.click("antiphon-talk button")
            here.until("document.querySelector('antiphon-talk').shadowRoot.textContent.includes('Skim milk it is.')")
            here.page.screenshot(path=pictures / "embedded.png")
            assert "End" in here.page.inner_text("antiphon-talk button")
            messages = [asked.body["messages"] for asked in language_model.asked if "messages" in asked.body][-1]
            assert "You take orders for a coffee shop." in str(messages[0]["content"])
            here.page.click("antiphon-talk button")
            here.until("window.told.at(-1).state === 'idle' || window.told.some((one) => one.state === 'idle')")
            assert KEY not in here.page.content()
            assert [] == here.complaints


def test_a_site_that_is_not_listed_gets_nothing(site: Site, visit: Open, tmp_path: Path) -> None:
    """Neither the script nor a conversation."""
    (tmp_path / "index.html").write_text(f'<script type="module" src="{site.url}embed.js"></script><antiphon-talk>')
    handler = type("Files", (_Files,), {"folder": str(tmp_path)})
    with _web_site(handler) as origin, visit(origin) as here:
        here.page.wait_for_timeout(500)
        assert here.value("customElements.get('antiphon-talk') === undefined")
        opened = here.value(
            f"new Promise((done) => {{ const socket = new WebSocket('{site.url.replace('http', 'ws')}v1/realtime');"
            " socket.onopen = () => done('open'); socket.onclose = () => done('closed'); })"
        )
        assert "closed" == opened


AGENTS_PAGE = """<!doctype html><title>OpenAI's client</title><script type="module">
import { RealtimeAgent, RealtimeSession } from "./openai-realtime-agents.mjs";
window.happened = [];
window.talk = async (url, secret, kind, pcm) => {
  const agent = new RealtimeAgent({ name: "barista", instructions: "You are a barista." });
  const session = new RealtimeSession(agent, { transport: kind });
  session.on("error", (error) => window.happened.push(["error", JSON.stringify(error)]));
  session.on("audio", () => window.happened.push(["audio"]));
  session.on("history_updated", (history) => { window.said = history; });
  session.transport.on("*", (event) => window.happened.push([event.type]));
  await session.connect({ apiKey: secret, url });
  window.session = session;
  for (let at = 0; pcm && at < pcm.length; at += 480) {
    session.sendAudio(Int16Array.from(pcm.slice(at, at + 480)).buffer);
    await new Promise((done) => setTimeout(done, 19));
  }
};
</script>"""


class _Files(SimpleHTTPRequestHandler):
    folder = ""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, directory=self.folder)  # type: ignore[arg-type]

    def log_message(self, *_arguments: object) -> None:
        """Says nothing."""


def _secret(site: Site) -> str:
    import json
    import urllib.request

    asking = urllib.request.Request(
        f"{site.url}v1/realtime/client_secrets", data=b"{}", headers={"Authorization": f"Bearer {KEY}"}
    )
    with urllib.request.urlopen(asking, timeout=5) as answer:
        value: str = json.load(answer)["value"]
        return value


@pytest.fixture
def agents_page(tmp_path: Path) -> type[_Files]:
    """A site whose page uses the official client, as it comes from npm."""
    if not BUNDLE.exists():
        pytest.skip("scripts/browser installs @openai/agents-realtime")
    folder = tmp_path / "agents"
    folder.mkdir()
    for file in BUNDLE.glob("*.mjs"):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "index.html").write_text(AGENTS_PAGE)
    return type("Files", (_Files,), {"folder": str(folder)})


def test_openais_browser_client_over_a_websocket(
    agents_page: type[_Files], language_model: LoopbackServer, visit: Open, tmp_path: Path
) -> None:
    """By address and secret alone: its events are taken, the order is heard and answered aloud."""
    with _shop(language_model, tmp_path / "server", agents_page) as (origin, site), visit(origin) as here:
        pcm = (clip("short_order")[::2] * 32767).astype("<i2").tolist() + [0] * 48_000
        address = f"{site.url.replace('http', 'ws')}v1/realtime"
        here.page.evaluate(f"([pcm]) => window.talk('{address}', '{_secret(site)}', 'websocket', pcm)", [pcm])
        here.until("window.happened.some(([kind]) => kind === 'audio')")
        here.until("window.happened.some(([kind]) => kind === 'response.done')")
        assert [] == here.value("window.happened.filter(([kind]) => kind === 'error')")
        said = str(here.value("window.said"))
        assert "Skim milk it is." in said
        assert "cappuccino" in said


@pytest.mark.skipif(not HAS_WEBRTC, reason="scripts/setup webrtc installs what calls need")
def test_openais_browser_client_over_webrtc(
    agents_page: type[_Files], language_model: LoopbackServer, visit: Open, tmp_path: Path
) -> None:
    """Its own default in a browser: microphone and loudspeaker are the browser's, events go over the data channel."""
    with (
        _shop(language_model, tmp_path / "server", agents_page) as (origin, site),
        visit(origin, silence(3.0), clip("short_order"), silence(9.0)) as here,
    ):
        here.page.evaluate(f"window.talk('{site.url}v1/realtime/calls', '{_secret(site)}', 'webrtc')")
        here.until("window.happened.some(([kind]) => kind === 'output_audio_buffer.started')")
        here.until("window.happened.some(([kind]) => kind === 'response.done')")
        assert [] == here.value("window.happened.filter(([kind]) => kind === 'error')")
        said = str(here.value("window.said"))
        assert "Skim milk it is." in said
        assert "cappuccino" in said
