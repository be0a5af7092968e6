"""A finished conversation in, timeline.png out: the waterfall of each turn under the sound it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.clock import MILLISECOND_NS
from antiphon.observe.picture import Sound, draw
from antiphon.observe.waterfall import layout, origin_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from antiphon.cli.rehearsal import Rehearsal
    from antiphon.core.stamps import TurnTimeline

STEP_MS = 5  # one value of the envelope


def draw_turns(rehearsal: Rehearsal, path: Path) -> None:
    """Draw every turn that was measured."""
    timelines = [turn.timeline for turn in rehearsal.turns if turn.timeline]
    left, right = rehearsal.recording.stereo()
    rate_hz = rehearsal.recording.rate_hz
    sounds = {}
    for timeline in timelines:
        origin_ms = _origin_ms(timeline, rehearsal.first_frame_ns or 0)
        caller, reply = (_envelope(track, rate_hz, origin_ms) for track in (left, right))
        sounds[timeline.turn] = Sound(caller=caller, reply=reply)
    draw([layout(timeline) for timeline in timelines], path, sounds=sounds)


def _origin_ms(timeline: TurnTimeline, first_frame_ns: int) -> float:
    """Where on the recording the turn's last speech sample lies."""
    return (origin_of(timeline) - first_frame_ns) / MILLISECOND_NS


def _envelope(track: npt.NDArray[np.int16], rate_hz: int, origin_ms: float) -> Sequence[tuple[float, float]]:
    """(ms from the turn's last speech sample, level 0 to 1) every STEP_MS."""
    step = rate_hz * STEP_MS // 1000
    whole = track[: len(track) // step * step].reshape(-1, step)
    peaks = np.abs(whole.astype(np.int32)).max(axis=1) / 32768
    return [(place * STEP_MS - origin_ms, float(peak)) for place, peak in enumerate(peaks)]
