from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.hear.slots import orders
from tests.hear.sounds import white

from antiphon.core.errors import MachineError
from antiphon.hear.smart_turn import WINDOW_SAMPLES, SmartTurnJudge, features
from antiphon.scheduling.lanes import ThreadLane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antiphon.core.flow import Pcm

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def judge(smart_turn_file: Path) -> Iterator[SmartTurnJudge]:
    lane = ThreadLane("prosody")
    yield SmartTurnJudge.load(smart_turn_file, lane=lane)
    lane.close()


def judged(judge: SmartTurnJudge, pcm: Pcm) -> float:
    return asyncio.run(judge.probability(pcm))


def test_finished_orders_score_higher_than_their_first_halves(judge: SmartTurnJudge, corpus_folder: Path) -> None:
    """Over ten orders the ends have the higher mean; it is evidence, no verdict."""
    some = orders(corpus_folder, "clean")[:10]
    ends = [judged(judge, order.pcm[: order.end_samples + 3200]) for order in some]
    halves = [judged(judge, order.pcm[: (order.start_samples + order.end_samples) // 2]) for order in some]
    assert np.mean(ends) > np.mean(halves) + 0.2
    assert all(0.0 <= probability <= 1.0 for probability in ends + halves)


def test_only_the_last_eight_seconds_count(judge: SmartTurnJudge) -> None:
    """What lies before them changes nothing."""
    recent = white(-30, 8.0)
    assert judged(judge, recent) == judged(judge, np.concatenate((white(-10, 5.0), recent)))
    assert len(recent) == WINDOW_SAMPLES == judge.window_samples


@pytest.mark.parametrize("size", [0, 1, 399, 5000])
def test_little_sound_is_no_error(judge: SmartTurnJudge, size: int) -> None:
    """Silence stands in front of what there is."""
    assert 0.0 <= judged(judge, white(-30, 1.0)[:size]) <= 1.0
    assert features(white(-30, 1.0)[:size]).shape == (80, 800)


def test_sound_is_copied_before_the_call_returns(judge: SmartTurnJudge) -> None:
    """The caller may write over its buffer while the model runs."""

    async def ask() -> tuple[float, float]:
        pcm = white(-30, 2.0)
        expected = await judge.probability(pcm.copy())
        asked = asyncio.ensure_future(judge.probability(pcm))
        await asyncio.sleep(0)
        pcm[:] = 0.0
        return expected, await asked

    expected, actual = asyncio.run(ask())
    assert expected == actual


def test_a_missing_file_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    """With the command that mends it."""
    with pytest.raises(MachineError, match="fetch"):
        SmartTurnJudge.load(tmp_path / "none.onnx", lane=ThreadLane("none"))
