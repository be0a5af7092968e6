"""Whisper: log-mel columns in, hypotheses with their evidence out, whichever library computes.

The decoder is greedy and cannot run away: no eight tokens in a row come twice (in other languages than English,
sixteen), a hypothesis holds no more tokens than its sound could carry, and where words repeat, only those that the
sound itself carries are kept.
Units: seconds of sound where named so, columns of 10 ms. Threads: the model is shared; encoding, decoding and
aligning are one call each on the engine's lane, so that a caller who gives up stops between them. Callers who wait
at the same time share a decoding, and each gets what it would have got alone.
What it does not know: turns, and what was said before. `whisper_recognition` keeps these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from antiphon.core.errors import EngineError, MachineError
from antiphon.core.stamps import Stage
from antiphon.hear.agreement import is_monotonous, repeats, said_again_at
from antiphon.hear.mel import COLUMNS_PER_SECOND, normalised
from antiphon.hear.whisper_recognition import WhisperRecognition
from antiphon.hear.whisper_settings import WhisperSettings
from antiphon.hear.whisper_tokens import WhisperTokens
from antiphon.scheduling.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import TypeVar

    from antiphon.gpu.engine_lane import Gpu
    from antiphon.hear.mel import Mel
    from antiphon.hear.whisper_model import Encoded, WhisperModel
    from antiphon.scheduling.lanes import Lane

    Result = TypeVar("Result")

_LONGEST_TOKENS = 448  # the decoder has no positions beyond, prompt included

# "no" six times over, marks between, is eleven tokens; a phrase of four tokens or more cannot come three times.
_NO_REPEAT_TOKENS = 8
# The fastest of 120 orders holds 5.8 tokens a second. The four are for an ending in mid-word and for marks.
_TOKENS_PER_SECOND = 8
_SPARE_TOKENS = 4
# Whisper's vocabulary is made for English. Plain Chinese has one token a syllable, names of drinks up to 1.8;
# at a hurried seven syllables a second these are 13 tokens. So the numbers above are doubled for other languages.
_OTHER_LANGUAGES = 2

# What is no speech. Measured over 120 orders, single words, and noise, hum, tones and clicks at -6 to -60 dBFS: speech
# has a no-speech probability up to 0.26 (0.11 where the decoder reads hints first), the rest 0.68 (0.19) and more. With
# hints the two lie close together, so a hypothesis in doubt is judged again without: one token, a sixth of the time.
_DOUBTFUL_NO_SPEECH = 0.05
_DOUBTFUL_LOG_PROBABILITY = -0.9  # per token; whole orders -0.1 to -0.6, in kitchen noise down to -0.98
_NO_SPEECH = 0.6
_LOG_PROBABILITY = -1.5
# Models of many languages give speech a no-speech probability of up to 0.9 (base: 17 stretches of Chinese; English has
# up to 0.03), and the sounds above 0.5 to 0.9: it tells only together with the log probability. Hints are echoed into a
# hum with -0.2, and give a short answer -2.1 that has -0.2 without: in doubt the sound is decoded again without hints.
_MANY_DOUBTFUL_NO_SPEECH = 0.2
_MANY_NO_SPEECH = 0.45
_MANY_LOG_PROBABILITY = -0.9
_HINTS_COST = 0.3  # of log probability, up to which the words that were helped are taken
# Hurried English has about 6, hurried Chinese 8, continued characters not counted; a loop's words have next to no time.
_FASTEST_TOKENS_PER_SECOND = 12.0
_SOUND_END_SLACK_S = 0.1  # an alignment is exact to some 50 ms; loops begin half a second or more behind the sound

_ALIGN = Job(stage=Stage.RECOGNISE, estimate_ns=25_000_000)

_ENCODE_NS = 130_000_000
_DECODE_NS = 120_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """What the decoder made of a stretch of sound; without tokens, it holds no speech."""

    tokens: tuple[int, ...] = ()
    end_probability: float | None = None  # of a closing mark right after the last word


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decoding:
    """One caller's part of a call to the decoder."""

    encoded: Encoded
    prompt: list[int]
    prefix: Sequence[int]
    max_length: int  # as CTranslate2 counts it

    @property
    def longest_tokens(self) -> int:
        """Where CTranslate2 stops: at half of max_length, or where prompt and text fill it, whichever comes first."""
        return min(self.max_length // 2, self.max_length - len(self.prompt) + 1)


class WhisperRecognizer:
    """The loaded model; `open` gives a caller's view of it."""

    longest_slice_ns = 1_000_000_000  # decoding 24 s of speech of four callers, 2-core EPYC, two threads; of one 400 ms

    def __init__(self, model: WhisperModel, tokens: WhisperTokens, lane: Lane, settings: WhisperSettings) -> None:
        self._model = model
        self._lane = lane
        self.tokens = tokens
        self.settings = settings
        self.name = "whisper"
        self._is_multilingual = model.is_multilingual
        self.encode_most = model.encode_most  # callers who share a call
        self.decode_most = model.decode_most
        self.bins = model.bins  # 80; 128 for large-v3 and turbo
        self.column_step = model.column_step  # windows are whole numbers of these
        self._tokens_scale = 1 if settings.language == "en" else _OTHER_LANGUAGES
        self.compute_type = model.compute_type
        self.compute_type_reason = ""

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        lane: Lane,
        threads: int,
        gpu: Gpu | None = None,
        settings: WhisperSettings | None = None,
    ) -> WhisperRecognizer:
        """Read the model from a folder in CTranslate2's form with its tokenizer.json; 0.3 s.

        With a `gpu` it computes there. A compute type that the device lacks is replaced by one it has;
        `compute_type_reason` says so.

        Raises:
            MachineError: a file is missing or broken, or there is no such device.
            CallerError: the model does not know the language.
        """
        from antiphon.hear.whisper_model import load_ctranslate2, load_torch  # noqa: PLC0415 - who loads none pays nothing

        settings = settings or WhisperSettings()
        for name in ("config.json", "model.bin", "tokenizer.json"):
            if not (folder / name).is_file():
                raise MachineError(
                    f"there is no {folder / name}",
                    hint="fetch the models: antiphon models fetch; or name a folder that CTranslate2 can read",
                )
        model: WhisperModel
        if gpu is not None:
            model, reason = load_torch(folder, settings, gpu)
        else:
            model, reason = load_ctranslate2(folder, settings, threads=threads)
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
        logs = np.full((10 * COLUMNS_PER_SECOND, self.bins), -10.0, np.float32)
        encoded = await self.encode(logs)
        await self.decode(encoded, before=(), prefix=(), sound_s=1.0)
        await self.token_starts_s(encoded, self.tokens.encode("Yes."), columns=len(logs))

    def close(self) -> None:
        """Free the model's memory; every later call fails."""
        self._model.close()

    async def encode(self, logs: Mel) -> Encoded:
        """What the encoder makes of the columns, for `decode` and `token_starts_s`.

        Raises:
            EngineError: the model failed.
        """
        job = Job(stage=Stage.RECOGNISE, estimate_ns=_ENCODE_NS, size=len(logs))
        kind = (self, "encode", logs.shape)
        return await self._lane.run_batch(job, logs, self._encode, kind=kind, most=self.encode_most)

    async def decode(
        self, encoded: Encoded, *, before: Sequence[int], prefix: Sequence[int], sound_s: float
    ) -> Hypothesis:
        """The words of the first `sound_s` seconds; what follows them is silence.

        `before` is text that came before, `prefix` the tokens that the hypothesis must begin with: it has these even
        where the rest is no speech.

        Raises:
            EngineError: the model failed.
        """
        prompt = self.tokens.prompt(before)
        limit = max(len(prefix), int(_TOKENS_PER_SECOND * self._tokens_scale * sound_s)) + _SPARE_TOKENS
        length = min(_LONGEST_TOKENS, max(2 * limit, len(prompt) + limit))
        asked = _Decoding(encoded=encoded, prompt=prompt, prefix=prefix, max_length=length)
        job = Job(stage=Stage.RECOGNISE, estimate_ns=_DECODE_NS, size=limit)
        kind = (self, "decode", encoded.shape, len(prompt), len(prefix))  # CTranslate2 takes no others together
        result = await self._lane.run_batch(job, asked, self._decode, kind=kind, most=self.decode_most)
        if result is None:
            return Hypothesis(tokens=tuple(prefix))
        tokens = result.sequences_ids[0]
        if repeats(self.tokens.decode(tokens)):
            starts = await self.token_starts_s(encoded, tokens, columns=2 * encoded.shape[1])
            count = self._carried(tokens, starts, len(prefix), sound_s + _SOUND_END_SLACK_S)
            tokens = tokens[: min(count, self._before_loop(tokens, starts, len(prefix), sound_s))]
        return Hypothesis(tokens=tuple(tokens), end_probability=self._end_probability(tokens, result.logits[0]))

    async def token_starts_s(self, encoded: Encoded, tokens: Sequence[int], *, columns: int) -> list[float]:
        """When each token begins, in seconds, never falling.

        Raises:
            EngineError: the model failed.
        """
        return await self._lane.run(_ALIGN, lambda: self._align(encoded, tokens, columns))

    def _encode(self, asked: Sequence[Mel]) -> list[Encoded]:
        return _guarded(lambda: self._model.encode([normalised(logs) for logs in asked]))

    def _decode(self, asked: Sequence[_Decoding]) -> list[Any]:
        """For each the decoder's result, or None where it is none of speech."""
        length = max(each.max_length for each in asked)
        encoded = [each.encoded for each in asked]
        results = self._generate(encoded, [[*each.prompt, *each.prefix] for each in asked], length)
        return [self._spoken(each, result, length) for each, result in zip(asked, results, strict=True)]

    def _generate(self, encoded: Sequence[Encoded], prompts: list[list[int]], max_length: int) -> Sequence[Any]:
        no_repeat = _NO_REPEAT_TOKENS * self._tokens_scale
        return _guarded(lambda: self._model.generate(encoded, prompts, max_length=max_length, no_repeat=no_repeat))

    def _spoken(self, asked: _Decoding, result: Any, max_length: int) -> Any:
        """A caller's own result of a call that had room for `max_length`, or None where it is none of speech."""
        prompt = asked.prompt

        def generate(prompt: Sequence[int], length: int) -> Any:
            return self._generate([asked.encoded], [list(prompt)], length)[0]

        if asked.max_length < max_length and len(result.sequences_ids[0]) >= asked.longest_tokens:
            # It ran on where alone it would have been stopped; cut here, its score would be another one than alone.
            result = generate([*prompt, *asked.prefix], asked.max_length)
        if not any(letter.isalnum() for letter in self.tokens.decode(result.sequences_ids[0])):
            return None
        task, has_hints = self.tokens.task, len(prompt) > len(self.tokens.task)
        if self._is_multilingual:
            alone = partial(generate, [*task, *asked.prefix], asked.max_length)
            return self._judged(result, alone if has_hints else None)
        judged = result
        if result.no_speech_prob > _DOUBTFUL_NO_SPEECH or result.scores[0] < _DOUBTFUL_LOG_PROBABILITY:
            if has_hints:  # to which a short answer is as unlikely as noise
                judged = generate([*task, *asked.prefix], asked.max_length)
            says_something = any(letter.isalnum() for letter in self.tokens.decode(judged.sequences_ids[0]))
            if not says_something or judged.no_speech_prob > _NO_SPEECH or judged.scores[0] < _LOG_PROBABILITY:
                return None
        return result

    def _judged(self, result: Any, without_hints: Callable[[], Any] | None) -> Any:
        """The result of a model of many languages, or the one without hints, or None where it is none of speech."""
        if without_hints is None:
            return result if self._is_speech(result) else None
        if result.no_speech_prob <= _MANY_DOUBTFUL_NO_SPEECH and result.scores[0] >= _DOUBTFUL_LOG_PROBABILITY:
            return result
        alone = without_hints()
        if not self._is_speech(alone):
            return None
        return result if result.scores[0] >= alone.scores[0] - _HINTS_COST else alone

    def _is_speech(self, result: Any) -> bool:
        text, score = self.tokens.decode(result.sequences_ids[0]), result.scores[0]
        if not any(letter.isalnum() for letter in text) or score < _LOG_PROBABILITY:
            return False
        return result.no_speech_prob <= _MANY_NO_SPEECH or (score >= _MANY_LOG_PROBABILITY and not is_monotonous(text))

    def _align(self, encoded: Encoded, tokens: Sequence[int], columns: int) -> list[float]:
        # The columns count as the encoder reads them, though its own frames are two columns long.
        pairs = _guarded(lambda: self._model.align(encoded, self.tokens.opening, tokens, columns))
        starts: dict[int, float] = {}
        for token, frame in pairs:
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
        starts_word = self.tokens.word_starts(tokens)
        while least < count < len(tokens) and not starts_word[count]:
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
            (
                place
                for place, starts_word in enumerate(self.tokens.word_starts(tokens))
                if starts_word and len(self.tokens.decode(tokens[:place])) >= again
            ),
            len(tokens),
        )
        start = max(least, start)
        if start == len(tokens):
            return start
        again_tokens = sum(map(self.tokens.begins_character, tokens[start:]))
        fits = _FASTEST_TOKENS_PER_SECOND * max(0.0, sound_s - starts_s[start])
        return len(tokens) if again_tokens <= fits else start

    def _end_probability(self, tokens: Sequence[int], logits: Sequence[Any]) -> float | None:
        """The mass on a mark that closes a sentence or a phrase, right after the last word.

        The comma belongs to them, and the end of the text without a mark does not: it is what the decoder gives a
        sentence that was cut. Over 50 orders, AUC of true ends against pauses after "a" or "dark": 0.96 so (hints in
        front; 0.93 without), 0.91 without the comma, 0.86 with the end of the text.
        A mark of several tokens whose first one could go on as a letter counts if it was written. Where the language
        writes no marks, nothing is known.
        """
        words = self.tokens.spelled(tokens)
        if not self.tokens.closing_marks or not words or words >= len(logits):
            return None
        rows = [_masses(row) for row in logits[words : words + 3]]  # no mark has more tokens than three
        singles = [mark[0] for mark in self.tokens.closing_marks if len(mark) == 1]
        written = sum(
            float(np.prod([row[token] for row, token in zip(rows, mark, strict=False)]))
            for mark in self.tokens.closing_marks
            if len(mark) > 1 and tuple(mark) == tuple(tokens[words : words + len(mark)])
        )
        return float(rows[0][singles].sum()) + written


def _masses(logits: Any) -> Any:
    """What the decoder gives each token."""
    row = np.array(logits, dtype=np.float32)
    masses = np.exp(row - row.max())
    return masses / masses.sum()


def _guarded(call: Callable[[], Result]) -> Result:
    try:
        return call()
    except Exception as error:
        raise EngineError("the recognizer's model failed on one stretch of sound", retryable=True) from error
