"""What a detector thought a fixed time after pauses began -> whether its probabilities can be taken at their word.

Of the pauses that have lasted so long, and of all ends, the score at the last step by then is compared with the truth.
How many pauses there are for each end is the corpus's choice, not the world's, so by default pauses and ends weigh
half each, which is also how the fit that ships with the package was made; the figures as counted stand beside them.
Units: seconds since a pause began, probabilities. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from antiphon.lab.turn_end import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from antiphon.lab.turn_end import Judged

MOMENTS_S = (0.2, 0.3, 0.5)
BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Scores that lie close together."""

    score: float  # their weighted mean
    ends: float  # the weighted share of ends among them
    weight: float  # of all there are
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far scores are off, `at_s` after the pause began."""

    at_s: float
    holds: int  # that lasted so long
    ends: int
    brier: float  # weighted mean of the squared error: 0.25 for a detector that always says one half
    ece: float  # expected calibration error over BINS bins of equal width
    brier_as_counted: float
    ece_as_counted: float
    bins: tuple[Bin, ...]


def calibration(judged: Sequence[Judged], at_s: float, *, step_s: float) -> Calibration | None:
    """None where no pause lasted so long, there is no end, or the first step comes later."""
    place = int(at_s / step_s + ROUNDING) - 1
    if place < 0:
        return None
    alive = [pause for pause in judged if pause.counts and pause.duration_s >= at_s - ROUNDING]
    alive = [pause for pause in alive if len(pause.scores) > place]
    truth = np.array([pause.is_end for pause in alive], dtype=bool)
    ends, holds = int(truth.sum()), int((~truth).sum())
    if not ends or not holds:
        return None
    scores = np.array([pause.scores[place] for pause in alive])
    halves = np.where(truth, 0.5 / ends, 0.5 / holds)
    counted = np.full(len(alive), 1 / len(alive))
    bins = _bins(scores, truth, halves)
    return Calibration(
        at_s=at_s,
        holds=holds,
        ends=ends,
        brier=_brier(scores, truth, halves),
        ece=_ece(bins),
        brier_as_counted=_brier(scores, truth, counted),
        ece_as_counted=_ece(_bins(scores, truth, counted)),
        bins=bins,
    )


def _brier(scores: NDArray[np.float64], truth: NDArray[np.bool_], weights: NDArray[np.float64]) -> float:
    return float((weights * (scores - truth) ** 2).sum())


def _ece(bins: Sequence[Bin]) -> float:
    return sum(each.weight * abs(each.score - each.ends) for each in bins)


def _bins(scores: NDArray[np.float64], truth: NDArray[np.bool_], weights: NDArray[np.float64]) -> tuple[Bin, ...]:
    places = np.minimum((scores * BINS).astype(np.int64), BINS - 1)  # a score of 1 belongs to the last bin
    found = []
    for number in range(BINS):
        inside = places == number
        weight = float(weights[inside].sum())
        if weight <= 0:
            continue
        found.append(
            Bin(
                score=float((weights[inside] * scores[inside]).sum()) / weight,
                ends=float((weights[inside] * truth[inside]).sum()) / weight,
                weight=weight,
                count=int(inside.sum()),
            )
        )
    return tuple(found)
