"""One caller's frames in, growing transcripts of the turn out, by a shared Whisper model.

A turn is heard through a window that begins where settled text ends. When it grows long, the text up to the quietest
border between two words is settled, and the window begins there: a turn of any length costs what its last seconds cost.
Units: samples at HEARING_RATE_HZ since the stream opened; inside a window, samples or seconds since it began.
Threads: the event loop; feeding takes 0.1 ms a frame. Only one transcription of a caller is under way at a time.
A transcription that is cancelled leaves behind what was settled by then, and no half of anything.
What it does not know: whether a voice is there, and when a turn is over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

from antiphon.core.flow import HEARING_RATE_HZ, Transcript
from antiphon.hear.agreement import Agreement
from antiphon.hear.intake import Intake
from antiphon.hear.mel import COLUMNS_PER_SECOND, HOP_SAMPLES, MelStream
from antiphon.hear.words import joined, tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import AudioFrame, Pcm
    from antiphon.hear.intake import Run
    from antiphon.hear.mel import Mel
    from antiphon.hear.whisper import Hypothesis, WhisperRecognizer

RUN_UP_SAMPLES = HEARING_RATE_HZ  # how far back a turn may begin
LONGEST_GAP_SAMPLES = 30 * HEARING_RATE_HZ  # lost inside a turn, heard as silence; after more a window begins anew
LONGEST_UNHEARD_SAMPLES = 300 * HEARING_RATE_HZ  # of a turn that nobody transcribes; 29 MB, then its beginning goes
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
QUIET_PEAK = 10 ** (-70 / 20)  # no microphone in use is as quiet as this: nothing to recognise


class _Turn:
    """What is known of the turn under way."""

    def __init__(self, start_samples: int, pcm: Pcm, *, bins: int) -> None:
        self.window_samples = start_samples  # where the window begins
        self.mel = MelStream(pcm, bins=bins)
        self.settled = ""
        self.agreement = Agreement()  # about the window's text
        self.heard_samples = start_samples
        self.end_probability: float | None = None

    @property
    def end_samples(self) -> int:
        return self.window_samples + len(self.mel)

    def take(self, run: Run) -> None:
        """Take sound that follows, or what lies behind a gap too long to be filled."""
        if run.restarted:
            self.settled = joined(self.settled, self.agreement.previous)
            self.agreement = Agreement()
            self.window_samples = max(self.window_samples, run.pos_samples)
            self.mel = MelStream(bins=self.mel.bins)
        ahead = max(0, self.window_samples - run.pos_samples) if not len(self.mel) else 0  # before the turn begins
        self.mel.feed(run.pcm[ahead:])
        surplus = len(self.mel) - LONGEST_UNHEARD_SAMPLES
        if surplus > 0:
            self.shorten(surplus + HEARING_RATE_HZ)

    def shorten(self, samples: int) -> None:
        """Let the window begin at least `samples` later."""
        columns = -(-samples // HOP_SAMPLES)
        self.mel.drop(columns)
        self.window_samples += columns * HOP_SAMPLES

    def settle(self, chars: int, border_samples: int) -> None:
        """The window's text up to `chars` is settled, and its sound up to `border_samples` heard for good."""
        self.settled = joined(self.settled, self.agreement.previous[:chars])
        self.agreement = self.agreement.after(chars)
        self.shorten(border_samples)

    def transcript(self, *, final: bool) -> Transcript:
        return Transcript(
            text=joined(self.settled, self.agreement.previous),
            heard_samples=self.heard_samples,
            stable_chars=len(joined(self.settled, self.agreement.stable)),
            is_final=final,
            end_probability=self.end_probability,
        )


class WhisperRecognition:
    """One caller's sound and what was made of it."""

    def __init__(self, recognizer: WhisperRecognizer, hints: Sequence[int]) -> None:
        self._recognizer = recognizer
        self._hints = list(hints)
        self._intake = Intake(LONGEST_GAP_SAMPLES)
        self._run_up = np.zeros(0, np.float32)
        self._end_samples = 0
        self._turn: _Turn | None = None
        self._ended: _Turn | None = None  # the turn before, until more is fed: the next may begin inside its sound
        self._busy = asyncio.Lock()

    def feed(self, frame: AudioFrame) -> None:
        """Take the next sound of the stream; see the contract.

        Raises:
            CallerError: the frame has another rate, or more than one channel.
        """
        run = self._intake.take(frame)
        if run is None:
            return
        self._ended = None
        before = self._run_up[:0] if run.restarted else self._run_up
        self._run_up = np.concatenate((before, run.pcm))[-RUN_UP_SAMPLES:]
        self._end_samples = run.end_samples
        turn = self._turn
        if turn is None:
            return
        turn.take(run)

    def begin(self, pos_samples: int) -> None:
        """A turn begins; what lies before the run-up and the turn before is not there any more."""
        kept, kept_from = self._run_up, self._end_samples - len(self._run_up)
        before = self._turn or self._ended
        if before is not None and before.end_samples == self._end_samples and before.window_samples < kept_from:
            kept, kept_from = before.mel.pcm, before.window_samples
        start = max(pos_samples, kept_from)
        run_up = kept[len(kept) - max(0, self._end_samples - start) :].copy()
        self._ended = None
        self._turn = _Turn(start, run_up, bins=self._recognizer.bins)

    def end(self) -> None:
        """The turn is over; a transcription under way still finishes."""
        self._ended, self._turn = self._turn or self._ended, None

    async def transcribe(self, until_samples: int, *, final: bool) -> Transcript:
        """What the turn says up to `until_samples`; see the contract.

        A final transcript may correct the stable text, for it has heard more.

        Raises:
            EngineError: the model failed; the turn is as it was, so that the next call may succeed.
        """
        turn = self._turn  # a turn that begins meanwhile is another one, and this one's result harms nobody
        if turn is None:
            return Transcript(text="", heard_samples=min(until_samples, self._end_samples), is_final=final)
        async with self._busy:
            while True:
                whole = min(until_samples, turn.end_samples) - turn.window_samples
                window = min(whole, WINDOW_SAMPLES)
                is_rest = window == whole
                if window > 0:
                    await self._hear(turn, window, final=final and is_rest)
                if is_rest:
                    return turn.transcript(final=final)

    def close(self) -> None:
        """Forget everything."""
        self._turn = self._ended = None
        self._run_up = np.zeros(0, np.float32)

    async def _hear(self, turn: _Turn, samples: int, *, final: bool) -> None:
        """Offer the turn a hypothesis of the window's first `samples`, and shorten the window if it is long."""
        recognizer = self._recognizer
        heard = turn.window_samples + samples
        sound_s = samples / HEARING_RATE_HZ
        quiet = not np.any(np.abs(turn.mel.pcm[:samples]) > QUIET_PEAK)
        sounding = -(-samples // HOP_SAMPLES)
        columns = min(LONGEST_COLUMNS, max(LEAST_COLUMNS, sounding + PADDING_COLUMNS))
        logs = turn.mel.columns(samples, columns + columns % 2)  # the encoder halves them
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

    def _before(self, turn: _Turn) -> list[int]:
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
