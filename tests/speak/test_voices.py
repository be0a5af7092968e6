"""A voice's name: what it stands for, and what a wrong one is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.core.errors import CallerError, MachineError
from antiphon.models.catalogue import CATALOGUE
from antiphon.models.store import Store
from antiphon.scheduling.lanes import ThreadLane
from antiphon.speak.voices import load_voice, own_piper_voices, piper_file, voice_model

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hibari-heart", "hibari-heart"),
        ("emma", "hibari-emma"),
        ("ljspeech", "piper-ljspeech"),
        ("piper-ljspeech", "piper-ljspeech"),
    ],
)
def test_the_engines_name_may_be_left_out(name: str, expected: str) -> None:
    assert expected == voice_model(name, CATALOGUE).name


@pytest.mark.parametrize(
    ("name", "meant"), [("ema", "hibari-emma"), ("hibari-hart", "hibari-heart"), ("Kore", "hibari-kore")]
)
def test_an_unknown_voice_is_answered_with_the_nearest(name: str, meant: str) -> None:
    """Among the voices, not among all models."""
    with pytest.raises(CallerError, match="there is no voice") as caught:
        voice_model(name, CATALOGUE)

    assert f"did you mean {meant}?" in caught.value.hint


def test_a_model_that_is_no_voice_is_named_as_what_it_is() -> None:
    with pytest.raises(CallerError, match="silero-v6 is no voice, but for voice detection"):
        voice_model("silero-v6", CATALOGUE)


def test_a_piper_voice_is_a_path_or_lies_in_the_folder_for_them(tmp_path: Path) -> None:
    """A bare name means the cache's folder, all else is a path."""
    store = Store(tmp_path)

    assert Path("/v/x.onnx") == piper_file("piper:/v/x.onnx", store)
    assert Path.home() / "x.onnx" == piper_file("piper:~/x.onnx", store)
    assert tmp_path / "voices" / "en_US-joe-medium.onnx" == piper_file("piper:en_US-joe-medium", store)
    with pytest.raises(CallerError, match="names no file"):
        piper_file("piper:", store)


def test_own_voices_are_those_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "voices").mkdir()
    for name in ("b.onnx", "a.onnx", "a.onnx.json"):
        (tmp_path / "voices" / name).touch()

    assert ["a", "b"] == [path.stem for path in own_piper_voices(Store(tmp_path))]
    assert [] == own_piper_voices(Store(tmp_path / "nowhere"))


def test_a_voice_that_was_not_fetched_says_how(tmp_path: Path) -> None:
    """The machine lacks it, and one command mends that."""
    lane = ThreadLane("test-voice")
    with pytest.raises(MachineError) as caught:
        load_voice("emma", store=Store(tmp_path), lane=lane, threads=1)
    lane.close()

    assert "antiphon models fetch hibari-emma" in caught.value.hint
