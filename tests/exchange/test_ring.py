"""A ring gives back what was put in, in order, whole, or says what is missing."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exchange.peer import is_whole, message, stamp

from antiphon.core.errors import CallerError, MachineError, PeerError
from antiphon.exchange.ends import Reader, Writer
from antiphon.exchange.layout import CONTROL_BYTES, HEADER_BYTES, Kind, RingShape, Stamp
from antiphon.exchange.memory_order import find_fence, membarrier, nothing
from antiphon.exchange.ring import Ring, open_reader, open_writer, read_handle

pytestmark = [pytest.mark.unit, pytest.mark.skipif(sys.platform != "linux", reason="rings need Linux")]

SHAPE = RingShape(slots=4, payload_bytes=640)


@pytest.fixture(params=[0, 2**32 - 3, 2**64 - 3], ids=["first", "past 32 bits", "past 64 bits"])
def ring(request):
    with Ring.make(SHAPE, peer="reads", first=request.param) as made:
        yield made


@pytest.fixture
def reader(ring):
    return open_reader(ring.handle())


def given_back(reader):
    """All messages that are there."""
    found = []
    while taken := reader.take():
        found.append(bytes(taken.payload))
        reader.release()
    return found


def test_messages_come_in_order_and_whole_around_the_ring(ring, reader):
    for number in range(40):
        assert ring.writer.write(message(number), stamp(number))
        taken = reader.take()
        assert is_whole(number, taken.payload, taken.stamp)
        assert taken.payload.readonly
        reader.release()
    assert reader.take() is None
    assert 0 == reader.damaged == ring.writer.unread


def test_full_refuses_and_the_next_message_tells(ring, reader):
    assert [True] * 4 + [False] * 3 == [ring.writer.write(message(number)) for number in range(7)]
    assert 4 == ring.writer.unread
    assert [message(number) for number in range(4)] == given_back(reader)
    ring.writer.write(b"next")
    assert 3 == reader.take().refused == ring.writer.refused


def test_a_slot_is_the_writers_again_only_once_it_is_released(ring, reader):
    for number in range(4):
        ring.writer.write(message(number))
    taken = reader.take()
    assert not ring.writer.write(b"over it")
    assert bytes(taken.payload) == message(0)
    assert reader.take() is taken
    reader.release()
    assert ring.writer.write(b"after it")


def test_waiting_ends_with_a_message_a_free_slot_or_the_time(ring, reader):
    assert not reader.wait(0)
    ring.writer.write(b"one")
    assert reader.wait(0)
    for _ in range(3):
        ring.writer.write(b"more")
    assert not ring.writer.wait(0)
    reader.take()
    reader.release()
    assert ring.writer.wait(0)
    assert reader.wait(0)


def test_a_tensor_is_filled_and_read_in_place():
    sizes = (1500, 1024)
    with Ring.make(RingShape(slots=2, payload_bytes=1500 * 1024 * 4), peer="reads") as ring:
        reader = open_reader(ring.handle())
        ring.writer.claim_array(sizes, "f4")[:] = np.arange(1500 * 1024, dtype="f4").reshape(sizes)
        ring.writer.publish_array(sizes, "f4")
        taken = reader.take()
        seen = taken.array()
        assert (sizes, np.float32) == (seen.shape, seen.dtype)
        assert 0 == seen.ctypes.data % 64
        assert np.shares_memory(seen, np.frombuffer(taken.payload, "f4"))
        assert not seen.flags.writeable
        assert float(1500 * 1024 - 1) == seen[-1, -1]
        with pytest.raises(CallerError, match="an array of shape"):
            ring.writer.claim_array((1501, 1024), "f4")


def damage(ring, reader, offset, slot):
    """Turn a bit of a slot over, as a stray process would."""
    place = CONTROL_BYTES + slot * SHAPE.slot_bytes + offset
    byte = os.pread(ring.handle().fds.memory, 1, place)[0]
    os.pwrite(ring.handle().fds.memory, bytes([byte ^ 4]), place)


@pytest.mark.parametrize("offset", [0, 8, 20, 44, 60, HEADER_BYTES, HEADER_BYTES + 15])
def test_a_damaged_sound_is_counted_and_passed_over(ring, reader, offset):
    for number in range(2):
        ring.writer.write(message(number), stamp(number))
    first = (ring.writer._head - 2) % 4
    damage(ring, reader, offset, first)
    assert [message(1)] == given_back(reader)
    assert 1 == reader.damaged


def test_of_a_tensor_the_header_alone_is_checked(ring, reader):
    for _ in range(2):
        ring.writer.claim_array((3,), "i4")[:] = 7
        ring.writer.publish_array((3,), "i4")
    slot = (ring.writer._head - 2) % 4
    damage(ring, reader, HEADER_BYTES, slot)
    assert [3, 7, 7] == reader.take().array().tolist()
    reader.release()
    damage(ring, reader, 50, slot + 1 & 3)
    assert reader.take() is None
    assert 1 == reader.damaged


def test_an_impossible_index_ends_the_ring(ring, reader):
    ring._words[128 // 8] = (ring._words[128 // 8] + 5) % 2**64
    with pytest.raises(PeerError, match="the ring's writer is at"):
        reader.take()


def test_a_replaced_writer_is_refused_by_its_number():
    with Ring.make(SHAPE, peer="writes") as ring:
        old_handle = read_handle(ring.handle().text())
        old = open_writer(old_handle)
        assert old.write(b"before")
        new = open_writer(ring.renew())
        with pytest.raises(PeerError, match="another writer"):
            old.write(b"after")
        assert old.is_replaced
        assert new.write(b"instead")
        first, second = ring.reader.take(), (ring.reader.release(), ring.reader.take())[1]
        assert (1, 2) == (first.generation, second.generation)
        with pytest.raises(PeerError, match="another process"):
            open_writer(old_handle)


def test_the_next_reader_begins_with_what_the_last_one_had_not_released(ring):
    reader = open_reader(ring.handle())
    for number in range(3):
        ring.writer.write(message(number))
    reader.take()
    reader.release()
    had = reader.take().number
    after = open_reader(ring.renew())
    assert (had, message(1)) == ((taken := after.take()).number, bytes(taken.payload))
    assert reader.is_replaced


def test_other_memory_is_no_ring(tmp_path):
    with Ring.make(SHAPE, peer="reads") as ring, (tmp_path / "file").open("w+b") as file:
        file.write(bytes(8192))
        file.flush()
        handle = ring.handle()
        with pytest.raises(PeerError, match="holds no ring"):
            open_reader(type(handle)(fds=handle.fds._replace(memory=file.fileno()), generation=1))
    with pytest.raises(PeerError, match="no ring's handle"):
        read_handle("1,2,three")


def test_too_long_and_oddly_shaped(ring):
    with pytest.raises(CallerError, match="641 bytes"):
        ring.writer.write(bytes(641))
    with pytest.raises(CallerError, match="no power of two"):
        RingShape(slots=6, payload_bytes=1)


def test_elsewhere_it_says_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(MachineError, match="need Linux"):
        Ring.make(SHAPE, peer="reads")


def test_only_machines_that_reorder_pay_for_a_fence():
    assert find_fence("x86_64") is nothing
    with pytest.raises(MachineError, match="no membarrier"):
        find_fence("sparc64")
    membarrier()()


@settings(deadline=None, max_examples=60)
@given(steps=st.lists(st.sampled_from(["write", "take", "release"]), max_size=120), fenced=st.booleans())
def test_any_order_of_steps_agrees_with_a_queue(steps, fenced):
    """Also with the fence that Arm needs."""
    with Ring.make(SHAPE, peer="reads", first=2**64 - 20) as ring:
        fence = membarrier() if fenced else nothing
        fds = ring.handle().fds
        writer, reader = Writer(fds, SHAPE, 1, fence=fence), Reader(fds, SHAPE, 1, fence=fence)
        waiting, number = [], 0
        for step in steps:
            if step == "write":
                assert (len(waiting) < 4) == writer.write(message(number), Stamp(kind=Kind.SOUND))
                if len(waiting) < 4:
                    waiting.append(message(number))
                number += 1
            else:
                taken = reader.take()
                assert (waiting[0] if waiting else None) == (bytes(taken.payload) if taken else None)
                if taken and step == "release":
                    reader.release()
                    waiting.pop(0)
            assert len(waiting) == writer.unread
