"""The page's files, which ship with the package -> answers with the headers that keep a page safe.

They are read once, when the server starts: there are a few dozen of them, 200 KB in all. Nothing in them is secret and
none is made on request, so they are served to anybody. Threads: the event loop.
What it does not know: what the page does.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self' blob:; "
    "worker-src 'self'; connect-src 'self'; "  # the WebSocket of the same host, too
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types antiphon"  # text is only ever set as text; one worker is known
)
HEADERS = {
    "cache-control": "no-cache",  # asked for again each time, and answered with 304 unless the server was upgraded
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "microphone=(self), camera=(), geolocation=()",
}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    kind: str
    tag: str


class WebFiles:
    """Of one server."""

    def __init__(self) -> None:
        self._files = dict(_read(resources.files("antiphon.serve") / "web", ""))

    @property
    def names(self) -> tuple[str, ...]:
        """All there are, as paths below the folder."""
        return tuple(self._files)

    def answer(self, request: Request, name: str) -> Response:
        """The file of that name, 304 if the browser has it, 404 if there is none."""
        file = self._files.get(name)
        if file is None:
            return Response("there is no such file\n", status_code=404, media_type="text/plain")
        headers = {**HEADERS, "etag": file.tag, "content-type": file.kind}
        if file.kind.startswith("text/html"):
            headers |= PAGE_HEADERS
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers=headers)


def _read(folder: Traversable, prefix: str) -> list[tuple[str, _File]]:
    found: list[tuple[str, _File]] = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _read(entry, f"{name}/")
        elif (kind := TYPES.get(name[name.rfind(".") :])) is not None:
            body = entry.read_bytes()
            found.append((name, _File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:20]}"')))
    return found
