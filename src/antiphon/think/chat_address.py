"""The URL of a language model's server in -> its base address, and whether it is one of our own, out.

Threads: pure. Nothing is looked up: a name without a dot, or under a domain that no public one can be, is taken
for a machine of our own, as is an address that the internet does not route.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from antiphon.core.errors import CallerError

OPENAI_HOST = "api.openai.com"
_EXAMPLE = "write it as http://host:8000/v1"
_CALL = "/chat/completions"  # what is appended to the base; people paste it along with it
_OWN_DOMAINS = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc", ".test")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a server is; holds no credentials, so that messages may show it."""

    base: str  # without a slash at its end
    host: str
    is_own: bool  # on this machine or in this network, so that a request costs nothing but its work
    is_secure: bool


def is_address(text: str) -> bool:
    """Whether `text` means a server, rather than a model's name or a file."""
    return text.strip().lower().startswith(("http://", "https://"))


def read_address(text: str) -> ServerAddress:
    """The server that `text` means; a missing path becomes /v1, where nearly all of them are.

    Raises:
        CallerError: it is no address, or holds something that is not part of one.
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise CallerError("the language model's address has no valid host and port", hint=_EXAMPLE) from error
    if "@" in parts.netloc:
        raise CallerError(
            "the language model's address holds a user or a password",
            hint="take it out and set ANTIPHON_CHAT_SERVER_API_KEY",
        )
    if parts.query or parts.fragment:
        raise CallerError(
            "the language model's address goes on behind a ? or #",
            hint=f"{_EXAMPLE}; what each request is to contain goes into chat_server.extra",
        )
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in {"http", "https"} or not host or any(mark.isspace() for mark in parts.netloc + parts.path):
        raise CallerError("the language model's address names no host", hint=_EXAMPLE)
    path = parts.path.rstrip("/").removesuffix(_CALL).rstrip("/") or "/v1"
    shown = f"[{host}]" if ":" in host else host
    return ServerAddress(
        base=f"{parts.scheme}://{shown}{f':{port}' if port else ''}{path}",
        host=host,
        is_own=_is_own(host),
        is_secure=parts.scheme == "https",
    )


def _is_own(host: str) -> bool:
    try:
        return not ip_address(host.partition("%")[0]).is_global
    except ValueError:
        return "." not in host or host.endswith(_OWN_DOMAINS)
