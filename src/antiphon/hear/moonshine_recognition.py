"""One caller's frames in, growing transcripts of the turn out, by a shared Moonshine model.

A window that is full is parted where it is quietest. What lies before is heard once more by itself and is settled, and
the words of the window's last hypothesis are divided by what was heard there: stable ones stay, and none comes twice.
Units: samples at HEARING_RATE_HZ; inside a window, samples since it began. Threads: the event loop.
A transcription that is cancelled leaves behind what was settled by then, and no half of anything.
What it does not know: whether a voice is there, and when a turn is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.hear.agreement import Agreement
from antiphon.hear.turn_recognition import TurnRecognition
from antiphon.hear.words import joined, words

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm
    from antiphon.hear.moonshine import Hypothesis, MoonshineRecognizer
    from antiphon.hear.turn_recognition import Turn
    from antiphon.hear.word_bias import WordBias

WINDOW_SAMPLES = 16 * HEARING_RATE_HZ  # heard at once; a longer one is parted
EARLIEST_BORDER_SAMPLES = 6 * HEARING_RATE_HZ  # so that every shortening is worth it
LATEST_BORDER_SAMPLES = HEARING_RATE_HZ * 3 // 2  # before the window's end: words nearer to the edge may be cut
_TENTH = HEARING_RATE_HZ // 10
_STEP = HEARING_RATE_HZ // 100  # at which the quietest tenth of a second is looked for


class PcmStream:
    """Sound that grows at its end and is dropped at its beginning."""

    def __init__(self) -> None:
        self._pcm = np.zeros(0, np.float32)
        self._samples = 0

    def __len__(self) -> int:
        return self._samples

    @property
    def pcm(self) -> Pcm:
        """All sound there is; a view, of which nothing changes."""
        return self._pcm[: self._samples]

    def feed(self, pcm: Pcm) -> None:
        """Append sound."""
        end = self._samples + len(pcm)
        if end > len(self._pcm):
            larger = np.empty(max(end, 2 * len(self._pcm)), np.float32)
            larger[: self._samples] = self.pcm
            self._pcm = larger
        self._pcm[self._samples : end] = pcm
        self._samples = end

    def drop(self, samples: int, /) -> None:
        """Forget the first `samples`."""
        self._pcm = self.pcm[samples:].copy()
        self._samples = len(self._pcm)


class MoonshineRecognition(TurnRecognition[PcmStream]):
    """One caller's sound and what was made of it."""

    longest_window_samples = WINDOW_SAMPLES

    def __init__(self, recognizer: MoonshineRecognizer, bias: WordBias) -> None:
        super().__init__()
        self._recognizer = recognizer
        self._bias = bias
        self._foreseen: tuple[tuple[Turn[PcmStream], int, int], Hypothesis] | None = None  # of a turn's window

    def _new_sound(self) -> PcmStream:
        return PcmStream()

    async def foresee(self, until_samples: int) -> str:
        """Hear the window as far as there; see the contract."""
        turn = self._turn
        samples = min(until_samples, turn.end_samples) - turn.window_samples if turn is not None else 0
        if turn is None or not 0 < samples <= self.longest_window_samples or turn.is_quiet(samples):
            return ""
        window = (turn, turn.window_samples, samples)
        hypothesis = await self._recognizer.hear(turn.sound.pcm[:samples], bias=self._bias, guess=turn.guess)
        self._foreseen = (window, hypothesis)
        return joined(turn.settled, self._recognizer.tokens.decode(hypothesis.tokens).strip())

    async def _hear(self, turn: Turn[PcmStream], samples: int, *, is_rest: bool, final: bool) -> None:
        """Offer the turn a hypothesis of the window's first `samples`, or settle what lies before its best border."""
        heard = turn.window_samples + samples
        border = samples if is_rest else border_samples(turn.sound.pcm[:samples])
        tokens: tuple[int, ...] = ()
        hypothesis: Hypothesis | None = None
        if not turn.is_quiet(border):
            if self._foreseen is not None and self._foreseen[0] == (turn, turn.window_samples, border):
                hypothesis = self._foreseen[1]
            else:
                hypothesis = await self._recognizer.hear(turn.sound.pcm[:border], bias=self._bias, guess=turn.guess)
            tokens = hypothesis.tokens
        # From here on nothing is awaited: the turn goes from one right state to the next.
        text = self._recognizer.tokens.decode(tokens).strip()
        if is_rest:
            if final:
                turn.agreement.conclude(text)
            else:
                turn.agreement.offer(text)
            turn.guess, turn.heard_samples = tokens, heard
            turn.end_probability = hypothesis.end_probability if hypothesis else None
            turn.certainty = hypothesis.certainty if hypothesis else None
            return
        settled, turn.agreement = parted(turn.agreement, text)
        turn.settled = joined(turn.settled, settled)
        turn.guess = ()
        turn.shorten(border)
        turn.heard_samples, turn.end_probability, turn.certainty = turn.window_samples, None, None

    def end(self) -> None:
        """The turn is over; a transcription under way still finishes."""
        super().end()
        self._foreseen = None


def border_samples(pcm: Pcm) -> int:
    """Where the window is best parted: in the middle of its quietest tenth of a second."""
    first, last = EARLIEST_BORDER_SAMPLES, len(pcm) - LATEST_BORDER_SAMPLES
    energy = np.concatenate(([0.0], np.cumsum(np.square(pcm[first:last], dtype=np.float64))))
    tenths = energy[_TENTH::_STEP] - energy[:-_TENTH:_STEP]
    return first + int(tenths.argmin()) * _STEP + _TENTH // 2


def parted(agreement: Agreement, text: str) -> tuple[str, Agreement]:
    """What a window's first part says for good, and what is agreed on about the rest.

    `text` is that part's own transcript; where the window's words so far are divided is where they are most like it.
    Stable words stay as they are, on both sides.
    """
    heard = list(words(text))
    keys = [word.key for word in heard]
    whole = list(words(agreement.previous))
    stable = sum(1 for _ in words(agreement.stable))
    count = _prefix_like(keys, [word.key for word in whole])
    end = whole[count].start if count < len(whole) else len(agreement.previous)
    if count < stable:
        return agreement.previous[:end].rstrip(), agreement.after(end)
    # The part reaches to the end of what is stable or beyond: its own transcript knows more than the window's there.
    same = _prefix_like([word.key for word in whole[:stable]], keys) if stable else 0
    after = text[heard[same - 1].end :] if same else f" {text}"
    settled = (agreement.stable + after).strip() if stable else text
    return settled, Agreement(previous=agreement.previous[end:].lstrip())


def _prefix_like(keys: list[str], longer: list[str]) -> int:
    """How many words of `longer` make the beginning that takes the fewest changes to become `keys`."""
    costs = list(range(len(longer) + 1))  # between the keys so far and each beginning
    for row, key in enumerate(keys, 1):
        diagonal, costs[0] = costs[0], row
        for place, other in enumerate(longer, 1):
            change = min(costs[place] + 1, costs[place - 1] + 1, diagonal + (key != other))
            diagonal, costs[place] = costs[place], change
    nearest = min(costs)
    # Of equally good ones the one of the same length, or nearest to it.
    return min((place for place, cost in enumerate(costs) if cost == nearest), key=lambda place: abs(place - len(keys)))
