"""How long a process takes from its first line to warm engines, and how much memory it and each conversation take.

Regime: models cached on disk and in the page cache, nothing else running; each start is a process of its own.

Usage: python bench/start_up.py [--starts N] [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

from antiphon.lab.machine import Load, fingerprint

ROOT = Path(__file__).parents[1]
CONVERSATIONS = 4


def memory_mib() -> float:
    """What this process holds, from /proc; 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


async def one_start() -> dict[str, float]:
    began = time.perf_counter()
    from antiphon.agent import Agent
    from antiphon.config import Config
    from antiphon.core.flow import AudioFrame

    agent, config = Agent(), Config()
    runtime = await agent.load(config)
    ready_s = time.perf_counter() - began
    loaded = memory_mib()
    import numpy as np

    async def idle_call() -> None:
        async with agent.session(runtime, config=config) as session:
            for pos in range(0, 16_000 * 60, 320):  # a minute of a quiet line
                session.feed(AudioFrame(np.zeros(320, np.float32), 16_000, pos, pos * 62_500))
                if pos % 16_000 == 0:
                    await asyncio.sleep(0)
            held.append(memory_mib())

    held: list[float] = []
    await asyncio.gather(*(idle_call() for _ in range(CONVERSATIONS)))
    runtime.close()
    return {"ready_s": ready_s, "loaded_mib": loaded, "mib_a_conversation": (max(held) - loaded) / CONVERSATIONS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "start_up.json")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(asyncio.run(one_start())))
        return
    machine_load = Load()
    starts = []
    for _ in range(arguments.starts):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, __file__, "--one"], capture_output=True, text=True, check=True)
        starts.append(json.loads(done.stdout) | {"process_s": time.perf_counter() - began})
        print(starts[-1], flush=True)
    result = {
        "schema": "antiphon.start_up/1",
        "machine": fingerprint(),
        "load": machine_load.report(),
        "conversations": CONVERSATIONS,
        "starts": starts,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
