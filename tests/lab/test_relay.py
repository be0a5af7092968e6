"""A network's delays: order is kept, and nothing comes too early."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from antiphon.core.clock import MILLISECOND_NS, MonotonicClock
from antiphon.lab.plan import Line
from antiphon.lab.relay import Delays, relayed

ms = MILLISECOND_NS


@pytest.mark.unit
def test_a_plain_delay_is_the_same_for_all() -> None:
    """Without jitter and loss."""
    delays = Delays(Line(delay_ms=40), seed=1)
    assert [40 * ms, 60 * ms, 80 * ms] == [delays.arrival_ns(sent * ms) for sent in (0, 20, 40)]


@pytest.mark.unit
def test_jitter_lies_on_top_and_keeps_the_order() -> None:
    """Within its bounds, whatever was drawn."""
    delays = Delays(Line(delay_ms=40, jitter_ms=30), seed=1)
    arrivals = [delays.arrival_ns(sent * 5 * ms) for sent in range(500)]
    late_ms = [(arrival - sent * 5 * ms) / ms for sent, arrival in enumerate(arrivals)]
    assert arrivals == sorted(arrivals)
    assert (True, True) == (min(late_ms) >= 40, 65 < max(late_ms) <= 70)


@pytest.mark.unit
def test_a_loss_holds_up_what_comes_behind_it() -> None:
    """Until it was sent again; about as often as was asked for."""
    delays = Delays(Line(delay_ms=10, loss=0.1), seed=1)
    late_ms = [(delays.arrival_ns(sent * 1000 * ms) - sent * 1000 * ms) / ms for sent in range(1000)]
    assert {10.0, 210.0} == set(late_ms)
    assert 70 < late_ms.count(210.0) < 130
    held = Delays(Line(delay_ms=10, loss=0.5), seed=3)
    burst_ms = [held.arrival_ns(sent * ms) / ms for sent in range(100)]
    assert burst_ms == sorted(burst_ms)
    assert sum(later == before for before, later in pairwise(burst_ms)) > 40


@pytest.mark.unit
def test_the_same_seed_makes_the_same_network() -> None:
    """And another one another."""
    line = Line(delay_ms=10, jitter_ms=50, loss=0.1)
    one, same, other = ([Delays(line, seed=seed).arrival_ns(0) for _ in range(3)] for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.e2e
def test_it_relays_both_ways_late_and_whole() -> None:
    """Two megabytes there and back, the end of the line too."""

    async def main() -> tuple[bytes, float, bytes]:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        clock = MonotonicClock()
        far = server.sockets[0].getsockname()[1]
        async with server, relayed("127.0.0.1", far, Line(delay_ms=30), clock=clock) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            began_ns = clock.now_ns()
            writer.write(b"ping")
            pong = await reader.readexactly(4)
            passed_ms = (clock.now_ns() - began_ns) / ms
            sent = bytes(range(256)) * 8192
            writing = asyncio.create_task(_write(writer, sent))
            back = await reader.readexactly(len(sent))
            await writing
            writer.write_eof()
            assert b"" == await reader.read()
            writer.close()
        return pong, passed_ms, b"same" if back == sent else b"other"

    async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    pong, passed_ms, verdict = asyncio.run(main())
    assert (b"ping", b"same") == (pong, verdict)
    assert passed_ms >= 60


@pytest.mark.e2e
def test_a_server_that_is_gone_breaks_the_line() -> None:
    """As it would without a relay."""

    async def main() -> bytes:
        async with relayed("127.0.0.1", 1, Line(delay_ms=1), clock=MonotonicClock()) as port:
            reader, _ = await asyncio.open_connection("127.0.0.1", port)
            try:
                return await reader.read()
            except ConnectionError:
                return b""

    assert b"" == asyncio.run(main())
