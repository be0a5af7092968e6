from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.errors import CallerError
from antiphon.hear.segmenter import Segmenter, SegmenterSettings, VoiceFact, VoiceStarted, VoiceStopped

pytestmark = pytest.mark.unit

FRAME = 512


def facts(probabilities: list[float], settings: SegmenterSettings, *, pos_samples: int = 0) -> list[VoiceFact]:
    segmenter = Segmenter(settings)
    out = []
    for index, probability in enumerate(probabilities):
        start = pos_samples + index * FRAME
        out.append(segmenter.push(probability, start, start + FRAME))
    return [fact for fact in out if fact is not None]


def test_start_is_dated_back_and_stop_too() -> None:
    """Voiced frames 20 to 29: found after two, begun 300 ms before; stopped after three silent ones, at frame 30."""
    assert [
        VoiceStarted(start_samples=20 * FRAME - 4800, detected_samples=22 * FRAME),
        VoiceStopped(end_samples=30 * FRAME, detected_samples=33 * FRAME),
    ] == facts([0.0] * 20 + [0.9] * 10 + [0.0] * 5, SegmenterSettings())


def test_one_voiced_frame_is_a_click() -> None:
    """Two in a row it takes."""
    assert [] == facts([0.0, 0.9, 0.0, 0.9, 0.4, 0.9, 0.0], SegmenterSettings())


def test_a_voice_lasts_between_the_thresholds() -> None:
    """0.4 does not start a voice but keeps one; two frames below it do not end it."""
    voiced = [0.9, 0.9, 0.4, 0.1, 0.1, 0.4, 0.1, 0.1]
    assert [VoiceStarted(start_samples=0, detected_samples=2 * FRAME)] == facts(voiced, SegmenterSettings())
    assert (
        VoiceStopped(end_samples=6 * FRAME, detected_samples=9 * FRAME) == facts([*voiced, 0.1], SegmenterSettings())[1]
    )


def test_padding_stops_at_the_stream_and_at_the_segment_before() -> None:
    """Speech from the first sample begins at it; a word 96 ms later begins where the last one ended."""
    settings = SegmenterSettings(padding_samples=4800)
    found = facts([0.9] * 3 + [0.0] * 3 + [0.9] * 3 + [0.0] * 3, settings, pos_samples=1000)
    assert [
        VoiceStarted(start_samples=1000, detected_samples=1000 + 2 * FRAME),
        VoiceStopped(end_samples=1000 + 3 * FRAME, detected_samples=1000 + 6 * FRAME),
        VoiceStarted(start_samples=1000 + 3 * FRAME, detected_samples=1000 + 8 * FRAME),
        VoiceStopped(end_samples=1000 + 9 * FRAME, detected_samples=1000 + 12 * FRAME),
    ] == found


def test_other_settings_count_from_the_next_frame_on() -> None:
    """What was no voice is one; the voice lasts, and so does the count of silent frames."""
    segmenter = Segmenter()
    frames = iter(range(100))

    def push(*probabilities: float) -> list[VoiceFact]:
        found = []
        for probability in probabilities:
            start = next(frames) * FRAME
            found.append(segmenter.push(probability, start, start + FRAME))
        return [fact for fact in found if fact is not None]

    assert [] == push(*[0.3] * 20)
    segmenter.adjust(SegmenterSettings(on_probability=0.2, off_probability=0.2, padding_samples=1600))
    assert [VoiceStarted(start_samples=20 * FRAME - 1600, detected_samples=22 * FRAME)] == push(0.3, 0.3)
    segmenter.adjust(SegmenterSettings())
    assert [] == push(0.3, 0.3)
    assert segmenter.is_voiced
    assert [VoiceStopped(end_samples=22 * FRAME, detected_samples=25 * FRAME)] == push(0.3)


def test_restart_ends_a_voice_and_bounds_the_next() -> None:
    """After lost sound a segment does not reach back over the hole."""
    segmenter = Segmenter()
    for index in range(3):
        segmenter.push(0.9, index * FRAME, (index + 1) * FRAME)
    assert VoiceStopped(end_samples=3 * FRAME, detected_samples=100_000) == segmenter.restart(100_000)
    assert not segmenter.is_voiced
    assert segmenter.restart(200_000) is None
    segmenter.push(0.9, 200_000, 200_512)
    assert VoiceStarted(start_samples=200_000, detected_samples=201_024) == segmenter.push(0.9, 200_512, 201_024)


def test_positions_beyond_31_bits() -> None:
    """A counter that has passed 37 hours is a number like any other."""
    pos = 2**31 - 16_000
    assert [VoiceStarted(start_samples=pos + 40 * FRAME - 4800, detected_samples=pos + 42 * FRAME)] == facts(
        [0.0] * 40 + [0.9] * 2, SegmenterSettings(), pos_samples=pos
    )


@given(
    st.lists(st.sampled_from([0.0, 0.3, 0.4, 0.6, 1.0]), max_size=80),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 20_000),
    st.integers(0, 2**40),
)
def test_segments_never_overlap(
    probabilities: list[float], start_frames: int, stop_frames: int, padding: int, pos: int
) -> None:
    """Starts and stops alternate, ranges follow each other, none begins before the stream or is found in its future."""
    settings = SegmenterSettings(start_frames=start_frames, stop_frames=stop_frames, padding_samples=padding)
    floor = pos
    for index, fact in enumerate(facts(probabilities, settings, pos_samples=pos)):
        if isinstance(fact, VoiceStarted):
            assert index % 2 == 0
            assert floor <= fact.start_samples < fact.detected_samples
            floor = fact.start_samples
        else:
            assert index % 2 == 1
            assert floor < fact.end_samples <= fact.detected_samples - stop_frames * FRAME
            floor = fact.end_samples


@pytest.mark.parametrize(
    "wrong",
    [
        {"on_probability": 0.3},
        {"off_probability": 0.0},
        {"on_probability": 1.0},
        {"start_frames": 0},
        {"stop_frames": 0},
        {"padding_samples": -1},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    """With the value seen and a remedy."""
    with pytest.raises(CallerError, match=str(next(iter(wrong.values())))):
        SegmenterSettings(**wrong)


def test_a_voice_falters_where_its_first_frame_is_silent() -> None:
    """It is told where the voice was last, until it is there again or gone."""
    segmenter = Segmenter(SegmenterSettings(falter_frames=1))
    told = []
    for place, probability in enumerate([0.9, 0.9, 0.9, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1]):
        segmenter.push(probability, place * FRAME, (place + 1) * FRAME)
        told.append(segmenter.falters_from)
    assert [None, None, None, 3 * FRAME, None, 5 * FRAME, 5 * FRAME, None, None] == told


def test_nothing_falters_where_nobody_asks() -> None:
    segmenter = Segmenter(SegmenterSettings(falter_frames=0))
    for place, probability in enumerate([0.9, 0.9, 0.1]):
        segmenter.push(probability, place * FRAME, (place + 1) * FRAME)
    assert segmenter.falters_from is None
