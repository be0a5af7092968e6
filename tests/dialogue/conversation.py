"""A conversation to drive by hand: stimuli in milliseconds, commands collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.flow import Message, Transcript
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.state import Dialogue, Phase
from antiphon.dialogue.stimuli import (
    DraftTranscribed,
    DraftVoiced,
    EndMassMeasured,
    InputEnded,
    ProsodyJudged,
    ReplyBegan,
    ReplyEnded,
    Timer,
    TimerFired,
    TranscriptGrew,
    VoiceStarted,
    VoiceStopped,
    WordsCorrected,
)
from antiphon.dialogue.transitions import step
from antiphon.dialogue.turn_end import KINDS, Fit, TurnEndModel

if TYPE_CHECKING:
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.state import ToolRule
    from antiphon.dialogue.stimuli import Stimulus

# A full stop is worth 4 log-odds, a mass of one half nothing: enough to follow by hand.
MODEL = TurnEndModel(
    {
        kind: Fit(0.0, {name: 1.0 for name in kind.split("+")[1:] if name != "ears"})
        if "mass" in kind
        else Fit(-3.0, {"closed": 4.0} | ({"prosody": 1.0} if "prosody" in kind else {}))
        for kind in KINDS
    }
)
SETTINGS = TurnSettings(
    shortest_wait_ms=100,
    longest_wait_ms=1000,
    pause_ms=350,
    cut_in_risk=0.05,
    hop_ms=500,
    longest_turn_s=10,
    interrupt_ms=200,
)
SYSTEM = Message("system", "Be brief.")
Kind = TypeVar("Kind")


def ns(ms: float) -> int:
    return round(ms * MILLISECOND_NS)


class Conversation:
    """Feeds stimuli to the machine and keeps what it ordered."""

    def __init__(self, settings: TurnSettings = SETTINGS, tools: tuple[ToolRule, ...] = ()) -> None:
        self.state = Dialogue(settings=settings, turn_end=MODEL, instructions="Be brief.", tools=tools)
        self.log: list[tuple[Stimulus, tuple[Command, ...]]] = []

    def happens(self, stimulus: Stimulus) -> tuple[Command, ...]:
        self.state, commands = step(self.state, stimulus)
        self.log.append((stimulus, commands))
        return commands

    def ordered(self, kind: type[Kind]) -> list[Kind]:
        return [command for _, commands in self.log for command in commands if isinstance(command, kind)]

    # The same stimuli, in short.

    def speaks(self, at_ms: float) -> tuple[Command, ...]:
        return self.happens(VoiceStarted(at_ns=ns(at_ms), start_samples=round(at_ms * 16)))

    def pauses(self, at_ms: float, ended_ms: float) -> tuple[Command, ...]:
        return self.happens(VoiceStopped(at_ns=ns(at_ms), end_samples=round(ended_ms * 16), ended_ns=ns(ended_ms)))

    def transcribed(
        self, at_ms: float, text: str, draft: int | None = None, *, provisional: bool = False
    ) -> tuple[Command, ...]:
        transcript, draft = Transcript(text=text, heard_samples=0, is_final=True), draft or self.state.drafts
        return self.happens(
            DraftTranscribed(at_ns=ns(at_ms), draft=draft, transcript=transcript, provisional=provisional)
        )

    def corrected(self, at_ms: float, text: str, draft: int = 1, turn: int = 1) -> tuple[Command, ...]:
        transcript = Transcript(text=text, heard_samples=0, is_final=True)
        return self.happens(WordsCorrected(at_ns=ns(at_ms), draft=draft, turn=turn, transcript=transcript))

    def grows(self, at_ms: float, text: str, stable_chars: int) -> tuple[Command, ...]:
        transcript = Transcript(text=text, heard_samples=round(at_ms * 16), stable_chars=stable_chars)
        return self.happens(TranscriptGrew(at_ns=ns(at_ms), turn=self.state.turn, transcript=transcript))

    def mass(self, at_ms: float, mass: float, draft: int | None = None) -> tuple[Command, ...]:
        return self.happens(EndMassMeasured(at_ns=ns(at_ms), draft=draft or self.state.drafts, mass=mass))

    def prosody(self, at_ms: float, probability: float) -> tuple[Command, ...]:
        return self.happens(ProsodyJudged(at_ns=ns(at_ms), draft=self.state.drafts, probability=probability))

    def voiced(self, at_ms: float) -> tuple[Command, ...]:
        return self.happens(DraftVoiced(at_ns=ns(at_ms), draft=self.state.drafts))

    def fires(self, at_ms: float, timer: Timer, generation: int) -> tuple[Command, ...]:
        return self.happens(TimerFired(at_ns=ns(at_ms), timer=timer, generation=generation))

    def reply_ends(self, at_ms: float, heard: str, draft: int | None = None) -> tuple[Command, ...]:
        return self.happens(ReplyEnded(at_ns=ns(at_ms), draft=draft or self.state.drafts, heard=(heard,)))

    def begins(self, at_ms: float, draft: int | None = None) -> tuple[Command, ...]:
        return self.happens(ReplyBegan(at_ns=ns(at_ms), draft=draft or self.state.drafts))

    def hangs_up(self, at_ms: float) -> tuple[Command, ...]:
        return self.happens(InputEnded(at_ns=ns(at_ms), end_samples=round(at_ms * 16), ended_ns=ns(at_ms)))


def heard(
    text: str = "A latte, please.", talk: Conversation | None = None, *, provisional: bool = False
) -> Conversation:
    """The caller said `text` from 0 to 2000 ms; the pause is noticed at 2096, the words known at 2300."""
    talk = talk or Conversation()
    talk.speaks(0)
    talk.pauses(2096, 2000)
    talk.transcribed(2300, text, provisional=provisional)
    return talk


def answering(talk: Conversation | None = None) -> Conversation:
    """The turn is confirmed at 2410 and the reply has sounded since 2420."""
    talk = heard(talk=talk)
    talk.voiced(2400)
    talk.mass(2410, 0.99)
    talk.begins(2420)
    assert talk.state.phase is Phase.SPEAKING
    return talk
