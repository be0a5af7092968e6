"""Playout: what leaves when, and what was heard by then, with times worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.speak.pieces import RATE_HZ, counting_piece, drain, tone_piece

from antiphon.core.clock import MILLISECOND_NS as MS
from antiphon.core.clock import samples_to_ns
from antiphon.core.errors import CallerError
from antiphon.core.flow import AudioFrame, SpeechPiece
from antiphon.speak.playout import Played, Playout, PlayoutSettings

pytestmark = pytest.mark.unit

FRAME = 480  # 20 ms
T0 = 7_000 * MS


def due_ms(frames: list[AudioFrame]) -> list[float]:
    return [(frame.captured_ns - T0) / MS for frame in frames]


def test_first_frame_leaves_at_once_and_the_others_a_period_apart() -> None:
    """50 ms of sound pushed at T0 leave at 0, 20 and 40 ms; asking early gives nothing."""
    playout = Playout(rate_hz=RATE_HZ)
    assert playout.push(0, counting_piece(1200), T0)

    assert [0] == due_ms(drain(playout, T0))
    assert T0 + 20 * MS == playout.next_event_ns(T0)
    assert [] == drain(playout, T0 + 20 * MS - 1)
    assert [20] == due_ms(drain(playout, T0 + 20 * MS))
    assert [40] == due_ms(drain(playout, T0 + 500 * MS))


def test_last_frame_is_filled_up_with_zeros() -> None:
    """1.013 s with a click in its last sample in frames of 40 ms: 26 frames, the click in the 26th, then zeros."""
    sound = np.zeros(24_312, np.float32)  # 1.013 s
    sound[-1] = 0.9
    piece = SpeechPiece(pcm=sound, rate_hz=RATE_HZ, chunk=counting_piece(1).chunk)
    playout = Playout(rate_hz=RATE_HZ, settings=PlayoutSettings(frame_ms=40))
    playout.push(0, piece, T0)
    playout.finish(0, T0)

    frames = drain(playout, T0 + 5_000 * MS)

    assert 26 == len(frames)
    assert {960} == {len(frame.pcm) for frame in frames}
    assert np.concatenate([sound, np.zeros(648, np.float32)]).tobytes() == b"".join(
        frame.pcm.tobytes() for frame in frames
    )


def test_one_huge_piece_leaves_in_bounded_frames_from_its_first_sample_on() -> None:
    """6 s with a click at sample 0: 300 frames of 20 ms in real time, the click at once."""
    sound = np.zeros(6 * RATE_HZ, np.float32)
    sound[0] = 0.9
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, SpeechPiece(pcm=sound, rate_hz=RATE_HZ, chunk=counting_piece(1).chunk), T0)

    (first,) = drain(playout, T0)
    rest = drain(playout, T0 + 6_000 * MS)

    assert np.float32(0.9) == first.pcm[0]
    assert 299 == len(rest)
    assert T0 + 5_980 * MS == rest[-1].captured_ns
    assert {FRAME} == {len(frame.pcm) for frame in rest}


def test_frames_lie_end_to_end_over_all_replies() -> None:
    """The position counts what was handed out, zeros included, and never starts anew."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(500), T0)
    first = drain(playout, T0 + 100 * MS)
    playout.push(1, counting_piece(500), T0 + 200 * MS)
    second = drain(playout, T0 + 300 * MS)

    assert [0, 480, 960, 1440] == [frame.pos_samples for frame in [*first, *second]]


def test_pieces_join_without_a_seam() -> None:
    """Three pieces whose lengths are no multiples of a frame come out as one run of samples."""
    playout = Playout(rate_hz=RATE_HZ)
    for first, samples in ((0, 700), (700, 1), (701, 739)):
        playout.push(0, counting_piece(samples, first=first), T0)

    frames = drain(playout, T0 + 1_000 * MS)

    expected = counting_piece(1440).pcm
    assert expected.tobytes() == np.concatenate([frame.pcm for frame in frames]).tobytes()


def test_a_late_piece_leaves_when_it_comes_and_the_gap_is_counted() -> None:
    """40 ms of sound, the next piece at 75 ms: a gap of 35 ms, and the schedule goes on from 75 ms."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(2 * FRAME, chars=(0, 10)), T0)
    early = drain(playout, T0 + 60 * MS)
    assert playout.next_event_ns(T0 + 60 * MS) is None
    playout.push(0, counting_piece(2 * FRAME, chars=(10, 20)), T0 + 75 * MS)
    late = drain(playout, T0 + 200 * MS)

    assert [0, 20] == due_ms(early)
    assert [75, 95] == due_ms(late)
    played = playout.played(T0 + 200 * MS)
    assert (1, 35 * MS) == (played.gaps, played.gap_ns)
    assert (4 * FRAME, 20) == (played.samples, played.chars)


def test_a_piece_in_time_keeps_the_schedule() -> None:
    """A piece that comes when the last frame is still leaving follows it without a gap, however late we are asked."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(FRAME), T0)
    early = drain(playout, T0 + 3 * MS)
    playout.push(0, counting_piece(FRAME, chars=(10, 20)), T0 + 20 * MS)
    late = drain(playout, T0 + 33 * MS)

    assert [0, 20] == due_ms([*early, *late])
    assert (0, 0) == (playout.played(T0 + 33 * MS).gaps, playout.played(T0 + 33 * MS).gap_ns)


def test_a_frame_that_cannot_be_filled_does_not_wait() -> None:
    """25 ms of sound: the second frame takes its 5 ms at 20 ms; what comes at 30 ms follows at 40, a gap of 15 ms."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(600), T0)
    early = drain(playout, T0 + 20 * MS)
    playout.push(0, counting_piece(FRAME, chars=(10, 20)), T0 + 30 * MS)
    late = drain(playout, T0 + 40 * MS)

    assert [0, 20, 40] == due_ms([*early, *late])
    assert 120 == np.count_nonzero(early[1].pcm)
    played = playout.played(T0 + 100 * MS)
    assert (1, 15 * MS, 600 + FRAME) == (played.gaps, played.gap_ns, played.samples)


def test_a_frame_whose_rest_came_before_we_were_asked_is_full() -> None:
    """Had the loop been in time the frame would have been cut short; being late it loses nothing."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(600), T0)
    drain(playout, T0)
    playout.push(0, counting_piece(360, first=600), T0 + 29 * MS)
    (frame,) = drain(playout, T0 + 30 * MS)

    assert np.count_nonzero(frame.pcm) == FRAME
    assert 0 == playout.played(T0 + 100 * MS).gap_ns


def test_stop_counts_the_frame_that_is_leaving_by_its_time() -> None:
    """Stopped 7 ms into the third frame: 47 ms of sound are heard, and the words that were said by then."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(4, counting_piece(2400, chars=(0, 50)), T0)  # 100 ms, a mark every 10 ms: 5 characters
    drain(playout, T0 + 47 * MS)

    stopped = playout.stop(4, T0 + 47 * MS)

    assert Played(generation=4, samples=1128, chars=20) == stopped
    assert stopped == playout.stop(4, T0 + 900 * MS)
    assert stopped == playout.played(T0 + 900 * MS)
    assert [] == drain(playout, T0 + 900 * MS)
    assert playout.next_event_ns(T0 + 47 * MS) is None


def test_stop_before_the_first_frame_heard_nothing() -> None:
    """A reply that was pushed but never handed out, and one that never had a piece, were not heard."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(2400), T0)

    assert Played(generation=0) == playout.stop(0, T0 + 5 * MS)
    assert Played(generation=1) == playout.stop(1, T0 + 6 * MS)
    assert not playout.push(1, counting_piece(2400), T0 + 7 * MS)


def test_stop_between_two_pieces_has_heard_the_first() -> None:
    """The text of a piece is said in full with its last sample, not before."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(FRAME, chars=(0, 7)), T0)
    playout.push(0, counting_piece(FRAME, chars=(7, 9)), T0)
    drain(playout, T0)

    assert 7 > playout.played(T0 + 20 * MS - samples_to_ns(1, RATE_HZ)).chars
    assert 7 == playout.played(T0 + 20 * MS).chars
    drain(playout, T0 + 20 * MS)
    assert 9 == playout.played(T0 + 40 * MS).chars


def test_stale_generations_are_dropped_and_a_newer_one_takes_over() -> None:
    """After a stop, or once a newer reply has begun, nothing of the older reaches the listener."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(1, counting_piece(FRAME), T0)
    playout.stop(1, T0)
    assert not playout.push(1, counting_piece(FRAME), T0)
    assert playout.push(2, counting_piece(2 * FRAME, first=5000), T0)
    assert not playout.push(0, counting_piece(FRAME), T0)
    playout.finish(0, T0)
    assert playout.stop(1, T0) is None
    assert playout.push(5, counting_piece(FRAME, first=9000), T0)

    frames = drain(playout, T0 + 100 * MS)

    assert counting_piece(FRAME, first=9000).pcm.tobytes() == b"".join(frame.pcm.tobytes() for frame in frames)


def test_replies_never_overlap() -> None:
    """A reply that begins while the last frame of the one before is leaving waits for its end."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, counting_piece(FRAME), T0)
    first = drain(playout, T0)
    playout.stop(0, T0 + 5 * MS)
    playout.push(1, counting_piece(FRAME), T0 + 6 * MS)
    second = drain(playout, T0 + 100 * MS)

    assert [0, 20] == due_ms([*first, *second])


def test_end_is_when_the_last_sample_has_left() -> None:
    """25 ms of sound end after 25 ms, not after two frames; `finish` may come before or after."""
    for finished_ms in (0, 24, 60):
        playout = Playout(rate_hz=RATE_HZ)
        playout.push(0, counting_piece(600), T0)
        if finished_ms < 25:
            playout.finish(0, T0 + finished_ms * MS)
        drain(playout, T0 + 21 * MS)
        if finished_ms < 25:
            assert T0 + 25 * MS == playout.next_event_ns(T0 + 21 * MS)
        assert not playout.played(T0 + 25 * MS - 1).is_complete
        playout.finish(0, T0 + finished_ms * MS)
        assert playout.played(T0 + max(finished_ms, 25) * MS).is_complete
        assert 10 == playout.played(T0 + max(finished_ms, 25) * MS).chars


def test_a_reply_without_sound_ends_at_once() -> None:
    """`finish` without a piece, or with pieces of no length, is the end of a reply of no samples."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.finish(0, T0)
    assert Played(generation=0, is_complete=True) == playout.played(T0)

    playout.push(1, counting_piece(0), T0)
    playout.finish(1, T0)
    assert [] == drain(playout, T0 + 100 * MS)
    assert playout.played(T0).is_complete


def test_first_sound_is_the_first_audible_sample() -> None:
    """30 ms of silence first: the frame is due at 20 ms, the sound 10 ms into it; told when it has left."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, tone_piece(4800, lead=720), T0)
    drain(playout, T0)
    assert playout.played(T0).first_sound_ns is None
    drain(playout, T0 + 20 * MS)

    assert T0 + 30 * MS == playout.next_event_ns(T0 + 20 * MS)
    assert playout.played(T0 + 30 * MS - 1).first_sound_ns is None
    assert T0 + 30 * MS == playout.played(T0 + 30 * MS).first_sound_ns


def test_first_sound_may_come_with_a_later_piece() -> None:
    """A first piece that nobody can hear is not the first sound."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, tone_piece(FRAME, lead=FRAME), T0)
    playout.push(0, tone_piece(9600, lead=24), T0)
    drain(playout, T0 + 200 * MS)

    assert T0 + 21 * MS == playout.played(T0 + 200 * MS).first_sound_ns


def test_a_clock_that_steps_back_takes_nothing_back() -> None:
    """Whatever the time given, positions stay within what was handed out, and no time is negative."""
    playout = Playout(rate_hz=RATE_HZ)
    playout.push(0, tone_piece(4 * FRAME), T0)
    drain(playout, T0 + 40 * MS)
    before = playout.played(T0 - 2_000 * MS)

    assert 2 * FRAME == before.samples
    assert before.first_sound_ns is None
    assert before.gap_ns == 0


def test_full_queue_takes_a_piece_all_the_same() -> None:
    """The bound is a request to wait, not a reason to lose sound."""
    playout = Playout(rate_hz=RATE_HZ, settings=PlayoutSettings(longest_queue_ms=100))
    playout.push(0, counting_piece(2399), T0)
    assert not playout.is_full
    playout.push(0, counting_piece(10, first=2399), T0)
    assert playout.is_full
    playout.push(0, counting_piece(471, first=2409), T0)

    assert 6 == len(drain(playout, T0 + 1_000 * MS))
    assert not playout.is_full


def test_wrong_rate_is_the_callers_mistake() -> None:
    with pytest.raises(CallerError, match="16000 Hz"):
        Playout(rate_hz=RATE_HZ).push(0, counting_piece(10, rate_hz=16_000), T0)


@pytest.mark.parametrize("settings", [{"frame_ms": 0}, {"frame_ms": 1000}, {"longest_queue_ms": 1}])
def test_settings_out_of_range_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(CallerError, match=next(iter(settings))):
        PlayoutSettings(**settings)


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_no_rate_drifts(rate_hz: int) -> None:
    """After 1000 frames a deadline is exact to the nanosecond, though no frame may last a whole number of them."""
    playout = Playout(rate_hz=rate_hz)
    playout.push(0, counting_piece(rate_hz * 30, rate_hz=rate_hz), T0)
    frames = drain(playout, T0 + 60_000 * MS)

    frame = len(frames[0].pcm)
    assert rate_hz * 20 // 1000 == frame
    assert T0 + samples_to_ns(1000 * frame, rate_hz) == frames[1000].captured_ns
