"""Numbers in -> percentiles, shares and ratios out, each with the interval that says how much to believe.

A percentile is a nearest rank: of n values in order, the p-th percentile is value number ceil(p * n / 100). Nothing is
interpolated, so it is always a value that occurred, and infinities (turns without a reply) stand last like any other.

Intervals of percentiles and of their ratios are bootstraps: clips are drawn anew with replacement, with all the values
that each one brought, since turns that say the same clip are no independent turns. Where there are too few clips for
that, turns are drawn instead, and the interval says nothing about other clips. Draws come from a seeded generator, so
the same values have the same interval. Units: those of the values; shares and confidences from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, isinf, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

SEED = 20_260_401  # any will do, as long as it stays
DRAWS = 2000  # the ends of a 95 % interval then rest on 50 draws each
CONFIDENCE = 0.95
Z = 1.959964  # standard deviations that hold 95 % of a normal distribution
FEWEST_CLIPS = 10  # that are drawn as wholes; of fewer, too many draws are alike
CELLS = 2_000_000  # of a table of draws at once, 16 MB: a soak has many turns


@dataclass(frozen=True, slots=True)
class Interval:
    """Between which values the truth lies, with 95 % confidence."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was measured, and on what: `clips[i]` names the clip of `values[i]`."""

    values: tuple[float, ...]
    clips: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.values) == len(self.clips)

    @property
    def drawable(self) -> Sample:
        """The same, with each value on a clip of its own if there are too few clips to draw from."""
        if len(set(self.clips)) >= FEWEST_CLIPS:
            return self
        return Sample(values=self.values, clips=tuple(str(index) for index in range(len(self.values))))

    def only(self, clips: frozenset[str]) -> Sample:
        """The part that was measured on `clips`."""
        kept = [(value, clip) for value, clip in zip(self.values, self.clips, strict=True) if clip in clips]
        return Sample(values=tuple(value for value, _ in kept), clips=tuple(clip for _, clip in kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One run's percentile as a multiple of another's."""

    value: float
    interval: Interval
    is_paired: bool  # both were drawn on the same clips
    clips: int  # of the pairs, or of the smaller side

    @property
    def is_noise(self) -> bool:
        """Whether no difference would explain what was seen as well."""
        return self.interval.holds(1.0)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The nearest rank; None of nothing. `percent` lies in 0 to 100; 100 is the largest value, 0 the smallest."""
    if not values:
        return None
    return sorted(values)[max(1, rank(len(values), percent)) - 1]


def rank(count: int, percent: float) -> int:
    """The rank, from 1, of the percentile among `count` values."""
    return ceil(round(percent * count / 100, 9))  # 0.07 * 100 is a little over 7


def wilson(found: int, of: int) -> Interval:
    """Wilson's score interval of a share; all of 0 to 1 where nothing was tried."""
    if of == 0:
        return Interval(0.0, 1.0)
    share, square = found / of, Z * Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = Z * sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    low = 0.0 if found == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if found == of else min(1.0, middle + half))


def difference(found_a: int, of_a: int, found_b: int, of_b: int) -> Interval:
    """Newcombe's interval of share A minus share B, made of both Wilson intervals; -1 to 1 where nothing was tried."""
    if of_a == 0 or of_b == 0:
        return Interval(-1.0, 1.0)
    a, b = found_a / of_a, found_b / of_b
    of_first, of_second = wilson(found_a, of_a), wilson(found_b, of_b)
    low = a - b - sqrt((a - of_first.low) ** 2 + (of_second.high - b) ** 2)
    high = a - b + sqrt((of_first.high - a) ** 2 + (b - of_second.low) ** 2)
    return Interval(low, high)


def percentile_interval(sample: Sample, percent: float, *, seed: int = SEED) -> Interval | None:
    """The bootstrap interval of a percentile; None of fewer than two values, which say nothing of their spread."""
    if len(sample.values) < 2:
        return None
    sample = sample.drawable
    names = sorted(set(sample.clips))
    drawn = [_percentiles(sample, names, counts, percent) for counts in _draws(len(names), len(sample.values), seed)]
    return _middle(np.concatenate(drawn))


def ratio(a: Sample, b: Sample, percent: float, *, seed: int = SEED) -> Ratio | None:
    """A's percentile over B's; None if one of them has no value.

    Where at least FEWEST_CLIPS and half of either's clips occur in both, the others are left out and the two are drawn
    together; else each is drawn for itself. Two infinities have the ratio 1: neither is better.
    """
    both = frozenset(a.clips) & frozenset(b.clips)
    is_paired = len(both) >= max(FEWEST_CLIPS, len(set(a.clips)) / 2, len(set(b.clips)) / 2)
    if is_paired:
        a, b = a.only(both), b.only(both)
    of_a, of_b = percentile(a.values, percent), percentile(b.values, percent)
    if of_a is None or of_b is None:
        return None
    quotients = _paired(a, b, percent, seed) if is_paired else _unpaired(a, b, percent, seed)
    value = float(_quotients(np.array([of_a]), np.array([of_b]))[0])
    clips = len(both) if is_paired else min(len(set(a.clips)), len(set(b.clips)))
    return Ratio(value=value, interval=_middle(quotients), is_paired=is_paired, clips=clips)


def _paired(a: Sample, b: Sample, percent: float, seed: int) -> NDArray[np.float64]:
    names = sorted(set(a.clips) | set(b.clips))
    draws = _draws(len(names), len(a.values) + len(b.values), seed)
    return np.concatenate(
        [
            _quotients(_percentiles(a, names, counts, percent), _percentiles(b, names, counts, percent))
            for counts in draws
        ]
    )


def _unpaired(a: Sample, b: Sample, percent: float, seed: int) -> NDArray[np.float64]:
    sides = []
    for side, sample in enumerate((a.drawable, b.drawable)):
        names = sorted(set(sample.clips))
        draws = _draws(len(names), len(sample.values), seed + side)  # the same numbers would pair what is no pair
        sides.append(np.concatenate([_percentiles(sample, names, counts, percent) for counts in draws]))
    return _quotients(*sides)


def _draws(clips: int, values: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """How often each clip is drawn: DRAWS rows in all, in tables that fit into memory."""
    generator = np.random.default_rng(seed)
    left = DRAWS
    while left:
        rows = min(left, max(1, CELLS // max(1, values)))
        yield generator.multinomial(clips, np.full(clips, 1 / clips), size=rows)  # (rows, clips)
        left -= rows


def _percentiles(
    sample: Sample, names: Sequence[str], counts: NDArray[np.int64], percent: float
) -> NDArray[np.float64]:
    """The percentile in each draw; NaN in a draw that left the sample without a value."""
    place = {name: index for index, name in enumerate(names)}
    order = np.argsort(np.array(sample.values), kind="stable")
    values = np.array(sample.values)[order]
    clips = np.array([place[clip] for clip in sample.clips])[order]
    reached = np.cumsum(counts[:, clips], axis=1)  # (draws, values): how many drawn values lie at or below each
    totals = reached[:, -1]
    wanted = np.maximum(1, np.ceil(np.round(percent * totals / 100, 9)))
    found = values[np.argmax(reached >= wanted[:, None], axis=1)]
    return np.where(totals > 0, found, np.nan)


def _quotients(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        quotients = a / b
    return np.where((np.isinf(a) & np.isinf(b)) | ((a == 0) & (b == 0)), 1.0, quotients)


def _middle(drawn: NDArray[np.float64]) -> Interval:
    """The interval that the middle 95 % of the draws span; draws without a value do not count."""
    ordered = [float(value) for value in np.sort(drawn[~np.isnan(drawn)])]
    if not ordered:
        return Interval(0.0, inf)
    edge = 50 * (1 - CONFIDENCE)
    low, high = percentile(ordered, edge), percentile(ordered, 100 - edge)
    assert low is not None
    assert high is not None
    return Interval(low, high)


def shown_ms(value: float | None) -> str:
    """A latency as people read it."""
    if value is None:
        return "none"
    return "never" if isinf(value) else f"{value:.0f} ms"
