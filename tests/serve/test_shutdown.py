"""The server ends in order."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest
from tests.serve.doubles import SAY, caller, hear, house, running
from tests.serve.test_limits import last_words
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websockets.asyncio.client import ClientConnection

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_replies_in_progress_end_and_nobody_new_comes_in() -> None:
    """After SIGTERM a silent caller is closed at once, one who is spoken to hears the reply to its end."""

    async def main() -> None:
        async with running(house()) as place:
            silent, spoken_to = await caller(place.url), await caller(place.url)
            await hear(silent, "session.created")
            await spoken_to.send(SAY)
            await hear(spoken_to, "response.output_audio.delta")
            place.stop()
            assert ("server_shutting_down", 1001) == await last_words(silent, within_s=1.0)
            with pytest.raises(InvalidStatus) as refused:
                await connect(place.url)
            assert 503 == refused.value.response.status_code
            async with httpx.AsyncClient() as client:
                health = await client.get(f"{place.http}/health")
            assert (503, "draining") == (health.status_code, health.json()["status"])
            kinds = []
            with pytest.raises(ConnectionClosed) as closed:  # noqa: PT012
                while True:
                    kinds.append(json.loads(await asyncio.wait_for(spoken_to.recv(), 8))["type"])
            assert "ReplyFinished" in kinds
            assert 1001 == closed.value.rcvd.code
            assert (signal.SIGTERM, False) == await place.serving

    asyncio.run(main())


@contextmanager
def a_process(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of its own process and what it printed first, its address."""
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.serve.doubles_server", *words],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("clients", [0, 1, 3])
def test_ctrl_c_ends_the_server(clients: int) -> None:
    """Within five seconds, however many are connected and although a long reply sounds."""
    with a_process() as (process, url):

        async def main() -> tuple[float, list[tuple[str, int]]]:
            connected = [await caller(url) for _ in range(clients)]
            for client in connected:
                await client.send(json.dumps({"type": "say", "text": "A rather long sentence, " * 10}))
                await hear(client, "response.output_audio.delta")
            process.send_signal(signal.SIGINT)
            started = time.monotonic()
            told = await asyncio.gather(*map(last_words, connected))
            await asyncio.to_thread(process.wait, 10)
            return time.monotonic() - started, told

        took_s, told = asyncio.run(main())
        assert 130 == process.returncode
        assert took_s < 5
        assert [("server_shutting_down", 1001)] * clients == told
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert "server.stopped" == lines[-1]["event"]
        assert not [line for line in lines if line["level"] in ("error", "critical")]


def test_a_second_signal_ends_at_once() -> None:
    """Although a reply sounds that the first would have let end."""
    with a_process() as (process, url):

        async def main() -> float:
            client: ClientConnection = await caller(url)
            await client.send(json.dumps({"type": "say", "text": "A rather long sentence, " * 10}))
            await hear(client, "response.output_audio.delta")
            process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.5)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            started = time.monotonic()
            await asyncio.to_thread(process.wait, 10)
            return time.monotonic() - started

        assert asyncio.run(main()) < 1.5
        assert 0 == process.returncode


def test_a_load_in_progress_does_not_keep_it() -> None:
    """The first signal waits for the load, which cannot be broken off; the second does not."""
    with a_process("loading") as (process, said):
        assert "loading" == said
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(2)
