from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.hear.sounds import frames, hum, no_speech, silence, white

from antiphon.core.errors import EngineError, MachineError
from antiphon.hear.ear import Ear
from antiphon.hear.segmenter import VoiceStarted, VoiceStopped
from antiphon.hear.silero import FRAME_SAMPLES, SileroDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antiphon.core.flow import Pcm
    from antiphon.hear.segmenter import VoiceFact
    from antiphon.hear.voice_detector import VoiceStream

pytestmark = pytest.mark.model


def cut(pcm: Pcm) -> Iterator[Pcm]:
    for start in range(0, len(pcm) - FRAME_SAMPLES + 1, FRAME_SAMPLES):
        yield pcm[start : start + FRAME_SAMPLES]


def probabilities(stream: VoiceStream, pcm: Pcm) -> list[float]:
    return [stream.probability(frame) for frame in cut(pcm)]


def facts(ear: Ear, pcm: Pcm, *, pos_samples: int = 0) -> list[VoiceFact]:
    return [fact for frame in frames(pcm, pos_samples=pos_samples) for fact in ear.hear(frame)]


def test_callers_do_not_hear_each_other(silero: SileroDetector, say: Callable[[str], Pcm]) -> None:
    """Speech and silence fed alternately give, frame by frame, what each gives alone."""
    speech = say("Could I get a small latte, please?")
    other = silence(len(speech) / 16_000)
    alone = probabilities(silero.open(), speech), probabilities(silero.open(), other)
    first, second = silero.open(), silero.open()
    together = [(first.probability(a), second.probability(b)) for a, b in zip(cut(speech), cut(other), strict=True)]
    assert alone == tuple(list(column) for column in zip(*together, strict=True))
    assert max(alone[0]) > 0.9
    assert max(alone[1]) < 0.1


def test_a_voice_is_found_where_it_is(silero: SileroDetector, say: Callable[[str], Pcm]) -> None:
    """One segment whose ends lie within 0.1 s of the sound's, padding aside."""
    found = facts(Ear(silero), np.concatenate((silence(1), say("I would like a large mocha."), silence(1))))
    started, stopped = found
    assert isinstance(started, VoiceStarted)
    assert isinstance(stopped, VoiceStopped)
    assert abs(started.start_samples + 4800 - 1.3 * 16_000) < 1600
    speech = len(say("I would like a large mocha.")) - 4800
    assert abs(stopped.end_samples - (16_000 + speech)) < 3200


def test_a_short_word_is_found(silero: SileroDetector, say: Callable[[str], Pcm]) -> None:
    """A single syllable."""
    found = facts(Ear(silero), np.concatenate((silence(1), say("No."), silence(1))))
    assert [VoiceStarted, VoiceStopped] == [type(fact) for fact in found]


def test_a_stream_counter_past_31_bits_goes_on(silero: SileroDetector, say: Callable[[str], Pcm]) -> None:
    """Preset a second before 2**31, three seconds with speech: the same facts as from 0, moved."""
    pcm = np.concatenate((silence(0.8), say("Two small teas, please."), silence(1)))
    pos = 2**31 - 16_000
    at_zero = facts(Ear(silero), pcm)
    there = facts(Ear(silero), pcm, pos_samples=pos)
    moved = [
        VoiceStarted(start_samples=fact.start_samples + pos, detected_samples=fact.detected_samples + pos)
        if isinstance(fact, VoiceStarted)
        else VoiceStopped(end_samples=fact.end_samples + pos, detected_samples=fact.detected_samples + pos)
        for fact in at_zero
    ]
    assert moved == there
    assert len(there) == 2


@pytest.mark.parametrize("name", [name for name in no_speech() if "440" not in name])
def test_noise_is_no_voice(silero: SileroDetector, name: str) -> None:
    """Neither silence, hiss, hum nor clicks start one."""
    assert [] == facts(Ear(silero), no_speech()[name]())


@pytest.mark.parametrize("before", [silence(60), white(-35, 60), hum(-40, 50, 60)], ids=["zeros", "noise", "hum"])
def test_a_minute_of_anything_else_does_not_deafen(
    silero: SileroDetector, say: Callable[[str], Pcm], before: Pcm
) -> None:
    """Speech behind it is found within a frame of where it is found at once."""
    speech = np.concatenate((say("Could I get a small latte, please?"), silence(0.5)))
    size = len(before) - len(before) % FRAME_SAMPLES
    ear = Ear(silero)
    assert [] == facts(ear, before[:size])
    behind = facts(ear, speech, pos_samples=size)[0]
    at_once = facts(Ear(silero), speech)[0]
    assert abs(behind.detected_samples - size - at_once.detected_samples) <= FRAME_SAMPLES


def test_reset_forgets(silero: SileroDetector, say: Callable[[str], Pcm]) -> None:
    """After it a stream is as new."""
    speech = say("Could I get a small latte, please?")
    stream = silero.open()
    first = probabilities(stream, speech)
    stream.reset()
    assert first == probabilities(stream, speech)


def test_a_frame_of_another_size_is_refused(silero: SileroDetector) -> None:
    """And the stream lives on."""
    stream = silero.open()
    with pytest.raises(EngineError, match="512"):
        stream.probability(silence(0.01))
    assert stream.probability(np.zeros(512, np.float32)) < 0.5


def test_a_file_that_is_no_model_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    """Missing or broken."""
    with pytest.raises(MachineError, match="fetch"):
        SileroDetector.load(tmp_path / "none.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"not a model")
    with pytest.raises(MachineError, match="verify"):
        SileroDetector.load(tmp_path / "broken.onnx")
