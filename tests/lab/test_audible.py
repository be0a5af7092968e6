"""When a reply can be heard: the same, however its sound was cut."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lab.fake_server import silence, tone

from antiphon.audio.level import audible_span
from antiphon.core.errors import CallerError
from antiphon.lab.audible import AudibleRuns

pytestmark = pytest.mark.unit

RATE_HZ = 24_000


def runs_of(pcm: np.ndarray, *, cuts: list[int] | None = None, rate_hz: int = RATE_HZ) -> AudibleRuns:
    runs = AudibleRuns(rate_hz)
    for part in np.split(pcm, cuts or []):
        runs.push(part)
    runs.finish()
    return runs


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 48_000])
def test_it_judges_as_the_whole_is_judged(rate_hz: int) -> None:
    """Noise in bursts of all lengths, cut at random: first and last audible sample are those of `audible_span`."""
    dice = np.random.default_rng(7)
    for _ in range(60):
        parts = []
        for ms in dice.uniform(0.1, 40, size=dice.integers(1, 12)):
            loud = dice.choice([0.0, 0.009, 0.02, 0.5])
            parts.append((loud * dice.uniform(-1, 1, round(ms * rate_hz / 1000))).astype(np.float32))
        pcm = np.concatenate(parts)
        cuts = sorted(dice.integers(0, len(pcm) + 1, size=dice.integers(0, 20)).tolist())
        spans = runs_of(pcm, cuts=cuts, rate_hz=rate_hz).spans()
        assert audible_span(pcm, rate_hz) == ((spans[0][0], spans[-1][1]) if spans else (0, 0))


def test_clicks_and_silence_do_not_count() -> None:
    """Only the sound between them."""
    pcm = np.concatenate([tone(3, RATE_HZ), silence(100, RATE_HZ), tone(50, RATE_HZ), silence(80, RATE_HZ)])
    assert [(103 * 24, 153 * 24)] == runs_of(pcm).spans()


def test_a_cut_ends_what_was_heard() -> None:
    """What lies behind it was not audible, for it was not played."""
    pcm = np.concatenate([silence(10, RATE_HZ), tone(50, RATE_HZ), silence(80, RATE_HZ), tone(50, RATE_HZ)])
    runs = runs_of(pcm)
    assert [(240, 1440), (3360, 4560)] == runs.spans()
    assert [(240, 500)] == runs.spans(500)
    assert [] == runs.spans(240)


def test_odd_rates_are_refused() -> None:
    """A window would hold no whole number of samples."""
    with pytest.raises(CallerError, match="22050 Hz"):
        AudibleRuns(22_050)
