"""How late a thread wakes for a card's period: by policy, idle and loaded, alone or beside a busy engine.

A loop as the audio process's sleeps on a kernel timer every 5 ms and notes how late it runs again. The policies take
turns, a block of each, round after round, so that what the machine does besides meets them all; idle and loaded rounds
too. `own` is a process with that loop alone; `shared` the same loop in a process one of whose other threads computes in
Python without end, as an engine's might. Loaded: twice as many busy processes as cores. What was granted is said.
It would be wrong if the machine's host took its time away: steal is reported for each block, and the worst is kept.

    python bench/wake_ups.py --rounds 10 --block-s 60 --out results/wake_ups.json     # 10 minutes of each: two hours
    python bench/wake_ups.py --rounds 1 --block-s 1                                   # whether it works
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from antiphon.audio.card.timer import Timer
from antiphon.hardware.audio_plan import FIFO_PRIORITY, AudioPlan
from antiphon.lab.machine import Load, fingerprint
from antiphon.scheduling.realtime import settle

PERIOD_NS = 5_000_000
POLICIES = ("normal", "fifo", "deadline")
PLACES = ("own", "shared")
LOADS = ("idle", "loaded")
RUNTIME_NS = 2_000_000  # of each period, for the deadline


def plan(policy: str) -> AudioPlan:
    """As the plan would have it, with this loop's period as the deadline's."""
    is_deadline = policy == "deadline"
    return AudioPlan(
        policy=policy,  # type: ignore[arg-type]
        priority=FIFO_PRIORITY if policy == "fifo" else 0,
        runtime_ns=RUNTIME_NS if is_deadline else 0,
        period_ns=PERIOD_NS if is_deadline else 0,
        locks_memory=policy != "normal",
        reasons=(),
    )


def child(policy: str, place: str, seconds: float) -> None:
    """Note lateness for so long; to stdout as int64, after a line that says what was granted."""
    late = np.zeros(round(seconds * 1e9 / PERIOD_NS), np.int64)
    granted: list[str] = []
    done = threading.Event()

    def wake() -> None:
        taken = settle(plan(policy))
        granted.append(taken.policy)
        timer, poll = Timer(), select.poll()
        poll.register(timer.fd, select.POLLIN)
        due_ns = time.monotonic_ns() + 100_000_000
        for count in range(len(late)):
            timer.set(due_ns)
            poll.poll()
            now_ns = time.monotonic_ns()
            timer.hush()
            late[count] = now_ns - due_ns
            due_ns = max(due_ns + PERIOD_NS, now_ns - now_ns % PERIOD_NS)
        done.set()

    if place == "own":
        wake()
    else:
        threading.Thread(target=wake, daemon=True).start()
        while not done.is_set():
            sum(range(1000))
    sys.stdout.buffer.write(json.dumps(granted[0]).encode() + b"\n" + late.tobytes())


def block(policy: str, place: str, seconds: float) -> tuple[str, np.ndarray]:
    command = [sys.executable, __file__, "--child", policy, place, str(seconds)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=seconds * 3 + 60)
    head, _, rest = done.stdout.partition(b"\n")
    return json.loads(head), np.frombuffer(rest, np.int64)


def hogs(count: int) -> list[subprocess.Popen]:
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def summary(late: np.ndarray) -> dict[str, float | int]:
    at = np.percentile(late, [50, 99, 99.9]) / 1e6
    return {
        "count": len(late),
        "p50_ms": at[0],
        "p99_ms": at[1],
        "p99.9_ms": at[2],
        "worst_ms": float(late.max() / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--block-s", type=float, default=1.0)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--places", default=",".join(PLACES))
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], arguments.child[1], float(arguments.child[2]))
        return
    found: dict[tuple[str, str, str], list[np.ndarray]] = {}
    granted: dict[tuple[str, str, str], str] = {}
    steals: list[float] = []
    for _ in range(arguments.rounds):
        for load in arguments.loads.split(","):
            busy = hogs(2 * (os.cpu_count() or 1)) if load == "loaded" else []
            try:
                for place in arguments.places.split(","):
                    for policy in arguments.policies.split(","):
                        meter = Load()
                        key = load, place, policy
                        granted[key], late = block(policy, place, arguments.block_s)
                        found.setdefault(key, []).append(late)
                        steals.append(float(meter.report()["steal"] or 0))
            finally:
                for each in busy:
                    each.kill()
                    each.wait()
    rows = [
        {"load": load, "place": place, "asked": policy, "granted": granted[load, place, policy],
         **summary(np.concatenate(blocks))}
        for (load, place, policy), blocks in found.items()
    ]  # fmt: skip
    for row in rows:
        print("  ".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    result = {
        "schema": "antiphon.wake_ups/1",
        "machine": fingerprint(),
        "period_ms": PERIOD_NS / 1e6,
        "rounds": arguments.rounds,
        "block_s": arguments.block_s,
        "steal_worst": max(steals),
        "steal_mean": sum(steals) / len(steals),
        "rows": rows,
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
