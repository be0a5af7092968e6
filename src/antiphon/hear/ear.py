"""Frames of any length in, facts about the caller's voice out.

Units: samples at HEARING_RATE_HZ since the stream opened, unbounded. Threads: one caller's; runs where it is
called, on the event loop too: about 0.15 ms for each 32 ms of sound, silence filled into a gap included.
What it does not know: what is said, and whether a stop ends a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.hear.intake import Intake
from antiphon.hear.segmenter import Segmenter

if TYPE_CHECKING:
    from antiphon.core.flow import AudioFrame
    from antiphon.hear.segmenter import SegmenterSettings, VoiceFact
    from antiphon.hear.voice_detector import VoiceDetector

LONGEST_GAP_SAMPLES = HEARING_RATE_HZ  # a second costs 5 ms of computing; after more the detector starts afresh


class Ear:
    """One caller's voice, followed frame by frame."""

    def __init__(self, detector: VoiceDetector, settings: SegmenterSettings | None = None) -> None:
        self._voice = detector.open()
        self._frame_samples = detector.frame_samples
        self._intake = Intake(LONGEST_GAP_SAMPLES)
        self._segmenter = Segmenter(settings)
        self._rest = np.zeros(0, np.float32)  # less than one frame
        self.probability = 0.0  # of speech in the last whole frame
        self.pos_samples = 0  # the end of the last whole frame

    @property
    def is_voiced(self) -> bool:
        """Whether a voice is there now."""
        return self._segmenter.is_voiced

    @property
    def falters_from(self) -> int | None:
        """As `Segmenter.falters_from`."""
        return self._segmenter.falters_from

    def hear(self, frame: AudioFrame) -> tuple[VoiceFact, ...]:
        """What became known with this frame; sound that was heard before is skipped.

        Raises:
            CallerError: the frame has another rate, or more than one channel.
            EngineError: the detector failed.
        """
        run = self._intake.take(frame)
        if run is None:
            return ()
        facts: list[VoiceFact | None] = []
        if run.restarted:
            facts.append(self._segmenter.restart(run.pos_samples))
            self._voice.reset()
            self._rest = np.zeros(0, np.float32)
            self.probability = 0.0
            self.pos_samples = run.pos_samples
        pcm = np.concatenate((self._rest, run.pcm)) if len(self._rest) else run.pcm
        whole = len(pcm) - len(pcm) % self._frame_samples
        for offset in range(0, whole, self._frame_samples):
            start, end = self.pos_samples, self.pos_samples + self._frame_samples
            self.pos_samples = end  # also if the detector fails: the next frame keeps its place
            self.probability = self._voice.probability(pcm[offset : offset + self._frame_samples])
            facts.append(self._segmenter.push(self.probability, start, end))
        self._rest = pcm[whole:].copy()
        return tuple(fact for fact in facts if fact is not None)

    def adjust(self, settings: SegmenterSettings) -> None:
        """As `Segmenter.adjust`."""
        self._segmenter.adjust(settings)

    def break_off(self) -> None:
        """The sound has stopped coming: a voice that was there is gone, and whatever comes next begins afresh.

        No fact is given; who noticed that the sound stopped knows already.
        """
        self._segmenter.restart(self.pos_samples)
        self._voice.reset()
        self.probability = 0.0
