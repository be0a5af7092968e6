"""A key's holder asks for a short-lived secret -> a browser uses it in the key's place, with the session asked for.

Bounded: so many are valid at once, and a further one is refused until one expires. Only digests are kept.
Units: `expires_at_s` is epoch seconds, as the protocol has it. Threads: the event loop.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from antiphon.core.errors import CallerError, MachineError, check_range
from antiphon.serve.keys import digest

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX = "ek_"
USUAL_S = 600
SHORTEST_S, LONGEST_S = 10, 7200


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a secret allows."""

    expires_at_s: int
    session: dict[str, object]  # what the conversation begins with; empty: as usual


class ClientSecrets:
    """The secrets that are valid now; each lets in any number of conversations until it expires."""

    def __init__(self, most: int, *, now_s: Callable[[], float]) -> None:
        self._most = most
        self._now_s = now_s
        self._grants: OrderedDict[bytes, Grant] = OrderedDict()

    def make(self, session: dict[str, object], *, seconds: int = USUAL_S) -> tuple[str, Grant]:
        """A new secret and what it allows.

        Raises:
            CallerError: `seconds` is out of its range.
            MachineError: as many secrets as may be are valid.
        """
        check_range("expires_after.seconds", seconds, SHORTEST_S, LONGEST_S)
        self._forget_expired()
        if len(self._grants) >= self._most:
            raise MachineError(
                f"{self._most} client secrets are valid, which is all that may be",
                hint="ask for shorter ones, or raise serve.client_secrets",
                retryable=True,
            )
        value = PREFIX + secrets.token_urlsafe(32)
        grant = Grant(expires_at_s=int(self._now_s()) + seconds, session=session)
        self._grants[digest(value)] = grant
        return value, grant

    def find(self, value: str) -> Grant | None:
        """What this secret allows; None: nothing, or no more."""
        if not value.startswith(PREFIX):
            return None
        grant = self._grants.get(digest(value))  # looked up by digest: its timing tells nothing of the secret
        return grant if grant is not None and grant.expires_at_s > self._now_s() else None

    def __len__(self) -> int:
        return len(self._grants)

    def _forget_expired(self) -> None:
        now_s = self._now_s()
        for key in [key for key, grant in self._grants.items() if grant.expires_at_s <= now_s]:
            del self._grants[key]


def read_request(body: object) -> tuple[dict[str, object], int]:
    """The session and the seconds that a request for a secret names.

    Raises:
        CallerError: a field has a wrong type or value; the message names the field.
    """
    if not _is_object(body):
        raise CallerError("the body is not a JSON object", hint='send {"session": {"type": "realtime"}}, or {}')
    session = body.get("session")
    session = {} if session is None else session
    if not _is_object(session):
        raise CallerError("session is not an object", hint='send "session": {"type": "realtime"}')
    if session.get("type", "realtime") != "realtime":
        raise CallerError("session.type is not realtime", hint="only realtime sessions are held here")
    after = body.get("expires_after")
    after = {} if after is None else after
    if not _is_object(after):
        raise CallerError("expires_after is not an object", hint='send {"anchor": "created_at", "seconds": 600}')
    if after.get("anchor", "created_at") != "created_at":
        raise CallerError("expires_after.anchor is not created_at", hint="it is the only one there is")
    seconds = after.get("seconds", USUAL_S)
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise CallerError("expires_after.seconds is not a whole number", hint=f"from {SHORTEST_S} to {LONGEST_S}")
    return session, seconds


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)
