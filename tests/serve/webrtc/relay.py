"""A relay of datagrams between a caller and the server, on the loopback, that loses some and delays others."""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any, Self

HERE = "127.0.0.1"


class Relay(asyncio.DatagramProtocol):
    """One call's; `is_bad` from when on it loses and delays."""

    def __init__(self, *, loss: float, jitter_s: float, seed: int) -> None:
        self._loss, self._jitter_s, self._random = loss, jitter_s, random.Random(seed)
        self._server: tuple[str, int] | None = None
        self._caller: tuple[str, int] | None = None
        self.is_bad = False
        self.lost = 0

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._near, _ = await loop.create_datagram_endpoint(lambda: _Side(self._from_caller), local_addr=(HERE, 0))
        self._far, _ = await loop.create_datagram_endpoint(lambda: _Side(self._from_server), local_addr=(HERE, 0))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._near.close()
        self._far.close()

    def stand_between(self, answer: str) -> str:
        """The answer with our address in place of the server's."""
        found = re.search(r"a=candidate:\S+ 1 udp \d+ 127\.0\.0\.1 (\d+) typ host", answer)
        assert found is not None
        self._server = HERE, int(found[1])
        port = self._near.get_extra_info("sockname")[1]
        first = True

        def ours(match: re.Match[str]) -> str:
            nonlocal first
            line = f"a=candidate:relay 1 udp 2130706431 {HERE} {port} typ host\r\n" if first else ""
            first = False
            return line

        return re.sub(r"a=candidate:.*\r\n", ours, answer)

    def _from_caller(self, data: bytes, where: Any) -> None:
        self._caller = where
        if self._server is not None:
            self._pass(self._far, data, self._server)

    def _from_server(self, data: bytes, _where: Any) -> None:
        if self._caller is not None:
            self._pass(self._near, data, self._caller)

    def _pass(self, out: Any, data: bytes, where: tuple[str, int]) -> None:
        if not self.is_bad:
            out.sendto(data, where)
        elif self._random.random() < self._loss:
            self.lost += 1
        else:
            asyncio.get_running_loop().call_later(self._random.uniform(0, self._jitter_s), _send, out, data, where)


def _send(out: Any, data: bytes, where: tuple[str, int]) -> None:
    if not out.is_closing():
        out.sendto(data, where)


class _Side(asyncio.DatagramProtocol):
    def __init__(self, take: Any) -> None:
        self._take = take

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._take(data, addr)
