"""Turns and their pauses, as manifests tell of them."""

from __future__ import annotations

import json
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile

from antiphon.core.errors import CallerError
from antiphon.lab.turn_end_corpus import Pause, read_turns

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

ENTRY = {"file": "a.wav", "kind": "clean", "speech_start_s": 0.1, "speech_end_s": 0.8}


def corpus(folder: Path, **changes: Any) -> Path:
    soundfile.write(folder / "a.wav", np.zeros(16_000, np.float32), 16_000)
    (folder / "manifest.jsonl").write_text(json.dumps(ENTRY | changes) + "\n\n")
    return folder


def test_the_pause_behind_a_turn_is_its_end(tmp_path: Path) -> None:
    """It comes after those inside, and nobody knows how long it is."""
    (turn,) = read_turns(corpus(tmp_path, inner_pauses_s=[[0.2, 0.45], [0.5, 0.6]]))
    expected = (Pause(start_s=0.2, end_s=0.45), Pause(start_s=0.5, end_s=0.6), Pause(start_s=0.8, end_s=inf))
    assert expected == turn.pauses
    assert pytest.approx(0.25) == turn.pauses[0].duration_s


def test_a_turn_without_pauses_has_only_an_end(tmp_path: Path) -> None:
    """The field may be left out."""
    (turn,) = read_turns(corpus(tmp_path))
    assert ((Pause(start_s=0.8, end_s=inf),), "") == (turn.pauses, turn.synthetic)


def test_synthetic_speech_names_its_voice(tmp_path: Path) -> None:
    """So that figures can say what they rest on."""
    (turn,) = read_turns(corpus(tmp_path, synthetic=True, voice="hibari-heart"))
    assert turn.synthetic == "hibari-heart"


@pytest.mark.parametrize(
    "pauses",
    [
        [[0.05, 0.3]],  # before the speech
        [[0.6, 0.9]],  # behind its end
        [[0.4, 0.3]],
        [[0.3, 0.5], [0.4, 0.6]],
        [[0.3]],
        [0.3, 0.5],
        "0.3-0.5",
        [[0.3, True]],
        [[0.3, float("nan")]],
        [[0.3, "0.5"]],
    ],
)
def test_pauses_that_cannot_be_are_refused(tmp_path: Path, pauses: Any) -> None:
    """The message names the clip."""
    with pytest.raises(CallerError, match=r"a\.wav"):
        read_turns(corpus(tmp_path, inner_pauses_s=pauses))


def test_the_clips_that_come_along_have_ends_and_a_pause() -> None:
    """So the command works without a corpus."""
    turns = read_turns(None)
    assert {"order.flac", "short_order.flac", "hesitant_order.flac"} == {turn.clip.name for turn in turns}
    assert 4 == sum(len(turn.pauses) for turn in turns)
