"""Whether probabilities can be taken at their word, computed by hand."""

from __future__ import annotations

import pytest
from tests.lab.pauses import end, hold

from antiphon.lab.turn_end_calibration import Bin, calibration

pytestmark = pytest.mark.unit

JUDGED = [
    end(0.0, 0.9),
    end(0.0, 0.95),
    end(0.0, 0.2),
    hold(0.3, 0.0, 0.1, 0.1),
    hold(0.25, 0.0, 0.95),
]


def test_pauses_and_ends_weigh_half_each() -> None:
    """Of 3 ends each weighs 1/6, of 2 pauses each 1/4; as counted each weighs 1/5."""
    found = calibration(JUDGED, 0.2, step_s=0.1)
    assert found is not None
    brier = (0.01 + 0.0025 + 0.64) / 6 + (0.01 + 0.9025) / 4
    # Bin 1 holds the pause of 0.1, bin 2 the end of 0.2, bin 9 the ends of 0.9 and 0.95 and the pause of 0.95.
    top = 2 / 6 + 1 / 4
    top_score = (0.9 / 6 + 0.95 / 6 + 0.95 / 4) / top
    bins = (
        Bin(score=pytest.approx(0.1), ends=0.0, weight=pytest.approx(1 / 4), count=1),
        Bin(score=pytest.approx(0.2), ends=1.0, weight=pytest.approx(1 / 6), count=1),
        Bin(score=pytest.approx(top_score), ends=pytest.approx((2 / 6) / top), weight=pytest.approx(top), count=3),
    )
    ece = 0.1 / 4 + 0.8 / 6 + abs(top_score * top - 2 / 6)
    assert (2, 3, bins) == (found.holds, found.ends, found.bins)
    assert (pytest.approx(brier), pytest.approx(ece)) == (found.brier, found.ece)
    counted = (0.01 + 0.0025 + 0.64 + 0.01 + 0.9025) / 5
    assert (pytest.approx(counted), pytest.approx(0.1 / 5 + 0.8 / 5 + abs(2.8 - 2) / 5)) == (
        found.brier_as_counted,
        found.ece_as_counted,
    )


def test_pauses_that_are_over_by_then_are_left_out() -> None:
    """Only one has lasted for 0.3 s; the ends here were not looked at for so long."""
    longer = [end(0.0, 0.9, 0.9), *JUDGED]
    found = calibration(longer, 0.3, step_s=0.1)
    assert found is not None
    assert (1, 1) == (found.holds, found.ends)


@pytest.mark.parametrize(
    ("judged", "at_s"), [(JUDGED, 0.05), ([end(0.5, 0.5)], 0.2), ([hold(0.5, 0.5, 0.5)], 0.2), ([], 0.2)]
)
def test_without_either_there_is_none(judged: list[object], at_s: float) -> None:
    """Before the first step, or where there are only ends, only pauses, or nothing."""
    assert calibration(judged, at_s, step_s=0.1) is None


def test_the_last_step_by_then_counts() -> None:
    """200 ms after the start, of steps of 32 ms, that is the sixth."""
    scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    found = calibration([end(*scores), hold(0.5, *scores)], 0.2, step_s=0.032)
    assert found is not None
    assert [pytest.approx(0.6)] == [each.score for each in found.bins]
