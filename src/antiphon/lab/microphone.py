"""Prepared clips in -> frames of 20 ms out, each when its last sample was captured, for as long as the line is open.

Deadlines are counted from the stream's beginning, so lateness of one frame moves no other, and nothing drifts. While
nobody speaks the room goes on: the quiet of the clip that was said last, forth and back. Every sample's wall time is
known, and so are those of a clip's first and last speech sample, to the sample. Resampling and encoding are done before
a clip is said; a frame costs a copy of it and base64.
Units: samples at the format's rate since the stream began, ns of the clock. Threads: the event loop; `prepare` blocks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from antiphon.audio.files import read, room_tone
from antiphon.audio.pcm import encode
from antiphon.audio.resample import resample
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS, ns_to_samples, samples_to_ns
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import numpy.typing as npt

    from antiphon.core.clock import Clock
    from antiphon.core.flow import Pcm
    from antiphon.lab.clips import Clip
    from antiphon.lab.lateness import Lateness
    from antiphon.lab.sound_format import SoundFormat

FRAMES_PER_S: Final = 50
SLACK_S: Final = 0.03  # by which a manifest may round the end of speech beyond the end of the file
AHEAD_NS: Final = MILLISECOND_NS  # of its deadline a frame is made, so that then it has only to be sent
MOST_QUEUED = 8  # clips that wait to be said


@dataclass(frozen=True, slots=True)
class Speech:
    """A clip, ready to be sent."""

    clip: Clip
    format: SoundFormat
    sound: npt.NDArray[np.unsignedinteger]  # (samples,) each as it travels
    tone: npt.NDArray[np.unsignedinteger]  # (samples,) the room, to be repeated
    start_samples: int  # of the clip, the first of speech
    end_samples: int  # of the clip, just after the last of speech


@dataclass(frozen=True, slots=True)
class Said:
    """A clip's place in time."""

    pos_samples: int  # of the stream, the first sample
    end_samples: int  # of the stream, just after the last speech sample
    started_ns: int  # when the first sample is captured
    speech_ns: int  # the same for the first speech sample
    spoken_ns: int  # when the last speech sample has been captured


def prepare(clip: Clip, wire_format: SoundFormat) -> Speech:
    """Read a clip and bring it to the format.

    Raises:
        CallerError: the file cannot be read, or is shorter than its speech.
    """
    pcm, file_hz = read(clip.path)
    if clip.speech_end_s > len(pcm) / file_hz + SLACK_S:
        raise CallerError(
            f"{clip.name} lasts {len(pcm) / file_hz:.2f} s, but its speech ends at {clip.speech_end_s} s",
            hint="mend the manifest",
        )
    rate_hz = wire_format.rate_hz
    pcm = pcm if file_hz == rate_hz else resample(pcm, file_hz, rate_hz)
    quiet = room_tone(pcm, rate_hz)
    tone = np.concatenate([quiet[::-1], quiet]) if len(quiet) else np.zeros(rate_hz // FRAMES_PER_S, np.float32)
    return Speech(
        clip=clip,
        format=wire_format,
        sound=_as_sent(pcm, wire_format),
        tone=_as_sent(tone, wire_format),
        start_samples=round(clip.speech_start_s * rate_hz),
        end_samples=min(len(pcm), round(clip.speech_end_s * rate_hz)),
    )


def _as_sent(pcm: Pcm, wire_format: SoundFormat) -> npt.NDArray[np.unsignedinteger]:
    width = wire_format.encoding.width_bytes
    return np.frombuffer(encode(pcm, wire_format.encoding), dtype=f"<u{width}")


class Microphone:
    """Of one caller; `run` it once."""

    def __init__(
        self,
        first: Speech,
        *,
        clock: Clock,
        lateness: Lateness,
        pack: Callable[[bytes], Callable[[], Awaitable[None]]],
    ) -> None:
        """Begin to listen; `first` is what will be said first: the room is that of its clip.

        `pack` makes a frame ready, and what it returns sends it.
        """
        self._rate_hz = first.format.rate_hz
        self._frame_samples = self._rate_hz // FRAMES_PER_S
        self._tone = first.tone
        self._clock = clock
        self._lateness = lateness
        self._pack = pack
        self._start_ns = clock.now_ns()
        self._next = 0  # the first sample of the frame that is being captured
        self._said: deque[tuple[int, Speech, int]] = deque()  # (position of its sample 0, speech, samples left out)
        self._then: deque[tuple[int, Callable[[], Awaitable[None]]]] = deque()

    def say(
        self,
        speech: Speech,
        *,
        at_ns: int,
        lead_samples: int | None = None,
        then: Callable[[], Awaitable[None]] | None = None,
    ) -> Said:
        """Say a clip from `at_ns` on, or as soon as may be: nothing that was captured changes any more.

        `lead_samples`: how much of the quiet before its speech is said; None is all of it. `then` is done when the
        frame with the last speech sample has been sent, before the next one is.
        """
        assert len(self._said) < MOST_QUEUED
        left_out = 0 if lead_samples is None else max(0, speech.start_samples - lead_samples)
        pos = max(self._next, ns_to_samples(max(0, at_ns - self._start_ns), self._rate_hz))
        if self._said:
            before, last, skipped = self._said[-1]
            pos = max(pos, before + len(last.sound) - skipped)
        self._said.append((pos, speech, left_out))
        end_samples = pos + speech.end_samples - left_out
        if then is not None:
            self._then.append((end_samples, then))
        return Said(
            pos_samples=pos,
            end_samples=end_samples,
            started_ns=self.time_of(pos),
            speech_ns=self.time_of(pos + speech.start_samples - left_out),
            spoken_ns=self.time_of(end_samples),
        )

    def time_of(self, pos_samples: int) -> int:
        """When all samples before that one had been captured."""
        return self._start_ns + samples_to_ns(pos_samples, self._rate_hz)

    async def run(self) -> None:
        """Send until cancelled; what sending raises ends it."""
        while True:
            end = self._next + self._frame_samples
            due_ns = self.time_of(end)
            await until(due_ns - AHEAD_NS, self._clock)
            send = self._pack(self._frame(self._next, end))
            self._next = end
            await until(due_ns, self._clock)
            await send()
            self._lateness.add(self._clock.now_ns() - due_ns)
            while self._then and self._then[0][0] <= end:
                await self._then.popleft()[1]()

    def _frame(self, start: int, end: int) -> bytes:
        """What was captured between two positions."""
        frame = self._tone.take(np.arange(start, end), mode="wrap")
        while self._said:
            pos, speech, left_out = self._said[0]
            if pos >= end:
                break
            sound = speech.sound[left_out:]
            first, last = max(start, pos), min(end, pos + len(sound))
            self._tone = speech.tone
            if last < end:  # the clip ends in this frame: behind it lies its own room
                frame[last - start :] = self._tone.take(np.arange(last, end), mode="wrap")
            frame[first - start : last - start] = sound[first - pos : last - pos]
            if last < pos + len(sound):
                break
            self._said.popleft()
        return frame.tobytes()


async def until(deadline_ns: int, clock: Clock) -> None:
    """Return at or after the deadline, never before it, after the event loop had a turn."""
    await asyncio.sleep(max(0, deadline_ns - clock.now_ns()) / SECOND_NS)
    while (ahead_ns := deadline_ns - clock.now_ns()) > 0:  # noqa: ASYNC110 - a coarse timer wakes early
        await asyncio.sleep(ahead_ns / SECOND_NS)
