"""Percentiles, intervals and ratios, against values worked out by hand."""

from __future__ import annotations

from math import inf

import pytest

from antiphon.lab import statistics
from antiphon.lab.statistics import (
    Interval,
    Sample,
    difference,
    percentile,
    percentile_interval,
    ratio,
    shown_ms,
    wilson,
)

pytestmark = pytest.mark.unit


def sample(*values: float, clips: str = "clip") -> Sample:
    """Each value on a clip of its own; samples with the same `clips` have the same clips."""
    return Sample(values=values, clips=tuple(f"{clips}{index}" for index in range(len(values))))


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ((), 50, None),
        ((7.0,), 50, 7.0),
        ((7.0,), 95, 7.0),
        ((3.0, 1.0, 2.0), 50, 2.0),
        ((1.0, 2.0, 3.0, 4.0), 50, 2.0),  # the second of four: nothing is interpolated
        (tuple(range(1, 21)), 95, 19),
        (tuple(range(1, 20)), 95, 19),  # 18.05 is rounded up: of fewer than 20, P95 is the slowest
        (tuple(range(1, 101)), 7, 7),  # though 7 * 100 / 100 may come out a little over 7
        (tuple(range(1, 101)), 100, 100),
        (tuple(range(1, 101)), 0, 1),
    ],
)
def test_a_percentile_is_the_nearest_rank(values: tuple[float, ...], percent: float, expected: float | None) -> None:
    """Value number ceil(p * n / 100) in order."""
    assert expected == percentile(values, percent)


def test_infinities_stand_last() -> None:
    """Two silent turns of twenty: P90 is the slowest answer, P95 is infinite."""
    values = [inf, *range(1, 19), inf]

    assert [18, inf, inf] == [percentile(values, percent) for percent in (90, 95, 100)]


@pytest.mark.parametrize(
    ("found", "of", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 50, 0.0, 0.07135),  # z^2 / (n + z^2)
        (3, 50, 0.02062, 0.16218),
        (50, 50, 0.92865, 1.0),
        (5, 10, 0.23659, 0.76341),
    ],
)
def test_wilson(found: int, of: int, low: float, high: float) -> None:
    """The score interval, closed at 0 and 1."""
    interval = wilson(found, of)

    assert (low, high) == pytest.approx((interval.low, interval.high), abs=1e-5)


def test_difference_of_shares() -> None:
    """Newcombe's example: 56 of 70 less 48 of 80 is 0.2, between 0.0524 and 0.3339."""
    interval = difference(56, 70, 48, 80)

    assert (0.0524, 0.3339) == pytest.approx((interval.low, interval.high), abs=1e-4)


def test_difference_with_nothing_tried() -> None:
    assert Interval(-1.0, 1.0) == difference(0, 0, 3, 10)


def test_an_interval_holds_the_percentile_and_repeats() -> None:
    """The same values have the same interval; it surrounds the percentile and never leaves the values."""
    values = sample(*(float(value) for value in range(100, 200)))
    interval = percentile_interval(values, 50)
    again = percentile_interval(values, 50)

    assert interval == again
    assert interval is not None
    assert 100 < interval.low < 149 < interval.high < 199
    assert 15 < interval.high - interval.low < 25  # 2 * 1.96 * sqrt(0.25 / 100) of 100 values: 19.6


def test_one_value_has_no_interval() -> None:
    assert [None, None] == [percentile_interval(sample(*values), 50) for values in ((), (1.0,))]


def test_an_interval_may_end_in_never() -> None:
    """One silent turn of twenty: the 95th percentile is finite, but its interval is not."""
    interval = percentile_interval(sample(*range(1, 20), inf), 95)

    assert interval is not None
    assert interval.low < 19
    assert interval.high == inf


def test_repeated_clips_widen_the_interval() -> None:
    """Ten turns of each of twelve clips are worth less than 120 clips: their values come and go together."""
    values = [float(100 * clip + turn) for clip in range(12) for turn in range(10)]
    together = Sample(values=tuple(values), clips=tuple(str(clip) for clip in range(12) for _ in range(10)))
    apart = sample(*values)
    wide, narrow = percentile_interval(together, 50), percentile_interval(apart, 50)

    assert wide is not None
    assert narrow is not None
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_a_paired_ratio_of_halves_is_exact() -> None:
    """If A takes half as long on every clip, every draw says 0.5, however different the clips are."""
    slow = sample(*(float(100 * clip) for clip in range(1, 31)))
    fast = Sample(values=tuple(value / 2 for value in slow.values), clips=slow.clips)
    found = ratio(fast, slow, 95)

    assert found is not None
    assert (0.5, Interval(0.5, 0.5), True, 30) == (found.value, found.interval, found.is_paired, found.clips)
    assert not found.is_noise


def test_an_unpaired_ratio_is_wider() -> None:
    """The same values on other clips: the clips' differences count as noise now."""
    slow = sample(*(float(100 * clip) for clip in range(1, 31)))
    fast = sample(*(50.0 * clip for clip in range(1, 31)), clips="other")
    found = ratio(fast, slow, 50)

    assert found is not None
    assert (0.5, False) == (found.value, found.is_paired)
    assert found.interval.low < 0.4
    assert found.interval.high > 0.6


def test_a_run_against_itself_is_noise() -> None:
    values = sample(*(float(value) for value in range(100, 150)))
    found = ratio(values, values, 95)

    assert found is not None
    assert (1.0, True) == (found.value, found.is_noise)


def test_pairs_leave_out_clips_that_one_side_lacks() -> None:
    """A's extra clip, slow as it is, has no partner."""
    b = sample(*(100.0 for _ in range(12)))
    a = Sample(values=(*b.values, 9999.0), clips=(*b.clips, "extra"))
    found = ratio(a, b, 100)

    assert found is not None
    assert (1.0, 12) == (found.value, found.clips)


def test_few_common_clips_are_no_pairs() -> None:
    """Nine clips are too few to draw from, so each side is drawn for itself."""
    values = sample(*(100.0 + clip for clip in range(9)))
    found = ratio(values, values, 50)

    assert found is not None
    assert not found.is_paired
    assert found.interval.low < 1 < found.interval.high


@pytest.mark.parametrize(("a", "b", "expected"), [(inf, inf, 1.0), (inf, 1.0, inf), (1.0, inf, 0.0)])
def test_ratios_of_infinities(a: float, b: float, expected: float) -> None:
    """Two servers that never answer are equal; one that does is infinitely better."""
    found = ratio(sample(*[a] * 20), sample(*[b] * 20), 50)

    assert found is not None
    assert (expected, Interval(expected, expected)) == (found.value, found.interval)


def test_no_ratio_without_values() -> None:
    assert ratio(Sample(values=(), clips=()), sample(1.0), 50) is None


def test_many_values_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A soak's turns do not fit into one table of draws; the interval is as narrow as it must be."""
    monkeypatch.setattr(statistics, "CELLS", 100_000)
    interval = percentile_interval(sample(*(float(value) for value in range(1000))), 50)

    assert interval is not None
    assert interval.high - interval.low == pytest.approx(62, rel=0.15)  # 2 * 1.96 * sqrt(1000 / 4)


def test_shown() -> None:
    assert ["none", "never", "320 ms"] == [shown_ms(value) for value in (None, inf, 320.4)]
