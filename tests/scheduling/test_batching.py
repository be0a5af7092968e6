"""Who goes along, in ms of time that each can wait; one more costs 70 % of a call alone."""

from __future__ import annotations

import pytest

from antiphon.scheduling.batching import Companion, company

pytestmark = pytest.mark.unit


def joined(first, others, *, most=8, alone=100):
    return company(
        Companion(item="first", laxity_ns=first),
        [Companion(item=name, laxity_ns=laxity) for name, laxity in others],
        most=most,
        alone_ns=alone,
        one_more=0.7,
    )


def test_one_joins_if_the_first_can_wait_that_much_longer():
    assert joined(70, [("a", 500)]) == ("a",)
    assert joined(69, [("a", 500)]) == ()


def test_the_earliest_deadline_closes_the_batch_even_if_it_came_in_later():
    assert joined(1000, [("a", 100), ("b", 900)]) == ("a",)  # with b the call takes 140 longer, and a can wait 100
    assert joined(1000, [("a", 140), ("b", 900)]) == ("a", "b")


def test_whoever_is_late_already_keeps_nobody_out():
    assert joined(-1, [("a", 500), ("b", 500)]) == ("a", "b")


def test_a_batch_holds_no_more_than_the_engine_takes():
    assert joined(1000, [("a", 1000), ("b", 1000)], most=2) == ("a",)
    assert joined(1000, [("a", 1000)], most=1) == ()
