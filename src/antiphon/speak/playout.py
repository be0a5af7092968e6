"""Pieces of a reply in, frames of equal length at exact times out, and an account of what was heard.

Pure: time comes in as `now_ns`, nothing waits. `Player` is the shell that keeps the deadlines.

A reply is a generation, a number that rises. A newer one takes the older one's place; what comes late for an older
one, or for one that was stopped, is dropped because its number says so.

Frame k of a reply leaves at start + k frames, and the start is the moment its first piece came: a listener that
hears frames late hears them closer together afterwards, never fewer. When pieces come too late, nothing is handed out
(the listener hears silence), and the schedule begins anew at the moment the next piece is there, so that a gap is
exactly as long as the wait. A frame that cannot be filled in time is filled up with zeros: the rest of a word is
not held back for what follows it.

Units: ns of the monotonic clock, samples at the voice's rate, characters of the reply's text.
Threads: one at a time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.level import audible_span
from antiphon.core.clock import MILLISECOND_NS, ns_to_samples, samples_to_ns
from antiphon.core.errors import CallerError, check_range
from antiphon.core.flow import AudioFrame

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm, SpeechPiece


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayoutSettings:
    """How a reply is handed out.

    Raises:
        CallerError: a value is out of its range.
    """

    frame_ms: int = 20  # what telephony, WebRTC and Opus use
    # As much as is worth losing when the caller cuts in; a voice that is faster than speech refills it in time.
    longest_queue_ms: int = 5000
    ducked: float = 0.25  # of its loudness, 12 dB less: still there, plainly not in the way

    def __post_init__(self) -> None:
        check_range("ducked", self.ducked, 0, 1)
        check_range("frame_ms", self.frame_ms, 5, 200)
        check_range("longest_queue_ms", self.longest_queue_ms, 100, 600_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """How much of a reply has left by a given moment."""

    generation: int
    samples: int = 0  # of the reply's own sound
    chars: int = 0  # of the reply's text, said in full
    is_complete: bool = False  # all of it has left, and no more will come
    first_sound_ns: int | None = None  # when the first audible sample left
    gaps: int = 0  # times that the reply fell silent because its next piece was not there
    gap_ns: int = 0  # how long all of them took


@dataclass(frozen=True, slots=True)
class _Placed:
    piece: SpeechPiece
    start_samples: int  # in the reply


class Playout:
    """One conversation's replies, one after the other, at one rate."""

    def __init__(self, *, rate_hz: int, settings: PlayoutSettings | None = None) -> None:
        settings = settings or PlayoutSettings()
        self.rate_hz = rate_hz
        self._frame_samples = rate_hz * settings.frame_ms // 1000
        self._longest_samples = ns_to_samples(settings.longest_queue_ms * MILLISECOND_NS, rate_hz)
        self._ducked = settings.ducked
        self._reply = _Reply(-1, rate_hz, self._frame_samples)
        self._stale_up_to = -1  # the newest generation that was stopped
        self._pos_samples = 0  # handed out so far, the zeros that filled frames up included

    @property
    def is_full(self) -> bool:
        """Whether more than the longest queue waits; a further piece is taken all the same, and none is ever cut."""
        return self._reply.queued_samples >= self._longest_samples

    def is_stale(self, generation: int) -> bool:
        """Whether what belongs to `generation` would be dropped."""
        return generation <= self._stale_up_to or generation < self._reply.generation

    def is_current(self, generation: int) -> bool:
        """Whether `generation` is the reply that is being played."""
        return generation == self._reply.generation and generation > self._stale_up_to

    def push(self, generation: int, piece: SpeechPiece, now_ns: int) -> bool:
        """Take the next piece of a reply; False if the reply is stale and the piece was dropped.

        The first piece of a newer reply ends the older one where it is.

        Raises:
            CallerError: the piece has another rate.
        """
        if piece.rate_hz != self.rate_hz:
            message = f"a piece at {piece.rate_hz} Hz for a playout at {self.rate_hz} Hz"
            raise CallerError(message, hint="resample the piece, or open the playout at the voice's rate")
        if self.is_stale(generation):
            return False
        self._turn_to(generation)
        self._reply.add(piece, now_ns)
        return True

    def finish(self, generation: int, now_ns: int) -> None:
        """No more pieces will come for this reply."""
        if not self.is_stale(generation):
            self._turn_to(generation)
            self._reply.finish(now_ns)

    def stop(self, generation: int, now_ns: int) -> Played | None:
        """Hand out no more of this reply; what of it has left by now, or None if a newer reply took its place.

        Of the frame that is leaving, as much counts as its time allows. Stopping again changes nothing.
        """
        if generation < self._reply.generation:
            return None
        self._turn_to(generation)
        if generation > self._stale_up_to:
            self._stale_up_to = generation
            self._reply.stop(now_ns)
        return self._reply.played(now_ns)

    def duck(self, generation: int, *, soft: bool) -> None:
        """Let this reply sound softer from its next frame on, or as loud as it is."""
        if self.is_current(generation):
            self._reply.loudness = self._ducked if soft else 1.0

    def pause(self, generation: int, now_ns: int) -> None:
        """Let this reply fall silent with its next frame, begun or not; it keeps what it has and may go on."""
        if not self.is_stale(generation):
            self._turn_to(generation)
            self._reply.pause(now_ns)

    def resume(self, generation: int, now_ns: int) -> None:
        """Go on where `pause` left off."""
        if self.is_current(generation):
            self._reply.resume(now_ns)

    def take(self, now_ns: int) -> AudioFrame | None:
        """The next frame if it is due; ask again until there is none, several are due if nobody asked for a while.

        Its `captured_ns` is when its first sample leaves, its `pos_samples` counts all that was ever handed out.
        """
        due_ns = self._reply.due_ns
        if due_ns is None or due_ns > now_ns:
            return None
        pcm = self._reply.hand_out(due_ns)
        self._pos_samples += len(pcm)
        return AudioFrame(pcm, self.rate_hz, self._pos_samples - len(pcm), due_ns)

    def next_event_ns(self, now_ns: int) -> int | None:
        """When the next frame is due, the first sound leaves or the reply ends; None if only a piece can tell."""
        reply = self._reply
        moments = [
            moment for moment in (reply.first_sound_ns, reply.ended_ns) if moment is not None and moment > now_ns
        ]
        if reply.due_ns is not None:
            moments.append(reply.due_ns)
        return min(moments, default=None)

    def played(self, now_ns: int) -> Played:
        """What has left by now of the latest reply; generation -1 before the first."""
        return self._reply.played(now_ns)

    def _turn_to(self, generation: int) -> None:
        if generation > self._reply.generation:
            self._reply = _Reply(generation, self.rate_hz, self._frame_samples, self._reply.free_ns)


class _Reply:
    """One generation: its pieces, its schedule and its account."""

    def __init__(self, generation: int, rate_hz: int, frame_samples: int, free_ns: int | None = None) -> None:
        self.generation = generation
        self.free_ns = free_ns  # when the last frame handed out will have left; none may leave before
        self.due_ns: int | None = None  # of the next frame, if there is anything to fill it with
        self.first_sound_ns: int | None = None  # once its frame was handed out
        self._rate_hz = rate_hz
        self._frame_samples = frame_samples
        self._placed: deque[_Placed] = deque()  # from the piece that is leaving on
        self._pushed_samples = 0
        self._handed_samples = 0
        self._start_ns = 0  # of the schedule that frames are counted from
        self._frames = 0  # handed out on that schedule
        self._last: tuple[int, int] | None = None  # (due ns, voice samples) of the last frame handed out
        self._voice_end_ns = 0  # when the last voice sample handed out will have left
        self._first_audible: int | None = None  # position of the first audible sample
        self._finished_ns: int | None = None
        self._stopped: Played | None = None
        self._paused = False
        self.loudness = 1.0  # that the next frame ends with
        self._was_loud = 1.0  # that the last frame ended with
        self._gaps = 0
        self._gap_ns = 0

    @property
    def queued_samples(self) -> int:
        return self._pushed_samples - self._handed_samples

    @property
    def ended_ns(self) -> int | None:
        """When the last sample has left, once that is certain."""
        if self._finished_ns is None or self.queued_samples or self._paused:
            return None
        return self._voice_end_ns if self._last else self._finished_ns

    def add(self, piece: SpeechPiece, now_ns: int) -> None:
        assert self._finished_ns is None, "a piece after the reply was finished"
        if self._first_audible is None:
            first, end = audible_span(piece.pcm, self._rate_hz)
            if first < end:
                self._first_audible = self._pushed_samples + first
        self._placed.append(_Placed(piece, self._pushed_samples))
        self._pushed_samples += len(piece.pcm)
        if self.due_ns is None and self.queued_samples and not self._paused:
            self._begin(now_ns)

    def _begin(self, now_ns: int) -> None:
        """A schedule begins: in time, where the old one would have gone on; too late, now."""
        self._start_ns = now_ns if self.free_ns is None else max(now_ns, self.free_ns)
        self._frames = 0
        self.due_ns = self._start_ns

    def pause(self, now_ns: int) -> None:
        self._paused = True
        self.loudness = 0.0
        if self._last is None or not self._sounds(now_ns):
            self.due_ns = None  # there is nothing to fade out

    def resume(self, now_ns: int) -> None:
        if not self._paused:
            return
        self._paused = False
        self.loudness = 1.0
        if self.due_ns is None and self.queued_samples:
            self._begin(now_ns)
            if self._last:
                self._voice_end_ns = self._start_ns  # the silence was wanted and is no gap

    def _sounds(self, now_ns: int) -> bool:
        return self._voice_end_ns > now_ns

    def finish(self, now_ns: int) -> None:
        if self._finished_ns is None:
            self._finished_ns = now_ns

    def stop(self, now_ns: int) -> None:
        self._stopped = self.played(now_ns)
        self._placed.clear()
        self._pushed_samples = self._handed_samples
        self.due_ns = self.first_sound_ns = self._finished_ns = None

    def hand_out(self, due_ns: int) -> Pcm:
        """The sound of the frame that is due, (frame,) float32."""
        position = self._handed_samples
        while len(self._placed) > 1 and self._placed[1].start_samples <= position:
            self._placed.popleft()
        pcm = np.zeros(self._frame_samples, np.float32)
        filled = 0
        for placed in self._placed:
            offset = max(position - placed.start_samples, 0)
            part = placed.piece.pcm[offset : offset + self._frame_samples - filled]
            pcm[filled : filled + len(part)] = part
            filled += len(part)
            if filled == self._frame_samples:
                break
        if (self._was_loud, self.loudness) != (1.0, 1.0):
            pcm *= np.linspace(self._was_loud, self.loudness, len(pcm), dtype=np.float32)
            self._was_loud = self.loudness
        self._account(due_ns, filled)
        if self._paused:
            self.due_ns = None
        return pcm

    def _account(self, due_ns: int, filled: int) -> None:
        """Note that a frame with `filled` voice samples leaves at `due_ns`."""
        if self._last and due_ns > self._voice_end_ns:
            self._gaps += 1
            self._gap_ns += due_ns - self._voice_end_ns
        if self._first_audible is not None and self.first_sound_ns is None:
            offset = self._first_audible - self._handed_samples
            if offset < filled:
                self.first_sound_ns = due_ns + samples_to_ns(offset, self._rate_hz)
        self._last = (due_ns, filled)
        self._handed_samples += filled
        self._frames += 1
        self.free_ns = self._start_ns + samples_to_ns(self._frames * self._frame_samples, self._rate_hz)
        is_filled = filled == self._frame_samples
        self._voice_end_ns = self.free_ns if is_filled else due_ns + samples_to_ns(filled, self._rate_hz)
        self.due_ns = self.free_ns if self.queued_samples else None

    def played(self, now_ns: int) -> Played:
        if self._stopped is not None:
            return self._stopped
        samples = self._samples_left(now_ns)
        chars = 0
        for placed in self._placed if self._last else ():
            if placed.start_samples > samples:
                break
            chars = placed.piece.chars_heard(samples - placed.start_samples)
        first_ns, ended_ns = self.first_sound_ns, self.ended_ns
        return Played(
            generation=self.generation,
            samples=samples,
            chars=chars,
            is_complete=ended_ns is not None and ended_ns <= now_ns,
            first_sound_ns=first_ns if first_ns is not None and first_ns <= now_ns else None,
            gaps=self._gaps,
            gap_ns=self._gap_ns,
        )

    def _samples_left(self, now_ns: int) -> int:
        """How many voice samples have left by now: all but those of the last frame that are still to come."""
        if self._last is None:
            return 0
        due_ns, voice_samples = self._last
        of_last = min(max(ns_to_samples(now_ns - due_ns, self._rate_hz), 0), voice_samples)
        return self._handed_samples - voice_samples + of_last
