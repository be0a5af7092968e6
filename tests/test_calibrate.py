"""Calibration measures each stage with the real engines, in less than half a minute of a machine's own time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.hardware.planning import QUICK, config

from antiphon.calibrate import QUICK_STEP, STEPS, calibrate
from antiphon.hardware.probe import probe
from antiphon.hardware.stage_costs import TIMES

if TYPE_CHECKING:
    from antiphon.models.store import Store

pytestmark = [pytest.mark.model, pytest.mark.slow]


def test_every_stage_is_measured(store: Store) -> None:
    """Each cost is that of its stage: in order of size, and within what a busy machine can make of it."""
    steps: list[str] = []
    quick = QUICK if store.state(QUICK["quick_recognizer"]).condition == "present" else {}
    costs = asyncio.run(calibrate(config(models=quick), probe(), store=store, note=steps.append))

    assert list(STEPS) == [step for step in steps if step != QUICK_STEP]
    assert (QUICK_STEP in steps) == bool(quick)
    assert "measured" == costs.origin
    assert 0 <= costs.waited <= 1
    for name in TIMES:
        cost = getattr(costs, name)
        assert 10_000 < cost.median_ns <= cost.p95_ns
    assert costs.voice_frame.median_ns < costs.generated_token.median_ns < costs.encode.median_ns
    assert costs.prompt_token.median_ns < costs.generated_token.median_ns * 3
    assert 100e6 < costs.base_bytes < 4e9
