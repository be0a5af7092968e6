"""Signs of who is pressed in, how the cores are parted between hearing and speaking out.

Normally 60 to 40. While somebody begins to speak, hearing may have up to 85 of 100; while replies come late, speaking
up to 55. Both at once: a late reply is heard by somebody who waits, so speaking wins. Shares matter only while both
sides wait for cores; nobody's share lies idle.
Units: ns. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.stamps import Stage

if TYPE_CHECKING:
    from antiphon.scheduling.settings import SchedulingSettings


class Side(StrEnum):
    """What a stage's time counts as."""

    HEAR = "hear"  # recognising, judging, reading prompts
    SPEAK = "speak"  # writing and voicing replies


SIDES = {
    Stage.VAD: Side.HEAR,
    Stage.PROSODY: Side.HEAR,
    Stage.RECOGNISE: Side.HEAR,
    Stage.PREFILL: Side.HEAR,
    Stage.JUDGE: Side.HEAR,
    Stage.THINK: Side.SPEAK,
    Stage.ACT: Side.SPEAK,
    Stage.SPEAK: Side.SPEAK,
    Stage.PLAY: Side.SPEAK,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What is known of the moment."""

    voiced_frames: int = 0  # in a row, of whoever speaks the longest
    energy_ratio: float = 0.0  # of the last frame to that voice's usual level
    certainty: float = 0.0  # of the voice detector that it is a voice
    decode_lag_ms: float = 0.0  # how far the latest reply is behind its time
    tokens_per_s: float | None = None  # at which replies are written; None: none is


def somebody_begins(signs: Signs, rules: SchedulingSettings) -> bool:
    """Whether a voice has just come up."""
    is_clear = signs.energy_ratio > rules.energy_ratio or signs.certainty > rules.energy_ratio
    return signs.voiced_frames >= rules.voiced_frames and is_clear


def replies_are_late(signs: Signs, rules: SchedulingSettings) -> bool:
    """Whether a reply is behind its time, or is written too slowly."""
    is_slow = signs.tokens_per_s is not None and signs.tokens_per_s < rules.least_tokens_per_s
    return signs.decode_lag_ms >= rules.decode_lag_ms or is_slow


def hear_share(signs: Signs, rules: SchedulingSettings) -> float:
    """Hearing's share of the cores; the rest is speaking's."""
    if replies_are_late(signs, rules):
        return min(rules.hear_share, 1.0 - rules.most_speak_share)
    return rules.most_hear_share if somebody_begins(signs, rules) else rules.hear_share


class Usage:
    """What each side had of the cores lately, older time counting less: half as much after half a window."""

    def __init__(self) -> None:
        self._used = dict.fromkeys(Side, 0.0)
        self._at_ns = 0

    def add(self, side: Side, core_ns: float, now_ns: int, rules: SchedulingSettings) -> None:
        """A job of this side ended now after so much time of cores."""
        self._fade(now_ns, rules)
        self._used[side] += core_ns

    def hear_part(self) -> float | None:
        """Hearing's part of what both sides had; None if neither had any."""
        total = self._used[Side.HEAR] + self._used[Side.SPEAK]
        return self._used[Side.HEAR] / total if total > MILLISECOND_NS / 1000 else None

    def is_beyond(self, side: Side, share: float) -> bool:
        """Whether the side had more than its share, hearing's being `share`."""
        part = self.hear_part()
        if part is None:
            return False
        return part > share if side is Side.HEAR else part < share

    def _fade(self, now_ns: int, rules: SchedulingSettings) -> None:
        half_ns = rules.share_window_ms * MILLISECOND_NS / 2
        factor = 0.5 ** (max(0, now_ns - self._at_ns) / half_ns)
        self._at_ns = max(now_ns, self._at_ns)
        for side in self._used:
            self._used[side] *= factor
