"""How loud, and from where to where."""

from __future__ import annotations

import numpy as np
import pytest

from antiphon.audio.level import SILENCE_DBFS, audible_span, dbfs, fade, window_dbfs

pytestmark = pytest.mark.unit


def test_known_levels(sine):
    """A square wave of full scale has 0 dBFS, a sine -3.01, half of it 6 less, nothing the floor."""
    square = np.where(np.arange(1000) % 2, 1, -1).astype(np.float32)

    assert 0 == dbfs(square)
    assert pytest.approx(-3.01, abs=0.01) == dbfs(sine(100, 16000, 1.0, peak=1.0))
    assert pytest.approx(-9.03, abs=0.01) == dbfs(sine(100, 16000, 1.0, peak=0.5))
    assert SILENCE_DBFS == dbfs(np.zeros(9, np.float32)) == dbfs(np.zeros(0, np.float32))


def test_windows_are_judged_by_the_samples_they_have():
    """10 ms of 1, 10 of 0.1, then 5 ms of 1: three windows, the last one not diluted."""
    pcm = np.repeat([1, 0.1, 1], [160, 160, 80]).astype(np.float32)

    assert [0, -20, 0] == pytest.approx(window_dbfs(pcm, 16000, 10).tolist(), abs=1e-4)
    assert 0 == len(window_dbfs(pcm[:0], 16000, 10))


@pytest.mark.parametrize("rate_hz", [8000, 16000, 22050, 24000, 44100, 96000])
def test_a_tone_is_found_to_the_sample(rate_hz):
    """Between 300 ms of noise floor and a silent end."""
    rng = np.random.default_rng(1)
    noise = rng.integers(-290, 291, round(0.3 * rate_hz)) / 32768
    tone = 0.3 * np.sign(np.sin(2 * np.pi * 200 * (np.arange(rate_hz // 2) + 0.5) / rate_hz))
    pcm = np.concatenate([noise, tone, noise, np.zeros(rate_hz)]).astype(np.float32)

    assert (len(noise), len(noise) + len(tone)) == audible_span(pcm, rate_hz)


def test_clicks_do_not_count(sine):
    """Single ones, pairs, and 4 ms of buzz before and after 100 ms of tone."""
    pcm = np.zeros(16000, np.float32)
    for at in (10, 500, 600, 15990):
        pcm[at] = 0.9
    pcm[1000:1064] = 0.5
    pcm[8000:9600] = np.where(np.arange(1600) % 40 < 20, 0.2, -0.2)

    assert (8000, 9600) == audible_span(pcm, 16000)


def test_a_deep_voice_is_one_run():
    """Pulses 14 ms apart, each 2 ms long, belong together."""
    pcm = np.zeros(16000, np.float32)
    for start in range(3200, 9600, 224):
        pcm[start : start + 32] = 0.1

    assert (3200, 3200 + 28 * 224 + 32) == audible_span(pcm, 16000)


@pytest.mark.parametrize("pcm", [[], [0.0], [1.0], [0.0] * 5000, [0.009] * 5000])
def test_nothing_audible_is_an_empty_span(pcm):
    """No samples, one, silence, and noise below the threshold."""
    assert (0, 0) == audible_span(np.array(pcm, np.float32), 16000)


def test_a_fade_ramps_both_edges_and_leaves_the_rest():
    """Zero at the very edge, a half in the middle of the ramp, one inside; the input is untouched."""
    pcm = np.ones(1600, np.float32)
    faded = fade(pcm, 16000, in_ms=10, out_ms=5)

    assert [0, 0.5, 1, 1, 0.5, 0] == pytest.approx(faded[[0, 80, 160, 1519, 1559, 1599]].tolist(), abs=1e-6)
    assert (np.diff(faded[:160]) > 0).all()
    assert 1600 == pcm.sum()


@pytest.mark.parametrize("samples", [0, 1, 7])
def test_a_fade_longer_than_the_sound_is_no_error(samples):
    """The edges are zero where there are any."""
    faded = fade(np.ones(samples, np.float32), 16000, in_ms=10, out_ms=10)

    assert samples == len(faded)
    assert [0] * min(samples, 2) == [*faded[:1], *faded[1:][-1:]]
