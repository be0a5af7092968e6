"""What a message between two processes costs: our ring, a pipe, and multiprocessing's pipe with pickling.

A hop: one process stamps a message of 20 ms of sound and sends it, the other sleeps until it comes and looks at the
clock when it has the samples as an array. `paced`: a message every 2 ms, so that both cores are idle in between, and
waking one is in it; `awake`: every 0.1 ms, by a sender that spins in between. The ways take turns in blocks.
A tensor: from the moment its last value is in the sender's memory, or in the ring's, until the receiver has
it as an array; one plain copy beside it. It would be wrong if anything else ran: say what the machine was doing.

    python bench/ring.py --out results/ring.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from antiphon.exchange.checksum import find_checksum
from antiphon.exchange.layout import Kind, RingShape, Stamp
from antiphon.exchange.ring import Ring, open_writer, read_handle

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from antiphon.exchange.ends import Reader, Writer

    Samples = npt.NDArray[np.float32]

SOUND = np.linspace(-1, 1, 320, dtype=np.float32)  # 20 ms at 16 kHz
TENSOR = (1500, 1024)  # a Whisper encoder's output, 6 MB
PACES_S = {"paced": 0.002, "awake": 0.0001}
TENSOR_S = 0.03
WARM = 20
WAYS = ("ring", "pipe", "pickle")


def send(way: str, pace: str, place: str, messages: int) -> None:
    """The sending process."""
    payload = SOUND if pace in PACES_S else np.arange(np.prod(TENSOR), dtype=np.float32).reshape(TENSOR)
    writer = open_writer(read_handle(place)) if way.startswith("ring") else None
    connection = Connection(int(place), readable=False) if way == "pickle" else None
    next_s = time.monotonic()
    for _ in range(messages):
        next_s = max(next_s, time.monotonic()) + PACES_S.get(pace, TENSOR_S)
        if pace != "awake":
            time.sleep(max(0, next_s - time.monotonic()))
        while time.monotonic() < next_s:
            pass
        if writer is not None:
            put_in_ring(writer, way, payload)
        elif connection is not None:
            connection.send((time.monotonic_ns(), payload))
        else:
            rest = memoryview(time.monotonic_ns().to_bytes(8, "little") + payload.tobytes())
            while rest:
                rest = rest[os.write(int(place), rest) :]


def put_in_ring(writer: Writer, way: str, payload: Samples) -> None:
    """A sound is copied and checked; a tensor is copied, or, `ring in place`, was computed where it lies."""
    if payload.ndim == 1:
        stamp = Stamp(kind=Kind.SOUND, captured_ns=time.monotonic_ns(), dtype=1, sizes=payload.shape)
        assert writer.write(memoryview(payload), stamp)
        return
    slot = writer.claim_array(payload.shape, "f4")
    began_ns = time.monotonic_ns()
    np.copyto(slot, payload)
    if way == "ring in place":
        began_ns = time.monotonic_ns()
    stamp = Stamp(kind=Kind.TENSOR, captured_ns=began_ns, dtype=1, sizes=payload.shape)
    writer.publish(payload.nbytes, stamp)


def block(way: str, pace: str, messages: int) -> list[int]:
    """Delays in ns of one run of messages."""
    command = [sys.executable, __file__, "--way", way, "--pace", pace, "--messages", str(messages)]
    if way.startswith("ring"):
        size = SOUND.nbytes if pace in PACES_S else int(np.prod(TENSOR)) * 4
        with Ring.make(RingShape(slots=64 if pace in PACES_S else 4, payload_bytes=size), peer="writes") as ring:
            handle = ring.handle()
            with subprocess.Popen([*command, "--place", handle.text()], pass_fds=handle.fds):
                ring.handed_over()
                return list(from_ring(ring.reader))
    receiving, sending = os.pipe()
    with subprocess.Popen([*command, "--place", str(sending)], pass_fds=[sending]):
        os.close(sending)
        take = from_pickle if way == "pickle" else from_pipe
        return list(take(receiving, SOUND if pace in PACES_S else np.empty(TENSOR, np.float32)))


def from_ring(reader: Reader) -> Iterator[int]:
    while reader.wait():
        message = reader.take()
        message.array()
        yield time.monotonic_ns() - message.stamp.captured_ns
        reader.release()


def from_pickle(receiving: int, _: Samples) -> Iterator[int]:
    connection = Connection(receiving, writable=False)
    try:
        while True:
            began_ns, _ = connection.recv()
            yield time.monotonic_ns() - began_ns
    except EOFError:
        connection.close()


def from_pipe(receiving: int, like: Samples) -> Iterator[int]:
    buffer = bytearray(8 + like.nbytes)
    with os.fdopen(receiving, "rb", buffering=0) as file:
        while True:
            filled = 0
            while filled < len(buffer):
                length = file.readinto(memoryview(buffer)[filled:])
                if not length:
                    return
                filled += length
            np.frombuffer(buffer, np.float32, offset=8).reshape(like.shape)
            yield time.monotonic_ns() - int.from_bytes(buffer[:8], "little")


def copies(count: int) -> list[int]:
    """A plain copy of the tensor within one process."""
    source, target, taken = np.ones(TENSOR, np.float32), np.ones(TENSOR, np.float32), []
    for _ in range(count):
        time.sleep(TENSOR_S)
        began_ns = time.monotonic_ns()
        np.copyto(target, source)
        taken.append(time.monotonic_ns() - began_ns)
    return taken


def spread(taken_ns: list[int]) -> dict[str, float | int]:
    p50, p95, p99 = np.percentile(taken_ns, [50, 95, 99]) / 1000
    return {
        "samples": len(taken_ns),
        "p50_us": round(float(p50), 1),
        "p95_us": round(float(p95), 1),
        "p99_us": round(float(p99), 1),
        "worst_us": round(max(taken_ns) / 1000, 1),
    }


def steal() -> tuple[int, int]:
    """(all, stolen) jiffies."""
    fields = [int(number) for number in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return sum(fields[:8]), fields[7]


def measure(rounds: int, sounds: int, tensors: int) -> dict[str, object]:
    before = steal()
    hops: dict[tuple[str, str], list[int]] = {(pace, way): [] for pace in PACES_S for way in WAYS}
    moved: dict[str, list[int]] = {way: [] for way in ("ring in place", "ring", "pipe", "pickle", "one copy")}
    for _ in range(rounds):
        for (pace, way), taken in hops.items():
            taken.extend(block(way, pace, sounds)[WARM:])
        for way, taken in moved.items():
            taken.extend(copies(tensors) if way == "one copy" else block(way, "tensor", tensors)[2:])
    after = steal()
    cpu = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    library = find_checksum().__module__
    return {
        "command": " ".join(["python", *sys.argv]),
        "machine": f"{cpu.partition(': ')[2]}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "antiphon": metadata.version("antiphon"),
        "checksum": library,
        "steal_percent": round(100 * (after[1] - before[1]) / max(1, after[0] - before[0]), 2),
        "sound_bytes": SOUND.nbytes,
        "hop": {pace: {way: spread(hops[pace, way]) for way in WAYS} for pace in PACES_S},
        "tensor_bytes": int(np.prod(TENSOR)) * 4,
        "tensor": {way: spread(taken) for way, taken in moved.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sounds", type=int, default=1000, help="messages a way and round")
    parser.add_argument("--tensors", type=int, default=50)
    parser.add_argument("--out", type=Path)
    for internal in ("--way", "--pace", "--place"):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        send(arguments.way, arguments.pace, arguments.place, arguments.messages)
        return
    text = json.dumps(measure(arguments.rounds, arguments.sounds, arguments.tensors), indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
