"""A request's headers in -> who asks, or why they are turned away; which web pages may ask at all.

A key comes as `Authorization: Bearer KEY`, or, from a browser, which can set no header, as the subprotocol
`openai-insecure-api-key.KEY`. Keys are held and compared as digests, all of them each time, so that the time taken
tells nothing. Threads: the event loop. It does not know what a key allows beyond coming in.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from antiphon.serve_settings import ServeSettings

SUBPROTOCOL = "realtime"
KEY_SUBPROTOCOL = "openai-insecure-api-key."
LONGEST_KEY = 512  # characters; nothing longer was given out


@dataclass(frozen=True, slots=True)
class Presented:
    """The key that came with a request; empty: none."""

    key: str
    by_browser: bool = False  # as a subprotocol, by a page that can see no HTTP status


def presented(headers: Mapping[str, str], subprotocols: Iterable[str] = ()) -> Presented:
    """The key of a request; a header goes before a subprotocol."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return Presented(key.strip())
    for name in subprotocols:
        if name.startswith(KEY_SUBPROTOCOL):
            return Presented(name.removeprefix(KEY_SUBPROTOCOL), by_browser=True)
    return Presented("")


class Keys:
    """The keys that let a client in; without any, everybody may come."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = tuple(digest(key) for key in keys)

    @property
    def are_needed(self) -> bool:
        return bool(self._digests)

    def know(self, key: str) -> bool:
        """Whether this is one of them."""
        if not key or len(key) > LONGEST_KEY:
            return False
        asked = digest(key)
        matches = [hmac.compare_digest(asked, known) for known in self._digests]
        return any(matches)


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


class Origins:
    """Which web pages may connect: those that are listed, and those that this server's own address serves.

    Without keys an own page is believed only under a name of this machine itself: any other name may have been
    pointed here by a page that wants in.
    """

    def __init__(self, listed: Sequence[str], *, keys_are_needed: bool) -> None:
        self._listed = frozenset(origin.rstrip("/").lower() for origin in listed)
        self._keys_are_needed = keys_are_needed

    def allow(self, origin: str | None, host: str) -> bool:
        """Whether a page of `origin` may connect to `host`, both as the headers say; no origin: no browser asks."""
        if origin is None or "*" in self._listed or origin.rstrip("/").lower() in self._listed:
            return True
        try:
            page = urlsplit(origin)
            name = page.hostname or ""
        except ValueError:
            return False
        is_own = bool(name) and page.netloc.lower() == host.lower()
        return is_own and (self._keys_are_needed or is_loopback_name(name))


def is_loopback_name(host: str) -> bool:
    """Whether this names the machine itself, without asking anybody."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def refuse_open_door(settings: ServeSettings) -> None:
    """Nobody listens to other machines without keys by accident.

    Raises:
        CallerError: the address is not this machine's own, and neither keys nor `allow_anyone` are set.
    """
    if settings.keys or settings.allow_anyone or _is_loopback(settings.host):
        return
    raise CallerError(
        f"{settings.host or 'every address'} can be reached from other machines, and no key is set",
        hint="set ANTIPHON_SERVE_KEYS, listen on 127.0.0.1, or pass --allow-anyone",
    )


def _is_loopback(host: str) -> bool:
    """A name counts as what it resolves to."""
    if not host or is_loopback_name(host):
        return bool(host)
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return False
    return bool(found) and all(is_loopback_name(str(address[0]).partition("%")[0]) for *_, address in found)
