"""Playout, whatever comes when: nothing is lost, repeated, swapped or claimed before it was heard."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speak.pieces import RATE_HZ, counting_piece, drain

from antiphon.core.clock import MILLISECOND_NS as MS
from antiphon.core.clock import samples_to_ns
from antiphon.speak.playout import Played, Playout, PlayoutSettings

if TYPE_CHECKING:
    from antiphon.core.flow import AudioFrame

pytestmark = pytest.mark.unit

FRAME = 480  # 20 ms
T0 = 7_000 * MS


Steps = list[tuple[str, int]]  # ("push", samples), ("take", 0), ("wait", ns), ("finish", 0)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.one_of(st.integers(0, 60), st.integers(0, 3000))),
        st.tuples(st.just("take"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 150 * MS)),
    ),
    max_size=40,
)


@given(steps, st.sampled_from([8_000, 11_025, 24_000]), st.integers(5, 60))
def test_whatever_comes_when_is_heard_once_and_in_order(script: Steps, rate_hz: int, frame_ms: int) -> None:
    """All sound comes out once and in order, frames never overlap, and what was heard only grows, to a prefix."""
    playout = Playout(rate_hz=rate_hz, settings=PlayoutSettings(frame_ms=frame_ms))
    now_ns, pushed, text = T0, 0, 0
    frames: list[AudioFrame] = []
    history: list[Played] = []
    for kind, amount in script:
        if kind == "push":
            playout.push(
                0, counting_piece(amount, first=pushed, chars=(text, text + amount // 7), rate_hz=rate_hz), now_ns
            )
            pushed, text = pushed + amount, text + amount // 7
        elif kind == "take":
            frames += drain(playout, now_ns)
        else:
            now_ns += amount
        played = playout.played(now_ns)
        assert 0 <= played.samples <= pushed
        assert 0 <= played.chars <= text
        history.append(played)
    frames += drain(playout, now_ns + 3_600_000 * MS)
    playout.finish(0, now_ns)
    history.append(playout.played(now_ns + 3_600_000 * MS))

    out = np.concatenate([np.zeros(0, np.float32), *(frame.pcm for frame in frames)])
    assert counting_piece(pushed).pcm.tobytes() == out[out != 0].tobytes()
    assert all(len(frame.pcm) == len(frames[0].pcm) for frame in frames)
    ends = [frame.captured_ns + samples_to_ns(len(frame.pcm), rate_hz) for frame in frames]
    assert all(frame.captured_ns >= end - 1 for frame, end in zip(frames[1:], ends, strict=False))
    for earlier, later in pairwise(history):
        assert earlier.samples <= later.samples
        assert earlier.chars <= later.chars
        assert earlier.gap_ns <= later.gap_ns
    assert history[-1].is_complete
    assert pushed == history[-1].samples
    if pushed:
        assert text == history[-1].chars


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=12), st.integers(0, 2_000 * MS))
def test_sound_that_comes_in_time_is_padded_only_at_its_end(sizes: list[int], asked_after_ns: int) -> None:
    """Pieces of any size that are all there come out as they went in, plus zeros to the end of the last frame."""
    playout = Playout(rate_hz=RATE_HZ)
    position = 0
    for size in sizes:
        playout.push(0, counting_piece(size, first=position), T0)
        position += size
    frames = [*drain(playout, T0 + asked_after_ns), *drain(playout, T0 + 10_000 * MS)]

    whole = np.concatenate([frame.pcm for frame in frames])
    assert counting_piece(position).pcm.tobytes() == whole[:position].tobytes()
    assert 0 <= len(whole) - position < FRAME
    assert not whole[position:].any()
    assert list(range(0, 20 * len(frames), 20)) == [(frame.captured_ns - T0) / MS for frame in frames]
    assert (0, position) == (playout.played(T0 + 10_000 * MS).gaps, playout.played(T0 + 10_000 * MS).samples)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=8), st.integers(0, 700 * MS))
def test_stop_at_any_time_counts_what_time_allowed(sizes: list[int], stopped_ns: int) -> None:
    """With the loop in time, samples heard are the time since the start, to the sample, or all there were."""
    playout = Playout(rate_hz=RATE_HZ)
    text = 0
    for size in sizes:
        playout.push(0, counting_piece(size, chars=(text, text + 10)), T0)
        text += 10
    for frame_ns in range(0, stopped_ns + 1, 20 * MS):
        drain(playout, T0 + frame_ns)

    stopped = playout.stop(0, T0 + stopped_ns)

    assert stopped is not None
    assert abs(min(sum(sizes), stopped_ns * RATE_HZ / 1e9) - stopped.samples) <= 0.5
    whole_pieces = sum(1 for count in range(1, len(sizes) + 1) if sum(sizes[:count]) <= stopped.samples)
    assert 10 * whole_pieces <= stopped.chars <= 10 * min(whole_pieces + 1, len(sizes))
