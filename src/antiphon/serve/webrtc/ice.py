"""Which addresses and ports a call can be reached at: set on a connection of aioice before it gathers them.

aioice binds every address but the machine's own and lets the system choose ports; here the machine's own counts too,
and the ports may be kept to a range, as firewalls want it.
Threads: the event loop.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioice.candidate import Candidate, candidate_foundation, candidate_priority
from aioice.ice import Connection, StunProtocol, server_reflexive_candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOPBACK = "127.0.0.1"
ASKED_S = 2  # that a STUN or TURN server may take; a call is answered without it then, for its client waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How calls reach this server."""

    ports: range = range(1)  # UDP; the system chooses where it holds but 0
    public_address: str = ""  # under which the same ports are reached from outside
    stun: str = ""
    turn: str = ""
    turn_username: str = ""
    turn_password: str = ""


class Gathering:
    """Of one connection; takes the place of its `get_component_candidates`."""

    def __init__(self, connection: Connection, ports: range) -> None:
        self._connection = connection
        self._ports = ports
        self._others = connection.get_component_candidates  # for what is not on a port of ours

    async def candidates(self, component: int, addresses: Sequence[str], timeout: int = ASKED_S) -> list[Candidate]:  # noqa: ASYNC109 - aioice's signature
        """Bind a port on each address, ask the STUN server about it, and the TURN server for a relay."""
        protocols = [
            protocol
            for address in dict.fromkeys([*addresses, LOOPBACK])
            if (protocol := await self._bind(component, address)) is not None
        ]
        self._connection._protocols += protocols  # noqa: SLF001 - where aioice looks for them, and closes them
        found: list[Candidate] = [protocol.local_candidate for protocol in protocols]
        asked = await asyncio.gather(self._reflexive(protocols, timeout), self._others(component, [], timeout))
        return found + [candidate for some in asked for candidate in some]

    async def _bind(self, component: int, address: str) -> StunProtocol | None:
        loop = asyncio.get_running_loop()
        for port in random.sample(self._ports, len(self._ports)):
            try:
                transport, protocol = await loop.create_datagram_endpoint(
                    lambda: StunProtocol(self._connection), local_addr=(address, port)
                )
            except OSError:  # taken, or the address is gone
                continue
            host, bound = transport.get_extra_info("sockname")[:2]
            protocol.local_candidate = Candidate(
                foundation=candidate_foundation("host", "udp", host),
                component=component,
                transport="udp",
                priority=candidate_priority(component, "host"),
                host=host,
                port=bound,
                type="host",
            )
            return protocol
        return None

    async def _reflexive(self, protocols: list[StunProtocol], limit_s: int) -> list[Candidate]:
        if self._connection.stun_server is None:
            return []
        asked = [p for p in protocols if ":" not in p.local_candidate.host and p.local_candidate.host != LOOPBACK]
        answers = await asyncio.gather(
            *(asyncio.wait_for(server_reflexive_candidate(p, self._connection.stun_server), limit_s) for p in asked),
            return_exceptions=True,
        )
        return [answer[0] for answer in answers if not isinstance(answer, BaseException)]


def with_public(sdp: str, public_address: str) -> str:
    """The description with every address of ours offered under the public one as well."""
    lines = []
    for line in sdp.splitlines():
        lines.append(line)
        words = line.split(" ")
        if public_address and line.startswith("a=candidate:") and words[7] == "host" and ":" not in words[4]:
            outside = [f"{words[0]}9", *words[1:3], str(int(words[3]) - 1), public_address, *words[5:]]
            if words[4] != LOOPBACK:
                lines.append(" ".join(outside))
    return "\r\n".join(lines) + "\r\n"
