"""What was said, as the language model reads it: the caller's words, and of ours only what was heard."""

from __future__ import annotations

from typing import Literal, TypeAlias

from antiphon.core.flow import Message

History: TypeAlias = tuple[Message, ...]

LONGEST = 200  # messages kept; the language model's context is far smaller, this bounds memory alone


def said(history: History, role: Literal["user", "assistant"], text: str) -> History:
    """`history` with one more message; nothing said is no message. The oldest go when it gets too long."""
    text = text.strip()
    if not text:
        return history
    return (*history, Message(role, text))[-LONGEST:]


def prompt(instructions: str, history: History, words: str = "") -> tuple[Message, ...]:
    """The messages for the language model, `words` being what the caller says now.

    Consecutive user messages, as a turn leaves them that went on after it had seemed to be over, become one.
    """
    messages: list[Message] = [Message("system", instructions)] if instructions.strip() else []
    for message in said(history, "user", words):
        if messages and message.role == "user" == messages[-1].role:
            messages[-1] = Message("user", f"{messages[-1].text} {message.text}")
        else:
            messages.append(message)
    return tuple(messages)


def unanswered(history: History) -> bool:
    """Whether the caller said something last."""
    return bool(history) and history[-1].role == "user"
