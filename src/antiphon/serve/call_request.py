"""The body of a request for a call -> the client's offer, and the session that it asks for.

It comes as `application/sdp`, or as a form of `sdp` and `session`, the latter JSON. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.serve.client_secrets import read_request

if TYPE_CHECKING:
    from collections.abc import Mapping

SDP = "application/sdp"
FORM = "multipart/form-data"
LARGEST_SDP_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What a client wants to begin a call with."""

    sdp: str
    session: Mapping[str, object] = field(default_factory=dict)  # its configuration; empty: as usual


def read_call(content_type: str, body: bytes) -> CallRequest:
    """What the body holds.

    Raises:
        CallerError: it is of another type, or a field is missing, too long, or wrong; the message names it.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == SDP:
        return CallRequest(_text("sdp", body))
    if kind != FORM:
        hint = f"send the offer as {SDP}, or a form of sdp and session as {FORM}"
        raise CallerError(f"content-type is {kind[:60] or 'missing'}", hint=hint)
    parts = _parts(content_type, body)
    if "sdp" not in parts:
        raise CallerError("the form has no sdp", hint="put what createOffer made into a field of that name")
    session: object = {}
    if "session" in parts:
        try:
            session = json.loads(parts["session"])
        except (ValueError, RecursionError) as error:
            raise CallerError("session is not JSON", hint='send {"type": "realtime"}, or leave it out') from error
    return CallRequest(_text("sdp", parts["sdp"]), read_request({"session": session})[0])


def _parts(content_type: str, body: bytes) -> dict[str, bytes]:
    """A form's fields by name."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    if not message.is_multipart():
        raise CallerError("the form cannot be read", hint="let your HTTP client set the boundary in content-type")
    found: dict[str, bytes] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            found.setdefault(name, content)
    return found


def _text(name: str, value: bytes) -> str:
    if len(value) > LARGEST_SDP_BYTES:
        raise CallerError(f"{name} has {len(value)} bytes", hint=f"{LARGEST_SDP_BYTES} are possible")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CallerError(f"{name} is not UTF-8", hint="send it as text") from error
