"""Ten million messages through a ring around its end, one side killed again and again: what is torn, lost or twice.

Half of the messages are written by a process that is killed and started anew, half are read by one. Every message
carries its number and bytes that follow from it, so that a mixture of two shows. Killed is with SIGKILL, at random
moments of a run whose seed is given. It would be wrong if the peers were never killed amid work: `kills` counts those
after which messages were left between the indices.

    PYTHONPATH=. python bench/ring_soak.py --out results/ring_soak.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.exchange.peer import is_whole, message, stamp

from antiphon.exchange.layout import RingShape
from antiphon.exchange.ring import Ring, RingHandle

SHAPE = RingShape(slots=1024, payload_bytes=640)
PEER = Path(__file__).parents[1] / "tests" / "exchange" / "peer.py"
FIRST = 2**64 - 1_000_000  # so that the indices come around
LIFE_S = (0.5, 4.0)  # of a peer
FOREVER = 10**12


def start(ring: Ring, handle: RingHandle, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(PEER), handle.text(), *map(str, arguments)]
    child = subprocess.Popen(command, pass_fds=handle.fds, stdout=subprocess.PIPE, text=True)
    ring.handed_over()
    return child


def killed_writers(messages: int, chance: random.Random) -> dict[str, int]:
    number = torn = kills = 0
    with Ring.make(SHAPE, peer="writes", first=FIRST) as ring:
        handle, reader = ring.handle(), ring.reader
        while number < messages:
            child = start(ring, handle, "count", number, FOREVER)
            assert reader.wait(60)
            until, left = time.monotonic() + chance.uniform(*LIFE_S), 0
            while reader.wait():
                killed = child.returncode is not None
                while taken := reader.take():
                    torn += not is_whole(number, taken.payload, taken.stamp)
                    reader.release()
                    number += 1
                    left += killed
                if not killed and time.monotonic() > until:
                    child.kill()
                    child.wait()
            kills += left > 0
            handle = ring.renew()
        return {"messages": number, "torn": torn, "damaged": reader.damaged, "kills": kills}


def killed_readers(messages: int, chance: random.Random) -> dict[str, int]:
    """A reader says what it found wrong; the last one says up to where it read."""
    number = wrong = kills = lost = 0
    ring = Ring.make(SHAPE, peer="reads", first=FIRST)
    handle, writer = ring.handle(), ring.writer
    while number < messages:
        child = start(ring, handle, "check")
        until = time.monotonic() + chance.uniform(*LIFE_S)
        while writer.wait():
            while writer.write(message(number), stamp(number)):
                number += 1
            if time.monotonic() > until:
                child.kill()
                break
        child.wait()
        wrong += len(child.stdout.read().splitlines())
        kills += writer.unread > 0
        handle = ring.renew()
    child = start(ring, handle, "check")
    while writer.unread:
        time.sleep(0.01)
    ring.close()
    *more, last = child.communicate()[0].splitlines()
    wrong += len(more)
    lost = number - int(last.split()[-1])
    return {"messages": number, "torn or out of order": wrong, "lost": lost, "kills": kills}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    chance, began = random.Random(arguments.seed), time.monotonic()
    result = {
        "command": " ".join(["python", *sys.argv]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "seed": arguments.seed,
        "writer killed": killed_writers(arguments.messages // 2, chance),
        "reader killed": killed_readers(arguments.messages // 2, chance),
        "seconds": round(time.monotonic() - began, 1),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
