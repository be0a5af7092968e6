"""Arguments of `antiphon serve` -> a server of our own as a process, ready for callers; and how it ended.

It is started on a free port of this machine, waited for until /health says that it lets callers in, and ended in order.
Its log is read to its end, of which the last lines are kept. Its process id lets others read what it uses.
Threads: the event loop. It imports nothing of the server.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import threading
from collections import deque
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.core.errors import MachineError, PeerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

READY = re.compile(r"Ready: (ws://(\S+):(\d+)/\S*)")
START_S = 300.0  # models may have to be fetched first
STOP_S = 15.0
HEALTH_S = 5.0
KEPT_LINES = 200
SHOWN_LINES = 5
LONGEST_LINE_BYTES = 2**20


@dataclass(slots=True)
class OwnServer:
    """A server that runs."""

    url: str
    pid: int
    log: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))  # its last lines
    exit_code: int | None = None  # once it has ended


@contextmanager
def cancelled_by_sigterm() -> Iterator[None]:
    """While the block runs SIGTERM cancels the task that it runs in, as Ctrl-C does: a measurement that is broken off
    takes its servers along, or they would use the cores of the next one. Blocks may nest; the inner task is cancelled.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    if threading.current_thread() is not threading.main_thread():  # Python lets no other thread take signals
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(task.cancel))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@asynccontextmanager
async def own_server(arguments: Sequence[str] = (), *, start_s: float = START_S) -> AsyncIterator[OwnServer]:
    """A server while the block runs.

    Raises:
        MachineError: Python cannot be started.
        PeerError: the server ended before it was ready, or was not ready in time.
    """
    command = [sys.executable, "-m", "antiphon", "serve", *arguments, "--host", "127.0.0.1", "--port", "0"]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE_BYTES,
        )
    except OSError as error:
        raise MachineError(f"{sys.executable} cannot be started: {error.strerror}") from error
    assert process.stdout is not None
    assert process.stderr is not None
    server = OwnServer(url="", pid=process.pid)
    said: asyncio.Queue[str] = asyncio.Queue(KEPT_LINES)
    with cancelled_by_sigterm():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_read(process.stderr, server.log))
            tasks.create_task(_read(process.stdout, server.log, said))
            failure = None
            try:
                failure = await _until_ready(server, process, said, start_s)
                if failure is None:
                    yield server
            finally:
                await _stop(process)
                server.exit_code = process.returncode
    if failure is not None:
        raise failure


async def _until_ready(
    server: OwnServer, process: asyncio.subprocess.Process, said: asyncio.Queue[str], start_s: float
) -> PeerError | None:
    try:
        async with asyncio.timeout(start_s):
            while (found := READY.search(line := await said.get())) is None:
                if not line:
                    await process.wait()
                    return PeerError(f"the server ended with code {process.returncode}", hint=_last_words(server))
            server.url = found[1]
            await _healthy(found[2], int(found[3]))
    except TimeoutError:
        return PeerError(f"the server was not ready after {start_s:g} s", hint=_last_words(server))
    except OSError as error:
        return PeerError(f"the server's /health does not answer: {error.strerror}", hint=_last_words(server))
    return None


async def _healthy(host: str, port: int) -> None:
    """Return once /health answers 200."""
    while True:
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(f"GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            async with asyncio.timeout(HEALTH_S):
                status = await reader.readline()
        finally:
            writer.close()
        if b" 200 " in status:
            return
        await asyncio.sleep(0.1)


async def _read(stream: asyncio.StreamReader, log: deque[str], said: asyncio.Queue[str] | None = None) -> None:
    """To its end, which is said as an empty line; what nobody waits for is not kept waiting."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # longer than the limit: asyncio has thrown it away
            continue
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            log.append(text)
        if said is not None and not said.full() and (text or not line):
            said.put_nowait(text)
        if not line:
            return


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    try:
        process.terminate()
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
    except ProcessLookupError:
        await process.wait()


def _last_words(server: OwnServer) -> str:
    lines = list(server.log)[-SHOWN_LINES:]
    return "its last words: " + " | ".join(lines) if lines else "it said nothing"
