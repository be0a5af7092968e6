"""Moonshine's two onnxruntime sessions: sound in, the logits of the tokens that may follow out; and the greedy search.

A decoding may be given a guess: tokens that an earlier hypothesis of the same sound had. They are read in one call, and
as many of them stay as the search would have chosen one by one; it goes on from there. What comes out is what would
have come out without, but for rounding: the network's eight-bit products are scaled by all that a call reads at once.
That decides where two endings are as likely, mostly in mid-word: of 548 looks at growing orders about one in seven
differs somewhere, and as many slots are heard with a guess as without.
Units: samples at HEARING_RATE_HZ; frames of the encoder, about 41 a second. Threads: stateless but for `Reading`, which
is one thread's.
What it does not know: which sounds are speech, and what was said before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from antiphon.core.errors import EngineError
from antiphon.hear.moonshine_tokens import BEGIN, END
from antiphon.hear.word_bias import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.core.flow import Pcm
    from antiphon.hear.word_bias import Logits, WordBias

Encoded: TypeAlias = npt.NDArray[np.float32]  # (sounds, frames, width); mostly of one sound
Rows: TypeAlias = npt.NDArray[np.float32]  # (tokens read, vocabulary): what follows each of them

_LAYERS = 6
_HEADS = 8
_HEAD_WIDTH = 36
# "no" six times over, marks between, is eleven tokens; a phrase of four tokens or more cannot come three times.
NO_REPEAT_TOKENS = 8


class Reading(Protocol):
    """The decoder's memory of one stretch of sound and of the tokens that it has read so far."""

    def read(self, tokens: Sequence[int]) -> Rows:
        """Read on; several tokens only at the beginning."""
        ...

    def keep(self, count: int) -> None:
        """Forget all tokens read but the first `count`."""
        ...


class MoonshineNetwork:
    """The loaded sessions."""

    def __init__(self, encoder: Any, decoder: Any) -> None:
        self._encoder = encoder
        self._decoder = decoder

    def encode(self, pcm: Pcm) -> Encoded:
        """What the encoder makes of the sound, or of several of the same length, one in each row.

        Raises:
            EngineError: the model failed.
        """
        sounds = np.atleast_2d(pcm)
        asked = {"input_values": sounds, "attention_mask": np.ones(sounds.shape, np.int64)}
        encoded: Encoded = _run(self._encoder, None, asked)[0]
        return encoded

    def reading(self, encoded: Encoded) -> NetworkReading:
        return NetworkReading(self._decoder, encoded)

    def log_probabilities(self, encoded: Encoded, tokens: Sequence[int]) -> Rows:
        """Of each token, were it said in each of these sounds; one call."""  # (sounds, tokens)
        sounds = len(encoded)
        asked = {
            "encoder_hidden_states": encoded,
            "encoder_attention_mask": _whole(encoded),
            **{name: np.repeat(array, sounds, axis=0) for name, array in _empty_memory().items()},
            "input_ids": np.array([[BEGIN, *tokens[:-1]]] * sounds, np.int64),
            "use_cache_branch": np.array([False]),
        }
        (logits,) = _run(self._decoder, ["logits"], asked)  # (sounds, tokens, vocabulary)
        top = logits.max(axis=2)
        totals = top + np.log(np.exp(logits - top[:, :, None]).sum(axis=2))
        chosen: Rows = np.take_along_axis(logits, np.array(tokens, np.int64)[None, :, None], axis=2)[:, :, 0] - totals
        return chosen


class NetworkReading:
    """One decoding's keys and values: of the sound, made by the first call, and of the tokens read."""

    def __init__(self, decoder: Any, encoded: Encoded) -> None:
        self._decoder = decoder
        self._asked: dict[str, Any] = {
            "encoder_hidden_states": encoded,
            "encoder_attention_mask": _whole(encoded),
        }
        self._sound: dict[str, Any] = {}  # what attention to the sound needs; the same at every token
        self._past: dict[str, Any] = {}  # (1, heads, tokens read, head width) each

    def read(self, tokens: Sequence[int]) -> Rows:
        """As `Reading.read`.

        Raises:
            EngineError: the model failed.
        """
        is_first = not self._past
        memory = _empty_memory() if is_first else {**self._sound, **self._past}
        asked = {
            **self._asked,
            **memory,
            "input_ids": np.array([tokens], np.int64),
            "use_cache_branch": np.array([not is_first]),
        }
        wanted = [*_PAST, *_SOUND] if is_first else _PAST
        logits, *made = _run(self._decoder, ["logits", *(f"present.{name}" for name in wanted)], asked)
        for name, array in zip(wanted, made, strict=True):
            (self._sound if name in _OF_SOUND else self._past)[f"past_key_values.{name}"] = array
        rows: Rows = logits[0]
        return rows

    def keep(self, count: int) -> None:
        self._past = {name: array[:, :, :count] for name, array in self._past.items()}


_PAST = [f"{layer}.decoder.{kind}" for layer in range(_LAYERS) for kind in ("key", "value")]
_SOUND = [f"{layer}.encoder.{kind}" for layer in range(_LAYERS) for kind in ("key", "value")]
_OF_SOUND = frozenset(_SOUND)


def _whole(encoded: Encoded) -> npt.NDArray[np.int64]:
    """The mask of a sound that is to be attended to everywhere.

    The network takes a mask of samples and keeps every 384th, one a frame; a single one serves for all of them.
    """
    return np.ones((len(encoded), 1), np.int64)


def _empty_memory() -> dict[str, Any]:
    nothing = np.zeros((1, _HEADS, 0, _HEAD_WIDTH), np.float32)
    unused = np.zeros((1, _HEADS, 1, _HEAD_WIDTH), np.float32)
    return {f"past_key_values.{name}": unused if name in _OF_SOUND else nothing for name in (*_PAST, *_SOUND)}


@dataclass(slots=True)
class Written:
    """What the search has chosen, and how sure the model was, before any bonus."""

    tokens: list[int] = field(default_factory=list)  # without END
    logs: list[float] = field(default_factory=list)  # log probability of each choice, END among them
    closing: list[float] = field(default_factory=list)  # at each choice, the mass on the closing marks that were given
    has_ended: bool = False  # by itself


class Search:
    """Greedy, leaning towards a vocabulary; no eight tokens in a row come twice."""

    def __init__(self, bias: WordBias, closing: Sequence[int]) -> None:
        self.written = Written()
        self._bias = bias
        self._closing = np.array(closing, np.int64)
        self._places = NOWHERE
        self._been: set[int] = set()
        self._followers: dict[tuple[int, ...], set[int]] = {}  # of each run of seven tokens
        self._recent: deque[int] = deque(maxlen=NO_REPEAT_TOKENS - 1)

    def choose(self, logits: Logits) -> int:
        """The next token; END where the text is over."""
        written = self.written
        raised = logits
        if not self._bias.is_idle:
            raised = self._bias.added(logits, self._places, self._been, is_first=not written.tokens)
        forbidden = self._followers.get(tuple(self._recent))
        if forbidden:
            raised = raised.copy()
            raised[list(forbidden)] = -np.inf
        token = int(raised.argmax())
        top = float(logits.max())
        total = top + float(np.log(np.exp(logits - top).sum()))
        written.logs.append(float(logits[token]) - total)
        written.closing.append(float(np.exp(logits[self._closing] - total).sum()))
        if token == END:
            written.has_ended = True
            return token
        written.tokens.append(token)
        self._places = self._bias.after(self._places, token)
        if not self._bias.is_space(token):  # after which any word may come, again too
            self._been.update(self._places)
        if len(self._recent) == self._recent.maxlen:
            self._followers.setdefault(tuple(self._recent), set()).add(token)
        self._recent.append(token)
        return token


def decode(
    reading: Reading, search: Search, *, guess: Sequence[int], limit: int, is_wanted: Callable[[], bool] = lambda: True
) -> Written:
    """The words, at most `limit` tokens of them; fewer where they are not wanted any more.

    Raises:
        EngineError: the model failed.
    """
    read = [BEGIN, *guess[:limit]]
    rows = reading.read(read)
    place = 0
    while True:
        token = search.choose(rows[place])
        count = len(search.written.tokens)
        if token == END or count >= limit or not is_wanted():
            return search.written
        place += 1
        if place == len(read) or read[place] != token:
            reading.keep(count)  # BEGIN, and all before the newest
            read, place = [token], 0
            rows = reading.read(read)


def _run(session: Any, wanted: Sequence[str] | None, asked: dict[str, Any]) -> Any:
    try:
        return session.run(wanted, asked)
    except Exception as error:
        raise EngineError("the recognizer's model failed on one stretch of sound", retryable=True) from error
