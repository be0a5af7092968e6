"""docs/realtime.md lists every field of the protocol's types and none that there is not."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest
from openai.types import realtime
from openai.types.realtime import (
    RealtimeConversationItemAssistantMessage,
    RealtimeConversationItemFunctionCall,
    RealtimeConversationItemFunctionCallOutput,
    RealtimeConversationItemSystemMessage,
    RealtimeConversationItemUserMessage,
    realtime_response_create_params,
    realtime_session_create_request,
)
from pydantic import BaseModel

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.unit

DOCS = Path(__file__).parents[3] / "docs" / "realtime.md"
ITEMS = (
    RealtimeConversationItemUserMessage,
    RealtimeConversationItemSystemMessage,
    RealtimeConversationItemAssistantMessage,
    RealtimeConversationItemFunctionCall,
    RealtimeConversationItemFunctionCallOutput,
)
LISTS = {
    "Session": (realtime_session_create_request.RealtimeSessionCreateRequest,),
    "Response": (realtime_response_create_params.RealtimeResponseCreateParams,),
    "Items": ITEMS,
}


def paths(model: type[BaseModel], before: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{before}{name}"
        for inner in models_in(field.annotation):
            yield from paths(inner, f"{before}{name}.")


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from models_in(inner)


def listed(heading: str) -> dict[str, str]:
    """The fields of a table, and what becomes of each."""
    section = DOCS.read_text(encoding="utf-8").split(f"### {heading}\n")[1].split("\n#")[0]
    rows = [row.split("|") for row in section.splitlines() if row.startswith("| `")]
    return {name: row[2].strip() for row in rows for name in re.findall(r"`([^`]+)`", row[1])}


def stands_for(name: str, path: str) -> bool:
    return name == path or (name.endswith(".*") and path.startswith(name[:-1]))


@pytest.mark.parametrize("heading", LISTS)
def test_every_field_is_listed_and_no_other(heading: str) -> None:
    fields = listed(heading)
    every = {path for model in LISTS[heading] for path in paths(model)}
    assert [path for path in sorted(every) if not any(stands_for(name, path) for name in fields)] == []
    assert [name for name in fields if not any(stands_for(name, path) for path in every)] == []
    assert set(fields.values()) <= {"effective", "echoed", "refused"}


def test_every_item_model_is_one_that_the_protocol_has() -> None:
    assert all(getattr(realtime, model.__name__) is model for model in ITEMS)
