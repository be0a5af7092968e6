"""A language model's server that plays the barista: what it answers depends on the last message alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.think.chat_server_double import MODELS, delta, event, parrot, reply, said

if TYPE_CHECKING:
    from tests.think.chat_server_double import Act, Asked

GREETING = "Welcome."
LONG = (
    "A triple shot cappuccino is the strongest drink that we make here. The beans come from a small farm in the hills. "
    "We roast them on Monday morning, and we grind them when you order. The milk is warmed until it is sweet. "
    "The sugar stands on the counter beside the door. Please take as much of it as you like."
)
SHORT = "Skim milk it is."
CALL = {"index": 0, "id": "call-1", "function": {"name": "look_up_price", "arguments": '{"drink": "cappuccino"}'}}


def answer(asked: Asked) -> list[bytes | float | Act]:
    """Greets, talks at length about the triple shot, and is short about all else; uses its tool if it has one."""
    if asked.path.endswith("/models") or asked.body.get("continue_final_message"):
        return MODELS if asked.path.endswith("/models") else parrot(asked)
    messages = asked.body["messages"]
    assert isinstance(messages, list)
    text = str(messages[-1]["content"])
    if messages[-1]["role"] == "tool":
        return reply(*said(*_words(text)))
    if "cappuccino" not in text:
        return reply(*said(*_words(GREETING)))
    if asked.body.get("tools") and asked.body.get("tool_choice") != "none":
        return reply(event(delta(tool_calls=[CALL])), *said(finish="tool_calls"))
    return reply(*said(*_words(LONG if "triple" in text else SHORT)))


def _words(text: str) -> list[str]:
    return [f"{' ' if index else ''}{word}" for index, word in enumerate(text.split(" "))]
