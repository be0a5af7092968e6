"""Cuts, graphs, pieces of memory, batch sizes and counters: what is decided without a GPU."""

from __future__ import annotations

import logging

import pytest

from antiphon.core.errors import CallerError
from antiphon.gpu.batch_size import BandwidthModel, Demand, SourceRule
from antiphon.gpu.device import Spot
from antiphon.gpu.fragmentation import Block, HoldBack, fragmentation
from antiphon.gpu.gpm import UNKNOWN, Gpm
from antiphon.gpu.places import Place
from antiphon.gpu.registry import Captured, GraphRegistry
from antiphon.hardware.gpu_parts import Cut, Pressure, cuts, step_of
from antiphon.scheduling.settings import SchedulingSettings

pytestmark = pytest.mark.unit
SPOT = Spot(place=Place.WHOLE, level=0)
MIB = 1 << 20


class Capturing:
    def __init__(self) -> None:
        self.fails = False

    def warm(self, name, body, spot) -> None:
        body()

    def capture(self, name, body, spot) -> Captured:
        if self.fails:
            raise RuntimeError("not capturable")
        return Captured(replay=body, pool_bytes=10)


def test_shares_in_steps_of_eight() -> None:
    found = cuts(132, SchedulingSettings(), step_of("9.0"))
    assert Cut(replies=52, others=80) == found[Pressure.USUAL]
    assert Cut(replies=20, others=112) == found[Pressure.SOMEBODY_BEGINS]
    assert Cut(replies=76, others=56) == found[Pressure.REPLIES_LATE]
    assert {} == cuts(20, SchedulingSettings(), step_of("8.6"))


def test_a_rare_bucket_runs_eagerly_and_is_captured_in_a_quiet_moment() -> None:
    registry = GraphRegistry(Capturing())
    registry.add("toy", lambda _: lambda: None)
    assert not registry.find("toy", 8, SPOT)[1]
    assert registry.capture_one()
    assert registry.find("toy", 8, SPOT)[1]
    assert not registry.capture_one()
    assert 10 == registry.report()[0].pool_bytes


def test_what_cannot_be_captured_is_said_and_runs(caplog) -> None:
    capturing = Capturing()
    capturing.fails = True
    registry = GraphRegistry(capturing)
    registry.add("toy", lambda _: lambda: None, buckets=(1,))
    with caplog.at_level(logging.WARNING):
        registry.prepare("toy", (SPOT,))
    assert "runs eagerly" in caplog.text
    assert not registry.find("toy", 1, SPOT)[1]
    assert "not capturable" in registry.report()[0].problem
    with pytest.raises(CallerError, match="bucket"):
        registry.find("toy", 3, SPOT)


def test_pieces_count_and_room_makes_them_harmless() -> None:
    blocks = [Block(pool="0", size_bytes=100 * MIB, is_free=True) for _ in range(4)]
    assert {"0": 0.75} == fragmentation(blocks)
    assert 0.3 > fragmentation(blocks, room_bytes=2000 * MIB)["0"]


def test_holding_back_ends_clearly_below_where_it_began() -> None:
    hold = HoldBack()
    assert [False, True, True, False] == [hold.look(value) for value in (0.35, 0.36, 0.31, 0.29)]
    assert not hold.look(None)
    assert not HoldBack(enabled=False).look(0.9)


def test_the_model_takes_the_largest_step_that_keeps_the_deadline() -> None:
    model = BandwidthModel(buckets=(1, 8, 64), weight_bytes=16 * 10**9, caller_bytes=134 * 10**6, peak_bytes_s=4e12)
    model.learn(1, 5_700_000)
    model.learn(64, 8_700_000)
    assert 64 == model.choose(Demand(callers=64))
    assert 8 == model.choose(Demand(callers=64, within_ns=7_000_000))
    assert 1 == model.choose(Demand(callers=64, within_ns=1))
    assert 8 == model.choose(Demand(callers=5))


def test_the_source_rule_never_shrinks_on_bandwidth_alone() -> None:
    rule = SourceRule(buckets=(1, 2, 4), size=4)
    assert 4 == rule.choose(Demand(callers=4, bandwidth=0.97, fragmentation=0.1))
    assert 2 == rule.choose(Demand(callers=4, bandwidth=0.97, fragmentation=0.4))


def test_counters_that_cannot_be_had_are_unknown() -> None:
    gpm = Gpm("GPU-00000000-0000-0000-0000-000000000000")
    assert gpm.problem
    assert UNKNOWN == gpm.look()
