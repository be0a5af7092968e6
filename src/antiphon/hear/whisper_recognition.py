"""One caller's frames in, growing transcripts of the turn out, by a shared Whisper model.

When the turn's window grows long, the text up to the quietest border between two words is settled, and the window
begins there.
Units: inside a window, samples or seconds since it began. Threads: the event loop; feeding takes 0.1 ms a frame.
A transcription that is cancelled leaves behind what was settled by then, and no half of anything.
What it does not know: whether a voice is there, and when a turn is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.hear.mel import COLUMNS_PER_SECOND, HOP_SAMPLES, MelStream
from antiphon.hear.turn_recognition import TurnRecognition
from antiphon.hear.words import tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.hear.mel import Mel
    from antiphon.hear.turn_recognition import Turn
    from antiphon.hear.whisper import Hypothesis, WhisperRecognizer

WINDOW_SAMPLES = 24 * HEARING_RATE_HZ  # heard at once, and with its padding less than the encoder's 30 s
SETTLE_SAMPLES = 16 * HEARING_RATE_HZ  # a window longer than this is shortened
EARLIEST_BORDER_S = 6.0  # so that every shortening is worth it
LATEST_BORDER_S = 1.5  # before the window's end: words nearer to the edge may still change

# Whisper repeats itself where little silence follows: of 70 orders 16 looped with 0.75 s of it, none from 10 s in all.
LONGEST_COLUMNS = 30 * COLUMNS_PER_SECOND  # the encoder has no positions beyond
LEAST_COLUMNS = 10 * COLUMNS_PER_SECOND
PADDING_COLUMNS = 2 * COLUMNS_PER_SECOND
CONTEXT_CHARS = 200  # of settled text that the decoder reads before it goes on: about 50 tokens of English
CONTEXT_TOKENS = 80  # and no more than these; 200 characters of Chinese are some 260


class WhisperRecognition(TurnRecognition[MelStream]):
    """One caller's sound and what was made of it."""

    longest_window_samples = WINDOW_SAMPLES
    hop_samples = HOP_SAMPLES

    def __init__(self, recognizer: WhisperRecognizer, hints: Sequence[int]) -> None:
        super().__init__()
        self._recognizer = recognizer
        self._hints = list(hints)

    def _new_sound(self) -> MelStream:
        return MelStream(bins=self._recognizer.bins)

    async def _hear(self, turn: Turn[MelStream], samples: int, *, is_rest: bool, final: bool) -> None:  # noqa: ARG002
        """Offer the turn a hypothesis of the window's first `samples`, and shorten the window if it is long."""
        recognizer = self._recognizer
        heard = turn.window_samples + samples
        sound_s = samples / HEARING_RATE_HZ
        quiet = turn.is_quiet(samples)
        sounding = -(-samples // HOP_SAMPLES)
        columns = min(LONGEST_COLUMNS, max(LEAST_COLUMNS, sounding + PADDING_COLUMNS))
        logs = turn.sound.columns(samples, columns + -columns % recognizer.column_step)
        stable = turn.agreement.stable
        # A forced beginning makes the decoder lose the end of short turns or say them twice, so only a window that is
        # about to be parted, whose tokens must be those of the text, pays for it.
        parting = samples >= SETTLE_SAMPLES
        prefix = recognizer.tokens.encode(stable) if parting else []
        encoded: Any = None
        hypothesis: Hypothesis | None = None
        if not quiet:
            encoded = await recognizer.encode(logs)
            hypothesis = await recognizer.decode(encoded, before=self._before(turn), prefix=prefix, sound_s=sound_s)
        tokens = list(hypothesis.tokens) if hypothesis else prefix
        starts: list[float] = []
        if parting and tokens:
            if encoded is None:
                encoded = await recognizer.encode(logs)
            starts = await recognizer.token_starts_s(encoded, tokens, columns=len(logs))
        # From here on nothing is awaited: the turn goes from one right state to the next.
        text = recognizer.tokens.decode(tokens).strip()
        if final and not parting:
            turn.agreement.conclude(text)
        else:
            turn.agreement.offer(text)
        turn.heard_samples = heard
        turn.end_probability = hypothesis.end_probability if hypothesis else None
        if parting:
            count, border_s = self._border(tokens, starts, logs[:sounding])
            turn.settle(len(recognizer.tokens.decode(tokens[:count]).strip()), int(border_s * HEARING_RATE_HZ))

    def _before(self, turn: Turn[MelStream]) -> list[int]:
        """What the decoder reads first: the caller's vocabulary, then the end of the settled text."""
        tokens = self._recognizer.tokens.encode(tail(turn.settled, CONTEXT_CHARS))
        if len(tokens) > CONTEXT_TOKENS:
            tokens = tokens[-CONTEXT_TOKENS:]
            starts = self._recognizer.tokens.word_starts(tokens)
            tokens = tokens[starts.index(True) :] if True in starts else []
        return [*self._hints, *tokens]

    def _border(self, tokens: Sequence[int], starts_s: Sequence[float], logs: Mel) -> tuple[int, float]:
        """Where the window's text and sound are best parted: how many tokens lie before, and the second.

        The quietest tenth of a second next to a word's beginning, or behind the last word.
        """
        length_s = len(logs) / COLUMNS_PER_SECOND
        loudness = np.convolve(logs.mean(axis=1), np.ones(10) / 10, mode="same")  # (columns,)
        first, last = EARLIEST_BORDER_S, length_s - LATEST_BORDER_S
        starts_word = self._recognizer.tokens.word_starts(tokens)
        spans = [
            (index, max(first, starts_s[index] - 0.3), min(last, starts_s[index] + 0.1))
            for index in range(1, len(tokens))
            if starts_word[index]
        ]
        spans.append((len(tokens), max(first, starts_s[-1] + 1.0 if tokens else 0.0), last))
        best = (np.inf, len(tokens), last)
        for index, start_s, end_s in spans:
            start, end = int(start_s * COLUMNS_PER_SECOND), int(end_s * COLUMNS_PER_SECOND)
            if end > start:
                quietest = start + int(loudness[start:end].argmin())
                best = min(best, (float(loudness[quietest]), index, quietest / COLUMNS_PER_SECOND))
        return best[1], best[2]
