"""Percentiles in bounded memory."""

from __future__ import annotations

import pytest

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.lab.lateness import Lateness

pytestmark = pytest.mark.unit


def test_percentiles_are_good_to_a_bin_and_the_most_is_exact() -> None:
    """Never above the most, nothing is below zero."""
    lateness = Lateness()
    for tenths in range(-10, 1000):
        lateness.add(tenths * MILLISECOND_NS // 10)
    assert pytest.approx(50, abs=0.6) == lateness.percentile_ms(50)
    assert 99.9 == lateness.percentile_ms(100)
    assert (0.0, 0) == (Lateness().percentile_ms(99), Lateness().count)


def test_what_is_far_too_late_is_told_by_the_most() -> None:
    """Beyond the last bin."""
    lateness = Lateness()
    lateness.add(3 * SECOND_NS)
    assert 3000.0 == lateness.percentile_ms(50)
