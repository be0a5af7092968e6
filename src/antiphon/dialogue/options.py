"""What may be particular to one reply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """What is particular to one reply; None is as the conversation has it."""

    instructions: str | None = None
    tools: tuple[str, ...] | None = None  # by name
    tool_choice: str = "auto"  # as think/language_model.py has it
    max_tokens: int | None = None
    is_text: bool = False  # it is written only, and not voiced
    label: str = ""  # the owner's own name for it


AS_USUAL = ReplyOptions()
