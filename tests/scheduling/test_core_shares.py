"""Cores between calls of one and of several threads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.scheduling.core_shares import Want, paces

pytestmark = pytest.mark.unit

wants = st.lists(
    st.builds(Want, st.integers(0, 5), st.integers(1, 4), st.sampled_from((1.0, 0.8, 0.5, 0.33))),
    min_size=1,
    max_size=5,
)


def plain(cores: float, *some: Want) -> tuple[float, ...]:
    """Paces by cores alone, as if nothing else were lost."""
    return paces(cores, some, apart=1.0, crowded=1.0)[0]


def test_whoever_is_alone_has_a_core_for_each_thread() -> None:
    assert ((1.0,), 2.0) == paces(2, [Want(1, 2, 0.5)])
    assert (1.0, 1.0) == plain(2, Want(1, 1, 0.5), Want(1, 1, 1.0))


def test_two_threads_beside_one_are_as_fast_as_the_one_that_shares() -> None:
    """Not two thirds: one core is shared by halves, and the thread on the other core waits."""
    assert plain(2, Want(1, 2, 1.0), Want(1, 1, 1.0)) == pytest.approx((0.5, 0.5))


def test_threads_that_wait_for_each_other_lose_more_than_the_core() -> None:
    (slow, quick), busy = paces(2, [Want(1, 2, 1.0), Want(1, 1, 1.0)], apart=0.8, crowded=1.0)
    assert (slow, quick, busy) == pytest.approx((0.4, 0.5, 1.5))


def test_cores_are_shared_by_weight() -> None:
    assert plain(1, Want(1, 1, 1.0), Want(1, 1, 0.25)) == pytest.approx((0.8, 0.2))


def test_busy_cores_beside_it_slow_a_call_down() -> None:
    """By as much as they are busy; one that has all cores meets nobody."""
    (one, other), _ = paces(2, [Want(1, 1, 1.0), Want(1, 1, 1.0)], crowded=0.9)
    assert (one, other) == pytest.approx((0.9, 0.9))
    (alone,), _ = paces(2, [Want(1, 1, 1.0)], crowded=0.9)
    (whole,), _ = paces(2, [Want(1, 2, 1.0)], crowded=0.9)
    assert (alone, whole) == pytest.approx((1.0, 1.0))


def test_part_of_a_core_is_less_for_all() -> None:
    assert plain(1.5, Want(1, 2, 1.0)) == pytest.approx((0.75,))


def test_what_waits_for_a_slow_thread_leaves_its_core_to_others() -> None:
    """A quarter of one core is the call's, so three quarters of the other one are free for whoever is there."""
    assert plain(2, Want(1, 2, 1.0), Want(1, 1, 1.0), Want(1, 1, 3.0)) == pytest.approx((0.25, 0.75, 0.75))


@given(st.floats(0.5, 8), wants)
def test_nobody_gets_more_than_there_is(cores: float, some: list[Want]) -> None:
    found, busy = paces(cores, some)
    assert all(0.0 <= pace <= 1.0 + 1e-6 for pace in found)
    assert busy <= cores + 1e-6
    assert all(pace > 0 for pace, want in zip(found, some, strict=True) if want.calls)
