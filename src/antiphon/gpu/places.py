"""A class of work -> where on the GPU it may run and at which stream level; the signs of the moment -> which cut holds.

Work runs in one of three places: the whole GPU, or one of two parts of its multiprocessors, so that replies and all the
rest compute beside each other (hardware/gpu_parts.py cuts them). A level is a stream's priority as CUDA counts, the
lowest goes first; it is fixed when a graph is captured.
Threads: pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from antiphon.core.stamps import Stage
from antiphon.hardware.gpu_parts import Pressure
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.shares import replies_are_late, somebody_begins

if TYPE_CHECKING:
    from antiphon.scheduling.settings import SchedulingSettings
    from antiphon.scheduling.shares import Signs


class Place(StrEnum):
    """Where on the GPU a slice runs."""

    WHOLE = "whole"
    REPLIES = "replies"
    OTHERS = "others"


# What replies are written by comes first of all: a step that is held up is a gap for every caller in it.
REPLY_LEVEL = -3
LEVELS = {
    Urgency.PLAYBACK: -2,
    Urgency.CONFIRMED: -2,
    Urgency.DRAFT: -2,
    Urgency.AHEAD: -1,
    Urgency.BACKGROUND: 0,
}
LANES = {REPLY_LEVEL: "replies", -2: "pauses", -1: "ahead", 0: "background"}  # as the policy knows them


def level_of(stage: Stage, urgency: int) -> int:
    """The stream level of such work."""
    if stage is Stage.THINK and urgency <= Urgency.AHEAD:
        return REPLY_LEVEL
    return LEVELS[Urgency(urgency)]


def pressure_of(signs: Signs, rules: SchedulingSettings) -> Pressure:
    """Which cut holds: as in shares.hear_share, a late reply goes before somebody who begins."""
    if replies_are_late(signs, rules):
        return Pressure.REPLIES_LATE
    return Pressure.SOMEBODY_BEGINS if somebody_begins(signs, rules) else Pressure.USUAL
