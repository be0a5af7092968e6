from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hear.sounds import hum, silence, white

from antiphon.hear.mel import BINS, MelStream, log_mel, normalised, standardised

pytestmark = pytest.mark.unit


def reference(pcm: np.ndarray, columns: int, bins: int) -> np.ndarray:
    """The definition, in double precision: a discrete Fourier sum per column, filters from Slaney's formulas."""
    hz = np.arange(201) * 40.0
    break_mel, step = 15.0, np.log(6.4) / 27.0
    top = break_mel + np.log(8.0) / step
    points = [
        m * 200 / 3 if m < break_mel else 1000 * np.exp(step * (m - break_mel)) for m in np.linspace(0, top, bins + 2)
    ]
    padded = np.concatenate((pcm.astype(np.float64), np.zeros(columns * 160 + 400)))
    padded = np.concatenate((padded[200:0:-1], padded))
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    sums = np.exp(-2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400)
    out = np.empty((columns, bins))
    for column in range(columns):
        power = np.abs(sums @ (padded[column * 160 : column * 160 + 400] * hann)) ** 2
        for i, (low, peak, high) in enumerate(zip(points, points[1:], points[2:], strict=False)):
            rise, fall = (hz - low) / (peak - low), (high - hz) / (high - peak)
            triangle = np.maximum(0.0, np.minimum(rise, fall)) * 2 / (high - low)
            out[column, i] = np.log10(max(1e-10, float(triangle @ power)))
    return out


@pytest.mark.parametrize("bins", [BINS, 128])
@pytest.mark.parametrize("pcm", [white(-20, 0.3), hum(-20, 440, 0.3)], ids=["noise", "tone"])
def test_columns_follow_the_definition(pcm: np.ndarray, bins: int) -> None:
    """Once normalised, single precision is within 1e-3 of a direct sum in double precision."""
    expected = normalised(reference(pcm, 40, bins).astype(np.float32))
    np.testing.assert_allclose(normalised(log_mel(pcm, 40, bins=bins)), expected, atol=1e-3)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 700), max_size=30), st.integers(0, 9000))
def test_columns_do_not_depend_on_how_the_sound_came_in(sizes: list[int], until: int) -> None:
    """Bit for bit the same, whatever the frames, for the whole sound and for any part of it from its beginning."""
    pcm = white(-20, 0.5)[: sum(sizes)]
    stream = MelStream()
    offset = 0
    for size in sizes:
        stream.feed(pcm[offset : offset + size])
        offset += size
    assert np.array_equal(log_mel(pcm, 60), stream.columns(len(pcm), 60))
    assert np.array_equal(log_mel(pcm[:until], 60), stream.columns(until, 60))


def test_forgetting_the_beginning_leaves_the_rest_as_it_is() -> None:
    """Columns keep their values and lose their number; sound that comes later continues them."""
    pcm = white(-20, 2.0)
    stream = MelStream(pcm[:16000])
    stream.drop(50)
    stream.feed(pcm[16000:])
    assert len(stream) == len(pcm) - 50 * 160
    assert np.array_equal(log_mel(pcm, 200)[50:], stream.columns(len(stream), 150))
    assert np.array_equal(pcm[8000:], stream.pcm)


def test_forgetting_more_than_there_is_leaves_nothing() -> None:
    """A stream that was emptied starts afresh."""
    stream = MelStream(white(-20, 0.1))
    stream.drop(1000)
    assert len(stream) == 0
    stream.feed(white(-20, 0.5))
    assert np.array_equal(log_mel(white(-20, 0.5), 50), stream.columns(8000, 50))


def test_digital_silence_is_finite() -> None:
    """Neither the logarithm nor the levelling of nothing is infinite."""
    assert np.isfinite(normalised(log_mel(standardised(silence(1)), 100))).all()
    assert np.isfinite(normalised(log_mel(silence(0), 100))).all()


def test_levelled_sound_has_mean_0_and_variance_1() -> None:
    """An offset and a gain both go."""
    levelled = standardised(white(-40, 1.0) + np.float32(0.2))
    assert abs(float(levelled.mean())) < 1e-4
    assert abs(float(levelled.var()) - 1.0) < 1e-2
    assert levelled.dtype == np.float32
