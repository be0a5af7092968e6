"""A scripted server and the engine for it, for tests in virtual time."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from tests.think.chat_server_double import (
    MODELS,
    Act,
    Asked,
    NoNetwork,
)
from tests.virtual_time import run

from antiphon.core.errors import PeerError
from antiphon.core.flow import Message, ToolSpec
from antiphon.think.chat_server import ChatServer
from antiphon.think.chat_settings import ChatServerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.think.language_model import Written

SECRET = "my card number is four two four two"
ASK = (Message("system", "Be brief."), Message("user", SECRET))
ROOM = ToolSpec(name="book_room", description="Books.", parameters={"type": "object", "properties": {}})
OWN, HOSTED = "http://box:8000/v1", "https://llm.example.com/v1"
KEY = "sk-hunter2"


def scripted(*turns: Sequence[bytes | float | Act]) -> NoNetwork:
    """A server that answers the first request for a reply by the first turn, and so on; the last again and again."""
    left = list(turns)

    def script(asked: Asked) -> Sequence[bytes | float | Act]:
        if asked.path.endswith("/models"):
            return MODELS
        return left.pop(0) if len(left) > 1 else left[0]

    return NoNetwork(script)


def chat(server: NoNetwork, address: str = OWN, **settings: object) -> ChatServer:
    return ChatServer.load(address, settings=ChatServerSettings(**settings), transport=server)


async def written(model: ChatServer, messages=ASK, *, max_tokens: int = 50, **tools: object) -> list[Written]:
    async with aclosing(model.open().write(messages, max_tokens=max_tokens, **tools)) as pieces:
        return [piece async for piece in pieces]


def read(server: NoNetwork, address: str = OWN, *, tools: Sequence[ToolSpec] = (), **settings: object) -> list[Written]:
    return run(written(chat(server, address, **settings), tools=tools))


def refused(server: NoNetwork, address: str = OWN, **settings: object) -> PeerError:
    with pytest.raises(PeerError) as caught:
        read(server, address, **settings)
    assert SECRET not in str(caught.value)
    assert KEY not in str(caught.value)
    return caught.value


def posts(server: NoNetwork) -> list[Asked]:
    return [asked for asked in server.asked if asked.method == "POST"]
