"""The other process of a ring, for tests and the benchmark: `python peer.py HANDLE WHAT`.

`count FIRST LAST` writes numbered messages whose bytes follow from their number, `check` reads such messages and writes
a line for each that is wrong.
"""

from __future__ import annotations

import struct
import sys

from antiphon.exchange.layout import Kind, Stamp
from antiphon.exchange.ring import open_reader, open_writer, read_handle

MOST_BYTES = 640
_FILLINGS = [bytes((start + place) % 251 for place in range(MOST_BYTES)) for start in range(251)]


def message(number: int) -> bytes:
    """The number, and bytes that show any mixture of two messages."""
    return struct.pack("<Q", number) + _FILLINGS[number % 251][: 8 + number % 600]


def stamp(number: int) -> Stamp:
    return Stamp(kind=Kind.SOUND, pos_samples=number, captured_ns=number * 1000)


def is_whole(number: int, payload: memoryview, given: Stamp) -> bool:
    return payload == message(number) and given == stamp(number)


def count(handle: str, first: int, last: int) -> None:
    """Write messages `first` to `last`, or until nobody reads."""
    writer = open_writer(read_handle(handle))
    for number in range(first, last):
        while not writer.write(message(number), stamp(number)):
            if not writer.wait():
                return


def check(handle: str) -> None:
    """Read until nobody writes; a line for each message that is wrong or out of order, one with the count at last."""
    reader = open_reader(read_handle(handle))
    expected, right = None, 0
    while reader.wait():
        while found := reader.take():
            (number,) = struct.unpack_from("<Q", found.payload)
            if expected not in (None, number):
                print(f"expected {expected}, got {number}", flush=True)
            if not is_whole(number, found.payload, found.stamp):
                print(f"{number} is torn", flush=True)
            right += 1
            expected = number + 1
            reader.release()
    print(f"right {right} damaged {reader.damaged} next {expected}", flush=True)


if __name__ == "__main__":
    if sys.argv[2] == "count":
        count(sys.argv[1], int(sys.argv[3]), int(sys.argv[4]))
    else:
        check(sys.argv[1])
