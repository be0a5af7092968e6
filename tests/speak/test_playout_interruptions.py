"""Playout under a voice over the reply: softer, silent for a while, and on again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speak.pieces import RATE_HZ, counting_piece, drain, tone_piece

from antiphon.core.clock import MILLISECOND_NS as MS
from antiphon.core.errors import CallerError
from antiphon.speak.playout import Playout, PlayoutSettings

pytestmark = pytest.mark.unit

FRAME = 480  # 20 ms
T0 = 7_000 * MS


def test_ducking_takes_one_frame_down_and_one_up() -> None:
    """The frame after the order fades to a quarter, further ones stay there, and the way back is the same."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, tone_piece(6 * FRAME), T0)
    levels = []
    for at, soft in ((0, None), (1, True), (2, None), (3, False), (4, None)):
        if soft is not None:
            playout.duck(0, soft=soft)
        (frame,) = drain(playout, T0 + at * 20 * MS)
        levels.append((round(float(abs(frame.pcm[0])), 3), round(float(abs(frame.pcm[-1])), 3)))

    assert [(0.5, 0.5), (0.5, 0.125), (0.125, 0.125), (0.125, 0.5), (0.5, 0.5)] == levels


def test_a_pause_fades_one_frame_and_keeps_the_rest() -> None:
    """Nothing leaves for as long as it lasts; then the sound goes on with the next sample, and it is no gap."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, tone_piece(5 * FRAME), T0)
    playout.finish(0, T0)
    drain(playout, T0 + 20 * MS)
    playout.pause(0, T0 + 30 * MS)

    assert [40] == [(frame.captured_ns - T0) // MS for frame in drain(playout, T0 + 500 * MS)]
    assert playout.next_event_ns(T0 + 500 * MS) is None
    playout.resume(0, T0 + 1000 * MS)
    frames = drain(playout, T0 + 1100 * MS)
    assert [1000, 1020] == [(frame.captured_ns - T0) // MS for frame in frames]
    assert abs(frames[0].pcm[0]) < 0.01
    assert 0.5 == abs(frames[0].pcm[-1])
    played = playout.played(T0 + 1100 * MS)
    assert (5 * FRAME, True, 0) == (played.samples, played.is_complete, played.gaps)


def test_a_reply_paused_before_it_began_begins_when_it_is_resumed() -> None:
    """Whether its sound was there before the pause or comes during it."""
    for pushed_first in (True, False):
        playout = Playout(rate_hz=RATE_HZ)
        if pushed_first:
            playout.push(0, tone_piece(FRAME), T0)
        playout.pause(0, T0)
        if not pushed_first:
            playout.push(0, tone_piece(FRAME), T0 + 5 * MS)
        assert [] == drain(playout, T0 + 100 * MS)
        playout.resume(0, T0 + 200 * MS)
        (frame,) = drain(playout, T0 + 200 * MS)
        assert T0 + 200 * MS == frame.captured_ns


def test_what_is_stopped_while_paused_stays_as_it_was_heard() -> None:
    """A paused reply that is given up counts what had left."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(10 * FRAME), T0)
    drain(playout, T0 + 20 * MS)
    playout.pause(0, T0 + 25 * MS)
    drain(playout, T0 + 400 * MS)
    played = playout.stop(0, T0 + 500 * MS)
    assert played is not None
    assert 3 * FRAME == played.samples
    playout.resume(0, T0 + 600 * MS)
    assert [] == drain(playout, T0 + 700 * MS)


def test_orders_for_another_reply_change_nothing() -> None:
    """A stale number neither softens, silences nor resumes the present reply."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(3, tone_piece(3 * FRAME), T0)
    playout.duck(2, soft=True)
    playout.pause(2, T0)
    playout.resume(2, T0)
    assert [0.5, 0.5, 0.5] == [float(abs(frame.pcm[-1])) for frame in drain(playout, T0 + 50 * MS)]


def test_a_loudness_out_of_range_is_refused() -> None:
    """Ducking never makes louder."""
    with pytest.raises(CallerError, match="ducked"):
        PlayoutSettings(ducked=1.5)


@given(st.lists(st.tuples(st.sampled_from(["duck", "loud", "pause", "resume"]), st.integers(0, 90)), max_size=20))
def test_no_sample_is_lost_or_said_twice(orders: list[tuple[str, int]]) -> None:
    """However often it is softened and paused: all samples leave once, in order, and the account is complete."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(20 * FRAME), T0)
    playout.finish(0, T0)
    now_ns, samples = T0, 0
    for order, wait_ms in orders:
        match order:
            case "duck" | "loud":
                playout.duck(0, soft=order == "duck")
            case "pause":
                playout.pause(0, now_ns)
            case "resume":
                playout.resume(0, now_ns)
        now_ns += wait_ms * MS
        samples += sum(len(frame.pcm) for frame in drain(playout, now_ns))
        assert playout.played(now_ns).samples <= samples
    playout.resume(0, now_ns)
    frames = drain(playout, now_ns + 2000 * MS)
    assert 20 * FRAME == samples + sum(len(frame.pcm) for frame in frames)
    assert playout.played(now_ns + 2000 * MS).is_complete
    assert not frames or np.all(np.diff([frame.captured_ns for frame in frames]) >= 20 * MS)
