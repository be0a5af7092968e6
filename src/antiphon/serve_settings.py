"""How the server is reached and how much it lets a client do, as values that a user may change.

Below `config`, which nests it, and apart from `serve`, so that reading settings loads no web framework.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Annotated

from antiphon.core.errors import CallerError, check_range

_PORTS = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?")
_HOST = r"[A-Za-z0-9._-]+(:(?P<port>[0-9]{1,5}))?"
_STUN = re.compile(f"stun:{_HOST}")
_TURN = re.compile(rf"turn(?P<tls>s)?:{_HOST}(\?transport=(tcp|(?(tls)tcp|udp)))?")
SHORTEST_KEY = 8  # characters; whoever sets "x" has not set a key


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What `antiphon serve` listens on, whom it lets in, and for how long.

    Raises:
        CallerError: a value is out of its range, or a key cannot be sent in a header.
    """

    host: Annotated[str, "address to listen on"] = "127.0.0.1"
    port: Annotated[int, "to listen on; 0: any that is free"] = 8000
    keys: Annotated[tuple[str, ...], "secret: any of these lets a client in; none: no key is asked for"] = field(
        default=(), repr=False
    )
    allow_anyone: Annotated[bool, "listen on other machines' behalf without keys"] = False
    origins: Annotated[tuple[str, ...], "web pages that may connect, as https://example.org; *: all"] = ()
    certfile: Annotated[str, "the certificate chain, PEM; empty: no TLS"] = ""
    keyfile: Annotated[str, "its private key, PEM; empty: it is in the certificate's file"] = ""
    message_bytes: Annotated[int, "of one client message; 15 MiB of sound as base64 and what is around it"] = 21 * 2**20
    longest_session_s: Annotated[float, "a session is ended after; clients are told when"] = 3600.0
    idle_s: Annotated[float, "a session is ended after so long without a message of its client"] = 600.0
    send_queue_events: Annotated[int, "that wait for a slow client; more end its session"] = 6000
    send_queue_bytes: Annotated[int, "that wait for a slow client; more end its session"] = 8 * 2**20
    ping_s: Annotated[float, "between two pings, and until a client that answers none counts as gone"] = 20.0
    drain_s: Annotated[float, "for replies to end after SIGTERM; after Ctrl-C two seconds at most"] = 10.0
    client_secrets: Annotated[int, "short-lived ones that are valid at once; more are refused"] = 1000
    webrtc_ports: Annotated[str, "UDP ports of calls by WebRTC, as 40000-40099; empty: any that are free"] = ""
    webrtc_address: Annotated[str, "the server's own from outside, where it stands behind a NAT"] = ""
    webrtc_stun: Annotated[str, "a STUN server, as stun:example.org:3478; empty: none is asked"] = ""
    webrtc_turn: Annotated[str, "a TURN server, as turn:example.org:3478?transport=udp; empty: none"] = ""
    webrtc_turn_username: Annotated[str, "at the TURN server"] = ""
    webrtc_turn_password: Annotated[str, "secret: at the TURN server"] = field(default="", repr=False)
    webrtc_turn_secret: Annotated[str, "secret: shared with the TURN server, which callers may then use too"] = field(
        default="", repr=False
    )
    stall_ms: Annotated[int, "the event loop held for longer is logged with what held it"] = 50

    def __post_init__(self) -> None:
        check_range("port", self.port, 0, 65535)
        check_range("message_bytes", self.message_bytes, 1024, 2**28)
        check_range("longest_session_s", self.longest_session_s, 0.1, 86_400)
        check_range("idle_s", self.idle_s, 0.1, 86_400)
        check_range("send_queue_events", self.send_queue_events, 10, 100_000)
        check_range("send_queue_bytes", self.send_queue_bytes, 2**16, 2**30)
        check_range("ping_s", self.ping_s, 0.1, 600)
        check_range("drain_s", self.drain_s, 0, 600)
        check_range("client_secrets", self.client_secrets, 1, 100_000)
        check_range("stall_ms", self.stall_ms, 5, 10_000)
        _check_server("webrtc_stun", self.webrtc_stun, _STUN, "stun:HOST:PORT")
        _check_server("webrtc_turn", self.webrtc_turn, _TURN, "turn:HOST:PORT?transport=udp")
        self._check_relay()
        _check_address("webrtc_address", self.webrtc_address)
        assert self.ports_of_calls
        for key in self.keys:
            _check_key(key)
        if self.keyfile and not self.certfile:
            raise CallerError("keyfile is given without certfile", hint="name the certificate's file too")

    def _check_relay(self) -> None:
        named = self.webrtc_turn_username or self.webrtc_turn_password
        if self.webrtc_turn_secret and named:
            hint = "a shared secret makes names and passwords; leave webrtc_turn_username and its password out"
            raise CallerError("webrtc_turn_secret is given beside a name or a password", hint=hint)
        if (self.webrtc_turn_secret or named) and not self.webrtc_turn:
            raise CallerError("webrtc_turn is empty, but its secret or name is given", hint="name the server too")

    @property
    def ports_of_calls(self) -> range:
        """What `webrtc_ports` names; 0 alone where any will do.

        Raises:
            CallerError: it is no range of ports.
        """
        if not self.webrtc_ports:
            return range(1)
        first, _, last = self.webrtc_ports.partition("-")
        ports = range(int(first), int(last or first) + 1) if _PORTS.fullmatch(self.webrtc_ports) else range(0)
        if not ports or ports[0] < 1 or ports[-1] > 65_535:
            hint = "name two ports from 1 to 65535, as 40000-40099; a call takes one on each of the machine's addresses"
            raise CallerError(f"webrtc_ports is {self.webrtc_ports}", hint=hint)
        return ports


def _check_server(name: str, value: str, known: re.Pattern[str], example: str) -> None:
    found = known.fullmatch(value)
    if value and (found is None or not 0 < int(found["port"] or 1) <= 65_535):
        raise CallerError(f"{name} is {value}", hint=f"write it as {example}")


def _check_address(name: str, value: str) -> None:
    """An address, for clients look no name up that stands in an answer."""
    try:
        ipaddress.ip_address(value or "127.0.0.1")
    except ValueError as error:
        raise CallerError(f"{name} is {value}", hint="give the address itself, as 203.0.113.7") from error


def _check_key(key: str) -> None:
    """Raises CallerError without showing the key."""
    if len(key) < SHORTEST_KEY:
        raise CallerError(f"one of keys has {len(key)} characters", hint=f"use at least {SHORTEST_KEY}")
    if not key.isascii() or not key.isprintable() or set(key) & set(' ,"'):
        raise CallerError("one of keys holds characters that cannot be sent", hint="use letters, digits, - and _")
