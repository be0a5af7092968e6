"""What the protocol's own client library makes of an event: its types, read strictly."""

from __future__ import annotations

import typing

from openai.types.realtime import realtime_client_event, realtime_server_event

from antiphon.serve.realtime.extras import JUDGED_EVENT, UNHEARD_EVENT
from antiphon.serve.realtime.timeline import EVENT

if typing.TYPE_CHECKING:
    from pydantic import BaseModel


def _by_type(union: object) -> dict[str, type[BaseModel]]:
    inner = typing.get_args(union)[0]
    return {typing.get_args(model.model_fields["type"].annotation)[0]: model for model in typing.get_args(inner)}


SERVER_EVENTS = _by_type(realtime_server_event.RealtimeServerEvent)
CLIENT_EVENTS = _by_type(realtime_client_event.RealtimeClientEvent)


def check(event: dict[str, object]) -> None:
    """Raises ValidationError unless the event is one that a strict client takes.

    Ours are the rates beyond 24 kHz, and what a client has asked for by a session's `include`.
    """
    if event["type"] in (EVENT, JUDGED_EVENT, UNHEARD_EVENT):
        return
    SERVER_EVENTS[typing.cast("str", event["type"])].model_validate(_standard(event), strict=True)


def _standard(value: object) -> object:
    if isinstance(value, dict):
        if value.get("type") == "audio/pcm":
            return {**value, "rate": 24_000}
        return {key: _standard(inner) for key, inner in value.items() if key != "include"}
    if isinstance(value, list):
        return [_standard(inner) for inner in value]
    return value
