"""A hop through iceoryx2 beside one through our ring: the same messages, the same stamps, in turns.

iceoryx2 is no dependency of ours: `pip install iceoryx2` first. A message is a loaned slice, filled, sent, and told by
an event that the receiver waits for; ours is a slot, filled with its checksum, and an eventfd. `paced` and `awake` as
in ring.py; a tensor is copied into its slot before the clock starts. The ratio is of the same round's medians. It would
be wrong if anything else ran: say what the machine was doing.

    python bench/ring_iceoryx2.py --out results/ring_iceoryx2.json
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import iceoryx2
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import ring as ours
from antiphon.lab.machine import Load, fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD_BYTES = 64  # before the samples: the stamp
PACES = (*ours.PACES_S, "tensor")
WAYS = ("ring", "iceoryx2")
PATIENCE = iceoryx2.Duration.from_secs(20)


def payload_of(pace: str) -> np.ndarray:
    if pace == "tensor":
        return np.arange(np.prod(ours.TENSOR), dtype=np.float32).reshape(ours.TENSOR)
    return ours.SOUND


class Ends:
    """What both sides open, by a name."""

    def __init__(self, place: str) -> None:
        iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
        self.node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)
        self.messages = (
            self.node.service_builder(iceoryx2.ServiceName.new(f"antiphon/{place}/messages"))
            .publish_subscribe(iceoryx2.Slice[ctypes.c_uint8])
            .subscriber_max_buffer_size(64)
            .open_or_create()
        )
        bell = iceoryx2.ServiceName.new(f"antiphon/{place}/bell")
        self.bell = self.node.service_builder(bell).event().open_or_create()


def send(pace: str, place: str, messages: int) -> None:
    """The sending process."""
    ends, payload = Ends(place), payload_of(pace)
    length = HEAD_BYTES + payload.nbytes
    publisher = ends.messages.publisher_builder().initial_max_slice_len(length).create()
    notifier = ends.bell.notifier_builder().create()
    next_s = time.monotonic()
    for _ in range(messages):
        next_s = max(next_s, time.monotonic()) + ours.PACES_S.get(pace, ours.TENSOR_S)
        if pace != "awake":
            time.sleep(max(0, next_s - time.monotonic()))
        while time.monotonic() < next_s:
            pass
        began_ns = time.monotonic_ns()
        sample = publisher.loan_slice_uninit(length)
        slot = np.frombuffer(sample.payload().as_memory_view(), np.uint8)
        np.copyto(slot[HEAD_BYTES:].view(np.float32).reshape(payload.shape), payload)
        if pace == "tensor":
            began_ns = time.monotonic_ns()
        slot[:8].view(np.int64)[0] = began_ns
        sample.assume_init().send()
        notifier.notify()
    time.sleep(0.2)  # what was sent is ours until it has been looked at


def receive(pace: str, messages: int) -> Iterator[int]:
    """Delays in ns."""
    place, shape = f"{os.getpid()}-{time.monotonic_ns()}", payload_of(pace).shape
    ends = Ends(place)
    subscriber = ends.messages.subscriber_builder().create()
    listener = ends.bell.listener_builder().create()
    command = [sys.executable, __file__, "--pace", pace, "--place", place, "--messages", str(messages)]
    with subprocess.Popen(command):
        seen = 0
        while seen < messages:
            sample = subscriber.receive()
            if sample is None:
                listener.timed_wait(PATIENCE)
                continue
            view = np.frombuffer(sample.payload().as_memory_view(), np.uint8)
            view[HEAD_BYTES:].view(np.float32).reshape(shape)
            yield time.monotonic_ns() - int(view[:8].view(np.int64)[0])
            seen += 1
            del view
            sample.delete()


def block(way: str, pace: str, messages: int) -> list[int]:
    if way == "iceoryx2":
        return list(receive(pace, messages))
    return ours.block("ring in place" if pace == "tensor" else "ring", pace, messages)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sounds", type=int, default=1000, help="messages a way and round")
    parser.add_argument("--tensors", type=int, default=50)
    parser.add_argument("--out", type=Path)
    for internal in ("--pace", "--place"):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.pace:
        send(arguments.pace, arguments.place, arguments.messages)
        return
    meter = Load()
    taken: dict[tuple[str, str], list[list[int]]] = {(pace, way): [] for pace in PACES for way in WAYS}
    for _ in range(arguments.rounds):
        for (pace, way), rounds in taken.items():
            count = arguments.tensors if pace == "tensor" else arguments.sounds
            rounds.append(block(way, pace, count)[2 if pace == "tensor" else ours.WARM :])
    rows, ratios = [], {}
    for pace in PACES:
        for way in WAYS:
            delays = [each for rounds in taken[pace, way] for each in rounds]
            rows.append({"pace": pace, "way": way, **ours.spread(delays)})
            print("  ".join(str(value) for value in rows[-1].values()))
        pairs = zip(taken[pace, "ring"], taken[pace, "iceoryx2"], strict=True)
        each = [round(float(np.median(ring) / np.median(other)), 2) for ring, other in pairs]
        ratios[pace] = {"median": float(np.median(each)), "rounds": each}
        print(f"{pace}: ring's P50 over iceoryx2's {ratios[pace]}")
    result = {
        "schema": "antiphon.ring_iceoryx2/1",
        "machine": fingerprint(),
        "command": " ".join(["python", *sys.argv]),
        "iceoryx2": metadata.version("iceoryx2"),
        "load": meter.report(),
        "rows": rows,
        "ring_p50_over_iceoryx2": ratios,
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
