from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.hear.slots import said, transcript
from tests.hear.sounds import white
from tests.hear.wide_model import write_wide_model

from antiphon.core.errors import CallerError, MachineError
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.hear.whisper_settings import WhisperSettings, own_folder
from antiphon.scheduling.lanes import ThreadLane

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from antiphon.core.flow import Pcm

pytestmark = pytest.mark.model


def test_float16_on_a_cpu_starts_and_says_what_it_does(whisper_folder: Path, say: Callable[[str], Pcm]) -> None:
    """With a type that the machine has."""
    lane = ThreadLane("recognise")
    asked = WhisperSettings(compute_type="float16")
    recognizer = WhisperRecognizer.load(whisper_folder, lane=lane, threads=2, settings=asked)
    assert recognizer.compute_type in {"int8", "int8_float32", "float32"}
    assert "float16" in recognizer.compute_type_reason
    assert ["thank", "you"] == said(recognizer, say("Thank you."))
    lane.close()
    recognizer.close()


def test_a_model_of_128_bins_runs(whisper_folder: Path, tmp_path: Path) -> None:
    """Its own number of bins is what it gets; from a folder of one's own, from sound to a transcript."""
    write_wide_model(tmp_path / "wide", whisper_folder / "tokenizer.json")
    folder = own_folder(f"{tmp_path}/wide")
    assert folder is not None
    lane = ThreadLane("recognise")
    recognizer = WhisperRecognizer.load(folder, lane=lane, threads=1)
    assert (recognizer.bins, recognizer.name) == (128, "wide")
    asyncio.run(recognizer.warm_up())
    assert transcript(recognizer, white(-20, 20.0)).heard_samples == 20 * 16_000
    lane.close()
    recognizer.close()


def test_vocabulary_is_bounded_and_the_first_named_stays(whisper: WhisperRecognizer) -> None:
    """A thousand phrases fit, since most are left out; an empty one does no harm."""
    hints = whisper.tokens.hints([f"phrase number {n}" for n in range(1000)], limit_tokens=100)
    assert len(hints) <= 100
    assert "phrase number 0" in whisper.tokens.decode(hints)
    assert [] == whisper.tokens.hints([], limit_tokens=100)
    assert [] == whisper.tokens.hints(["", "  "], limit_tokens=100)


def test_what_cannot_be_loaded_is_an_error_with_a_remedy(whisper_folder: Path, tmp_path: Path) -> None:
    """A folder without a model, a language that the model does not know."""
    lane = ThreadLane("none")
    with pytest.raises(MachineError, match="fetch"):
        WhisperRecognizer.load(tmp_path, lane=lane, threads=1)
    with pytest.raises(CallerError, match=r"whisper\.language is de, but this model knows English only"):
        WhisperRecognizer.load(whisper_folder, lane=lane, threads=1, settings=WhisperSettings(language="de"))
    with pytest.raises(CallerError, match="vocabulary_tokens"):
        WhisperSettings(vocabulary_tokens=1000)
    for wrong in ("Chinese", "", "zh-CN", "transcribe"):
        with pytest.raises(CallerError, match="language is") as caught:
            WhisperSettings(language=wrong)
        assert "en, zh, de" in str(caught.value.hint)
