"""Chromium with a recording for a microphone, and servers for its pages."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile
import soxr
from tests.browser.site import ROOT, Site
from tests.clients.barista_double import answer
from tests.think.chat_server_double import LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

RATE_HZ = 48_000
POLL_MS = 40
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
KEEP_WAY = (
    "localStorage.getItem('antiphon.settings') ?? "
    "localStorage.setItem('antiphon.settings', JSON.stringify({ transport: 'WAY' }))"
)
WITH_TOOL = '''
from antiphon import Agent, tool


@tool
def look_up_price(drink: str) -> str:
    """What does a cappuccino cost? Look up the price of a drink."""
    return f"A {drink} is three dollars."


agent = Agent(instructions="You are a barista.", vocabulary=("cappuccino", "skim milk"), tools=(look_up_price,))
'''


@dataclass
class Visit:
    """A page that is open."""

    page: Any  # playwright's
    requests: list[str]  # of all that it asked for
    complaints: list[str]  # of its console

    def listen(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} {message.location}")

    def state(self, *wanted: str, within_s: float = 30.0) -> None:
        """Wait until the conversation is in one of these states."""
        names = ", ".join(f'"{name}"' for name in wanted)
        self.until(f"[{names}].includes(window.antiphon.state)", within_s)

    def until(self, expression: str, within_s: float = 30.0) -> None:
        end_s = time.monotonic() + within_s
        while not self.page.evaluate(expression):  # the driver's own way to wait is stopped by the page's policy
            if time.monotonic() > end_s:
                told = "[antiphon.state, antiphon.problem, antiphon.transcript.entries, antiphon.turns.all]"
                shown = self.page.evaluate(f"window.antiphon ? JSON.stringify({told}) : ''")
                raise AssertionError(f"never: {expression}; {shown}; {self.complaints}")
            self.page.wait_for_timeout(POLL_MS)

    def value(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def entries(self) -> list[dict[str, Any]]:
        return self.value("window.antiphon.transcript.entries")

    def turns(self) -> list[dict[str, Any]]:
        return self.value("window.antiphon.turns.all")

    def talk(self) -> None:
        self.page.click("#talk")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    """The driver; tests are skipped where it, or the browser, is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="scripts/browser installs the browser's driver")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt install chromium")
    with api.sync_playwright() as running:
        yield running


@pytest.fixture
def visit(playwright: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page in a browser of its own, whose microphone is a recording of these parts, played once."""
    browsers = []

    @contextmanager
    def opened(
        url: str,
        *heard: np.ndarray,
        microphone: str = "allowed",
        flags: Sequence[str] = (),
        way: str = "websocket",
        **context: Any,
    ) -> Iterator[Visit]:
        recording = tmp_path / f"microphone-{len(browsers)}.wav"
        soundfile.write(recording, np.concatenate(heard or (silence(1.0),)), RATE_HZ, subtype="PCM_16")
        arguments = ["--no-sandbox", "--use-fake-device-for-media-stream", *flags]
        arguments.append(f"--use-file-for-fake-audio-capture={recording}%noloop")
        if microphone == "allowed":
            arguments.append("--use-fake-ui-for-media-stream")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        browsers.append(browser)
        context = {"viewport": {"width": 1360, "height": 860}, "color_scheme": "light", **context}
        window = browser.new_context(**context)
        window.add_init_script(KEEP_WAY.replace("WAY", way))
        page = window.new_page()
        visiting = Visit(page, [], [])
        page.on("request", lambda request: visiting.requests.append(request.url))
        page.on("console", visiting.listen)
        page.on("pageerror", lambda error: visiting.complaints.append(str(error)))
        page.goto(url)
        yield visiting
        browser.close()

    yield opened
    for browser in browsers:
        browser.close()


@pytest.fixture(scope="module")
def language_model() -> Iterator[LoopbackServer]:
    """A language model that always says the same."""
    with LoopbackServer(answer) as running:
        yield running


@pytest.fixture(scope="module")
def site(language_model: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A barista with the default models, but for the language model."""
    # The scripted model is sure of every end, and the order's speaker pauses in it: its length tells a pause.
    flags = ("--set", f"models.language_model={language_model.url}", "--set", "turn.shortest_wait_ms=600")
    with Site(ROOT / "examples" / "barista.py", tmp_path_factory.mktemp("site"), flags) as running:
        yield running


@pytest.fixture(scope="module")
def tool_site(language_model: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The same, who looks prices up."""
    folder = tmp_path_factory.mktemp("tools")
    (folder / "priced.py").write_text(WITH_TOOL)
    flags = ("--set", f"models.language_model={language_model.url}")
    with Site(folder / "priced.py", folder, flags) as running:
        yield running


def silence(seconds: float) -> np.ndarray:
    """As a microphone in a quiet room has it."""
    return np.random.default_rng(1).normal(0.0, 0.0002, round(seconds * RATE_HZ)).astype(np.float32)


def clip(name: str) -> np.ndarray:
    """One of the bundled orders, at the browser's rate."""
    pcm, rate = soundfile.read(str(resources.files("antiphon").joinpath(f"assets/{name}.flac")), dtype="float32")
    return soxr.resample(pcm, rate, RATE_HZ)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: a folder that ANTIPHON_PICTURES names, so that somebody can look at them."""
    folder = Path(os.environ.get("ANTIPHON_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
