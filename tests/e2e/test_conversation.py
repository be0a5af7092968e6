"""Recorded speech in, a spoken reply out, with the models that ship."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile

from antiphon.core.stamps import Mark
from antiphon.observe.waterfall import layout
from antiphon.session.events import ReplyAudio, SessionEnded, TurnConfirmed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Stage

    from antiphon.agent import Agent

pytestmark = pytest.mark.e2e


def test_an_order_is_heard_answered_and_explained(stage: Stage, barista: Agent, clip: Path) -> None:
    """The bundled order: its words are heard, a reply is spoken, and the parts of its latency add up."""
    rehearsal, heard = stage.hold([clip], barista)
    (turn,) = rehearsal.turns
    assert {"triple", "shot", "cappuccino", "sugar", "milk"} <= set(_words(turn.text))
    assert turn.reply
    assert turn.timeline is not None
    waterfall = layout(turn.timeline)
    assert waterfall.total_ns == turn.timeline.voice_to_voice_ns
    assert sum(part.duration_ns for part in waterfall.parts) == waterfall.total_ns
    assert set(Mark) == set(turn.timeline.marks)
    assert isinstance(heard[-1], SessionEnded)


def test_the_recording_lets_the_gap_be_heard(stage: Stage, barista: Agent, clip: Path, tmp_path: Path) -> None:
    """Caller left, reply right, and between the caller's last and our first sound as much silence as was measured."""
    rehearsal, _ = stage.hold([clip], barista)
    rehearsal.recording.save(tmp_path / "talk.wav")
    sound, rate_hz = soundfile.read(tmp_path / "talk.wav")
    assert sound.shape[1] == 2
    first_reply_s = np.flatnonzero(np.abs(sound[:, 1]) > 0.01)[0] / rate_hz
    (turn,) = rehearsal.turns
    assert turn.timeline is not None
    assert rehearsal.first_frame_ns is not None
    stamped_s = (turn.timeline.marks[Mark.FIRST_SOUND] - rehearsal.first_frame_ns) / 1e9
    assert abs(first_reply_s - stamped_s) < 0.05


def test_two_turns_share_a_history(stage: Stage, barista: Agent, clip: Path, short_clip: Path) -> None:
    """Two files are two turns of one conversation, each answered."""
    rehearsal, _ = stage.hold([short_clip, clip], barista)
    assert len(rehearsal.turns) == 2
    assert all(turn.reply for turn in rehearsal.turns)


def _variant(clip: Path, folder: Path, kind: str) -> Path:
    """The order as another machine would have recorded it."""
    sound, rate_hz = soundfile.read(clip, dtype="float32")
    target = folder / f"{kind}.wav"
    if kind == "8 kHz":
        soundfile.write(target, sound.reshape(-1, 2).mean(axis=1), 8000)
    elif kind == "96 kHz, six channels":
        six = np.repeat(np.repeat(sound, 6)[:, None], 6, axis=1)  # held samples: their images lie above 8 kHz
        soundfile.write(target, six, 96_000, subtype="PCM_24")
    elif kind == "clipped":
        soundfile.write(target, np.clip(sound * 8, -1, 1), rate_hz, subtype="FLOAT")
    return target


@pytest.mark.parametrize("kind", ["8 kHz", "96 kHz, six channels", "clipped"])
def test_any_recording_is_heard(stage: Stage, barista: Agent, short_clip: Path, tmp_path: Path, kind: str) -> None:
    """Low rate, high rate with many channels, and hard clipping: the order is heard and answered."""
    rehearsal, _ = stage.hold([_variant(short_clip, tmp_path, kind)], barista)
    (turn,) = rehearsal.turns
    assert {"cappuccino", "milk"} <= set(_words(turn.text))
    assert turn.reply


@pytest.mark.parametrize("seconds", [1 / 16_000, 2.0])
def test_a_file_without_speech_is_no_turn(stage: Stage, barista: Agent, tmp_path: Path, seconds: float) -> None:
    """One sample, or two seconds of zeros: nothing is heard, nothing is said, and it ends by itself."""
    soundfile.write(tmp_path / "quiet.wav", np.zeros(max(1, math.ceil(seconds * 16_000)), np.float32), 16_000)
    rehearsal, heard = stage.hold([tmp_path / "quiet.wav"], barista)
    assert rehearsal.turns == []
    assert [type(event) for event in heard] == [SessionEnded]


def test_noise_is_no_turn(stage: Stage, barista: Agent, tmp_path: Path) -> None:
    """Three seconds of loud white noise make no turn that is answered."""
    noise = np.random.default_rng(7).normal(0, 0.1, 48_000).astype(np.float32)
    soundfile.write(tmp_path / "noise.wav", noise, 16_000)
    rehearsal, heard = stage.hold([tmp_path / "noise.wav"], barista)
    assert rehearsal.turns == []
    assert not any(isinstance(event, TurnConfirmed | ReplyAudio) for event in heard)


def test_the_first_turn_is_as_fast_as_the_third(stage: Stage, barista: Agent, short_clip: Path) -> None:
    """Warm-up has paid for what a first call pays for: the first latency is not ten times the best."""
    latencies = []
    for _ in range(3):
        rehearsal, _ = stage.hold([short_clip], barista)
        (turn,) = rehearsal.turns
        assert turn.timeline is not None
        latencies.append(turn.timeline.voice_to_voice_ns or math.inf)
    assert latencies[0] < 10 * min(latencies)


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.lower()).split()
