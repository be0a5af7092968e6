"""The real server as a process of its own, and the example clients as others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.clients.barista_double import answer
from tests.think.chat_server_double import LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
START_LIMIT_S = 90.0
STOP_LIMIT_S = 20.0
CLIENT_LIMIT_S = 100.0
KEY = "a-key-for-the-tests"


@dataclass(frozen=True)
class Server:
    """Where a server listens."""

    url: str  # ws://127.0.0.1:PORT/v1
    folder: Path

    def call(self, client: str, clip: Path, *flags: str) -> dict:
        """Run an example against it: the summary that it prints."""
        command = [PYTHON, ROOT / "examples" / "clients" / f"{client}.py", clip]
        command += ["--url", self.url, "--key", KEY, "--wav", self.folder / "reply.wav", "--json", *flags]
        ran = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, timeout=CLIENT_LIMIT_S, check=False
        )
        assert 0 == ran.returncode, ran.stderr[-3000:]
        return json.loads(ran.stdout)


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[Server]:
    """A server on a free port, until the block ends; it must end well."""
    said = folder / "stdout.txt"
    with said.open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "antiphon", "serve", str(ROOT / "examples" / "barista.py"), "--port", "0", *flags],
            stdout=out,
            stderr=err,
            env={**os.environ, "ANTIPHON_SERVE_KEYS": KEY},
        )
        try:
            url = _ready(process, said, folder / "stderr.txt")
            yield Server(url, folder)
            process.terminate()
            assert 0 == process.wait(STOP_LIMIT_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _ready(process: subprocess.Popen, said: Path, log: Path) -> str:
    end_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end_s and process.poll() is None:
        words = said.read_text().split()
        if words[:1] == ["Ready:"] and len(words) > 1:
            url = words[1].removesuffix("/realtime")
            if _is_healthy(url):
                return url
        time.sleep(0.1)
    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")


def _is_healthy(url: str) -> bool:
    address = url.replace("ws://", "http://").removesuffix("/v1") + "/health"
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return response.status == 200
    except urllib.error.URLError:
        return False


@pytest.fixture(scope="session")
def _clients() -> None:
    if not PYTHON.exists():
        pytest.skip("the clients' environment is missing; scripts/clients makes it")


@pytest.fixture(scope="module")
def server(_clients: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With the default models."""
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def language_model(_clients: None) -> Iterator[LoopbackServer]:
    """A language model that always says the same."""
    with LoopbackServer(answer) as running:
        yield running


@pytest.fixture(scope="module")
def scripted_server(language_model: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With the default models, but for the language model."""
    # The scripted model is sure of every end, and the order's speaker pauses in it: its length tells a pause.
    flags = ("--set", f"models.language_model={language_model.url}", "--set", "turn.shortest_wait_ms=600")
    with serving(tmp_path_factory.mktemp("scripted"), *flags) as running:
        yield running


@pytest.fixture(scope="session")
def clip() -> Path:
    """The bundled order: "can I get a triple shot cappuccino with sugar and milk"."""
    return Path(str(resources.files("antiphon").joinpath("assets/order.flac")))


@pytest.fixture(scope="session")
def short_clip() -> Path:
    """The bundled short order: "can I get a cappuccino with skim milk"."""
    return Path(str(resources.files("antiphon").joinpath("assets/short_order.flac")))
