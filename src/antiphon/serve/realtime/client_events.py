"""A message of the client's in, an event out: JSON, an object, a known type, nothing that later trips us up.

Pure. What it does not know: what the events do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NoReturn

from antiphon.serve.realtime.errors import RefusedError
from antiphon.serve.realtime.fields import Fields

MOST_MESSAGE_BYTES = 21 * 2**20  # 15 MiB of sound in base64, and room for the rest
MOST_LEVELS = 48  # of arrays and objects inside each other

KINDS = (
    "session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "conversation.item.create",
    "conversation.item.delete",
    "conversation.item.retrieve",
    "conversation.item.truncate",
    "response.create",
    "response.cancel",
    "output_audio_buffer.clear",
)


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """What a client wants."""

    kind: str
    fields: Fields
    event_id: str | None  # the client's own, for errors about it


def read_object(message: str | bytes) -> dict[str, object]:
    """The JSON object that a message holds.

    Raises:
        RefusedError: it is too long, no JSON, no object, too deep, or holds text that cannot be written again.
    """
    if len(message) > MOST_MESSAGE_BYTES:
        raise RefusedError(
            f"the message has {len(message)} bytes, {MOST_MESSAGE_BYTES} are possible", code="message_too_large"
        )
    try:
        value = json.loads(message, parse_constant=_no_constant)
    except RecursionError:
        raise RefusedError("the message is nested too deeply", code="invalid_json") from None
    except ValueError:  # JSON, UTF-8 and numbers beyond all measure; the text itself may be private
        raise RefusedError("the message is not valid JSON", code="invalid_json") from None
    if not isinstance(value, dict):
        raise RefusedError("the message is not a JSON object", code="invalid_json")
    _check_inside(value)
    return value


def event_id_of(values: dict[str, object]) -> str | None:
    """The client's own name for an event, whatever else is wrong with the event."""
    value = values.get("event_id")
    return value if isinstance(value, str) and len(value) <= 512 else None


def read_event(values: dict[str, object]) -> ClientEvent:
    """The event that an object is.

    Raises:
        RefusedError: its type is missing or unknown, or its id is no string.
    """
    fields = Fields(values)
    fields.require("type")
    kind = fields.choice("type", *KINDS)
    assert kind is not None
    fields.text("event_id", most_chars=512)
    return ClientEvent(kind, fields, event_id_of(values))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _check_inside(value: object) -> None:
    """No level too deep, and no half of a surrogate pair: it could not be sent back."""
    level: list[object] = [value]
    for _ in range(MOST_LEVELS):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.keys()
                inner += one.values()
            elif isinstance(one, list):
                inner += one
            elif isinstance(one, str) and not one.isascii():
                _check_text(one)
        if not inner:
            return
        level = inner
    raise RefusedError(f"the message is nested more than {MOST_LEVELS} levels deep", code="invalid_json")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RefusedError("the message holds half of a surrogate pair", code="invalid_json") from None
