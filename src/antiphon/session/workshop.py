"""What all drafts of a conversation work with: engines, ears, mind and mouth, and the settings of the moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.clock import Clock
    from antiphon.core.errors import AntiphonError
    from antiphon.core.flow import ToolSpec
    from antiphon.core.stamps import Stage
    from antiphon.dialogue.options import ReplyOptions
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.session.engines import Engines
    from antiphon.session.second_pass import SecondPass
    from antiphon.session.settings import SessionSettings
    from antiphon.session.two_pass import TwoPassRecognition
    from antiphon.speak.player import Player
    from antiphon.think.language_model import Thinking


@dataclass(slots=True, kw_only=True)
class Workshop:
    """What all drafts of a conversation work with."""

    engines: Engines
    recognition: TwoPassRecognition
    second_pass: SecondPass | None  # where what the ears say at once is heard again by a better one
    thinking: Thinking
    player: Player
    clock: Clock
    caller: int  # on whose behalf engines work
    settings: SessionSettings  # may be replaced while the conversation goes on
    own_tools: tuple[ToolSpec, ...]
    tell: Callable[[Stimulus], None]
    report: Callable[[Stage, AntiphonError], None]

    def tools(self, options: ReplyOptions) -> tuple[ToolSpec, ...]:
        """What a reply with these options is offered."""
        every = (*self.own_tools, *self.settings.owner_tools)
        return every if options.tools is None else tuple(spec for spec in every if spec.name in options.tools)
