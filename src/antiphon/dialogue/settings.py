"""How a conversation takes turns, as values that a user may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from antiphon.core.errors import check_range

_BACKCHANNELS = (
    "ah, aha, all right, alright, cool, good, got it, great, hm, hmm, huh, i know, i see, interesting, mhm, mm, mmm, "
    "mm hmm, nice, of course, oh, ok, okay, right, sure, true, uh, uh huh, um, wow, yeah, yep, yes, yup, "
    "bye, thank you, thanks, you"  # what recognizers make of a cough
)
BACKCHANNELS = tuple(_BACKCHANNELS.split(", "))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """Turn taking; times in milliseconds.

    Raises:
        CallerError: a value is out of its range; the message names the field.
    """

    # Words end softly: one annotated end in ten lies 200 ms and more behind where the detector has it.
    shortest_wait_ms: Annotated[int, "silence that a turn's end takes at least, however sure we are"] = 280
    longest_wait_ms: Annotated[int, "silence after which a turn is over, however unfinished it sounds"] = 1200
    pause_ms: Annotated[int, "how long pauses inside a turn last: the longer, the more a doubt is waited out"] = 700
    cut_in_risk: Annotated[float, "who is less likely than this to go on is answered without further wait, 0 to 1"] = (
        0.2
    )
    foresee: Annotated[bool, "a quick recognizer hears the words where the voice falters, pause or not"] = True
    doubt_ms: Annotated[int, "more opinions are asked for above this wait; below the shortest: always"] = 100
    speculate: Annotated[bool, "write the reply in the pause, before the turn is confirmed"] = True
    read_ahead: Annotated[bool, "let the language model read the stable words while the caller speaks"] = True
    open_ahead: Annotated[bool, "begin a reply to the words so far while the caller speaks, to have its sound"] = True
    hop_ms: Annotated[int, "how often to look at what the caller has said while they speak, at most"] = 400
    longest_turn_s: Annotated[int, "a turn is answered after this much speech, finished or not"] = 120
    stalled_ms: Annotated[int, "no sound at all for this long counts as a pause: the microphone went away"] = 500
    judge_overlap: Annotated[bool, "what is said over our reply decides whether it stops, not how long alone"] = True
    interrupt_ms: Annotated[int, "voice over our reply for this long is looked at, or unjudged takes the turn"] = 250
    surely_ms: Annotated[int, "voice over our reply for this long takes the turn, whatever it seems to say"] = 1000
    duck_ms: Annotated[int, "a voice over our reply softens it for this long; 0: never"] = 160
    retract_ms: Annotated[int, "who speaks on before our reply has sounded for this long had not finished"] = 400
    answer_ms: Annotated[int, "what was said over our reply this shortly before its end answers it"] = 600
    idle_ms: Annotated[int, "nobody has said anything for so long after a reply: the owner is told; 0: never"] = 0
    tool_patience_ms: Annotated[int, "a tool may take this long before its preamble is said"] = 400
    backchannels: Annotated[tuple[str, ...], "words that over our reply mean: go on"] = BACKCHANNELS

    def __post_init__(self) -> None:
        check_range("shortest_wait_ms", self.shortest_wait_ms, 0, 10_000)
        check_range("longest_wait_ms", self.longest_wait_ms, self.shortest_wait_ms, 60_000)
        check_range("pause_ms", self.pause_ms, 10, 10_000)
        check_range("cut_in_risk", self.cut_in_risk, 0.0001, 1.0)
        check_range("doubt_ms", self.doubt_ms, 0, 60_000)
        check_range("hop_ms", self.hop_ms, 100, 10_000)
        check_range("longest_turn_s", self.longest_turn_s, 1, 3600)
        check_range("stalled_ms", self.stalled_ms, 100, 60_000)
        check_range("interrupt_ms", self.interrupt_ms, 32, 10_000)
        check_range("surely_ms", self.surely_ms, self.interrupt_ms, 60_000)
        check_range("duck_ms", self.duck_ms, 0, 2000)
        check_range("retract_ms", self.retract_ms, 0, 5000)
        check_range("answer_ms", self.answer_ms, 0, 5000)
        check_range("idle_ms", self.idle_ms, 0, 3_600_000)
        check_range("tool_patience_ms", self.tool_patience_ms, 0, 60_000)

    @property
    def waits_by_opinion(self) -> bool:
        """Whether it matters how likely a turn is over: not where every silence is waited for as long."""
        return self.shortest_wait_ms < self.longest_wait_ms
