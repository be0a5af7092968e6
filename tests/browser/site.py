"""The server as a process of its own, stopped and started at the same address; a network that can be cut."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

ROOT = Path(__file__).parents[2]
START_LIMIT_S = 90.0
STOP_LIMIT_S = 20.0


@dataclass
class Site:
    """`antiphon serve` with an agent and flags; a context manager."""

    agent: Path
    folder: Path
    flags: Sequence[str] = ()
    keys: str = ""
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Of the page."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def log(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    def start(self) -> None:
        said = self.folder / "stdout.txt"
        environment = {**os.environ, "ANTIPHON_SERVE_KEYS": self.keys}
        if not self.keys:
            del environment["ANTIPHON_SERVE_KEYS"]
        with said.open("wb") as out, (self.folder / "stderr.txt").open("ab") as err:
            command = [
                sys.executable,
                "-m",
                "antiphon",
                "serve",
                str(self.agent),
                "--port",
                str(self.port),
                *self.flags,
            ]
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        end_s = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end_s and self.process.poll() is None:
            opened = [line for line in said.read_text().splitlines() if line.startswith("Open http")]
            if opened:
                self.port = int(opened[0].split()[1].rstrip("/").rpartition(":")[2])
                if self.is_healthy():
                    return
            time.sleep(0.1)
        raise AssertionError(f"the server did not start: {self.log[-2000:]}")

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        assert 0 == self.process.wait(STOP_LIMIT_S)
        self.process = None

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}health", timeout=5) as response:
                return response.status == 200
        except urllib.error.URLError:
            return False

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and kind is None:
            self.stop()
        elif self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass
class Wire:
    """Hands bytes on to a port, until it is cut: then everything stops where it is, as when a cable is pulled."""

    target: int
    port: int = 0
    is_cut: bool = False
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire")
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def cut(self) -> None:
        """Connections are gone, and new ones come to nothing."""
        self.is_cut = True
        self._loop.call_soon_threadsafe(self._abort)

    def mend(self) -> None:
        self.is_cut = False

    def _end(self) -> None:
        self._server.close()
        self._abort()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_later(0.05, self._loop.stop)

    def _abort(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        with suppress(OSError, asyncio.CancelledError):
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers |= {writer, back}
            await asyncio.gather(_pour(reader, back), _pour(there, writer))
        self._writers.discard(writer)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()
