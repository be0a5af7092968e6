"""Shares of a GPU between replies and all else -> multiprocessors for each, in the steps that its chip can be cut in.

Replies and the rest compute beside each other on parts of the multiprocessors. These come in steps (eight on the chips
of 2022 and later), so a share is rounded to the nearest one. Memory, cache and copy engines are never parted.
Units: multiprocessors; shares from 0 to 1. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

OTHERS_SHARE = 0.25  # writing waits for memory, not for multiprocessors: an 8B step took 8.8 ms on 100 of 132, 6 on all
FEWEST_TO_CUT = 32  # of fewer multiprocessors, a part holds no kernel's worth of blocks


class Pressure(StrEnum):
    """Which cut holds."""

    USUAL = "usual"
    SOMEBODY_BEGINS = "somebody begins to speak"
    REPLIES_LATE = "replies come late"


class Shares(Protocol):
    """How hearing and speaking part what they both want; `scheduling.settings.SchedulingSettings` is one."""

    @property
    def hear_share(self) -> float: ...
    @property
    def most_hear_share(self) -> float: ...
    @property
    def most_speak_share(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The multiprocessors of both parts."""

    replies: int
    others: int


def step_of(compute: str) -> tuple[int, int]:
    """(least, multiple) of multiprocessors that a part of such a GPU may have; the coarsest where it is not known."""
    major = compute.partition(".")[0]
    steps = {"6": (1, 1), "7": (2, 2), "8": (4, 2)}
    return steps.get(major, (8, 8))


def cut(total: int, others_share: float, step: tuple[int, int]) -> Cut | None:
    """The parts, `others_share` of all for the rest and what is left for replies; None: too few to cut."""
    least, multiple = step
    if total < max(FEWEST_TO_CUT, 2 * least):
        return None
    fewest = max(1, -(-least // multiple))
    most = max(fewest, (total - least) // multiple)
    others = min(max(round(others_share * total / multiple), fewest), most) * multiple
    return Cut(replies=total - others, others=others)


def cuts(total: int, shares: Shares, step: tuple[int, int], *, replies: int = 0) -> dict[Pressure, Cut]:
    """The cut for each pressure; empty where there are too few to cut.

    With `replies`, so many multiprocessors are theirs as a rule, and their usual share once somebody begins to speak;
    0: the shares decide all three. When replies come late they never have fewer than that.
    """
    if replies:
        usual = 1 - replies / total
        begins = max(usual, shares.hear_share)
    else:
        usual, begins = shares.hear_share, shares.most_hear_share
    wanted = {
        Pressure.USUAL: usual,
        Pressure.SOMEBODY_BEGINS: begins,
        Pressure.REPLIES_LATE: min(usual, 1.0 - shares.most_speak_share),
    }
    found = {pressure: cut(total, share, step) for pressure, share in wanted.items()}
    return {pressure: each for pressure, each in found.items() if each is not None}


def planned_replies(total: int, step: tuple[int, int]) -> int | None:
    """The multiprocessors to keep for replies where nothing says otherwise; None: too few to cut."""
    least, multiple = step
    if total < FEWEST_TO_CUT:
        return None
    return total - max(least, int(OTHERS_SHARE * total) // multiple * multiple)
