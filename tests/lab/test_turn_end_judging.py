"""What a detector is shown, and what becomes of its answers."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile

from antiphon.core.errors import CallerError, EngineError
from antiphon.lab.clips import Clip
from antiphon.lab.turn_end_corpus import Pause, RecordedTurn
from antiphon.lab.turn_end_judging import judge, name_of, version_of
from antiphon.lab.turn_end_memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


class Recorder:
    """Remembers what it was shown."""

    def __init__(self, answer: Any = 0.5) -> None:
        self.shown: list[tuple[int, float]] = []
        self.begun = 0
        self.answer = answer

    def begin(self) -> None:
        self.begun += 1

    def probability(self, pcm: Any, silence_s: float) -> Any:
        self.shown.append((len(pcm), round(silence_s, 6)))
        return self.answer


def turn(folder: Path, *, seconds: float = 2.0, rate_hz: int = 16_000, end_s: float = 1.0) -> RecordedTurn:
    path = folder / "a.wav"
    soundfile.write(path, np.full(round(seconds * rate_hz), 0.1, np.float32), rate_hz)
    clip = Clip(name="a.wav", path=path, kind="clean", speech_start_s=0.1, speech_end_s=end_s)
    return RecordedTurn(clip=clip, pauses=(Pause(start_s=0.4, end_s=0.65), Pause(start_s=end_s, end_s=inf)))


def judged(turns: list[RecordedTurn], detector: Any, memory: Memory | None = None) -> Any:
    memory = Memory() if memory is None else memory
    return asyncio.run(judge(turns, detector, step_s=0.1, up_to_s=0.3, memory=memory))


def test_a_detector_hears_only_what_a_live_one_would(tmp_path: Path) -> None:
    """Two steps of the pause of 250 ms, three of the end: the sound up to each, never beyond."""
    detector = Recorder()
    hold, end = judged([turn(tmp_path)], detector)
    expected = [(8000, 0.1), (9600, 0.2), (17_600, 0.1), (19_200, 0.2), (20_800, 0.3)]
    assert (expected, 2) == (detector.shown, detector.begun)
    assert ((0.5, 0.5), False, (0.5, 0.5, 0.5), True) == (hold.scores, hold.is_end, end.scores, end.is_end)
    assert pytest.approx(0.25) == hold.duration_s


def test_sound_comes_at_the_rate_of_hearing(tmp_path: Path) -> None:
    """Whatever the file's."""
    detector = Recorder()
    judged([turn(tmp_path, rate_hz=48_000)], detector)
    assert (8000, 0.1) == detector.shown[0]


def test_where_a_clip_ends_too_soon_its_room_goes_on(tmp_path: Path) -> None:
    """The microphone of a caller does not stop with the last word."""
    detector = Recorder()
    judged([turn(tmp_path, seconds=1.05)], detector)
    assert (20_800, 0.3) == detector.shown[-1]


def test_a_clip_shorter_than_its_speech_is_refused(tmp_path: Path) -> None:
    """Its manifest is wrong."""
    with pytest.raises(CallerError, match="its speech ends at"):
        judged([turn(tmp_path, seconds=0.9)], Recorder())


def test_what_was_judged_before_is_remembered(tmp_path: Path) -> None:
    """By the detector's version and the sound; another version is asked anew."""
    memory, first, again, changed = Memory(), Recorder(), Recorder(0.9), Recorder(0.9)
    before = judged([turn(tmp_path)], first, memory)
    assert before == judged([turn(tmp_path)], again, memory)
    changed.version = "2"
    after = judged([turn(tmp_path)], changed, memory)
    assert ([], (0.9, 0.9)) == (again.shown, after[0].scores)


def test_answers_may_be_awaited(tmp_path: Path) -> None:
    """For detectors whose engine computes elsewhere."""

    class Slow:
        async def probability(self, pcm: Any, silence_s: float) -> float:
            return silence_s

    assert (0.1, 0.2) == judged([turn(tmp_path)], Slow())[0].scores


@pytest.mark.parametrize("answer", [1.5, -0.1, float("nan")])
def test_what_is_no_probability_is_refused(tmp_path: Path, answer: float) -> None:
    """With the detector's name."""
    with pytest.raises(CallerError, match="Recorder gave"):
        judged([turn(tmp_path)], Recorder(answer))


def test_a_detector_that_fails_is_named(tmp_path: Path) -> None:
    """Its error is its own, whatever it was."""

    class Broken:
        name = "broken"

        def probability(self, pcm: Any, silence_s: float) -> float:
            raise ValueError(silence_s)

    with pytest.raises(EngineError, match="broken failed: ValueError"):
        judged([turn(tmp_path)], Broken())


def test_a_detector_cannot_change_the_sound(tmp_path: Path) -> None:
    """The next one would hear something else."""

    class Vandal:
        def probability(self, pcm: Any, silence_s: float) -> float:
            pcm[0] = 1.0
            return 0.0

    with pytest.raises(EngineError, match="Vandal failed: ValueError"):
        judged([turn(tmp_path)], Vandal())


def test_names_and_versions_may_be_given() -> None:
    """Else the class and its module's source stand for them."""
    given = Recorder()
    given.name, given.version = "mine", "3"
    assert ("mine", "mine 3", "Recorder") == (name_of(given), version_of(given), name_of(Recorder()))
    assert "class Recorder" in version_of(Recorder())
