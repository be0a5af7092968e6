"""How old a captured sample is when the conversation's process has it as a frame, ready for the voice detector.

From a period's last sample, by the card's own time stamps, to the call that hands the frame on. Through the paced card
of tests, through ALSA and PortAudio on null sinks of a PipeWire of its own, and through ALSA's plugin on the dummy
driver of a JACK of its own (all but the first need what scripts/sound installs); with the audio process, and with the
same loop in a thread of the conversation's process; beside nothing, busy processes (twice as many as cores) and a
thread of the conversation's process that computes in Python without end. The ways take turns in blocks. It would be
wrong if a device's stamps were: PipeWire's plugin stamps with the time at which it is asked, so what its graph holds
back is in `delay` alone, and PortAudio counts its own buffers in.

    PYTHONPATH=. python bench/capture_delay.py --rounds 10 --block-s 30 --out results/capture_delay.json
    PYTHONPATH=. python bench/capture_delay.py --systems paced --rounds 1 --block-s 2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from tests.sound import jack, server

from antiphon.audio.card.link import SoundLink
from antiphon.audio.card.process import Order
from antiphon.audio.card.settings import SoundSettings
from antiphon.hardware.audio_plan import plan_audio
from antiphon.hardware.probe_rights import probe_rights
from antiphon.lab.machine import Load, fingerprint

SYSTEMS = ("paced", "alsa", "portaudio", "jack")
PLACES = ("process", "thread")
LOADS = ("idle", "processes", "thread")
WARM = 50  # frames after the opening


def block(system: str, place: str, load: str, seconds: float, policy: str) -> dict[str, object]:
    """Delays of a block in ns, and what the card said of itself."""
    rights, _ = probe_rights()
    name = jack.NAME if system == "jack" else ""
    by = "alsa" if name else system
    sound = SoundSettings(system=by, input=name, output=name, own_process=place == "process")  # type: ignore[arg-type]
    order = Order(sound=sound, plan=plan_audio(rights, policy), voice_hz=24_000)  # type: ignore[arg-type]
    delays: list[int] = []
    notes: list[object] = []
    over = threading.Event()

    def compute() -> None:
        while not over.is_set():
            sum(range(1000))

    async def listen() -> None:
        async with SoundLink(
            order, hear=lambda frame: delays.append(time.monotonic_ns() - frame.end_ns), tell=notes.append
        ):
            await asyncio.sleep(seconds)

    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))] \
        if load == "processes" else []  # fmt: skip
    engine = threading.Thread(target=compute, daemon=True)
    if load == "thread":
        engine.start()
    try:
        asyncio.run(listen())
    finally:
        over.set()
        for each in busy:
            each.kill()
            each.wait()
    xruns = sum(note.what == "lost" for note in notes)  # type: ignore[attr-defined]
    ready = next(note.text for note in notes if note.what == "ready")  # type: ignore[attr-defined]
    return {"delays": delays[WARM:], "xruns": xruns, "policy": ready}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--places", default=",".join(PLACES))
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--policy", default="auto")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--block-s", type=float, default=5.0)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        system, place, load = arguments.one
        print(json.dumps(block(system, place, load, arguments.block_s, arguments.policy)))
        return
    delays: dict[tuple[str, str, str], list[int]] = {}
    others: dict[tuple[str, str, str], dict[str, object]] = {}
    steals = []
    with ExitStack() as stack:
        environments = {system: dict(os.environ) for system in SYSTEMS}
        systems = set(arguments.systems.split(","))
        for needed, what in (({"alsa", "portaudio"}, server), ({"jack"}, jack)):
            if systems & needed and what.missing():
                sys.exit(f"not installed: {what.missing()}")
        if systems & {"alsa", "portaudio"}:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pw.")))
            running = stack.enter_context(server.pipewire(folder))
            environments["alsa"] = environments["portaudio"] = running.environment
        if "jack" in systems:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jk.")))
            environments["jack"] = stack.enter_context(jack.jack(folder))
        for _ in range(arguments.rounds):
            for load in arguments.loads.split(","):
                for place in arguments.places.split(","):
                    for system in arguments.systems.split(","):
                        meter = Load()
                        command = [sys.executable, __file__, "--one", system, place, load]
                        command += ["--block-s", str(arguments.block_s), "--policy", arguments.policy]
                        done = subprocess.run(
                            command, env=environments[system], capture_output=True, text=True, check=True
                        )
                        found = json.loads(done.stdout)
                        key = load, place, system
                        delays.setdefault(key, []).extend(found["delays"])
                        lost = int(str(others.get(key, {}).get("xruns", 0))) + found["xruns"]
                        others[key] = {"xruns": lost, "policy": found["policy"]}
                        steals.append(float(meter.report()["steal"] or 0))
    rows = []
    for (load, place, system), values in delays.items():
        at = np.percentile(values, [50, 99, 99.9]) / 1e6
        row = {"load": load, "place": place, "system": system, "count": len(values), "p50_ms": at[0], "p99_ms": at[1],
               "p99.9_ms": at[2], "worst_ms": max(values) / 1e6, **others[load, place, system]}  # fmt: skip
        rows.append(row)
        print("  ".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    result = {
        "schema": "antiphon.capture_delay/1",
        "machine": fingerprint(),
        "rounds": arguments.rounds,
        "block_s": arguments.block_s,
        "steal_mean": sum(steals) / len(steals),
        "steal_worst": max(steals),
        "rows": rows,
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
