"""What the recognizer makes of a decoder's evidence, by a model that answers as it is told."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.hear.byte_tokens import byte_tokens

from antiphon.hear.whisper import WhisperRecognizer
from antiphon.hear.whisper_model import CTranslate2Model
from antiphon.hear.whisper_settings import WhisperSettings
from antiphon.scheduling.lanes import ThreadLane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from antiphon.hear.whisper import Hypothesis

pytestmark = pytest.mark.unit

ENCODED = np.zeros((1, 500, 8), np.float32)


class ToldModel:
    """Says with hints and without what it was told: text, log probability of a token, no-speech probability."""

    compute_type = "int8"
    device = "cpu"
    n_mels = 80

    def __init__(self, alone: tuple[str, float, float], hinted: tuple[str, float, float] | None = None) -> None:
        self.is_multilingual = True
        self.alone = alone
        self.hinted = hinted or alone
        self.asked: list[dict[str, Any]] = []
        self.starts: list[int] = []  # frames of 20 ms, by token
        self.next: dict[int, float] = {}  # what follows the last word, by token: its share
        self.at = 0  # the row that holds them

    def generate(self, encoded: Any, prompts: list[list[int]], **asked: Any) -> list[Any]:
        self.asked.append(asked)
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: list[int]) -> Any:
        tokens = byte_tokens()
        text, score, no_speech = self.hinted if len(prompt) > len(tokens.task) else self.alone
        ids = tokens.encode(text)
        logits = np.full((len(ids) + 1, 300), -50.0, np.float32)
        for token, share in self.next.items():
            logits[self.at, token] = math.log(share)
        return SimpleNamespace(sequences_ids=[ids], scores=[score], no_speech_prob=no_speech, logits=[list(logits)])

    def align(self, encoded: Any, opening: Any, tokens: Any, columns: int) -> list[Any]:
        return [SimpleNamespace(alignments=list(enumerate(self.starts)))]


@pytest.fixture
def lane() -> Iterator[ThreadLane]:
    lane = ThreadLane("recognise")
    yield lane
    lane.close()


def decoded(
    lane: ThreadLane, model: ToldModel, *, before: Sequence[int] = (), sound_s: float = 3.0, language: str = "zh"
) -> tuple[str, Hypothesis]:
    tokens = byte_tokens(language)
    recognizer = WhisperRecognizer(CTranslate2Model(model), tokens, lane, WhisperSettings(language=language))
    found = asyncio.run(recognizer.decode(ENCODED, before=before, prefix=(), sound_s=sound_s))
    return tokens.decode(found.tokens), found


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ("每天都去", ("每天都去", -0.2, 0.9)),
        ("", ("每天都去", -1.0, 0.9)),
        ("每天都去", ("每天都去", -1.2, 0.3)),
        ("", ("每天都去", -1.6, 0.1)),
        ("", ("诶诶诶诶诶诶", -0.2, 0.55)),
        ("", ("。", -0.1, 0.1)),
    ],
)
def test_what_is_speech_for_a_model_of_many_languages(
    lane: ThreadLane, expected: str, told: tuple[str, float, float]
) -> None:
    """A high no-speech probability counts only where the words are unsure, or the decoder is stuck."""
    assert expected == decoded(lane, ToldModel(told))[0]


@pytest.mark.parametrize(
    ("expected", "hinted", "alone"),
    [
        ("一杯拿铁", ("一杯拿铁", -0.2, 0.01), ("一杯那天", -0.1, 0.1)),
        ("好的", ("拿铁", -2.1, 0.04), ("好的", -0.2, 0.08)),
        ("", ("拿铁", -0.2, 0.7), ("我", -5.0, 0.8)),
        ("一杯拿铁", ("一杯拿铁", -0.4, 0.5), ("一杯那天", -0.3, 0.7)),
    ],
)
def test_hints_help_but_are_not_echoed(
    lane: ThreadLane, expected: str, hinted: tuple[str, float, float], alone: tuple[str, float, float]
) -> None:
    """In doubt the sound is decoded without them: it decides on speech, and its words are taken if far likelier."""
    assert expected == decoded(lane, ToldModel(alone, hinted), before=[1, 2])[0]


def test_other_languages_than_english_may_have_twice_the_tokens(lane: ThreadLane) -> None:
    """For as much sound; the decoder stops at half of what it is given."""
    model = ToldModel(("你好", -0.1, 0.01))
    decoded(lane, model, sound_s=10.0)
    decoded(lane, model, sound_s=10.0, language="en")
    chinese, english = model.asked
    assert (2 * (160 + 4), 2 * (80 + 4)) == (chinese["max_length"], english["max_length"])
    assert (16, 8) == (chinese["no_repeat_ngram_size"], english["no_repeat_ngram_size"])


def test_a_chinese_loop_is_cut_where_it_begins(lane: ThreadLane) -> None:
    """Words said again in no time; said again in due time, they stay."""
    text = "我想要一杯大杯拿。我想要一杯大杯拿"
    tokens = byte_tokens()
    ids = tokens.encode(text)
    loop = next(place for place in range(len(ids)) if tokens.decode(ids[:place]).endswith("。"))
    model = ToldModel((text, -0.2, 0.01))
    model.starts = [min(place, loop) * 2 for place in range(len(ids))]
    assert "我想要一杯大杯拿。" == decoded(lane, model, sound_s=1.3)[0]
    model.starts = [place * 4 for place in range(len(ids))]
    assert text == decoded(lane, model, sound_s=6.0)[0]


def test_the_end_of_a_sentence_is_judged_behind_the_last_byte(lane: ThreadLane) -> None:
    """By the mass on any mark there: its only token, its first, or all of it where letters begin alike."""
    tokens = byte_tokens()
    model = ToldModel(("我去。", -0.1, 0.01))
    model.at = len(tokens.encode("我去"))
    stop, wide, other = tokens.encode("好。")[1], tokens.encode("好？")[1], tokens.encode("好a")[1]
    model.next = {stop: 0.5, wide: 0.2, other: 0.3}
    assert decoded(lane, model)[1].end_probability == pytest.approx(0.7, abs=1e-3)
    assert decoded(lane, model, language="th")[1].end_probability is None
