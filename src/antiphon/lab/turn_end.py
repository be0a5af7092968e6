"""What a detector thought in every pause of recorded turns -> how often it cuts callers off, and how long it waits.

The definitions are those of LiveKit's eot-bench, so that figures mean the same (they are comparable on its data alone):
a pause inside a turn is to be held, the pause behind a turn is its end. A policy acts once the probability has risen
above a threshold, but not before a delay, and in any case at a timeout. A pause is cut off if it lasts longer than the
policy waits; the wait is silence alone, as if computing took no time. Policies of one grid are tried, and the best one
under a budget is reported. Two figures go beyond eot-bench: budgets that 95 % of ends keep, and turns cut off.
Units: seconds since a pause began. Pure. What it does not know: sound.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from antiphon.lab.statistics import percentile, rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SHORTEST_HOLD_S, LONGEST_HOLD_S = 0.2, 5.0  # pauses inside turns that count
THRESHOLDS = tuple(round(0.01 * step, 2) for step in range(101))
DELAYS_S = tuple(round(0.1 * step, 1) for step in range(2, 11))  # none below the shortest pause that counts
TIMEOUTS_S = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
BUDGETS_S = (0.2, 0.3, 0.5, 0.6)  # of waiting; eot-bench has 0.3 and 0.6
CUT_OFF_BUDGETS = (0.05, 0.10)  # shares of the pauses
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One pause, and what a detector thought while it lasted."""

    clip: str
    kind: str
    start_s: float  # of the clip
    duration_s: float  # infinite behind the turn
    scores: tuple[float, ...]  # the probability that the turn is over, one step after the start, two steps, ...

    @property
    def is_end(self) -> bool:
        return self.duration_s == inf

    @property
    def counts(self) -> bool:
        """Whether it is an end, or a pause of a length that counts."""
        return self.is_end or SHORTEST_HOLD_S - ROUNDING <= self.duration_s <= LONGEST_HOLD_S + ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When to act."""

    threshold: float  # that the probability must exceed
    delay_s: float  # of silence before anything is done
    timeout_s: float  # of silence after which the turn is over, whatever the probability


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one policy does."""

    policy: Policy
    cut_offs: int  # pauses, of `holds`
    holds: int
    turns_cut: int  # turns with such a pause, of `ends`
    ends: int
    mean_s: float  # waited at ends
    p95_s: float  # nearest rank
    timed_out: int  # ends that only the timeout found

    @property
    def cut_off_share(self) -> float:
        return self.cut_offs / self.holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """What a detector can do on some pauses; every list is empty where pauses or ends are missing."""

    holds: int
    ends: int
    within_mean: tuple[
        tuple[float, Point | None], ...
    ]  # (budget of the mean wait, fewest cut-offs); None: not possible
    within_p95: tuple[tuple[float, Point | None], ...]  # the same where 95 % of ends keep the budget
    fastest: tuple[tuple[float, Point | None], ...]  # (budget of cut-offs, shortest mean wait)
    surest: tuple[tuple[float, Point | None], ...]  # (budget of cut-offs, shortest P95)
    frontier: tuple[tuple[float, float], ...]  # (mean wait, share cut off), each better than all before it in cut-offs


@dataclass(frozen=True, slots=True)
class _Grid:
    """Every policy's figures, one row each."""

    policies: NDArray[np.float64]  # (policies, 3): threshold, delay, timeout
    cut_offs: NDArray[np.int64]
    mean_s: NDArray[np.float64]
    p95_s: NDArray[np.float64]

    def best(self, wanted: NDArray[np.float64], budget: NDArray[np.float64], at_most: float) -> int | None:
        """The row with the least `wanted` whose `budget` is kept; of equals the one that keeps it best."""
        threshold, delay, timeout = self.policies.T
        order = np.lexsort((timeout, delay, -threshold, budget, wanted))
        kept = order[budget[order] <= at_most + ROUNDING]
        return int(kept[0]) if len(kept) else None


def trade(judged: Sequence[Judged], *, step_s: float) -> Trade:
    """The best that the grid's policies make of a detector."""
    holds, ends = _split(judged)
    if not holds or not ends:
        return Trade(
            holds=len(holds), ends=len(ends), within_mean=(), within_p95=(), fastest=(), surest=(), frontier=()
        )
    grid = _sweep(holds, ends, step_s)
    shares = grid.cut_offs / len(holds)

    def points(
        budgets: Sequence[float], wanted: NDArray[np.float64], limited: NDArray[np.float64]
    ) -> tuple[tuple[float, Point | None], ...]:
        rows = [(budget, grid.best(wanted, limited, budget)) for budget in budgets]
        return tuple(
            (budget, None if row is None else point(judged, _policy(grid, row), step_s=step_s)) for budget, row in rows
        )

    return Trade(
        holds=len(holds),
        ends=len(ends),
        within_mean=points(BUDGETS_S, shares, grid.mean_s),
        within_p95=points(BUDGETS_S, shares, grid.p95_s),
        fastest=points(CUT_OFF_BUDGETS, grid.mean_s, shares),
        surest=points(CUT_OFF_BUDGETS, grid.p95_s, shares),
        frontier=_frontier(grid.mean_s, shares),
    )


def point(judged: Sequence[Judged], policy: Policy, *, step_s: float) -> Point:
    """What `policy` does; there must be a pause and an end."""
    holds, ends = _split(judged)
    cut = [hold for hold in holds if hold.duration_s > _wait_s(hold, policy, step_s) + ROUNDING]
    waits_s = [_wait_s(end, policy, step_s) for end in ends]
    p95_s = percentile(waits_s, 95)
    assert p95_s is not None
    return Point(
        policy=policy,
        cut_offs=len(cut),
        holds=len(holds),
        turns_cut=len({hold.clip for hold in cut}),
        ends=len(ends),
        mean_s=sum(waits_s) / len(waits_s),
        p95_s=p95_s,
        timed_out=sum(_acts_s(end, policy, step_s) > policy.timeout_s + ROUNDING for end in ends),
    )


def waits_s(judged: Sequence[Judged], policy: Policy, *, step_s: float) -> list[float]:
    """How long `policy` waits at each end."""
    return [_wait_s(end, policy, step_s) for end in judged if end.is_end]


def _acts_s(pause: Judged, policy: Policy, step_s: float) -> float:
    """When the detector alone would have the policy act; infinite if never."""
    return max(policy.delay_s, _crossing_s(pause.scores, policy.threshold, step_s))


def _wait_s(pause: Judged, policy: Policy, step_s: float) -> float:
    return min(_acts_s(pause, policy, step_s), policy.timeout_s)


def _crossing_s(scores: Sequence[float], threshold: float, step_s: float) -> float:
    """When the probability first lies above the threshold; infinite if never."""
    return next((step_s * number for number, score in enumerate(scores, 1) if score > threshold), inf)


def _split(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    counted = [pause for pause in judged if pause.counts]
    return [pause for pause in counted if not pause.is_end], [pause for pause in counted if pause.is_end]


def _sweep(holds: Sequence[Judged], ends: Sequence[Judged], step_s: float) -> _Grid:
    durations_s = np.array([hold.duration_s for hold in holds])
    rows: list[tuple[float, float, float]] = []
    cut_offs: list[int] = []
    means_s: list[float] = []
    p95s_s: list[float] = []
    place = max(1, rank(len(ends), 95)) - 1
    crossings_s = [_crossings_s(group, step_s) for group in (holds, ends)]
    for threshold, hold_s, end_s in zip(THRESHOLDS, *crossings_s, strict=True):
        for delay_s in DELAYS_S:
            for timeout_s in TIMEOUTS_S:  # none is shorter than the longest delay
                waited_s = np.sort(np.minimum(np.maximum(end_s, delay_s), timeout_s))
                acted_s = np.minimum(np.maximum(hold_s, delay_s), timeout_s)
                rows.append((threshold, delay_s, timeout_s))
                cut_offs.append(int((durations_s > acted_s + ROUNDING).sum()))
                means_s.append(float(waited_s.mean()))
                p95s_s.append(float(waited_s[place]))
    return _Grid(np.array(rows), np.array(cut_offs), np.array(means_s), np.array(p95s_s))


def _crossings_s(pauses: Sequence[Judged], step_s: float) -> NDArray[np.float64]:
    """When each threshold is first exceeded, (thresholds, pauses)."""
    columns = []
    for pause in pauses:
        highest = np.maximum.accumulate(np.array(pause.scores, np.float64))
        places = np.searchsorted(highest, THRESHOLDS, side="right")
        columns.append(np.where(places < len(highest), step_s * (places + 1), inf))
    return np.array(columns).T


def _policy(grid: _Grid, row: int) -> Policy:
    threshold, delay_s, timeout_s = (float(value) for value in grid.policies[row])
    return Policy(threshold=threshold, delay_s=delay_s, timeout_s=timeout_s)


def _frontier(means_s: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    found: list[tuple[float, float]] = []
    for row in np.lexsort((shares, means_s)):
        if not found or shares[row] < found[-1][1] - ROUNDING:
            found.append((float(means_s[row]), float(shares[row])))
    return tuple(found)
