"""How one conversation is held."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.dialogue.options import AS_USUAL, ReplyOptions
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.state import ToolRule
from antiphon.think.chunker import ChunkerSettings
from antiphon.think.spoken_form import SpokenFormSettings

if TYPE_CHECKING:
    from antiphon.act.tool import Tool
    from antiphon.core.flow import ToolSpec
    from antiphon.dialogue.turn_end import TurnEndModel


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What is particular to one conversation."""

    turn_end: TurnEndModel
    instructions: str = ""
    vocabulary: tuple[str, ...] = ()
    turn: TurnSettings = field(default_factory=TurnSettings)
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
