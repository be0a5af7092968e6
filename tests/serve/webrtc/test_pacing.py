"""The media clock of an outgoing track, in virtual time."""

from __future__ import annotations

import numpy as np
import pytest

from antiphon.serve.webrtc.pacing import MOST_WAITING, SLOT_NS, MediaClock

pytestmark = pytest.mark.unit

RATE_HZ = 24_000
FRAME = np.full(480, 0.5, np.float32)


def sent(clock: MediaClock, now_ns: int) -> list[tuple[int, bool]]:
    """(slot, whether it sounds) of all that leaves at that moment."""
    slots = []
    while slot := clock.take(now_ns):
        slots.append((slot.number, slot.pcm is not None))
    return slots


def test_silence_is_sent_a_slot_at_a_time() -> None:
    clock = MediaClock(rate_hz=RATE_HZ, start_ns=0)
    assert [[(0, False)], [], [(1, False)]] == [sent(clock, now_ns) for now_ns in (0, SLOT_NS // 2, SLOT_NS)]


def test_sound_goes_with_the_next_slot() -> None:
    clock = MediaClock(rate_hz=RATE_HZ, start_ns=0)
    sent(clock, 0)
    clock.push(FRAME)
    assert [] == sent(clock, SLOT_NS - 1)
    assert [(1, True)] == sent(clock, SLOT_NS)
    assert clock.is_empty


def test_a_stall_costs_its_length_once() -> None:
    """Silent slots that were missed are left out, frames that waited go at once, and then all is on time again."""
    clock = MediaClock(rate_hz=RATE_HZ, start_ns=0)
    sent(clock, 0)
    assert [(5, False)] == sent(clock, 5 * SLOT_NS)
    assert 4 == clock.silences_left_out
    for _ in range(5):
        clock.push(FRAME)
    assert [(6, True), (7, True), (8, True)] == sent(clock, 5 * SLOT_NS + 1)
    assert [[], [], []] == [sent(clock, slot * SLOT_NS) for slot in (6, 7, 8)]
    assert [(9, True)] == sent(clock, 9 * SLOT_NS)


def test_at_most_two_slots_ever_wait_for_the_clock() -> None:
    """So that a barge-in has no more than 40 ms to throw away, whenever it comes."""
    clock = MediaClock(rate_hz=RATE_HZ, start_ns=0)
    for step in range(200):
        clock.push(FRAME)
        sent(clock, step * SLOT_NS * 9 // 10)
        assert clock.clear() <= MOST_WAITING * len(FRAME) or step < 0
        clock.push(FRAME)


def test_what_is_cleared_is_not_sent() -> None:
    clock = MediaClock(rate_hz=RATE_HZ, start_ns=0)
    clock.push(FRAME[:100])
    assert 100 == clock.clear()
    assert [(0, False)] == sent(clock, 0)


def test_the_rest_of_a_reply_is_filled_up_with_silence() -> None:
    clock = MediaClock(rate_hz=RATE_HZ, start_ns=0)
    clock.push(FRAME[:100])
    slot = clock.take(0)
    assert slot is not None
    assert slot.pcm is not None
    assert (480, 100) == (len(slot.pcm), int(np.count_nonzero(slot.pcm)))
