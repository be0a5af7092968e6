"""Two processes, either of them killed at any moment: nothing torn, nothing lost silently, nobody left waiting."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.exchange.peer import is_whole, message, stamp

from antiphon.exchange.layout import RingShape
from antiphon.exchange.ring import Ring

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="rings need Linux")]

SHAPE = RingShape(slots=16, payload_bytes=640)
PEER = Path(__file__).with_name("peer.py")
FOREVER = 10**12
LONGEST_S = 0.05  # until a peer is killed


@contextmanager
def start(ring, handle, *arguments):
    command = [sys.executable, str(PEER), handle.text(), *map(str, arguments)]
    with subprocess.Popen(command, pass_fds=handle.fds, stdout=subprocess.PIPE, text=True) as child:
        ring.handed_over()
        try:
            yield child
        finally:
            child.kill()


def test_a_writer_that_ends_has_said_all():
    with Ring.make(SHAPE, peer="writes") as ring, start(ring, ring.handle(), "count", 0, 3000):
        number = 0
        while ring.reader.wait(30):
            while taken := ring.reader.take():
                assert is_whole(number, taken.payload, taken.stamp)
                ring.reader.release()
                number += 1
        assert (3000, 0, True) == (number, ring.reader.damaged, ring.reader.is_peer_gone)


def test_killed_writers_leave_whole_messages_in_order():
    """Each next writer goes on behind the last message that was published, which our side alone tells it."""
    chance = random.Random(9)
    with Ring.make(SHAPE, peer="writes") as ring:
        number, handle = 0, ring.handle()
        for _ in range(6):
            with start(ring, handle, "count", number, FOREVER) as child:
                assert ring.reader.wait(30)
                until = time.monotonic() + chance.random() * LONGEST_S
                while ring.reader.wait(30):
                    if time.monotonic() > until:
                        child.kill()
                    taken = ring.reader.take()
                    assert is_whole(number, taken.payload, taken.stamp)
                    ring.reader.release()
                    number += 1
                child.wait(30)
            handle = ring.renew()
        assert 0 == ring.reader.damaged
        assert number > 0


def test_killed_readers_leave_what_they_had_not_released():
    """The last reader ends by itself once we hang up: it has seen the last message, and none out of order."""
    chance = random.Random(10)
    ring = Ring.make(SHAPE, peer="reads")
    number, handle = 0, ring.handle()
    for _ in range(6):
        with start(ring, handle, "check") as child:
            until = time.monotonic() + 0.15 + chance.random() * LONGEST_S
            while ring.writer.wait(30):
                assert ring.writer.write(message(number), stamp(number))
                number += 1
                if time.monotonic() > until:
                    child.kill()
            child.wait(30)
            assert "" == child.stdout.read()
            assert ring.writer.is_peer_gone
            assert ring.writer.unread == SHAPE.slots
        handle = ring.renew()
    with start(ring, handle, "check") as child:
        while ring.writer.unread:
            time.sleep(0.01)
        ring.close()
        last = child.communicate(timeout=30)[0]
    assert last.endswith(f"damaged 0 next {number}\n"), last
    assert last.startswith("right ")


def test_a_killed_peer_is_noticed_at_once():
    with Ring.make(SHAPE, peer="writes") as ring, start(ring, ring.handle(), "count", 0, 1) as child:
        assert ring.reader.wait(30)
        ring.reader.take()
        ring.reader.release()
        child.kill()
        assert not ring.reader.wait(30)
        child.wait(30)
