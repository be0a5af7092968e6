"""Whisper as the recognizer asks for it: windows to what they sound like, that to text, and text to times.

Greedy: the likeliest token that is allowed, no run of tokens twice, at most so many tokens. The scores and rows of
logits are those that CTranslate2 gives for the same call, so that what is judged by them holds for both.
Whatever it computes is a slice of the GPU's lane, a step of the decoder each, as urgent as the jobs that it is for.
Units: columns of 10 ms, frames of two, tokens. Threads: one at a time. It does not know callers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from antiphon.core.errors import CallerError, EngineError
from antiphon.core.stamps import Stage
from antiphon.gpu.engine_lane import wanted
from antiphon.gpu.llama.shape import least_bucket
from antiphon.gpu.whisper.alignment import attention_matrix, path_through
from antiphon.gpu.whisper.decoder import WhisperDecoder, WritingBucket
from antiphon.gpu.whisper.encoder import BATCHES, COLUMN_STEP, WhisperEncoder, WindowBucket
from antiphon.gpu.whisper.weights import MANY_LANGUAGES, load_whisper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import TypeVar

    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from antiphon.gpu.engine_lane import Gpu
    from antiphon.gpu.whisper.weights import WhisperWeights, WritingRules

    Made = TypeVar("Made")

_WRITERS = (1, 2, 4)  # who share a step
_MOST_WRITERS = _WRITERS[-1]
_USUAL_COLUMNS = 1000  # the shortest window, which most looks at a turn are
_START, _NO_TIMES, _END = "<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>"
_NO_SPEECH = ("<|nospeech|>", "<|nocaptions|>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The numbers of the tokens that mean something here."""

    start: int
    no_times: int
    end: int
    no_speech: int

    @classmethod
    def of(cls, vocabulary: Sequence[str]) -> Marks:
        """Raises CallerError where one is missing: this is no vocabulary of Whisper's."""
        places = {token: place for place, token in enumerate(vocabulary)}
        silence = next((places[name] for name in _NO_SPEECH if name in places), None)
        try:
            return cls(
                start=places[_START],
                no_times=places[_NO_TIMES],
                end=places[_END],
                no_speech=places[_NO_SPEECH[0]] if silence is None else silence,
            )
        except KeyError as error:
            raise CallerError(
                f"the vocabulary has no {error.args[0]}", hint="name the folder of a Whisper model, whole"
            ) from None


@dataclass(slots=True, eq=False)
class Written:
    """What was written for one window; the names are CTranslate2's."""

    tokens: list[int] = field(default_factory=list)
    odds: float = 0.0
    no_speech_prob: float = 0.0
    rows: Tensor | None = None  # (tokens, vocabulary), and one more where the end was written
    is_over: bool = False
    is_cut: bool = False  # it was not over by itself

    def take(self, token: int, odds: float, *, end: int, limit: int) -> None:
        """One more token, unless all was written."""
        if self.is_over:
            return
        self.odds += odds
        if token == end:
            self.is_over = True
            return
        self.tokens.append(token)
        self.is_over = self.is_cut = len(self.tokens) >= limit

    @property
    def sequences_ids(self) -> list[list[int]]:
        return [self.tokens]

    @property
    def scores(self) -> list[float]:
        return [self.odds / max(1, len(self.tokens))]

    @property
    def logits(self) -> list[Rows]:
        assert self.rows is not None
        return [Rows(self.rows)]


class Rows:
    """Logits, brought to main memory row by row, as they are asked for."""

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.shape[0])

    def __getitem__(self, places: slice) -> list[npt.NDArray[np.float32]]:
        return list(self._rows[places].float().cpu().numpy())


class WhisperModel:
    """One loaded model on one device."""

    def __init__(self, weights: WhisperWeights, rules: WritingRules, marks: Marks, *, gpu: Gpu) -> None:
        self.weights = weights
        self.bins = weights.shape.bins
        self.is_multilingual = weights.shape.vocabulary >= MANY_LANGUAGES
        self.compute_type = str(weights.dtype).removeprefix("torch.")
        self.column_step = COLUMN_STEP if weights.device.type == "cuda" else 2
        self.encode_most, self.decode_most = BATCHES[-1], _MOST_WRITERS
        self._rules = rules
        self._marks = marks
        self.encoder = WhisperEncoder(weights)
        self.decoder = WhisperDecoder(weights, rules, most_callers=_MOST_WRITERS)
        self._lane = lane = gpu.engine()
        frames = _USUAL_COLUMNS // 2
        self._encoding = lane.add(
            "encode", self.encoder.body, at_start=[WindowBucket(count, _USUAL_COLUMNS) for count in BATCHES]
        )
        self._writing = lane.add(
            "write",
            self.decoder.body,
            at_start=[WritingBucket(count, 1, frames, is_first=False) for count in _WRITERS],
        )

    @classmethod
    def load(cls, folder: Path, *, gpu: Gpu, dtype: torch.dtype) -> WhisperModel:
        """Read a folder in CTranslate2's form.

        Raises:
            CallerError: a file is missing or broken, or of another kind of model.
        """
        weights, rules = load_whisper(folder, device=torch.device(gpu.name), dtype=dtype)
        return cls(weights, rules, Marks.of(_vocabulary(folder)), gpu=gpu)

    @torch.inference_mode()
    def encode(self, windows: Sequence[npt.NDArray[np.float32]]) -> list[Tensor]:
        """Windows (bins, columns) of one length to what they sound like, (1, columns / 2, width) each.

        Raises:
            EngineError: the device failed.
            BusyError: too much waits for it.
        """
        columns = windows[0].shape[1]
        encoded: list[Tensor] = []
        for first in range(0, len(windows), self.encode_most):
            taken = windows[first : first + self.encode_most]
            bucket = WindowBucket(least_bucket(BATCHES, len(taken)), columns)
            self.encoder.fill([torch.from_numpy(window) for window in taken])
            want = wanted(Stage.RECOGNISE, size=bucket.windows * columns)
            self._lane.run(self._encoding, bucket, want)
            encoded.extend(self._kept(len(taken), columns).split(1))
        return encoded

    @torch.inference_mode()
    def generate(
        self, encoded: Sequence[Tensor], prompts: Sequence[Sequence[int]], *, max_length: int, no_repeat: int
    ) -> list[Written]:
        """Text for each window, all of one length; prompts of one length, what stands behind the task is kept.

        `no_repeat` tokens in a row are never written twice.

        Raises:
            EngineError: the prompts do not fit together, or the device failed.
        """
        marks, decoder = self._marks, self.decoder
        task = prompts[0].index(marks.no_times) + 1
        if any(len(each) != len(prompts[0]) or each.index(marks.no_times) + 1 != task for each in prompts):
            raise EngineError("prompts that are answered together must be of one length and task")
        limit = min(max_length // 2, max_length - task + 1)
        sound = self._hear(encoded)
        found = [Written(tokens=list(prompt[task:])) for prompt in prompts]
        asked, position = [list(prompt) for prompt in prompts], 0
        while True:
            forbidden = [_repeating(each.tokens, no_repeat) for each in found]
            self._step(asked, position, sound.shape[1], forbidden)
            for each, (token, odds) in zip(found, decoder.chosen(len(found)), strict=True):
                each.take(token, odds, end=marks.end, limit=limit)
            if all(each.is_over for each in found):
                break
            position += len(asked[0])
            asked = [[each.tokens[-1]] for each in found]
        for place, (each, prompt) in enumerate(zip(found, prompts, strict=True)):
            self._judge(place, each, prompt, task)
        return found

    @torch.inference_mode()
    def align(
        self, encoded: Tensor, opening: Sequence[int], tokens: Sequence[int], columns: int
    ) -> list[tuple[int, int]]:
        """Pairs of a token's place and a frame, rising; the columns beyond `columns` are left out.

        Raises:
            CallerError: the model does not say which of its heads look where a word sounds.
        """
        if not self._rules.alignment_heads:
            raise CallerError(
                "the model's config.json has no alignment_heads", hint="convert the model again with CTranslate2"
            )
        self._hear([encoded])
        whole = [*opening, self._marks.no_times, *tokens, self._marks.end]
        frames = encoded.shape[1]
        looks = self._called(lambda: self.decoder.looks(whole, frames, self._rules.alignment_heads))
        matrix = attention_matrix(looks, min(columns // 2, encoded.shape[1]))
        return path_through(matrix[len(opening) : -1])

    def close(self) -> None:
        """Let go of the memory."""
        del self.encoder, self.decoder, self.weights

    def _step(
        self, asked: Sequence[Sequence[int]], position: int, frames: int, forbidden: Sequence[Sequence[int]]
    ) -> None:
        self.decoder.fill(asked, position, forbidden)
        callers = least_bucket(_WRITERS, len(asked))
        bucket = WritingBucket(callers, len(asked[0]), frames, is_first=position == 0)
        self._lane.run(self._writing, bucket, wanted(Stage.RECOGNISE, size=callers * frames))

    def _kept(self, windows: int, columns: int) -> Tensor:
        """A copy of what was encoded last."""
        return self._called(lambda: self.encoder.encoded(windows, columns).clone())

    def _hear(self, encoded: Sequence[Tensor]) -> Tensor:
        """Let the decoder take the sound; (callers, frames, width)."""

        def hear() -> Tensor:
            sound = torch.cat(list(encoded))
            self.decoder.hear(sound)
            return sound

        return self._called(hear)

    def _judge(self, place: int, written: Written, prompt: Sequence[int], task: int) -> None:
        """The evidence for a text: how likely there is no speech, and the rows of logits."""
        marks, decoder = self._marks, self.decoder

        def judge() -> tuple[Tensor, Tensor]:
            start = decoder.logits(place, slice(prompt.index(marks.start), prompt.index(marks.start) + 1))
            end = task + len(written.tokens) - written.is_cut
            rows = decoder.barred(decoder.logits(place, slice(task - 1, end)), first=len(prompt) - task)
            return start[0].float().softmax(dim=-1)[marks.no_speech], rows

        no_speech, written.rows = self._called(judge)
        written.no_speech_prob = float(no_speech)

    def _called(self, what: Callable[[], Made]) -> Made:
        def call() -> Made:
            with torch.inference_mode():
                return what()

        return self._lane.call(call, wanted(Stage.RECOGNISE))


def _repeating(tokens: Sequence[int], longest: int) -> list[int]:
    """What would make the last tokens a run of `longest` that was written before."""
    kept = longest - 1
    if longest < 2 or len(tokens) < longest:
        return []
    last = list(tokens[-kept:])
    return [tokens[place + kept] for place in range(len(tokens) - kept) if list(tokens[place : place + kept]) == last]


def _vocabulary(folder: Path) -> list[str]:
    """The tokens by number, from vocabulary.json or the older vocabulary.txt.

    Raises:
        CallerError: neither can be read.
    """
    try:
        if (folder / "vocabulary.json").is_file():
            listed = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
            return [str(token) for token in listed]
        return (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise CallerError(
            f"{folder} has no vocabulary that can be read", hint="name the folder of a Whisper model, whole"
        ) from error
