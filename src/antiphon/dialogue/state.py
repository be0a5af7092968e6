"""The state of a conversation: which phase it is in, and the few facts that each phase needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from antiphon.dialogue.turn_end import Evidence

if TYPE_CHECKING:
    from antiphon.core.flow import Transcript
    from antiphon.dialogue.history import History
    from antiphon.dialogue.settings import TurnSettings
    from antiphon.dialogue.turn_end import TurnEndModel


class Phase(Enum):
    """Who has the floor."""

    LISTENING = "listening"  # nobody speaks
    HEARING = "hearing"  # the caller speaks
    DRAFTING = "drafting"  # the caller has paused; a reply is being made, unheard
    SPEAKING = "speaking"  # the turn is over; our reply sounds, or is about to
    ENDED = "ended"  # nothing will happen any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A reply in the making, and what is known of the pause it was begun in."""

    number: int
    ended_ns: int  # when the caller's last speech sample was captured
    end_samples: int
    transcript: Transcript | None = None
    end_mass: float | None = None
    prosody: float | None = None
    voice_asked: bool = False  # the prosody judge is at work, or was
    voiced: bool = False  # its first sound is ready
    failed: bool = False

    @property
    def evidence(self) -> Evidence | None:
        """What the turn end is judged by; None until the words are known."""
        if self.transcript is None:
            return None
        heard = self.transcript
        return Evidence(text=heard.text, ears=heard.end_probability, end_mass=self.end_mass, prosody=self.prosody)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A whole conversation at one moment; every change makes a new one."""

    settings: TurnSettings
    turn_end: TurnEndModel
    instructions: str = ""
    phase: Phase = Phase.LISTENING
    turn: int = 0  # the number of the caller's turn; 0 before the first
    drafts: int = 0  # how many drafts were begun, which numbers the next
    draft: Draft | None = None  # while DRAFTING the draft, while SPEAKING the reply it became
    stopping: int | None = None  # the reply that was stopped and has not yet told what was heard of it
    history: History = field(default=())
    voice_active: bool = False  # the caller speaks right now, whoever has the floor
    goes_on: bool = False  # they spoke on through the end of a turn that lasted too long
    forced: bool = False  # the turn is to be answered without judging whether it is over
    input_ended: bool = False  # no sound will come any more
