"""Smart-turn through onnxruntime: the last 8 s of a turn in, the probability that the turn is over out.

Units: samples at HEARING_RATE_HZ. Threads: features (10 ms) and model (about 70 ms on one thread of an AVX2 core)
are one indivisible call on the engine's lane.
What it does not know: words. It judges melody and timing alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from antiphon.core.errors import EngineError
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.core.stamps import Stage
from antiphon.hear.mel import HOP_SAMPLES, log_mel, normalised, standardised
from antiphon.hear.onnx import open_session
from antiphon.scheduling.job import Job

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.core.flow import Pcm
    from antiphon.scheduling.lanes import Lane

WINDOW_SAMPLES = 8 * HEARING_RATE_HZ
_JOB = Job(stage=Stage.PROSODY, estimate_ns=80_000_000)


class SmartTurnJudge:
    """The loaded model; calls stand for themselves."""

    name = "smart-turn-v3.2"
    longest_slice_ns = 110_000_000  # features included, 2-core EPYC; P95 of 86 clips 172 ms with other engines at work
    window_samples = WINDOW_SAMPLES

    def __init__(self, session: Any, lane: Lane) -> None:
        self._session = session
        self._lane = lane
        self._output = _output_name(session)

    @classmethod
    def load(cls, path: Path, *, lane: Lane, threads: int = 1) -> SmartTurnJudge:
        """Read the model from its file.

        Raises:
            MachineError: the file is missing or is no such model.
        """
        return cls(open_session(path, threads=threads), lane)

    async def probability(self, pcm: Pcm) -> float:
        """How likely the turn is over, given the sound that ends in the pause; what is older than 8 s is ignored.

        Raises:
            EngineError: the model failed.
        """
        window = pcm[-WINDOW_SAMPLES:].copy()
        return await self._lane.run(_JOB, lambda: self._judge(window))

    async def warm_up(self) -> None:
        await self.probability(np.zeros(WINDOW_SAMPLES, np.float32))

    def close(self) -> None:
        """Nothing to do: the session goes with the judge."""

    def _judge(self, pcm: Pcm) -> float:
        try:
            (output,) = self._session.run([self._output], {"input_features": features(pcm)[None]})
        except Exception as error:
            raise EngineError("the prosody model failed on one pause", retryable=True) from error
        probability = float(output[0, 0])
        if not math.isfinite(probability):
            raise EngineError("the prosody model gave no number", hint="the sound may hold values that are none")
        return probability


def features(pcm: Pcm) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """What the model reads: 8 s that end with the sound, silence in front, levelled before the columns are made."""
    window = np.zeros(WINDOW_SAMPLES, np.float32)
    if len(pcm):
        recent = pcm[-WINDOW_SAMPLES:]
        window[-len(recent) :] = recent
    return normalised(log_mel(standardised(window), WINDOW_SAMPLES // HOP_SAMPLES))  # (BINS, 800)


def _output_name(session: Any) -> str:
    return str(session.get_outputs()[0].name)
