"""Pauses as a detector may have judged them."""

from __future__ import annotations

from math import inf

from antiphon.lab.turn_end import Judged


def end(*scores: float, clip: str = "a", kind: str = "clean") -> Judged:
    """The end of a turn."""
    return Judged(clip=clip, kind=kind, start_s=1.0, duration_s=inf, scores=scores)


def hold(duration_s: float, *scores: float, clip: str = "a", kind: str = "clean") -> Judged:
    """A pause inside a turn."""
    return Judged(clip=clip, kind=kind, start_s=0.5, duration_s=duration_s, scores=scores)
