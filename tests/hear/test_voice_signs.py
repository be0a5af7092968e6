"""Signs that a voice has come up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from antiphon.hear.voice_signs import VoiceSigns
from antiphon.scheduling.shares import Signs

pytestmark = pytest.mark.unit


def told(signs, *, level, probability, pos):
    pcm = np.full(320, level, np.float32)
    return signs.take(pcm, SimpleNamespace(probability=probability, pos_samples=pos))


def test_frames_are_counted_from_where_the_voice_came_up():
    signs = VoiceSigns(512)
    assert told(signs, level=0.1, probability=0.2, pos=512) == Signs(certainty=0.2)
    assert told(signs, level=0.1, probability=0.6, pos=1024).voiced_frames == 1
    assert told(signs, level=0.1, probability=0.9, pos=2048).voiced_frames == 3
    assert told(signs, level=0.1, probability=0.4, pos=2560).voiced_frames == 0
    assert told(signs, level=0.1, probability=0.9, pos=3072).voiced_frames == 1


def test_the_level_is_told_against_the_voices_usual_one():
    signs = VoiceSigns(512)
    assert told(signs, level=0.2, probability=0.9, pos=512).energy_ratio == pytest.approx(1.0)
    assert told(signs, level=0.1, probability=0.9, pos=1024).energy_ratio == pytest.approx(0.5, rel=0.01)
    assert told(signs, level=0.0, probability=0.9, pos=1536).energy_ratio == 0.0
