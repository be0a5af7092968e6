"""What jobs are said to take."""

from __future__ import annotations

import pytest

from antiphon.core.stamps import Stage
from antiphon.scheduling.estimates import LEAST, Estimates
from antiphon.scheduling.job import Job

pytestmark = pytest.mark.unit
JOB = Job(stage=Stage.SPEAK, estimate_ns=50, size=20)


def test_the_engines_guess_counts_until_five_were_seen_then_the_eightieth_percentile():
    estimates = Estimates()
    for took in (10, 20, 30, 40):
        estimates.learn("voice", JOB, 50, took)
        assert estimates.of("voice", JOB) == 50
    assert LEAST == 5
    estimates.learn("voice", JOB, 50, 100)
    assert estimates.of("voice", JOB) == 100  # the fifth of five: index int(0.8 * 5)
    estimates.learn("voice", JOB, 100, 50)
    assert estimates.of("voice", JOB) == 50  # of 10 20 30 40 50 100 the index is 4


def test_sizes_of_another_power_of_two_and_other_lanes_are_learned_apart():
    estimates = Estimates()
    for _ in range(LEAST):
        estimates.learn("voice", JOB, 0, 10)
    assert estimates.of("voice", Job(stage=Stage.SPEAK, estimate_ns=7, size=31)) == 10
    assert estimates.of("voice", Job(stage=Stage.SPEAK, estimate_ns=7, size=32)) == 7
    assert estimates.of("other", JOB) == 50


def test_the_error_is_what_was_taken_against_what_was_said():
    estimates = Estimates()
    estimates.learn("voice", JOB, 50, 100)
    estimates.learn("voice", JOB, 0, 100)  # nothing was said
    assert list(estimates.errors[Stage.SPEAK]) == [2.0]
