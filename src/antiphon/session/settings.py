"""How one conversation is held.

All of it but FIXED may change in the middle of one (`Session.configure`). What is under way goes on as it was begun: a
reply is paced and a text of it is cut as when it began, and a turn that is listened to keeps its vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.dialogue.options import AS_USUAL, ReplyOptions
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.state import ToolRule
from antiphon.hear.segmenter import SegmenterSettings
from antiphon.think.chunker import ChunkerSettings
from antiphon.think.spoken_form import SpokenFormSettings

if TYPE_CHECKING:
    from antiphon.act.tool import Tool
    from antiphon.core.flow import ToolSpec
    from antiphon.dialogue.turn_end import TurnEndModel

FIXED = {  # what cannot change, and why
    "tools": "they are known to the language model and may be running",
    "greeting": "it was said when the conversation began",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What is particular to one conversation."""

    turn_end: TurnEndModel
    instructions: str = ""
    vocabulary: tuple[str, ...] = ()  # words and phrases that the caller is likely to use
    turn: TurnSettings = field(default_factory=TurnSettings)
    ear: SegmenterSettings = field(default_factory=SegmenterSettings)
    chunker: ChunkerSettings = field(default_factory=ChunkerSettings)
    spoken_form: SpokenFormSettings = field(default_factory=SpokenFormSettings)
    max_tokens: int = 96  # of one reply
    tools: tuple[Tool, ...] = ()
    owner_tools: tuple[ToolSpec, ...] = ()  # that whoever reads the events runs
    greeting: str = ""  # said as soon as the conversation begins
    interruptible: bool = True  # what replies are, the greeting among them
    by_hand: bool = False  # the owner says when a turn is over
    answers: bool = True  # a turn that is over is answered without being asked to
    usual: ReplyOptions = AS_USUAL  # of replies that nobody asks for in particular
    is_paced: bool = True  # sound comes when it is to be heard; else as soon as it is there
    starts_thinking: bool = False  # the language model's replies begin inside a thought

    @property
    def tool_rules(self) -> tuple[ToolRule, ...]:
        """What the dialogue is to know of the tools."""
        own = (
            ToolRule(name=tool.spec.name, in_draft=not tool.side_effects, preamble=tool.preamble) for tool in self.tools
        )
        theirs = (ToolRule(name=spec.name, in_draft=False, preamble="", by_owner=True) for spec in self.owner_tools)
        return (*own, *theirs)


def check_change(before: SessionSettings, after: SessionSettings) -> None:
    """Raises CallerError if a conversation held by `before` cannot go on by `after`."""
    for name, reason in FIXED.items():
        if getattr(before, name) != getattr(after, name):
            raise CallerError(
                f"{name} cannot change in the middle of a conversation: {reason}",
                hint=f"keep {name} as it is, or open another session",
            )
