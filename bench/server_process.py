"""`antiphon serve` as a process of its own in -> its address, metrics, log lines, memory and processor time out.

Everything is seen from outside, through /proc, /metrics and standard error, so that looking costs the server nothing
but a page of metrics. Units: MiB, seconds of processor time. Linux alone, because of /proc.
Threads: one event loop. What it does not know: the protocol.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.request import urlopen

from antiphon.core.clock import SECOND_NS
from antiphon.lab.own_server import cancelled_by_sigterm

if TYPE_CHECKING:
    from collections.abc import Sequence

READY_S = 120.0  # models are on this machine already
END_S = 30.0  # the drain and more; then it is killed
LAG = "antiphon_event_loop_lag_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a process holds at one moment."""

    rss_mib: float
    peak_mib: float
    cpu_s: float
    threads: int
    fds: int
    loop_ran_s: float  # of its first thread, on which the event loop runs
    loop_waited_s: float  # while that was ready to run, and others had the cores


class ServerProcess:
    """One server on a free port of the loopback; use it as an async context manager."""

    def __init__(self, arguments: Sequence[str], *, program: Sequence[str] = ("-m", "antiphon")) -> None:
        self._command = [sys.executable, *program, "serve", *arguments, "--host", "127.0.0.1", "--port", "0"]
        self._process: asyncio.subprocess.Process | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __aexit__
        self._until_ended = ExitStack()
        self.url = ""  # of conversations

    async def __aenter__(self) -> Self:
        self._until_ended.enter_context(cancelled_by_sigterm())
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=self._log
        )
        try:
            async with asyncio.timeout(READY_S):
                line = await self.answer()
                while line and not line.startswith("Ready: "):
                    line = await self.answer()
        except TimeoutError:
            line = ""
        if not line:
            await self._end()
            raise SystemExit(f"the server did not start: {self._written().decode(errors='replace')[-2000:]}")
        self.url = line.split()[1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            print(f"the server is {self.condition()}, and wrote last:", file=sys.stderr)
            print("\n".join(map(str, self.log_lines()[-20:])), file=sys.stderr)
        await self._end()
        self._log.close()

    @property
    def pid(self) -> int:
        """Of the process, once it runs."""
        assert self._process is not None
        return self._process.pid

    async def ask(self, word: str) -> dict[str, object]:
        """An answer of a program that reads words from its standard input; see watched_server.py."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        await self._process.stdin.drain()
        answer: dict[str, object] = json.loads(await self.answer())
        return answer

    async def answer(self) -> str:
        """The next line of its standard output; empty once it has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()

    def facts(self) -> Facts:
        """What it holds now."""
        assert self._process is not None
        proc = Path("/proc") / str(self._process.pid)
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        after_name = (proc / "stat").read_text().rpartition(")")[2].split()
        ran_ns, waited_ns = (int(word) for word in (proc / "schedstat").read_text().split()[:2])
        return Facts(
            rss_mib=int(status["VmRSS"].split()[0]) / 1024,
            peak_mib=int(status["VmHWM"].split()[0]) / 1024,
            cpu_s=(int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK"),
            threads=int(status["Threads"]),
            fds=sum(1 for _ in (proc / "fd").iterdir()),
            loop_ran_s=ran_ns / SECOND_NS,
            loop_waited_s=waited_ns / SECOND_NS,
        )

    def condition(self) -> str:
        """Whether it runs, and where each of its threads is in the system's eyes."""
        assert self._process is not None
        if self._process.returncode is not None:
            return f"gone with {self._process.returncode}"
        tasks = (Path("/proc") / str(self._process.pid) / "task").iterdir()
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks]
        return f"there, its threads {''.join(sorted(states))}"

    async def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its name with labels as Prometheus writes them."""
        page = self.url.replace("ws://", "http://").partition("/v1/")[0] + "/metrics"
        text = await asyncio.to_thread(lambda: urlopen(page, timeout=10).read().decode())
        lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def log_place(self) -> int:
        """Where the next log line will be written."""
        return len(self._written())

    def log_lines(self, since: int = 0) -> list[dict[str, object]]:
        """What was logged since a place; a line that is no JSON is a fault and comes with the event `unreadable`."""
        lines = []
        for line in self._written()[since:].decode(errors="replace").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                lines.append({"event": "unreadable", "line": line[:200]})
        return lines

    def _written(self) -> bytes:
        return os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)

    async def _end(self) -> None:
        with self._until_ended:
            await self._stop()

    async def _stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(END_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


@dataclass(frozen=True, slots=True)
class Lag:
    """The event loop's lag between two looks at /metrics, ms; a quantile is the upper edge of its bucket."""

    beats: int
    p50_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    longest_ms: float | None  # the bucket's edge as well; inf: above all edges
    over_20_ms: int | None  # None: no edge lies there

    @classmethod
    def between(cls, before: dict[str, float], after: dict[str, float]) -> Self:
        """From two pages of metrics."""
        prefix = f'{LAG}_bucket{{le="'
        counts = sorted(
            (float(name[len(prefix) : -2]) * 1000, round(count - before.get(name, 0.0)))
            for name, count in after.items()
            if name.startswith(prefix)
        )
        beats = counts[-1][1]

        def quantile(share: float) -> float | None:
            return next((edge for edge, count in counts if beats and count >= share * beats), None)

        below = [count for edge, count in counts if edge == 20.0]
        return cls(
            beats,
            quantile(0.5),
            quantile(0.99),
            quantile(0.999),
            quantile(1.0),
            beats - below[0] if below else None,
        )
