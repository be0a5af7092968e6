"""Whisper through CTranslate2: log-mel columns in, hypotheses with their evidence out.

The decoder is greedy and cannot run away: no eight tokens in a row come twice, a hypothesis holds no more tokens than
its sound could carry, and where words repeat, only those that the sound itself carries are kept.
Units: seconds of sound where named so, columns of 10 ms. Threads: the model is shared; encoding, decoding and
aligning are one call each on the engine's lane, so that a caller who gives up stops between them.
What it does not know: turns, and what was said before. `whisper_recognition` keeps these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from antiphon.core.errors import CallerError, EngineError, MachineError
from antiphon.core.stamps import Stage
from antiphon.hear.agreement import repeats, said_again_at
from antiphon.hear.compute_type import ComputeType, fitting_compute_type
from antiphon.hear.mel import BINS, COLUMNS_PER_SECOND, normalised
from antiphon.hear.whisper_recognition import WhisperRecognition
from antiphon.hear.whisper_tokens import WhisperTokens
from antiphon.scheduling.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import TypeVar

    from antiphon.hear.mel import Mel
    from antiphon.scheduling.lanes import Lane

    Result = TypeVar("Result")

_LONGEST_TOKENS = 448  # the decoder has no positions beyond, prompt included

# "no" six times over, marks between, is eleven tokens; a phrase of four tokens or more cannot come three times.
_NO_REPEAT_TOKENS = 8
# The fastest of 120 orders holds 5.8 tokens a second. The four are for an ending in mid-word and for marks.
_TOKENS_PER_SECOND = 8
_SPARE_TOKENS = 4

# What is no speech. Measured over 120 orders, single words, and noise, hum, tones and clicks at -6 to -60 dBFS: speech
# has a no-speech probability up to 0.26 (0.11 where the decoder reads hints first), the rest 0.68 (0.19) and more. With
# hints the two lie close together, so a hypothesis in doubt is judged again without: one token, a sixth of the time.
_DOUBTFUL_NO_SPEECH = 0.05
_DOUBTFUL_LOG_PROBABILITY = -0.9  # per token; whole orders -0.1 to -0.6, in kitchen noise down to -0.98
_NO_SPEECH = 0.6
_LOG_PROBABILITY = -1.5
_FASTEST_TOKENS_PER_SECOND = 12.0  # hurried speech has about 6; a loop's words have next to no time
_SOUND_END_SLACK_S = 0.1  # an alignment is exact to some 50 ms; loops begin half a second or more behind the sound

_ENCODE = Job(stage=Stage.RECOGNISE, estimate_ns=130_000_000)
_DECODE = Job(stage=Stage.RECOGNISE, estimate_ns=120_000_000)
_ALIGN = Job(stage=Stage.RECOGNISE, estimate_ns=25_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperSettings:
    """What the decoder is asked for."""

    language: str = "en"
    vocabulary_tokens: int = 100  # of hints; each costs about 0.4 ms of decoding. Of more, those named first are kept
    compute_type: ComputeType | None = None  # None: the fastest that the device supports

    def __post_init__(self) -> None:
        if not 0 <= self.vocabulary_tokens <= 160:
            raise CallerError(
                f"vocabulary_tokens is {self.vocabulary_tokens}", hint="choose 0 to 160: text needs room beside them"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """What the decoder made of a stretch of sound; without tokens, it holds no speech."""

    tokens: tuple[int, ...] = ()
    end_probability: float | None = None  # of a closing mark right after the last word


class WhisperRecognizer:
    """The loaded model; `open` gives a caller's view of it."""

    longest_slice_ns = 400_000_000  # encoding or decoding 24 s of speech, 2-core EPYC, two threads

    def __init__(self, model: Any, tokens: WhisperTokens, lane: Lane, settings: WhisperSettings) -> None:
        self._model = model
        self._lane = lane
        self.tokens = tokens
        self.settings = settings
        self.name = "whisper"
        self.compute_type = str(model.compute_type)
        self.compute_type_reason = ""

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        lane: Lane,
        threads: int,
        device: Literal["cpu", "cuda"] = "cpu",
        settings: WhisperSettings | None = None,
    ) -> WhisperRecognizer:
        """Read the model from a folder in CTranslate2's form with its tokenizer.json; 0.3 s.

        A compute type that the device lacks is replaced by one it has; `compute_type_reason` says so.

        Raises:
            MachineError: a file is missing or broken, or there is no such device.
            CallerError: the model does not know the language.
        """
        import ctranslate2  # noqa: PLC0415 - heavy: who loads no model does not pay for it

        settings = settings or WhisperSettings()
        if device == "cuda" and ctranslate2.get_cuda_device_count() == 0:
            raise MachineError("no CUDA device can be seen", hint="choose the device cpu")
        supported = ctranslate2.get_supported_compute_types(device)
        compute_type, reason = fitting_compute_type(settings.compute_type, supported, device)
        for name in ("config.json", "model.bin", "tokenizer.json"):
            if not (folder / name).is_file():
                raise MachineError(f"there is no {folder / name}", hint="fetch the models: antiphon models fetch")
        try:
            model = ctranslate2.models.Whisper(
                str(folder), device=device, compute_type=compute_type, intra_threads=threads, inter_threads=1
            )
        except Exception as error:
            raise MachineError(
                f"{folder} cannot be loaded as a Whisper model", hint="verify the models: antiphon models verify"
            ) from error
        if model.n_mels != BINS:
            raise MachineError(f"the model reads {model.n_mels} mel bins", hint=f"choose one that reads {BINS}")
        tokens = WhisperTokens.load(
            folder / "tokenizer.json", language=settings.language, is_multilingual=model.is_multilingual
        )
        recognizer = cls(model, tokens, lane, settings)
        recognizer.name = folder.name
        recognizer.compute_type_reason = reason
        return recognizer

    def open(self, vocabulary: Sequence[str] = ()) -> WhisperRecognition:
        hints = self.tokens.hints(vocabulary, limit_tokens=self.settings.vocabulary_tokens)
        return WhisperRecognition(self, hints)

    async def warm_up(self) -> None:
        """Run every kind of call once on a second of silence."""
        logs = np.full((10 * COLUMNS_PER_SECOND, BINS), -10.0, np.float32)
        encoded = await self.encode(logs)
        await self.decode(encoded, before=(), prefix=(), sound_s=1.0)
        await self.token_starts_s(encoded, self.tokens.encode(" Yes."), columns=len(logs))

    def close(self) -> None:
        """Free the model's memory; every later call fails."""
        self._model.unload_model()

    async def encode(self, logs: Mel) -> Any:
        """What the encoder makes of the columns, for `decode` and `token_starts_s`.

        Raises:
            EngineError: the model failed.
        """
        return await self._lane.run(_ENCODE, lambda: self._encode(logs))

    async def decode(self, encoded: Any, *, before: Sequence[int], prefix: Sequence[int], sound_s: float) -> Hypothesis:
        """The words of the first `sound_s` seconds; what follows them is silence.

        `before` is text that came before, `prefix` the tokens that the hypothesis must begin with: it has these even
        where the rest is no speech.

        Raises:
            EngineError: the model failed.
        """
        prompt = self.tokens.prompt(before)
        limit = max(len(prefix), int(_TOKENS_PER_SECOND * sound_s)) + _SPARE_TOKENS
        result = await self._lane.run(_DECODE, lambda: self._decode(encoded, prompt, prefix, limit))
        if result is None:
            return Hypothesis(tokens=tuple(prefix))
        tokens = result.sequences_ids[0]
        if repeats(self.tokens.decode(tokens)):
            starts = await self.token_starts_s(encoded, tokens, columns=2 * encoded.shape[1])
            count = self._carried(tokens, starts, len(prefix), sound_s + _SOUND_END_SLACK_S)
            tokens = tokens[: min(count, self._before_loop(tokens, starts, len(prefix), sound_s))]
        return Hypothesis(tokens=tuple(tokens), end_probability=self._end_probability(tokens, result.logits[0]))

    async def token_starts_s(self, encoded: Any, tokens: Sequence[int], *, columns: int) -> list[float]:
        """When each token begins, in seconds, never falling.

        Raises:
            EngineError: the model failed.
        """
        return await self._lane.run(_ALIGN, lambda: self._align(encoded, tokens, columns))

    def _encode(self, logs: Mel) -> Any:
        import ctranslate2  # noqa: PLC0415 - heavy: who loads no model does not pay for it

        features = ctranslate2.StorageView.from_array(normalised(logs)[None])  # (1, BINS, columns) f32
        return _guarded(lambda: self._model.encode(features))  # (1, columns / 2, width)

    def _decode(self, encoded: Any, prompt: list[int], prefix: Sequence[int], limit_tokens: int) -> Any:
        """The decoder's result, or None where it is none of speech."""
        # CTranslate2 stops at half of max_length, or where prompt and text fill it, whichever comes first.
        length = min(_LONGEST_TOKENS, max(2 * limit_tokens, len(prompt) + limit_tokens))

        def generate(prompt: list[int], length: int) -> Any:
            return self._model.generate(
                encoded,
                [prompt],
                beam_size=1,
                max_length=length,
                no_repeat_ngram_size=_NO_REPEAT_TOKENS,
                return_scores=True,
                return_no_speech_prob=True,
                return_logits_vocab=True,
            )[0]

        result = _guarded(lambda: generate([*prompt, *prefix], length))
        if not any(letter.isalnum() for letter in self.tokens.decode(result.sequences_ids[0])):
            return None
        score, no_speech = result.scores[0], result.no_speech_prob
        if no_speech > _DOUBTFUL_NO_SPEECH or score < _DOUBTFUL_LOG_PROBABILITY:
            if len(prompt) > len(self.tokens.task):
                no_speech = _guarded(lambda: generate(self.tokens.task, 2)).no_speech_prob
            if no_speech > _NO_SPEECH or score < _LOG_PROBABILITY:
                return None
        return result

    def _align(self, encoded: Any, tokens: Sequence[int], columns: int) -> list[float]:
        # The columns count as the encoder reads them, though its own frames are two columns long.
        result = _guarded(lambda: self._model.align(encoded, self.tokens.opening, [list(tokens)], columns))[0]
        starts: dict[int, float] = {}
        for token, frame in result.alignments:
            starts.setdefault(token, frame * 2 / COLUMNS_PER_SECOND)
        latest = 0.0
        times = []
        for index in range(len(tokens)):
            latest = max(latest, starts.get(index, latest))
            times.append(latest)
        return times

    def _carried(self, tokens: Sequence[int], starts_s: Sequence[float], least: int, sound_s: float) -> int:
        """How many tokens begin within the sound, cut at a word's border, the first `least` always among them."""
        count = next((index for index in range(least, len(tokens)) if starts_s[index] > sound_s), len(tokens))
        while least < count < len(tokens) and not self.tokens.begins_word(tokens[count]):
            count -= 1
        return count

    def _before_loop(self, tokens: Sequence[int], starts_s: Sequence[float], least: int, sound_s: float) -> int:
        """How many tokens there are before words that are said again faster than anybody speaks.

        Words that are really said twice take their time twice; those of a loop crowd where the sound ends.
        """
        again = said_again_at(self.tokens.decode(tokens))
        if again is None:
            return len(tokens)
        start = next(
            place
            for place, token in enumerate(tokens)
            if self.tokens.begins_word(token) and len(self.tokens.decode(tokens[:place])) >= again
        )
        start = max(least, start)
        fits = _FASTEST_TOKENS_PER_SECOND * max(0.0, sound_s - starts_s[start])
        return len(tokens) if len(tokens) - start <= fits else start

    def _end_probability(self, tokens: Sequence[int], logits: Sequence[Any]) -> float | None:
        """The mass on a mark that closes a sentence or a phrase, right after the last word.

        The comma belongs to them, and the end of the text without a mark does not: it is what the decoder gives a
        sentence that was cut. Over 50 orders, AUC of true ends against pauses after "a" or "dark": 0.96 so (hints in
        front; 0.93 without), 0.91 without the comma, 0.86 with the end of the text.
        """
        words = len(tokens)
        while words and not any(letter.isalnum() for letter in self.tokens.decode([tokens[words - 1]])):
            words -= 1
        if not words or words >= len(logits):
            return None
        row = np.array(logits[words], dtype=np.float32)
        masses = np.exp(row - row.max())
        return float(masses[self.tokens.closing_marks].sum() / masses.sum())


def _guarded(call: Callable[[], Result]) -> Result:
    try:
        return call()
    except Exception as error:
        raise EngineError("the recognizer's model failed on one stretch of sound", retryable=True) from error
