"""Moonshine through onnxruntime: a window of sound in, hypotheses with their evidence out.

One call encodes the window and writes its words, on one thread in less time than Whisper tiny.en takes with two: the
encoder reads just the sound there is, where Whisper's is filled up to 10 s, and the decoder reads again what it wrote
for the sound so far in one step. The search is greedy and cannot run away: no eight tokens in a row come twice, and a
hypothesis holds no more tokens than its sound could carry. The model knows English only.
Units: samples at HEARING_RATE_HZ. Threads: the model is shared; a window is one call on the engine's lane, which ends
at its next token once nobody waits for it.
What it does not know: turns, and what was said before. `moonshine_recognition` keeps these.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.core.stamps import Stage
from antiphon.hear.agreement import said_again_at
from antiphon.hear.moonshine_decoder import MoonshineNetwork, Search, decode
from antiphon.hear.moonshine_judgement import Judge, certainty, end_probability
from antiphon.hear.moonshine_recognition import MoonshineRecognition
from antiphon.hear.moonshine_settings import MoonshineSettings
from antiphon.hear.moonshine_tokens import MoonshineTokens
from antiphon.hear.onnx import open_session
from antiphon.hear.word_bias import WordBias
from antiphon.scheduling.border import Border
from antiphon.scheduling.job import Job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from antiphon.core.flow import Certainty, Pcm
    from antiphon.hear.moonshine_decoder import Written
    from antiphon.scheduling.lanes import Lane

ENCODER, DECODER, TOKENS = "encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin"

# The fastest of 120 orders holds 5.8 tokens a second. The four are for an ending in mid-word and for marks.
_TOKENS_PER_SECOND = 8
_SPARE_TOKENS = 4
# Somebody may mean it when words come twice in a row, or "no" four times. A decoder on half a word, or on noise, says
# them until it is stopped, or goes on faster than anybody speaks; few loops end before.
_FASTEST_TOKENS_PER_SECOND = 6
_LONGEST_ECHO_WORDS = 4
_TIMES_RUSHED = 3
_TIMES_STUCK = 5
_PIECE = re.compile(r"[^\W_]+")  # of a word too: loops are often written with hyphens
_LEAST_SAMPLES = HEARING_RATE_HZ  # shorter sound is followed by silence; the encoder needs 0.06 s at least
_PASS_NS = 110_000_000  # 3.7 s of speech without a guess, one thread; 70 ms with one
_SIZE_SAMPLES = 160  # a job's size counts hundredths of a second, as Whisper's columns do


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """What the decoder made of a stretch of sound; without tokens, it holds no speech."""

    tokens: tuple[int, ...] = ()
    end_probability: float | None = None  # that the sentence ended behind the last word
    certainty: Certainty | None = None  # without the marks behind the last word


class MoonshineRecognizer:
    """The loaded model; `open` gives a caller's view of it."""

    longest_slice_ns = 1_500_000_000  # 16 s of noise, written to the limit of 132 tokens, 2-core EPYC; of speech 430 ms

    def __init__(
        self, network: MoonshineNetwork, tokens: MoonshineTokens, lane: Lane, settings: MoonshineSettings
    ) -> None:
        self._network = network
        self._judge = Judge(network)
        self._lane = lane
        self.tokens = tokens
        self.settings = settings
        self.name = "moonshine"

    @classmethod
    def load(
        cls, folder: Path, *, lane: Lane, threads: int, settings: MoonshineSettings | None = None
    ) -> MoonshineRecognizer:
        """Read the model from a folder with its two networks and its vocabulary; 0.3 s.

        Raises:
            MachineError: a file is missing or broken.
        """
        tokens = MoonshineTokens.load(folder / TOKENS)
        network = MoonshineNetwork(
            open_session(folder / ENCODER, threads=threads), open_session(folder / DECODER, threads=threads)
        )
        recognizer = cls(network, tokens, lane, settings or MoonshineSettings())
        recognizer.name = folder.name
        return recognizer

    def open(self, vocabulary: Sequence[str] = ()) -> MoonshineRecognition:
        return MoonshineRecognition(self, WordBias(self.tokens.spellings, vocabulary, self.settings))

    async def warm_up(self) -> None:
        """Hear a second of a faint hiss."""
        hiss = np.random.default_rng(0).standard_normal(HEARING_RATE_HZ).astype(np.float32) * 1e-3
        await self.hear(hiss, bias=WordBias(self.tokens.spellings, (), self.settings))

    def close(self) -> None:
        """Nothing to do: the sessions go with the recognizer."""

    async def hear(self, pcm: Pcm, *, bias: WordBias, guess: Sequence[int] = ()) -> Hypothesis:
        """The words of the sound. A good `guess` at its tokens saves time; but for rounding it changes nothing else.

        Raises:
            EngineError: the model failed.
        """
        job = Job(stage=Stage.RECOGNISE, estimate_ns=_PASS_NS, size=len(pcm) // _SIZE_SAMPLES)
        border = Border()
        try:
            return await self._lane.run(job, partial(self._hear, pcm, bias, tuple(guess), border))
        except asyncio.CancelledError:
            border.ask()
            raise

    def _hear(self, pcm: Pcm, bias: WordBias, guess: tuple[int, ...], border: Border) -> Hypothesis:
        sound_s = len(pcm) / HEARING_RATE_HZ
        limit = int(_TOKENS_PER_SECOND * sound_s) + _SPARE_TOKENS
        if len(pcm) < _LEAST_SAMPLES:
            pcm = np.concatenate((pcm, np.zeros(_LEAST_SAMPLES - len(pcm), np.float32)))
        encoded = self._network.encode(pcm)
        if border.reached():
            return Hypothesis()
        search = Search(bias, self.tokens.closing)
        is_wanted = lambda: not border.reached()  # noqa: E731
        written = decode(self._network.reading(encoded), search, guess=guess, limit=limit, is_wanted=is_wanted)
        text = self.tokens.decode(written.tokens)
        if border.is_asked or not self._judge.is_speech(written, text):
            return Hypothesis()
        tokens = self._before_loop(written, text, sound_s)
        spelled = self.tokens.spelled(tokens)
        return Hypothesis(
            tokens=tuple(tokens),
            end_probability=end_probability(written, spelled),
            certainty=certainty(written, spelled),
        )

    def _before_loop(self, written: Written, text: str, sound_s: float) -> list[int]:
        """What was written before the decoder said the same again, where that is not what was said.

        Words that are really said again take their time again.
        """
        is_rushed = not written.has_ended or len(written.tokens) > _FASTEST_TOKENS_PER_SECOND * sound_s
        end = loop_at(text, times=_TIMES_RUSHED if is_rushed else _TIMES_STUCK)
        again = said_again_at(text) if is_rushed else None
        ends = [place for place in (end, again) if place is not None]
        return written.tokens[: self.tokens.reaching(written.tokens, min(ends))] if ends else written.tokens


def loop_at(text: str, *, times: int) -> int | None:
    """Where words have been said once that then come `times` times in a row, in characters; None: nowhere."""
    found = list(_PIECE.finditer(text))
    keys = [piece[0].casefold() for piece in found]
    for start in range(len(keys)):
        for size in range(1, _LONGEST_ECHO_WORDS + 1):
            once = keys[start : start + size]
            if once * times == keys[start : start + size * times]:
                return found[start + size - 1].end()
    return None
