"""The two sides of a conversation in, one stereo WAV out: caller left, reply right, on one timeline.

Frames are placed by the moment they were captured or played, so that the gap between question and answer is heard as
long as it was. Units: ns of the monotonic clock in, samples at the recording's rate inside. Threads: a recording
belongs to one caller; `save` blocks on the disk. Memory: 2 bytes a sample and side as far as it was filled, at most
4 * seconds_max * rate_hz bytes (10 min at 24 kHz: 58 MB); what lies beyond is dropped and counted.
"""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from antiphon.audio.encoding import to_int16
from antiphon.audio.pcm import sanitise
from antiphon.audio.rate import checked_rate
from antiphon.audio.resample import FILE_QUALITY, FrameResampler
from antiphon.core.clock import MILLISECOND_NS, ns_to_samples
from antiphon.core.errors import CallerError, MachineError

if TYPE_CHECKING:
    import numpy.typing as npt

    from antiphon.core.flow import AudioFrame, Pcm

    Int16: TypeAlias = npt.NDArray[np.int16]

Side: TypeAlias = Literal["caller", "reply"]

GROWTH_SECONDS = 10  # by which a side's buffer grows
JOIN_NS = 20 * MILLISECOND_NS  # frames that miss each other by less lie end to end: a timer's jitter must not click
WAV_MAX_BYTES = 0xFFFFFFFF - 36  # the header counts in 32 bits
BLOCK_SAMPLES = 65_536


class Recording:
    """Both sides of one conversation, from the first frame of either side on."""

    def __init__(self, rate_hz: int = 24_000, *, seconds_max: int = 600) -> None:
        """Begin an empty recording.

        Raises:
            CallerError: a rate that no sound has, or no length at all.
        """
        self.rate_hz = checked_rate(rate_hz)
        if seconds_max < 1 or 4 * seconds_max * rate_hz > WAV_MAX_BYTES:
            raise CallerError(f"a recording of {seconds_max} s is not possible", hint="use 1 to 3600")
        self._origin_ns: int | None = None
        self._sides: dict[Side, _Side] = {
            "caller": _Side(rate_hz, seconds_max * rate_hz),
            "reply": _Side(rate_hz, seconds_max * rate_hz),
        }

    @property
    def dropped_samples(self) -> int:
        """How many samples lay before the first frame or beyond the longest time."""
        return sum(side.dropped_samples for side in self._sides.values())

    def add(self, side: Side, frame: AudioFrame) -> None:
        """Place a frame of any rate by its `captured_ns`; for the reply that is when it was played.

        Where frames overlap, the later call wins.

        Raises:
            CallerError: a rate that no sound has.
        """
        if self._origin_ns is None:
            self._origin_ns = frame.captured_ns
        self._sides[side].add(frame, self._origin_ns)

    def stereo(self) -> tuple[Int16, Int16]:
        """What is placed so far as (left, right), equally long; later frames may still be added."""
        for side in self._sides.values():
            side.settle()
        length = max(side.samples for side in self._sides.values())
        left, right = (side.padded(length) for side in self._sides.values())
        return left, right

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is placed so far.

        Raises:
            CallerError, MachineError: see `write_stereo`.
        """
        left, right = self.stereo()
        _write(Path(path), left, right, self.rate_hz)


class _Side:
    """One channel: runs of frames, each resampled on its own and laid down where its first sample belongs."""

    def __init__(self, rate_hz: int, samples_max: int) -> None:
        self.samples = 0  # up to the end of the last frame
        self.dropped_samples = 0
        self._rate_hz = rate_hz
        self._samples_max = samples_max
        self._track = np.zeros(0, np.int16)
        self._resampler: FrameResampler | None = None  # of the current run
        self._last: AudioFrame | None = None
        self._origin_ns = 0
        self._next: int | None = None  # where the current run goes on

    def add(self, frame: AudioFrame, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        if not self._continues(frame):
            self.settle()
        if self._resampler is None:
            self._resampler = FrameResampler(frame.rate_hz, self._rate_hz, quality=FILE_QUALITY)
        self._last = frame
        for placed in self._resampler.push(frame):
            self._lay(placed)

    def settle(self) -> None:
        """End the current run."""
        if self._resampler is not None:
            for placed in self._resampler.flush():
                self._lay(placed)
        self._resampler = self._next = self._last = None

    def padded(self, length: int) -> Int16:
        track = np.zeros(length, np.int16)
        track[: self.samples] = self._track[: self.samples]
        return track

    def _continues(self, frame: AudioFrame) -> bool:
        last = self._last
        return (
            last is not None
            and frame.rate_hz == last.rate_hz
            and frame.pos_samples == last.end_samples
            and abs(frame.captured_ns - last.end_ns) < JOIN_NS
        )

    def _lay(self, frame: AudioFrame) -> None:
        ideal = ns_to_samples(frame.captured_ns - self._origin_ns, self._rate_hz)
        # Drift adds up frame by frame: once it exceeds the tolerance, the right place matters more than the seam.
        joins = self._next is not None and abs(self._next - ideal) < ns_to_samples(JOIN_NS, self._rate_hz)
        start = self._next if joins and self._next is not None else ideal
        self._next = end = start + len(frame.pcm)
        first, last = max(start, 0), min(end, self._samples_max)
        self.dropped_samples += len(frame.pcm) - max(0, last - first)
        if last <= first:
            return
        if last > len(self._track):
            grown = min(last + GROWTH_SECONDS * self._rate_hz, self._samples_max)
            self._track = np.concatenate([self._track, np.zeros(grown - len(self._track), np.int16)])
        clean, _, _ = sanitise(frame.pcm[first - start : last - start])
        self._track[first:last] = to_int16(clean)
        self.samples = max(self.samples, last)


def write_stereo(path: str | os.PathLike[str], left: Pcm, right: Pcm, rate_hz: int) -> None:
    """Write a stereo WAV of 16 bits; the shorter side is filled up with silence.

    The file appears whole or not at all: it is written beside its place and renamed.

    Raises:
        CallerError: the place cannot be written to, the rate is impossible, or the sound too long for a WAV.
        MachineError: the disk is full.
    """
    length = max(len(left), len(right))
    tracks = []
    for side in (left, right):
        track = np.zeros(length, np.int16)
        track[: len(side)] = to_int16(sanitise(side)[0])
        tracks.append(track)
    _write(Path(path), tracks[0], tracks[1], checked_rate(rate_hz))


def _write(path: Path, left: Int16, right: Int16, rate_hz: int) -> None:
    data_bytes = 4 * len(left)
    if data_bytes > WAV_MAX_BYTES:
        raise CallerError(f"{path}: {len(left)} samples are too long for a WAV", hint="write shorter pieces")
    head = struct.pack("<4sI4s4sI", b"RIFF", 36 + data_bytes, b"WAVE", b"fmt ", 16)
    head += struct.pack("<HHIIHH4sI", 1, 2, rate_hz, 4 * rate_hz, 4, 16, b"data", data_bytes)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(head)
            for start in range(0, len(left), BLOCK_SAMPLES):
                window = slice(start, start + BLOCK_SAMPLES)
                file.write(np.column_stack([left[window], right[window]]).astype("<i2").tobytes())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            raise MachineError(f"no space left to write {path}", hint="free some space, or write elsewhere") from error
        raise CallerError(
            f"{path} cannot be written: {error.strerror}", hint="choose a folder that exists and that you may write to"
        ) from error
