"""Packets in, as the network brings them -> the same in order, with what is missing named.

Nobody listens to the far end's sound but a recognizer, which need not hear it evenly. So a packet that is next in order
goes on at once, and only one with a gap before it waits: as long as jitter makes likely that what is missing still
comes. What comes after that is too late and dropped.
Units: samples at 48 kHz, as RTP counts for Opus; ns of our clock. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

MOST_WAITING = 64  # packets, 1.3 s at 20 ms; when full, the gap before them is given up
MOST_JUMP = 3000  # packets; farther apart it is another stream


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet as it comes off the wire."""

    seq: int  # of 16 bits
    timestamp: int  # of its first sample; of 32 bits
    samples: int  # that it holds
    payload: bytes


@dataclass(frozen=True, slots=True)
class Packet:
    """One of a stream's."""

    seq: int  # of 16 bits on the wire; counted on here
    at_samples: int  # its first sample; of 32 bits on the wire; counted on here
    samples: int
    payload: bytes
    came_ns: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Sound that was lost, or, if nothing was lost, that was never sent."""

    at_samples: int
    samples: int
    packets: int  # that were lost; 0: the sender was silent


Step: TypeAlias = Packet | Missing


@dataclass(slots=True)
class Receipts:
    """What became of packets."""

    played: int = 0
    lost: int = 0
    late: int = 0  # came after they were given up, or twice
    waited: int = 0  # came before one that was missing


class JitterBuffer:
    """One stream's."""

    def __init__(self) -> None:
        self.receipts = Receipts()
        self._waiting: dict[int, Packet] = {}
        self._next: int | None = None  # the number that is due
        self._end_samples = 0  # of what has gone on
        self._newest = (0, 0)  # counted-on seq and samples of the newest packet

    def push(self, sent: Sent, came_ns: int) -> Packet | None:
        """A packet came; None: it is too late, or there already."""
        seq, timestamp = sent.seq, sent.timestamp
        if self._next is None:
            self._next, self._end_samples = seq, timestamp
            self._newest = seq, timestamp
        newest_seq, newest_samples = self._newest
        counted = newest_seq + _signed(seq - newest_seq, 16)
        at_samples = newest_samples + _signed(timestamp - newest_samples, 32)
        if abs(counted - self._next) > MOST_JUMP:
            self._restart(counted, at_samples)
        if counted < self._next or counted in self._waiting:
            self.receipts.late += 1
            return None
        if counted > self._newest[0]:
            self._newest = counted, at_samples
        packet = Packet(counted, at_samples, sent.samples, sent.payload, came_ns)
        self._waiting[counted] = packet
        if counted > self._next:
            self.receipts.waited += 1
        return packet

    def take(self, now_ns: int, patience_ns: int) -> list[Step]:
        """What can go on by now; ask again at `next_ns`."""
        steps: list[Step] = []
        while self._waiting and self._next is not None:
            packet = self._waiting.get(self._next)
            if packet is None:
                first = min(self._waiting)
                has_waited = now_ns - self._waited_since() >= patience_ns
                if not has_waited and len(self._waiting) <= MOST_WAITING:
                    break
                packet = self._waiting[first]
            steps += self._go_on(packet)
        return steps

    def next_ns(self, patience_ns: int) -> int | None:
        """When what waits has waited long enough; None: nothing does."""
        return self._waited_since() + patience_ns if self._waiting else None

    def _waited_since(self) -> int:
        return min(packet.came_ns for packet in self._waiting.values())

    def _go_on(self, packet: Packet) -> list[Step]:
        assert self._next is not None
        lost = packet.seq - self._next
        gap = packet.at_samples - self._end_samples
        steps: list[Step] = [Missing(self._end_samples, gap, lost)] if gap > 0 else []
        steps.append(packet)
        del self._waiting[packet.seq]
        self.receipts.lost += lost
        self.receipts.played += 1
        self._next = packet.seq + 1
        self._end_samples = packet.at_samples + packet.samples
        return steps

    def _restart(self, seq: int, at_samples: int) -> None:
        self._waiting.clear()
        self._next, self._end_samples = seq, at_samples
        self._newest = seq, at_samples


def _signed(difference: int, bits: int) -> int:
    """The same difference, of numbers that wrap around, as the nearer of the two ways."""
    half = 1 << (bits - 1)
    return (difference + half) % (1 << bits) - half
