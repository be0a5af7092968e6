"""What came of a tool in, what a model reads of it or the caller hears of it out. Threads: pure.

A model of 135 million parameters cannot answer with a fact that it has just been shown: of ten results in eight ways
of showing them, at best five came out right, and the others were replaced by something invented. For such models the
result itself is the reply, so a tool should return what can be said: "4 euros 80", not {"price": 4.8}.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from antiphon.core.flow import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILED = "Sorry, that did not work."
_ERROR = "error:"  # how the text of a call begins that came to nothing
_FINAL_MARKS = ".!?\u3002\uff01\uff1f"
_LONGEST_CHARS = 600  # of what is said; three quarters of a minute


def told_as_text(messages: Sequence[Message]) -> list[Message]:
    """`messages` for a model without a role for tools: what a tool found stands behind the caller's words."""
    told = []
    for message in messages:
        if message.role == "tool":
            name = message.call.name.replace("_", " ") if message.call else "result"
            told.append(Message("user", f"({name}: {message.text})"))
        elif message.call is None:
            told.append(message)
    return told


def said_result(text: str) -> str:
    """A tool's result as it is said: text as it is, JSON as names and values, a failure without its reason."""
    if text.startswith(_ERROR):
        return FAILED
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    words = " ".join(_words(value).split())[:_LONGEST_CHARS].strip()
    if not words:
        return "Done."
    words = words[0].upper() + words[1:]
    return words if words[-1] in _FINAL_MARKS else f"{words}."


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{str(name).replace('_', ' ')}: {_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else str(value)
