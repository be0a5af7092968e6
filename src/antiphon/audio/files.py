"""A recording on disk -> mono samples, or frames as a live microphone would have given them.

Any container, width, rate and number of channels that libsndfile reads.
Units: samples at the file's own rate; `_ms` in settings only. Threads: `read` blocks on the disk; a `FileSource` lives
on the event loop. Memory: a file is held whole as float32, up to FILE_MAX_SAMPLES.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np
import soundfile

from antiphon.audio.level import window_dbfs
from antiphon.audio.pcm import downmix, sanitise
from antiphon.audio.rate import RATE_MAX_HZ, RATE_MIN_HZ
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS, ns_to_samples, samples_to_ns
from antiphon.core.errors import CallerError
from antiphon.core.flow import AudioFrame

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Awaitable, Callable

    from antiphon.core.clock import Clock
    from antiphon.core.flow import Pcm

FILE_MAX_SAMPLES = 2**28  # 1 GiB as float32: 4.6 h at 16 kHz, 93 min at 48 kHz
BLOCK_SAMPLES = 65_536  # read at a time, so that many channels of a long file never lie in memory together
MAGICS = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"FORM", b"caff", b".snd", b"ID3")
CONVERT_HINT = "convert it, for example with: ffmpeg -i FILE -ac 1 -ar 16000 out.wav"

ROOM_TONE_MS = 500  # how much of a clip's quiet is repeated: long enough that the ear finds no rhythm in it
ROOM_TONE_MIN_MS = 100  # with less, a repetition hums; and softly spoken syllables are shorter
ROOM_TONE_BELOW_DB = 9.0  # under the clip's loud windows: at 10 dB signal to noise the noise still counts as room


@dataclass(frozen=True, slots=True, kw_only=True)
class Playback:
    """How a file is turned into a microphone."""

    frame_ms: int = 20
    tail_ms: int = 0  # how long the microphone stays open after the last sample
    tail: Literal["room", "silence"] = "room"  # room: the clip's own quiet, forth and back

    def __post_init__(self) -> None:
        if not 1 <= self.frame_ms <= 1000:
            raise CallerError(f"frame_ms is {self.frame_ms}", hint="use 1 to 1000, usually 20")
        if not 0 <= self.tail_ms <= 3_600_000:
            raise CallerError(f"tail_ms is {self.tail_ms}", hint="use 0 to 3600000")
        if self.tail not in {"room", "silence"}:
            raise CallerError(f"unknown tail {self.tail!r}", hint="use 'room' or 'silence'")


def read(path: str | os.PathLike[str]) -> tuple[Pcm, int]:
    """The file as (samples,) mono float32 and its rate in Hz; samples beyond full scale are clipped.

    Raises:
        CallerError: the file is missing, a folder, not to be read, empty, cut off, damaged, no audio, too long, holds
            NaN or has a rate that no sound has.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise CallerError(f"{path} is a folder", hint="name an audio file inside it")
        if path.exists() and not path.is_file():  # opening a pipe would wait for its other end
            raise CallerError(f"{path} is no regular file", hint="save the sound to a file first")
        with path.open("rb") as file:
            return _decoded(path, file)
    except FileNotFoundError as error:
        raise CallerError(f"there is no file {path}", hint="check the name and the folder") from error
    except PermissionError as error:
        raise CallerError(f"{path} may not be read", hint=f"grant the right: chmod u+r {path}") from error
    except OSError as error:
        raise CallerError(f"{path} cannot be read: {error.strerror}", hint="copy it to a local disk") from error
    except ValueError as error:
        raise CallerError(f"{str(path)!r} is no file name", hint="check the name") from error


class FileSource:
    """A clip as a `Source`: frames in real time, each given when its last sample would have been captured."""

    def __init__(
        self,
        pcm: Pcm,
        rate_hz: int,
        *,
        clock: Clock,
        playback: Playback | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Hold the clip; time begins with the iteration. `sleep` takes seconds and moves with `clock`."""
        playback = playback or Playback()
        self.start_ns: int | None = None  # when sample 0 was "captured"; known once the iteration has begun
        self.clip_samples = len(pcm)
        self._rate_hz = rate_hz
        self._clock = clock
        self._sleep = sleep
        self._frame_samples = max(1, ns_to_samples(playback.frame_ms * MILLISECOND_NS, rate_hz))
        self._pcm = np.concatenate([pcm, _tail(pcm, rate_hz, playback)])

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, clock: Clock, playback: Playback | None = None) -> FileSource:
        """Read a file and hold it.

        Raises:
            CallerError: see `read`.
        """
        pcm, rate_hz = read(path)
        return cls(pcm, rate_hz, clock=clock, playback=playback)

    @property
    def rate_hz(self) -> int:
        return self._rate_hz

    async def __aiter__(self) -> AsyncIterator[AudioFrame]:
        """Give every frame at its own deadline from the start, so that a late one does not delay those after it."""
        self.start_ns = self._clock.now_ns()
        for pos in range(0, len(self._pcm), self._frame_samples):
            pcm = self._pcm[pos : pos + self._frame_samples]
            captured_ns = self.start_ns + samples_to_ns(pos, self._rate_hz)
            frame = AudioFrame(pcm, self._rate_hz, pos, captured_ns)
            await self._until(self.start_ns + samples_to_ns(frame.end_samples, self._rate_hz))
            yield frame

    async def _until(self, deadline_ns: int) -> None:
        """Return at or after the deadline, after the event loop had a turn."""
        ahead_ns = deadline_ns - self._clock.now_ns()
        await self._sleep(max(0, ahead_ns) / SECOND_NS)
        # A coarse timer may wake us early, and a frame from the future would make latencies negative.
        while (ahead_ns := deadline_ns - self._clock.now_ns()) > 0:
            await self._sleep(ahead_ns / SECOND_NS)


def room_tone(pcm: Pcm, rate_hz: int) -> Pcm:
    """The end of the clip's longest quiet stretch, up to ROOM_TONE_MS; empty when it has none.

    Mostly that is the clip's end; where a clatter lies there, or the clip stops with the last word, it is not.
    """
    window_ms = 20
    levels = window_dbfs(pcm, rate_hz, window_ms)
    if not len(levels):
        return pcm[:0]
    loud = np.flatnonzero(levels > np.percentile(levels, 95) - ROOM_TONE_BELOW_DB)
    borders = np.concatenate([[-1], loud, [len(levels)]])  # of the quiet stretches, in windows
    lengths = np.diff(borders) - 1
    longest = len(lengths) - 1 - int(np.argmax(lengths[::-1]))  # the later of equals
    if lengths[longest] * window_ms < ROOM_TONE_MIN_MS:
        return pcm[:0]
    last = int(borders[longest + 1])
    first = max(int(borders[longest]) + 1, last - ROOM_TONE_MS // window_ms)
    return pcm[round(first * window_ms * rate_hz / 1000) : round(last * window_ms * rate_hz / 1000)]


def _tail(pcm: Pcm, rate_hz: int, playback: Playback) -> Pcm:
    """What the microphone hears after the clip, (tail_ms,)."""
    length = ns_to_samples(playback.tail_ms * MILLISECOND_NS, rate_hz)
    tone = room_tone(pcm, rate_hz) if playback.tail == "room" else pcm[:0]
    if not len(tone):
        return np.zeros(length, np.float32)
    forth_and_back = np.concatenate([tone[::-1], tone])  # mirrored, so that no seam clicks
    return np.resize(forth_and_back, length)


def _decoded(path: Path, file: BinaryIO) -> tuple[Pcm, int]:
    head = file.read(4)
    if not head:
        raise CallerError(f"{path} is empty: it has no bytes", hint="record or download it again")
    file.seek(0)
    known = head.startswith(MAGICS)
    try:
        with soundfile.SoundFile(file) as sound:
            rate_hz = int(sound.samplerate)
            if not RATE_MIN_HZ <= rate_hz <= RATE_MAX_HZ:
                raise CallerError(f"{path} claims a rate of {rate_hz} Hz", hint="its header is wrong; " + CONVERT_HINT)
            return _read_blocks(path, sound), rate_hz
    except TypeError as error:
        hint = "give it a header, for example with: sox -r 16000 -c 1 -b 16 -e signed FILE out.wav"
        raise CallerError(f"{path} has no header that tells its rate and format", hint=hint) from error
    except soundfile.SoundFileError as error:
        what = "its header or data is cut off or damaged" if known else "it is no audio that libsndfile can read"
        hint = "record or download it again" if known else CONVERT_HINT
        raise CallerError(f"{path} cannot be read: {what}", hint=hint) from error


def _read_blocks(path: Path, sound: soundfile.SoundFile) -> Pcm:
    blocks: list[Pcm] = []
    samples = 0
    while len(block := sound.read(BLOCK_SAMPLES, dtype="float32", always_2d=True)):  # (samples, channels)
        clean, nonfinite, _ = sanitise(block)
        if nonfinite:
            raise CallerError(
                f"{path} holds samples that are no numbers (NaN or Inf), the first after sample {samples}",
                hint="export it again, best as 16-bit PCM",
            )
        samples += len(clean)
        if samples > FILE_MAX_SAMPLES:
            raise CallerError(f"{path} is longer than {FILE_MAX_SAMPLES} samples", hint="cut it into shorter files")
        blocks.append(downmix(clean))
    if not blocks:
        raise CallerError(f"{path} holds no samples: only a header", hint="record or download it again")
    return np.concatenate(blocks)
