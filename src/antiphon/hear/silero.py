"""Silero VAD through onnxruntime: 512 samples in, the probability of speech out.

Units: samples at HEARING_RATE_HZ. Threads: the session is shared and keeps nothing between calls; all that a caller's
frames leave behind lies in that caller's stream. A call takes about 0.15 ms, so it may run on the event loop.
What it does not know: positions. It counts nothing that could overflow, so a stream may last for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from antiphon.core.errors import EngineError
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.hear.onnx import open_session

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.core.flow import Pcm

FRAME_SAMPLES = 512
_CONTEXT_SAMPLES = 64  # of the frame before, which the model reads in front
_STATE_SHAPE = (2, 1, 128)

# A long stretch of anything but speech leaves a state that is slow to notice speech: over ten orders behind 20 s of
# noise or hum it came 32 ms later (median), behind 20 s of tones 370 ms later. Two seconds of frames that are clearly
# no speech therefore end with a fresh state. After one second more of the tones would pass as speech (80 frames
# of 6250 instead of 30).
_CLEAR_PROBABILITY = 0.1
_CLEAR_FRAMES = 62


class SileroStream:
    """One caller's detector: the model's recurrent state and the end of the frame before."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._rate = np.array(HEARING_RATE_HZ, np.int64)
        self._input = np.zeros((1, _CONTEXT_SAMPLES + FRAME_SAMPLES), np.float32)
        self._state = np.zeros(_STATE_SHAPE, np.float32)
        self._clear_frames = 0

    def probability(self, pcm: Pcm) -> float:
        """The probability that this frame of FRAME_SAMPLES holds speech, given the frames before it.

        Raises:
            EngineError: the frame has another length, or the model failed; the stream is as new afterwards.
        """
        if pcm.shape != (FRAME_SAMPLES,):
            raise EngineError(
                f"a frame has shape {pcm.shape}", hint=f"Silero reads exactly {FRAME_SAMPLES} samples at a time"
            )
        self._input[0, :_CONTEXT_SAMPLES] = self._input[0, -_CONTEXT_SAMPLES:]
        self._input[0, _CONTEXT_SAMPLES:] = pcm
        try:
            output, state = self._session.run(None, {"input": self._input, "state": self._state, "sr": self._rate})
        except Exception as error:
            self.reset()
            raise EngineError("voice detection failed on one frame", retryable=True) from error
        self._state = state
        probability = float(output[0, 0])
        self._clear_frames = self._clear_frames + 1 if probability < _CLEAR_PROBABILITY else 0
        if self._clear_frames == _CLEAR_FRAMES:
            self._state = np.zeros(_STATE_SHAPE, np.float32)
            self._clear_frames = 0
        return probability

    def reset(self) -> None:
        """Forget the frames before."""
        self._input[:] = 0.0
        self._state = np.zeros(_STATE_SHAPE, np.float32)
        self._clear_frames = 0


class SileroDetector:
    """The loaded model, shared by all callers."""

    name = "silero-vad"
    frame_samples = FRAME_SAMPLES

    def __init__(self, session: Any) -> None:
        self._session = session

    @classmethod
    def load(cls, path: Path) -> SileroDetector:
        """Read the model from its file; 0.1 s.

        Raises:
            MachineError: the file is missing or is no such model.
        """
        return cls(open_session(path, threads=1))

    def open(self) -> SileroStream:
        return SileroStream(self._session)

    def close(self) -> None:
        """Nothing to do: the session goes when its last stream does."""
