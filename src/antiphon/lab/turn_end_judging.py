"""Recorded turns and a detector -> what it thinks in each pause, step by step, as fast as it can.

A detector sees what a live one would: the sound from the clip's beginning up to now, and how long the pause has lasted.
Where a clip ends too soon behind its turn, its own room tone goes on. When a pause begins is taken from the manifest,
so an error of voice detection is no part of the figures; eot-bench does the same.
Units: seconds, samples at 16 kHz. Threads: the event loop; a detector that computes in `probability` holds it, and
nobody minds. Memory: one clip's sound.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Protocol

import numpy as np

from antiphon.audio.files import read, room_tone
from antiphon.audio.resample import resample
from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.lab.turn_end import ROUNDING, Judged
from antiphon.lab.turn_end_memory import key_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from antiphon.core.flow import Pcm
    from antiphon.lab.turn_end_corpus import Pause, RecordedTurn
    from antiphon.lab.turn_end_memory import Memory

SLACK_S = 0.03  # by which a manifest may round the end of speech beyond the end of the file


class Detector(Protocol):
    """Judges whether a turn is over. Optional besides: `name`, `version`, `note`, and `begin()` before each pause."""

    def probability(self, pcm: Pcm, silence_s: float) -> float | Awaitable[float]:
        """The probability that the turn is over, given (samples,) of sound at 16 kHz that end `silence_s` into a pause.

        Called at rising moments of one pause after the other. `pcm` begins where the recording does and is not to be
        written to.
        """
        ...


def name_of(detector: Detector) -> str:
    """What it is called in tables."""
    return str(getattr(detector, "name", "") or type(detector).__name__)


def note_of(detector: Detector) -> str:
    """What is to be known of its figures."""
    return str(getattr(detector, "note", ""))


def version_of(detector: Detector) -> str:
    """What its scores depend on besides the sound; by default the source of its module."""
    given = getattr(detector, "version", "")
    if given:
        return f"{name_of(detector)} {given}"
    try:
        return inspect.getsource(inspect.getmodule(type(detector)) or type(detector))
    except (OSError, TypeError):
        return ""


async def judge(
    turns: Sequence[RecordedTurn],
    detector: Detector,
    *,
    step_s: float,
    up_to_s: float,
    memory: Memory,
    on_turn: Callable[[], None] = lambda: None,
) -> list[Judged]:
    """What the detector thinks in every pause, at each step until the pause ends or `up_to_s` have passed.

    Raises:
        CallerError: a file cannot be read or is shorter than its speech, or a score is no probability.
        EngineError: the detector failed.
    """
    version, found = version_of(detector), []
    for turn in turns:
        sound = _sound(turn, up_to_s)
        for pause in turn.pauses:
            steps = int(min(pause.duration_s, up_to_s) / step_s + ROUNDING)
            heard = sound[: _samples(pause.start_s + steps * step_s)]
            key = key_of(version, heard, pause.start_s, step_s, steps)
            kept = memory.get(key) if version else None
            scores = kept if kept is not None else await _scores(detector, sound, pause, step_s, steps)
            if version and kept is None:
                memory.put(key, scores)
            found.append(
                Judged(
                    clip=turn.clip.name,
                    kind=turn.clip.kind,
                    start_s=pause.start_s,
                    duration_s=pause.duration_s,
                    scores=tuple(scores),
                )
            )
        on_turn()
    return found


async def _scores(detector: Detector, sound: Pcm, pause: Pause, step_s: float, steps: int) -> list[float]:
    if begin := getattr(detector, "begin", None):
        begin()
    scores = []
    for number in range(1, steps + 1):
        silence_s = number * step_s
        scores.append(await _score(detector, sound[: _samples(pause.start_s + silence_s)], silence_s))
    return scores


async def _score(detector: Detector, pcm: Pcm, silence_s: float) -> float:
    try:
        answer = detector.probability(pcm, silence_s)
        score = float(await answer if inspect.isawaitable(answer) else answer)
    except (CallerError, EngineError):
        raise
    except Exception as error:
        raise EngineError(f"{name_of(detector)} failed: {type(error).__name__}", hint="run it by itself") from error
    if not 0.0 <= score <= 1.0:
        raise CallerError(f"{name_of(detector)} gave {score}", hint="`probability` returns a number from 0 to 1")
    return round(score, 6)


def _sound(turn: RecordedTurn, up_to_s: float) -> Pcm:
    """The clip at 16 kHz, with at least `up_to_s` behind its speech; read-only."""
    clip = turn.clip
    pcm, rate_hz = read(clip.path)
    if clip.speech_end_s > len(pcm) / rate_hz + SLACK_S:
        message = f"{clip.name} lasts {len(pcm) / rate_hz:.2f} s, but its speech ends at {clip.speech_end_s} s"
        raise CallerError(message, hint="mend the manifest")
    pcm = pcm if rate_hz == HEARING_RATE_HZ else resample(pcm, rate_hz, HEARING_RATE_HZ)
    missing = _samples(clip.speech_end_s + up_to_s) + 1 - len(pcm)
    if missing > 0:
        quiet = room_tone(pcm, HEARING_RATE_HZ)
        around = np.concatenate([quiet[::-1], quiet]) if len(quiet) else np.zeros(1, np.float32)
        pcm = np.concatenate([pcm, np.resize(around, missing)])
    pcm = np.ascontiguousarray(pcm, np.float32)
    pcm.setflags(write=False)
    return pcm


def _samples(seconds: float) -> int:
    return round(seconds * HEARING_RATE_HZ)
