"""A recording of one turn and a voice detector's view of it -> where speech begins, pauses and ends.

The detector knows speech from clatter, but to 32 ms; the level of 10 ms windows knows edges, but not what they are of.
So the detector's segments say what is speech, and each edge of theirs moves to where the level crosses a threshold
between the room and the voice. Where the room is loud that is a guess, and said to be one.
Units: seconds, samples at the recording's rate. Pure. What it does not know: words, and whether the turn was over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.level import window_dbfs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from antiphon.core.flow import Pcm

ON_PROBABILITY, OFF_PROBABILITY = 0.5, 0.35  # as in a call
SHORTEST_SPEECH_S = 0.06  # less is a click
SHORTEST_PAUSE_S = 0.1  # as eot-bench has it; stops of "p" and "t" are shorter
WINDOW_S = 0.01
REACH_S = 0.2  # how far an edge may move
ROOM_MARGIN_S = 0.15  # around speech, that is no sample of the room
THRESHOLD_SHARE = 0.35  # of the way from the room's level up to the voice's, in dB
LEAST_RISE_DB = 4.0  # above the room
NO_ROOM_DB = 40.0  # the room is taken to lie so far below the voice where the recording shows none of it
QUIET_ROOM_DB = 20.0  # below the voice; in a louder room the level cannot tell a soft end of speech from it
EDGE_S = 0.05  # speech so close to an end of the recording may have been cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """What the manifest says of a recording's sound."""

    speech_start_s: float
    speech_end_s: float
    inner_pauses_s: tuple[tuple[float, float], ...]
    doubts: tuple[str, ...]  # why these may be wrong


def annotate(pcm: Pcm, rate_hz: int, probabilities: Sequence[float], frame_s: float) -> Annotation | None:
    """`probabilities[i]` is that of speech between `i * frame_s` and the next; None if there is no speech."""
    segments = _segments(probabilities, frame_s)
    if not segments:
        return None
    levels = window_dbfs(pcm, rate_hz, 1000 * WINDOW_S)
    room_db, voice_db = _loudness(levels, segments)
    rise_db = max(THRESHOLD_SHARE * (voice_db - room_db), LEAST_RISE_DB)
    loud = levels > room_db + rise_db
    refined = [_refined(loud, start_s, end_s) for start_s, end_s in segments]
    duration_s = len(pcm) / rate_hz
    start_s, end_s = refined[0][0], min(refined[-1][1], duration_s)
    pauses = [(before[1], after[0]) for before, after in pairwise(refined)]
    return Annotation(
        speech_start_s=round(start_s, 3),
        speech_end_s=round(end_s, 3),
        inner_pauses_s=tuple(
            (round(begins_s, 3), round(ends_s, 3))
            for begins_s, ends_s in pauses
            if ends_s - begins_s >= SHORTEST_PAUSE_S - 1e-9
        ),
        doubts=_doubts(start_s, end_s, duration_s, voice_db - room_db),
    )


def _segments(probabilities: Sequence[float], frame_s: float) -> list[tuple[float, float]]:
    """Stretches of speech, short gaps closed and clicks left out."""
    found: list[tuple[float, float]] = []
    begins: int | None = None
    for number, probability in enumerate([*probabilities, 0.0]):
        if begins is None and probability >= ON_PROBABILITY:
            begins = number
        elif begins is not None and probability < OFF_PROBABILITY:
            found.append((begins * frame_s, number * frame_s))
            begins = None
    spoken = [segment for segment in found if segment[1] - segment[0] >= SHORTEST_SPEECH_S]
    joined: list[tuple[float, float]] = []
    for start_s, end_s in spoken:
        if joined and start_s - joined[-1][1] < SHORTEST_PAUSE_S - frame_s:
            joined[-1] = (joined[-1][0], end_s)
        else:
            joined.append((start_s, end_s))
    return joined


def _loudness(levels: NDArray[np.float64], segments: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The level of the room and that of the voice."""
    times_s = (np.arange(len(levels)) + 0.5) * WINDOW_S
    spoken = np.zeros(len(levels), dtype=bool)
    near = np.zeros(len(levels), dtype=bool)
    for start_s, end_s in segments:
        spoken |= (times_s >= start_s) & (times_s < end_s)
        near |= (times_s >= start_s - ROOM_MARGIN_S) & (times_s < end_s + ROOM_MARGIN_S)
    voice_db = float(np.percentile(levels[spoken], 90)) if spoken.any() else float(levels.max())
    room_db = float(np.median(levels[~near])) if (~near).any() else voice_db - NO_ROOM_DB
    return room_db, voice_db


def _refined(loud: NDArray[np.bool_], start_s: float, end_s: float) -> tuple[float, float]:
    """The first and last loud window around a segment; its own edges where none is loud."""
    first = max(0, round((start_s - REACH_S) / WINDOW_S))
    last = min(len(loud), round((end_s + REACH_S) / WINDOW_S))
    inside = np.flatnonzero(loud[first:last])
    if not len(inside):
        return start_s, end_s
    return (first + int(inside[0])) * WINDOW_S, (first + int(inside[-1]) + 1) * WINDOW_S


def _doubts(start_s: float, end_s: float, duration_s: float, above_room_db: float) -> tuple[str, ...]:
    found = []
    if start_s < EDGE_S:
        found.append("speech begins with the recording")
    if end_s > duration_s - EDGE_S:
        found.append("speech ends with the recording: it may have been cut off")
    if above_room_db < QUIET_ROOM_DB:
        found.append("the room is loud: edges may be off by 0.2 s and more")
    return tuple(found)
