"""The state of a conversation: which phase it is in, and the few facts that each phase needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from antiphon.dialogue.options import AS_USUAL, ReplyOptions
from antiphon.dialogue.turn_end import Evidence

if TYPE_CHECKING:
    from antiphon.core.flow import ToolCall, Transcript
    from antiphon.dialogue.history import History
    from antiphon.dialogue.settings import TurnSettings
    from antiphon.dialogue.stimuli import VoiceStopped
    from antiphon.dialogue.turn_end import TurnEndModel


class Phase(Enum):
    """Who has the floor."""

    LISTENING = "listening"  # nobody speaks
    HEARING = "hearing"  # the caller speaks
    DRAFTING = "drafting"  # the caller has paused; a reply is being made, unheard
    SPEAKING = "speaking"  # the turn is over; our reply sounds, or is about to
    ENDED = "ended"  # nothing will happen any more


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """What the dialogue knows of a tool."""

    name: str
    in_draft: bool  # it has no side effects and may run before the turn is confirmed, for nothing perhaps
    preamble: str  # said while it runs, if that takes a while; may be empty
    by_owner: bool = False  # the owner runs it: the reply ends with the call, and he asks for another


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A tool's use in a reply."""

    call: ToolCall
    place: int  # in the reply's how manyeth pass the model asked for it
    said: str  # what the reply says in that pass before it; empty for all calls of a pass but the first
    started: bool = False
    repeats: bool = False  # the same was called for before and not yet told of: its output is that call's
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A reply in the making, and what is known of the pause it was begun in."""

    number: int
    ended_ns: int  # when the caller's last speech sample was captured
    end_samples: int
    pauses: int = 0  # earlier ones in its turn
    transcript: Transcript | None = None
    provisional: bool = False  # a quick ear's, to be corrected
    corrected: Transcript | None = None  # by a careful ear
    mass_asked: bool = False  # the language model judges the end of the words, or did
    end_mass: float | None = None
    prosody: float | None = None
    voice_asked: bool = False  # the prosody judge is at work, or was
    voiced: bool = False  # its first sound is ready
    failed: bool = False
    weighed: bool = False  # its words were judged, and given to the language model if that may speculate
    written: bool = False  # the language model was asked for the reply
    half_written: bool = False  # from words that were provisional: WriteOn is to come, or a further WriteReply
    wants_words: bool = False  # a backchannel alone is no turn here
    interruptible: bool = True
    options: ReplyOptions = AS_USUAL
    began_ns: int | None = None  # when its first sound left
    uses: tuple[Use, ...] = ()
    place: int = 0  # how many passes of writing it has behind it
    waits: bool = False  # the model has made its calls and waits for what comes of them

    @property
    def is_provisional(self) -> bool:
        """Whether its words are still to be corrected."""
        return self.provisional and self.corrected is None

    @property
    def words(self) -> str:
        """What the turn says, by the best ear that has spoken; empty until the words are known."""
        heard = self.corrected or self.transcript
        return heard.text.strip() if heard else ""

    @property
    def uses_tools(self) -> bool:
        """Whether the model has asked for tools and was not yet told what came of them."""
        return self.waits or any(use.place == self.place for use in self.uses)

    @property
    def is_awaited(self) -> bool:
        """Whether its first sound is on the way: what else is computed now delays it."""
        return self.written and not (self.voiced or self.failed or self.waits)

    @property
    def evidence(self) -> Evidence | None:
        """What the turn end is judged by; None until the words are known.

        The words are the quick ear's, corrected or not: what judges was fitted to it.
        """
        if self.transcript is None:
            return None
        return Evidence.of(self.transcript, end_mass=self.end_mass, prosody=self.prosody, pauses=self.pauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisional:
    """A turn that was confirmed with words which are still to be corrected."""

    draft: int
    turn: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """The caller's voice over our reply; whether it means anything is yet to be found out."""

    began_ns: int
    end_samples: int = 0  # just after its last speech sample, once it has stopped
    ended_ns: int | None = None  # when that was captured; None while it lasts
    says_nothing: bool = False  # its words are known, and are none or a backchannel
    soft: bool = False  # our reply sounds softer for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A text of the owner's that waits until nobody speaks."""

    text: str
    interruptible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A whole conversation at one moment; every change makes a new one."""

    settings: TurnSettings
    turn_end: TurnEndModel
    instructions: str = ""
    tools: tuple[ToolRule, ...] = ()
    interruptible: bool = True  # what new replies are
    by_hand: bool = False  # the owner says when a turn is over
    answers: bool = True  # a turn that is over is answered without being asked to
    next_from: int = 0  # where the turn after a committed one begins at the earliest
    committed: VoiceStopped | None = None  # the end of a turn that the owner ended while a reply sounded
    requested: ReplyOptions | None = None  # of a reply that was asked for while a turn was in progress
    usual: ReplyOptions = AS_USUAL  # of replies that nobody asked for in particular
    to_say: tuple[Say, ...] = ()
    phase: Phase = Phase.LISTENING
    turn: int = 0  # the number of the caller's turn; 0 before the first
    pauses: int = 0  # in it, behind which the caller went on
    drafts: int = 0  # how many drafts were begun, which numbers the next
    draft: Draft | None = None  # while DRAFTING the draft, while SPEAKING the reply it became
    held: Draft | None = None  # the reply that was paused for a voice that may mean nothing
    stopping: Draft | None = None  # the reply that was stopped and has not yet told what was heard of it
    overlap: Overlap | None = None  # while SPEAKING
    history: History = field(default=())
    provisional: tuple[Provisional, ...] = ()  # the oldest first
    looked_ns: int | None = None  # since when a look at the words is under way
    voice_active: bool = False  # the caller speaks right now, whoever has the floor
    goes_on: bool = False  # they spoke on through the end of a turn that lasted too long
    forced: bool = False  # the turn is to be answered without judging whether it is over
    input_ended: bool = False  # no sound will come any more
