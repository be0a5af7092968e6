"""How a conversation takes turns, as values that a user may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from antiphon.core.errors import check_range


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """Turn taking; times in milliseconds.

    Raises:
        CallerError: a value is out of its range; the message names the field.
    """

    shortest_wait_ms: Annotated[int, "silence that a turn's end takes at least, however sure we are"] = 100
    longest_wait_ms: Annotated[int, "silence after which a turn is over, however unfinished it sounds"] = 1200
    pause_ms: Annotated[int, "the mean length of a pause inside a turn"] = 350
    cut_in_risk: Annotated[float, "the risk of answering into a hesitation that each turn may take, 0 to 1"] = 0.04
    speculate: Annotated[bool, "write the reply in the pause, before the turn is confirmed"] = True
    read_ahead: Annotated[bool, "let the language model read the stable words while the caller speaks"] = True
    hop_ms: Annotated[int, "how often to look at what the caller has said while they speak"] = 1000
    longest_turn_s: Annotated[int, "a turn is answered after this much speech, finished or not"] = 120
    stalled_ms: Annotated[int, "no sound at all for this long counts as a pause: the microphone went away"] = 500
    interrupt_ms: Annotated[int, "voice over our reply for this long takes the turn back"] = 250

    def __post_init__(self) -> None:
        check_range("shortest_wait_ms", self.shortest_wait_ms, 0, 10_000)
        check_range("longest_wait_ms", self.longest_wait_ms, self.shortest_wait_ms, 60_000)
        check_range("pause_ms", self.pause_ms, 10, 10_000)
        check_range("cut_in_risk", self.cut_in_risk, 0.0001, 1.0)
        check_range("hop_ms", self.hop_ms, 100, 10_000)
        check_range("longest_turn_s", self.longest_turn_s, 1, 3600)
        check_range("stalled_ms", self.stalled_ms, 100, 60_000)
        check_range("interrupt_ms", self.interrupt_ms, 32, 10_000)
