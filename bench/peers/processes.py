"""A command line in -> a server that runs, how long it took to be ready, what processor time it uses; and its end.

Each is a session of its own, so that what it starts can be counted and ended with it, and nothing else.
Units: seconds, cores, MiB. Linux alone, because of /proc. Threads: the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.core.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

READY_S = 180.0
STOP_S = 15.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SHOWN_BYTES = 2000
_IDLE, _WAITING, _STEAL = 3, 4, 7  # columns of /proc/stat


@dataclass(slots=True)
class Process:
    """A server that runs."""

    pid: int
    port: int
    ready_s: float

    def cpu_s(self) -> float:
        """Processor time of it and of all that it started, so far."""
        return sum(ticks for ticks, _ in self._members()) / TICKS_PER_S

    def rss_mib(self) -> float:
        """Resident memory of all of them."""
        return sum(pages for _, pages in self._members()) * os.sysconf("SC_PAGE_SIZE") / 2**20

    async def idle_cores(self, seconds: float) -> float:
        """How many cores it keeps busy while nobody calls."""
        before, began = self.cpu_s(), time.monotonic()
        await asyncio.sleep(seconds)
        return (self.cpu_s() - before) / (time.monotonic() - began)

    def _members(self) -> list[tuple[int, int]]:
        """(ticks, resident pages) of each process of its session; ended children count with their parent."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.pid:
                    found.append((sum(map(int, fields[11:15])), int(fields[21])))
        return found


@asynccontextmanager
async def running(
    command: Sequence[str], *, port: int, variables: Mapping[str, str], log: Path
) -> AsyncIterator[Process]:
    """A server while the block runs; what it writes goes into `log`.

    Raises:
        PeerError: it ended before it listened on its port, or did not do so in time.
    """
    began = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as written:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            env={**os.environ, **variables},
            start_new_session=True,
        )
    try:
        await _until_listening(child, port, log)
        yield Process(pid=child.pid, port=port, ready_s=round(time.monotonic() - began, 2))
    finally:
        await _end(child)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Watch:
    """What the machine did from its making on, and how much of that was not by those processes or by us."""

    processes: Sequence[Process]
    began: tuple[list[int], float] | None = None

    def __post_init__(self) -> None:
        self.began = _machine_ticks(), self._own_s()

    def report(self) -> dict[str, float]:
        """Steal as a share of all time, and cores that others used; call it before the processes end."""
        assert self.began is not None
        passed = [now - then for now, then in zip(_machine_ticks(), self.began[0], strict=True)]
        total = max(1, sum(passed))
        busy = total - passed[_IDLE] - passed[_WAITING] - passed[_STEAL]
        own = (self._own_s() - self.began[1]) * TICKS_PER_S
        others = max(0.0, (busy - own) / total) * (os.cpu_count() or 1)
        return {"steal": round(passed[_STEAL] / total, 4), "busy_by_others": round(others, 4), "ticks": total}

    def _own_s(self) -> float:
        used = os.times()
        return used.user + used.system + sum(process.cpu_s() for process in self.processes)


def _machine_ticks() -> list[int]:
    line = Path("/proc/stat").read_text().split("\n", 1)[0]
    return [int(value) for value in line.split()[1:9]]


async def _until_listening(child: asyncio.subprocess.Process, port: int, log: Path) -> None:
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        if child.returncode is not None:
            raise PeerError(f"the server ended with code {child.returncode}", hint=_last_words(log))
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.1)
    raise PeerError(f"the server did not listen within {READY_S:g} s", hint=_last_words(log))


async def _end(child: asyncio.subprocess.Process) -> None:
    """End it and all of its session."""
    for name in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await child.wait()
                break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # children that outlived it


def _last_words(log: Path) -> str:
    return f"{log} ends: " + log.read_text(errors="replace")[-SHOWN_BYTES:].strip()
