"""A probability of speech per frame in, facts about the caller's voice out: it started, it stopped.

The stop is called after a few silent frames but dated back to where the voice ended, the start after a few voiced
ones but dated back to before the first, so that a soft onset is not lost. Ranges never overlap.
Units: samples since the stream opened, unbounded. Threads: pure; one caller's, one thread.
What it does not know: sound, models, and whether a stop ends a turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from antiphon.core.errors import CallerError


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceStarted:
    """The caller's voice is there."""

    start_samples: int  # where the segment begins, padding included
    detected_samples: int  # the end of the frame that decided it


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceStopped:
    """The caller's voice is gone."""

    end_samples: int  # the end of the last frame that held it
    detected_samples: int  # the end of the frame that decided it


VoiceFact: TypeAlias = VoiceStarted | VoiceStopped


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmenterSettings:
    """When a voice counts as there and as gone."""

    on_probability: float = 0.5  # a frame at or above it is voiced
    off_probability: float = 0.35  # once there, a voice lasts as long as frames stay at or above it
    start_frames: int = 2  # voiced frames in a row, 64 ms of Silero's: a click fills one
    stop_frames: int = 3  # silent frames in a row, 96 ms of Silero's: shorter than most gaps inside a word
    falter_frames: int = 1  # silent ones in a row, behind which the voice may have ended; 0: never
    padding_samples: int = 4800  # 300 ms before the first voiced frame: a soft "s" lies below the threshold

    def __post_init__(self) -> None:
        if not 0.0 < self.off_probability <= self.on_probability < 1.0:
            raise CallerError(
                f"off_probability {self.off_probability} and on_probability {self.on_probability} do not fit",
                hint="choose 0 < off_probability <= on_probability < 1",
            )
        for name, value, least in (
            ("start_frames", self.start_frames, 1),
            ("stop_frames", self.stop_frames, 1),
            ("falter_frames", self.falter_frames, 0),
            ("padding_samples", self.padding_samples, 0),
        ):
            if value < least:
                raise CallerError(f"{name} is {value}", hint=f"choose {least} or more")


class Segmenter:
    """The state between frames; `is_voiced` says whether a voice is there now."""

    def __init__(self, settings: SegmenterSettings | None = None) -> None:
        self._settings = settings or SegmenterSettings()
        self.is_voiced = False
        self._floor_samples: int | None = None  # no segment begins before it
        self._first_samples = 0  # of the voiced frames in a row
        self._end_samples = 0  # of the last voiced frame
        self._frames = 0  # in a row that speak against the present state

    @property
    def falters_from(self) -> int | None:
        """Where a voice that is there may have ended: `falter_frames` have been silent; None: it goes on."""
        least = self._settings.falter_frames
        return self._end_samples if least and self.is_voiced and self._frames >= least else None

    def push(self, probability: float, start_samples: int, end_samples: int) -> VoiceFact | None:
        """Take the next frame, which covers `start_samples` to `end_samples`."""
        if self._floor_samples is None:
            self._floor_samples = start_samples
        if self.is_voiced:
            return self._while_voiced(probability, end_samples)
        return self._while_silent(probability, start_samples, end_samples)

    def adjust(self, settings: SegmenterSettings) -> None:
        """Judge frames by other settings from the next one on; a voice that is there is still there."""
        self._settings = settings

    def restart(self, pos_samples: int) -> VoiceFact | None:
        """The stream goes on at `pos_samples` with nothing known of what lies between; a voice ends there."""
        was_voiced = self.is_voiced
        self.is_voiced = False
        self._frames = 0
        self._floor_samples = pos_samples
        if was_voiced:
            return VoiceStopped(end_samples=self._end_samples, detected_samples=pos_samples)
        return None

    def _while_silent(self, probability: float, start_samples: int, end_samples: int) -> VoiceFact | None:
        if probability < self._settings.on_probability:
            self._frames = 0
            return None
        if self._frames == 0:
            self._first_samples = start_samples
        self._frames += 1
        if self._frames < self._settings.start_frames:
            return None
        assert self._floor_samples is not None
        self.is_voiced = True
        self._frames = 0
        self._end_samples = end_samples
        start = max(self._floor_samples, self._first_samples - self._settings.padding_samples)
        return VoiceStarted(start_samples=start, detected_samples=end_samples)

    def _while_voiced(self, probability: float, end_samples: int) -> VoiceFact | None:
        if probability >= self._settings.off_probability:
            self._frames = 0
            self._end_samples = end_samples
            return None
        self._frames += 1
        if self._frames < self._settings.stop_frames:
            return None
        self.is_voiced = False
        self._frames = 0
        self._floor_samples = self._end_samples
        return VoiceStopped(end_samples=self._end_samples, detected_samples=end_samples)
