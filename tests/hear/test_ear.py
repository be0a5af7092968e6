from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hear.sounds import frames, silence

from antiphon.hear.ear import Ear
from antiphon.hear.segmenter import SegmenterSettings, VoiceStarted, VoiceStopped

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

pytestmark = pytest.mark.unit


class LoudnessStream:
    """Takes a loud frame for speech, and remembers what it was asked."""

    def __init__(self) -> None:
        self.frames: list[Pcm] = []
        self.resets = 0

    def probability(self, pcm: Pcm) -> float:
        self.frames.append(pcm.copy())
        return float(np.abs(pcm).mean() > 0.1)

    def reset(self) -> None:
        self.resets += 1


class LoudnessDetector:
    name = "loudness"
    frame_samples = 512

    def __init__(self) -> None:
        self.stream = LoudnessStream()

    def open(self) -> LoudnessStream:
        return self.stream

    def close(self) -> None: ...


def speech() -> Pcm:
    """20 frames of silence, 10 of a voice, 10 of silence."""
    return np.concatenate((silence(20 * 0.032), np.full(10 * 512, 0.5, np.float32), silence(10 * 0.032)))


EXPECTED = (
    VoiceStarted(start_samples=20 * 512 - 4800, detected_samples=22 * 512),
    VoiceStopped(end_samples=30 * 512, detected_samples=33 * 512),
)


@settings(deadline=None)
@given(st.integers(1, 3000))
def test_frame_size_does_not_matter(size: int) -> None:
    """The detector sees the same frames of 512, and the facts are the same."""
    detector = LoudnessDetector()
    ear = Ear(detector)
    found = tuple(fact for frame in frames(speech(), size_samples=size) for fact in ear.hear(frame))
    assert found == EXPECTED
    assert [512] * 40 == [len(frame) for frame in detector.stream.frames]
    assert np.array_equal(speech(), np.concatenate(detector.stream.frames))


def test_last_probability_and_position_can_be_read() -> None:
    """They belong to the last whole frame."""
    ear = Ear(LoudnessDetector())
    for frame in frames(speech()[: 25 * 512 + 100]):
        ear.hear(frame)
    assert (1.0, 25 * 512, True) == (ear.probability, ear.pos_samples, ear.is_voiced)


def test_a_short_loss_keeps_positions() -> None:
    """A hundred milliseconds lost inside the voice are heard as silence in their place."""
    ear = Ear(LoudnessDetector())
    whole = list(frames(speech(), size_samples=512))
    found = [fact for frame in whole[:5] + whole[8:] for fact in ear.hear(frame)]
    assert list(EXPECTED) == found


def test_a_long_loss_ends_the_voice_and_starts_afresh() -> None:
    """The detector forgets, the voice ended where it was last heard, and the next one lies behind the hole."""
    detector = LoudnessDetector()
    ear = Ear(detector)
    found = [fact for frame in frames(speech()[: 25 * 512 + 10]) for fact in ear.hear(frame)]
    resets = detector.stream.resets
    found += [fact for frame in frames(np.full(1024, 0.5, np.float32), pos_samples=10**6) for fact in ear.hear(frame)]
    assert [
        EXPECTED[0],
        VoiceStopped(end_samples=25 * 512, detected_samples=10**6),
        VoiceStarted(start_samples=10**6, detected_samples=10**6 + 1024),
    ] == found
    assert resets + 1 == detector.stream.resets


def test_other_settings_hold_for_the_next_voice() -> None:
    """The padding is the new one, from a frame on that was half heard before."""
    ear = Ear(LoudnessDetector())
    sound = list(frames(speech(), size_samples=300))
    found = [fact for frame in sound[:10] for fact in ear.hear(frame)]
    ear.adjust(SegmenterSettings(padding_samples=160))
    found += [fact for frame in sound[10:] for fact in ear.hear(frame)]
    assert [VoiceStarted(start_samples=20 * 512 - 160, detected_samples=22 * 512), EXPECTED[1]] == found
