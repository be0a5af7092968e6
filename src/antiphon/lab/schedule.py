"""A plan and clips -> what each caller says when: lanes of talks, a talk being what is said on one line.

Callers begin at moments of their own, drawn over one period, and each lane's next talk is due a period after the one
before, whatever became of that: an open loop, in which a slow server is not asked less often. A talk that begins late
counts from when it was due. Inside a talk a caller answers when the reply is over, as people do. A caller alone needs
no schedule unless one is asked for.
Units: seconds since the lanes begin, ms in settings. Pure.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Annotated

from antiphon.core.errors import CallerError, check_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from antiphon.lab.clips import Clip
    from antiphon.lab.plan import BenchPlan

SINGLE, ONE_LINE, MULTI_TURN, BARGE_IN = "single", "one-line", "multi-turn", "barge-in"
CALLERS, RAMP, SOAK = "callers", "ramp", "soak"
SCENARIOS = (SINGLE, ONE_LINE, MULTI_TURN, BARGE_IN, CALLERS, RAMP, SOAK)
REPLY_S = 8.0  # that a period leaves for the answer after its longest clip
LEVELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How turns follow each other.

    Raises:
        CallerError: a value is out of its range.
    """

    turns_per_line: Annotated[int, "of multi-turn"] = 4
    barge_in_ms: Annotated[float, "of the reply are heard when the caller talks over it"] = 1500.0
    period_s: Annotated[float | None, "between two talks of a caller; None: its longest clip and 8 s"] = None
    pause_s: Annotated[float, "between two turns, where none is due"] = 0.3
    listens_s: Annotated[float | None, "to the last reply on a line, then the caller hangs up; None: to its end"] = None
    warm_up: Annotated[int, "turns before the measurement, thrown away"] = 0
    level_turns: Annotated[int, "of each caller at each level of the ramp, and 20 in all at least"] = 3
    ruler_turns: Annotated[int, "of the ruler's test of itself; 0: none"] = 20

    def __post_init__(self) -> None:
        check_range("turns_per_line", self.turns_per_line, 1, 10_000)
        check_range("barge_in_ms", self.barge_in_ms, 200, 60_000)
        if self.period_s is not None:
            check_range("period_s", self.period_s, 0.1, 3600)
        check_range("pause_s", self.pause_s, 0, 600)
        if self.listens_s is not None:
            check_range("listens_s", self.listens_s, 0, 600)
        check_range("warm_up", self.warm_up, 0, 1000)
        check_range("level_turns", self.level_turns, 1, 1000)
        check_range("ruler_turns", self.ruler_turns, 0, 10_000)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A clip, and whether it is said over the reply to the one before."""

    clip: Clip
    over_ms: float | None = None  # when so much of that was heard


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What a caller says on one line."""

    utterances: tuple[Utterance, ...]
    due_s: float | None = None
    next_due_s: float | None = None  # of the lane's next one


def lanes(plan: BenchPlan, habits: Habits, clips: Sequence[Clip], *, callers: int) -> list[Iterator[Talk]]:
    """The talks of each of so many callers at once.

    Raises:
        CallerError: no such scenario, or no clips.
    """
    if plan.scenario not in SCENARIOS:
        raise CallerError(f"there is no scenario {plan.scenario!r}", hint=f"use one of {', '.join(SCENARIOS)}")
    if not clips:
        raise CallerError("there is nothing to say", hint="choose other kinds")
    period_s = habits.period_s or max(clip.speech_end_s for clip in clips) + REPLY_S
    is_open = callers > 1 or habits.period_s is not None or plan.scenario == CALLERS
    dice = random.Random(plan.seed)  # noqa: S311 - no secret
    starts = sorted(dice.uniform(0, period_s) for _ in range(callers)) if callers > 1 else [0.0]
    talks = list(_talks(plan, habits, clips, turns=_turns(plan, habits, clips, callers)))
    if plan.scenario == SOAK:
        return [
            _timed(cycle(_rotated(talks, lane)), starts[lane], period_s if is_open else None) for lane in range(callers)
        ]
    return [_timed(iter(talks[lane::callers]), starts[lane], period_s if is_open else None) for lane in range(callers)]


def levels(limit: int) -> list[int]:
    """How many callers a ramp tries, one after the other."""
    return [level for level in LEVELS if level < limit] + [limit]


def _turns(plan: BenchPlan, habits: Habits, clips: Sequence[Clip], callers: int) -> int:
    if plan.scenario == RAMP:
        return max(20, habits.level_turns * callers)
    return plan.turns or len(clips)


def _talks(plan: BenchPlan, habits: Habits, clips: Sequence[Clip], *, turns: int) -> Iterator[tuple[Utterance, ...]]:
    said = [Utterance(clip) for clip in islice(cycle(clips), turns)]
    match plan.scenario:
        case "one-line":
            step = len(said)
        case "multi-turn":
            step = habits.turns_per_line
        case "barge-in":
            step = 2
            said = [Utterance(one.clip, habits.barge_in_ms if place % 2 else None) for place, one in enumerate(said)]
        case _:
            step = 1
    for start in range(0, len(said), step):
        yield tuple(said[start : start + step])


def _rotated(talks: list[tuple[Utterance, ...]], lane: int) -> list[tuple[Utterance, ...]]:
    """So that callers do not all say the same at a time."""
    at = lane % len(talks)
    return talks[at:] + talks[:at]


def _timed(talks: Iterator[tuple[Utterance, ...]], start_s: float, period_s: float | None) -> Iterator[Talk]:
    for number, utterances in enumerate(talks):
        if period_s is None:
            yield Talk(utterances=utterances)
        else:
            due_s = start_s + number * period_s
            yield Talk(utterances=utterances, due_s=due_s, next_due_s=due_s + period_s)
