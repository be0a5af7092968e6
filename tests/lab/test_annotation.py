"""Where speech begins, pauses and ends, in sound whose edges are known."""

from __future__ import annotations

import numpy as np
import pytest

from antiphon.lab.annotation import annotate

pytestmark = pytest.mark.unit

RATE_HZ = 16_000
FRAME_S = 0.032


def sound(*spans: tuple[float, float], seconds: float = 3.0, room: float = 0.001) -> np.ndarray:
    """A voice-like hum in `spans`, over the quiet of a room."""
    pcm = room * np.random.default_rng(1).standard_normal(round(seconds * RATE_HZ)).astype(np.float32)
    for start_s, end_s in spans:
        times = np.arange(round(start_s * RATE_HZ), round(end_s * RATE_HZ))
        pcm[times] += 0.3 * np.sin(2 * np.pi * 150 * times / RATE_HZ).astype(np.float32)
    return pcm


def chances(*spans: tuple[float, float], seconds: float = 3.0) -> list[float]:
    """A detector's view: frames that touch a span."""
    frames = int(seconds / FRAME_S)
    return [
        0.9 if any(number * FRAME_S < end and (number + 1) * FRAME_S > start for start, end in spans) else 0.02
        for number in range(frames)
    ]


def test_edges_are_found_to_ten_milliseconds() -> None:
    """Where the detector knows only 32."""
    found = annotate(sound((0.5, 1.9)), RATE_HZ, chances((0.5, 1.9)), FRAME_S)
    assert found is not None
    assert (0.5, 1.9, (), ()) == (found.speech_start_s, found.speech_end_s, found.inner_pauses_s, found.doubts)


def test_a_detector_that_is_late_is_put_right() -> None:
    """Up to 0.2 s at either edge: it notices a soft beginning late, and holds on behind the end."""
    found = annotate(sound((0.5, 1.9)), RATE_HZ, chances((0.6, 2.0)), FRAME_S)
    assert found is not None
    assert (0.5, 1.9) == (found.speech_start_s, found.speech_end_s)


def test_pauses_inside_are_listed() -> None:
    """From 0.1 s on; shorter ones are stops of the voice."""
    spans = ((0.5, 1.0), (1.4, 1.8), (1.87, 2.2))
    found = annotate(sound(*spans), RATE_HZ, chances(*spans), FRAME_S)
    assert found is not None
    assert ((1.0, 1.4),) == found.inner_pauses_s


def test_a_click_is_no_speech() -> None:
    """One frame of it, far from the voice, moves no edge."""
    spans = ((0.5, 1.5), (2.5, 2.52))
    found = annotate(sound(*spans), RATE_HZ, chances(*spans), FRAME_S)
    assert found is not None
    assert 1.5 == found.speech_end_s


@pytest.mark.parametrize("probabilities", [[], [0.1] * 90, [0.4] * 90])
def test_without_speech_there_is_nothing(probabilities: list[float]) -> None:
    """The caller says which file it was."""
    assert annotate(sound(), RATE_HZ, probabilities, FRAME_S) is None


@pytest.mark.parametrize(
    ("span", "room", "doubt"),
    [
        ((0.0, 1.5), 0.001, "begins with the recording"),
        ((0.5, 3.0), 0.001, "ends with the recording"),
        ((0.5, 1.5), 0.05, "the room is loud"),
    ],
)
def test_what_is_doubtful_is_said(span: tuple[float, float], room: float, doubt: str) -> None:
    """The numbers stand, with the reason why they may be wrong."""
    found = annotate(sound(span, room=room), RATE_HZ, chances(span), FRAME_S)
    assert found is not None
    assert 1 == len(found.doubts)
    assert doubt in found.doubts[0]


def test_a_recording_of_speech_alone_shows_no_room() -> None:
    """It is taken from end to end."""
    found = annotate(sound((0.0, 3.0)), RATE_HZ, [0.9] * 94, FRAME_S)
    assert found is not None
    assert (0.0, 3.0, 2) == (found.speech_start_s, found.speech_end_s, len(found.doubts))
