"""The real model: what a guess changes, what its words are worth, and how it is chosen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.hear.slots import MENU, said, transcript, words
from tests.hear.sounds import silence, white

from antiphon.core.errors import CallerError, MachineError
from antiphon.hear.moonshine import MoonshineRecognizer
from antiphon.hear.moonshine_settings import MoonshineSettings
from antiphon.hear.recognizers import load_recognizer
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.hear.whisper_settings import WhisperSettings
from antiphon.hear.word_bias import WordBias
from antiphon.scheduling.lanes import ThreadLane

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from antiphon.core.flow import Pcm

pytestmark = pytest.mark.model

ORDER = "Can I have a large iced coffee with almond milk and some sugar, please?"


def tokens(recognizer: MoonshineRecognizer, pcm: Pcm, guess: Sequence[int], vocabulary: Sequence[str]) -> list[int]:
    bias = WordBias(recognizer.tokens.spellings, vocabulary, recognizer.settings)
    return list(asyncio.run(recognizer.hear(pcm, bias=bias, guess=guess)).tokens)


@pytest.mark.parametrize("vocabulary", [(), MENU], ids=["plain", "menu"])
def test_a_guess_changes_one_word_of_a_whole_sentence_at_most(
    moonshine: MoonshineRecognizer, say: Callable[[str], Pcm], vocabulary: Sequence[str]
) -> None:
    """Its own words, those of the sound half a second before, or others: what comes out is what comes out without.

    But where two words are as likely ("ice", "iced"): the network rounds over all that one call reads, which decides.
    """
    pcm = say(ORDER)
    alone = tokens(moonshine, pcm, (), vocabulary)
    nonsense = np.random.default_rng(0).integers(300, 30_000, 20).tolist()
    for guess in (alone, tokens(moonshine, pcm[:-8000], (), vocabulary), [*alone[:3], *nonsense], nonsense):
        expected = words(moonshine.tokens.decode(alone))
        heard = words(moonshine.tokens.decode(tokens(moonshine, pcm, guess, vocabulary)))
        assert len(expected) == len(heard)
        assert sum(one != other for one, other in zip(expected, heard, strict=True)) <= 1


def test_the_menu_is_heard(moonshine: MoonshineRecognizer, say: Callable[[str], Pcm]) -> None:
    """And what is not on it is not made of other words."""
    assert {"coffee", "almond", "milk"} <= set(said(moonshine, say(ORDER), MENU))
    text = "My sister lives in a village near the river."
    assert words(text) == said(moonshine, say(text), MENU)


def test_five_hundred_phrases_cost_little(moonshine: MoonshineRecognizer, say: Callable[[str], Pcm]) -> None:
    """They are heard as without, where none was said."""
    phrases = [f"{first}{second} {third}" for first in "bdfgklmprst" for second in ("ando", "elvi") for third in MENU]
    text = "My sister lives in a village near the river."
    assert words(text) == said(moonshine, say(text), phrases[:500])


def test_a_closed_sentence_is_told_from_an_open_one(moonshine: MoonshineRecognizer, say: Callable[[str], Pcm]) -> None:
    """The evidence is a probability, and is larger at the end than in the middle."""
    pcm = say(ORDER)
    whole, part = transcript(moonshine, pcm), transcript(moonshine, pcm[: len(pcm) * 55 // 100])
    assert whole.end_probability is not None
    assert part.end_probability is not None
    assert 0.0 <= part.end_probability < whole.end_probability <= 1.0
    for heard in (whole, part):
        assert heard.certainty is not None
        assert heard.certainty.least <= heard.certainty.last <= 0.0
    nothing = transcript(moonshine, silence(2))
    assert (nothing.end_probability, nothing.certainty) == (None, None)


def test_the_shortest_sound_is_no_error(moonshine: MoonshineRecognizer) -> None:
    """One sample, or a twentieth of a second."""
    for seconds in (1 / 16_000, 0.05):
        assert transcript(moonshine, white(-30, seconds)).text == ""


def test_what_lies_in_the_folder_says_which_engine_reads_it(
    moonshine_folder: Path, whisper_folder: Path, tmp_path: Path
) -> None:
    """Whisper's and Moonshine's; where nothing lies, the error says how to come by a model."""
    lane = ThreadLane("recognise")

    def load(folder: Path, language: str = "en") -> object:
        whisper = WhisperSettings(language=language)
        return load_recognizer(folder, lane=lane, threads=1, whisper=whisper, moonshine=MoonshineSettings())

    assert isinstance(load(moonshine_folder), MoonshineRecognizer)
    assert isinstance(load(whisper_folder), WhisperRecognizer)
    with pytest.raises(MachineError, match="fetch"):
        load(tmp_path)
    with pytest.raises(CallerError, match="knows English only"):
        load(moonshine_folder, "de")
    lane.close()


def test_a_broken_folder_is_an_error_with_a_remedy(moonshine_folder: Path, tmp_path: Path) -> None:
    """A network is missing, or is none."""
    lane = ThreadLane("recognise")
    (tmp_path / "tokenizer.bin").symlink_to(moonshine_folder / "tokenizer.bin")
    with pytest.raises(MachineError, match="fetch"):
        MoonshineRecognizer.load(tmp_path, lane=lane, threads=1)
    (tmp_path / "encoder_model.ort").write_bytes(b"no model")
    with pytest.raises(MachineError, match="verify"):
        MoonshineRecognizer.load(tmp_path, lane=lane, threads=1)
    lane.close()
