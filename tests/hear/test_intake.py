from __future__ import annotations

import numpy as np
import pytest

from antiphon.core.errors import CallerError
from antiphon.core.flow import AudioFrame
from antiphon.hear.intake import Intake, Run

pytestmark = pytest.mark.unit


def frame(pos: int, size: int, *, value: float = 0.5, rate_hz: int = 16_000) -> AudioFrame:
    return AudioFrame(pcm=np.full(size, value, np.float32), rate_hz=rate_hz, pos_samples=pos, captured_ns=0)


def shape(run: Run | None) -> tuple[int, int, bool] | None:
    return None if run is None else (run.pos_samples, len(run.pcm), run.restarted)


def test_frames_in_order_pass() -> None:
    """The first begins the stream where it lies, the next one follows."""
    intake = Intake(100)
    assert (7, 10, True) == shape(intake.take(frame(7, 10)))
    assert (17, 10, False) == shape(intake.take(frame(17, 10)))


def test_a_small_gap_is_silence() -> None:
    """What was lost keeps its place."""
    intake = Intake(100)
    intake.take(frame(0, 10))
    run = intake.take(frame(15, 2))
    assert (10, 7, False) == shape(run)
    assert run is not None
    assert [0, 0, 0, 0, 0, 0.5, 0.5] == run.pcm.tolist()


def test_a_large_gap_begins_anew() -> None:
    """Past the bound nothing before belongs to it."""
    intake = Intake(100)
    intake.take(frame(0, 10))
    assert (111, 5, True) == shape(intake.take(frame(111, 5)))


def test_sound_heard_before_is_skipped() -> None:
    """Of a frame that overlaps only the rest counts, of a repeated one nothing."""
    intake = Intake(100)
    intake.take(frame(0, 10))
    assert shape(intake.take(frame(0, 10))) is None
    assert (10, 4, False) == shape(intake.take(frame(4, 10)))


def test_no_sound_is_nothing_new() -> None:
    """An empty frame neither begins a stream nor moves it."""
    intake = Intake(100)
    assert shape(intake.take(frame(0, 0))) is None
    assert (3, 1, True) == shape(intake.take(frame(3, 1)))
    assert shape(intake.take(frame(50, 0))) is None
    assert (4, 1, False) == shape(intake.take(frame(4, 1)))


def test_what_is_no_number_is_silence() -> None:
    """One bad sample must not stay in a recurrent state."""
    run = Intake(100).take(
        AudioFrame(
            pcm=np.array([np.nan, np.inf, -np.inf, 0.25], np.float32), rate_hz=16_000, pos_samples=0, captured_ns=0
        )
    )
    assert run is not None
    assert [0.0, 1.0, -1.0, 0.25] == run.pcm.tolist()


def test_another_rate_and_two_channels_are_refused() -> None:
    """Both with a remedy."""
    with pytest.raises(CallerError, match="48000"):
        Intake(100).take(frame(0, 10, rate_hz=48_000))
    stereo = AudioFrame(pcm=np.zeros((10, 2), np.float32), rate_hz=16_000, pos_samples=0, captured_ns=0)
    with pytest.raises(CallerError, match="one channel"):
        Intake(100).take(stereo)
