"""How long a period is, and how much is worth waking for."""

from __future__ import annotations

import errno

import pytest

from antiphon.audio.card.recovery import MOST_RESUMES, Remedy, remedy
from antiphon.audio.card.tuning import CALM_NS, RISE_WINDOWS, Tuner, Tuning

pytestmark = pytest.mark.unit

S = 1_000_000_000
MS = 1_000_000


def windows(tuner, count, late_ns, start=1, lost=False):
    """So many seconds, each with one lateness; what was decided."""
    found = []
    for second in range(start, start + count):
        tuner.note(late_ns, lost=lost)
        found.append(tuner.decide(second * S))
    return [each for each in found if each]


def test_who_is_in_time_waits_for_more_as_the_deadline_permits():
    """5.3 ms a period: a deadline of 12 ms has room for two."""
    tuner = Tuner(deadline_ns=12 * MS)
    assert [Tuning(256, 2)] == windows(tuner, 20, 100_000)


def test_without_a_deadline_three_of_four_periods():
    tuner = Tuner(deadline_ns=None)
    assert [Tuning(256, 2), Tuning(256, 3)] == windows(tuner, 20, 100_000)


def test_more_is_waited_for_only_after_some_quiet_windows():
    tuner = Tuner(deadline_ns=None)
    assert [] == windows(tuner, RISE_WINDOWS, 100_000)


def test_lateness_is_answered_at_once():
    tuner = Tuner(deadline_ns=None, wake_periods=3)
    windows(tuner, 1, 0)
    assert [Tuning(256, 1)] == windows(tuner, 1, 5 * MS, start=2)


def test_lost_sound_doubles_the_period_up_to_the_longest():
    tuner = Tuner(deadline_ns=None)
    windows(tuner, 1, 0)
    periods = [each.period for each in windows(tuner, 10, 0, start=2, lost=True)]
    assert [512, 1024, 2048, 4096] == periods


def test_what_is_lost_while_a_device_starts_changes_nothing():
    """For a second after it was opened, or opened again."""
    tuner = Tuner(deadline_ns=None)
    tuner.decide(1 * S)
    tuner.note(0, lost=True)
    assert tuner.decide(1 * S + 20 * MS) is None
    tuner.begin()
    tuner.decide(5 * S)
    tuner.note(0, lost=True)
    assert tuner.decide(5 * S + 20 * MS) is None
    tuner.note(0, lost=True)
    assert Tuning(512, 1) == tuner.decide(6 * S + 20 * MS)


def test_calm_halves_it_again_if_the_lateness_was_small():
    tuner = Tuner(deadline_ns=None, period=1024)
    found = windows(tuner, CALM_NS // S + 3, 1 * MS)
    assert 512 in {each.period for each in found}


def test_calm_with_a_lateness_that_half_the_buffer_would_not_bear_changes_no_period():
    tuner = Tuner(deadline_ns=None, period=512)
    found = windows(tuner, 100, 9 * MS)
    assert {512} == {each.period for each in found} | {512}


def test_fixed_means_fixed():
    tuner = Tuner(deadline_ns=None, adapts=False)
    assert [] == windows(tuner, 100, 50 * MS, lost=True)


@pytest.mark.parametrize(
    ("error", "resumes", "expected"),
    [
        (-errno.EAGAIN, 0, Remedy.WAIT),
        (-errno.EPIPE, 0, Remedy.PREPARE),
        (-86, 0, Remedy.RESUME),
        (-errno.EAGAIN, 1, Remedy.RESUME),
        (-86, MOST_RESUMES, Remedy.PREPARE),
        (-errno.ENOSYS, 1, Remedy.PREPARE),
        (-errno.ENODEV, 0, Remedy.REOPEN),
        (-errno.EBADF, 0, Remedy.REOPEN),
        (-77, 0, Remedy.REOPEN),  # EBADFD
    ],
)
def test_what_alsa_says_has_a_remedy(error, resumes, expected):
    assert expected is remedy(error, resumes)
