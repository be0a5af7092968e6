"""`antiphon` as usual, with one thread more that tells what only the process itself can see; for sessions.py.

A word on standard input in, a line of JSON on standard output out:
    counts   asyncio tasks, Python objects, threads by name
    trace    begin to trace Python's allocations, which slows everything
    grown    where traced memory has grown since, by line
    collect  collect garbage and give free memory back to the system: what remains is held
Usage: python bench/watched_server.py serve ... (as `antiphon serve ...`)
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import sys
import threading
import time
import tracemalloc

from antiphon.cli import main

LINES = 25  # of code that grew most
FRAMES = 6


def counts() -> dict[str, object]:
    return {
        "tasks": len(asyncio.all_tasks(_loop())),
        "objects": len(gc.get_objects()),
        "threads": sorted(thread.name for thread in threading.enumerate()),
    }


def _loop() -> asyncio.AbstractEventLoop:
    """The loop that the main thread runs: one of its frames is the loop's own."""
    frame = sys._current_frames()[threading.main_thread().ident or 0]  # noqa: SLF001 - asyncio tells its own thread alone
    while frame is not None and frame.f_code.co_name != "run_forever":
        frame = frame.f_back
    assert frame is not None, "no loop runs"
    loop: asyncio.AbstractEventLoop = frame.f_locals["self"]
    return loop


def collect() -> dict[str, object]:
    began = time.perf_counter()
    found: dict[str, object] = {"unreachable": gc.collect()}
    found["took_ms"] = round(1000 * (time.perf_counter() - began), 1)  # nothing else ran meanwhile
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):  # another C library
        return {**found, "trimmed": False}
    return {**found, "trimmed": True}


class Watcher:
    """Answers words."""

    def __init__(self) -> None:
        self._before: tracemalloc.Snapshot | None = None

    def answer(self, word: str) -> dict[str, object]:
        match word:
            case "counts":
                return counts()
            case "collect":
                return collect()
            case "trace":
                tracemalloc.start(FRAMES)
                self._before = tracemalloc.take_snapshot()
                return {}
            case "grown" if self._before is not None:
                gc.collect()
                grown = tracemalloc.take_snapshot().compare_to(self._before, "traceback")
                return {
                    "lines": [
                        {"kib": round(one.size_diff / 1024, 1), "blocks": one.count_diff, "at": one.traceback.format()}
                        for one in grown[:LINES]
                    ]
                }
            case _:
                return {"error": "unknown word"}

    def listen(self) -> None:
        for line in sys.stdin:
            print(json.dumps(self.answer(line.strip())), flush=True)


if __name__ == "__main__":
    threading.Thread(target=Watcher().listen, name="watcher", daemon=True).start()
    sys.exit(main(sys.argv[1:]))
