"""All that is measured of the GPU lane, in one call: sharing, memory in pieces, batch sizes, costs, sensors.

Regime: one GPU that is ours alone; an 8B Llama's decode step, Whisper large-v3's encoder, a HiFi-GAN generator and a
bandwidth hog, with random weights (shapes.py), in bf16; times are wall time from when a step was due to when the host
knew of its end, unless a field says otherwise. Each section is bounded in time, and its JSON is written when it ends; a
section that fails is told as such and the others go on.
What would falsify it: an aggressor that a real vocoder or recognizer does not resemble; a second process on the GPU.

Usage: PYTHONPATH=src python bench/gpu/lane.py [--device cuda|cpu] [--tiny] [--out FOLDER] [--only NAME,...]
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # else streams share eight queues, and wait for each other

import lane_batches
import lane_costs
import lane_memory
import torch
from contention import matrix
from grounds import Ground, calibrate

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S = 460


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--tiny", action="store_true", help="small shapes, to test the script on a processor")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    sys.setswitchinterval(1e-4)
    ground = Ground(device=torch.device("cuda:0" if arguments.device == "cuda" else "cpu"), tiny=arguments.tiny)
    result: dict[str, Any] = {"schema": "antiphon.gpu-lane/1", "machine": machine(ground), "sections": {}}
    file = arguments.out / "gpu_lane.json"

    def write() -> None:
        file.write_text(json.dumps(result, indent=1, default=str) + "\n")

    cuts = [(76, 56), (100, 32), (52, 80)] if ground.is_cuda else [(1, 1)]
    each_s = 0.05 if ground.tiny else 1.6

    def share() -> dict[str, Any]:
        def note(table: dict[str, Any]) -> None:
            result["sections"]["matrix"] = table
            write()

        return matrix(ground, cuts, seconds=each_s, note=note)

    sections: list[tuple[str, Callable[[], Any]]] = [
        ("load", ground.load),
        ("calibration", lambda: calibrate(ground)),
        ("costs", lambda: lane_costs.costs(ground, cuts[0])),
        ("race", lambda: lane_costs.race(ground, cuts[0])),
        ("accounting", lambda: lane_costs.accounting(ground, cuts[0])),
        ("sensors", lambda: lane_costs.sensors(ground)),
        ("matrix", share),
        ("batches", lambda: lane_batches.batches(ground)),
        ("memory", lambda: lane_memory.stress(ground, cuts[0])),
    ]
    wanted = set(filter(None, arguments.only.split(",")))
    began_s = time.monotonic()
    for name, run in sections:
        if wanted and name not in wanted | {"load", "calibration"}:
            continue
        start_s = time.monotonic()
        try:
            found = run()
            result["sections"][name] = found if isinstance(found, dict) else {}
        except Exception as error:  # noqa: BLE001 - the other sections are worth having
            traceback.print_exc()
            result["sections"].setdefault(name, {})
            result["sections"][name]["problem"] = f"{type(error).__name__}: {error}"
        result["sections"][name]["section_s"] = round(time.monotonic() - start_s, 1)
        write()
        print(f"{name}: {time.monotonic() - start_s:.1f} s, {time.monotonic() - began_s:.0f} s in all", flush=True)
    result["total_s"] = round(time.monotonic() - began_s, 1)
    write()
    show(result)


def machine(ground: Ground) -> dict[str, Any]:
    """Card, versions, time."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cpus": os.cpu_count(),
        "taken": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }
    if ground.is_cuda:
        facts = torch.cuda.get_device_properties(0)
        found |= {
            "gpu": facts.name,
            "multiprocessors": facts.multi_processor_count,
            "memory_bytes": facts.total_memory,
            "cuda": torch.version.cuda,
        }
        try:
            import pynvml

            pynvml.nvmlInit()
            found["driver"] = pynvml.nvmlSystemGetDriverVersion()
        except Exception as error:  # noqa: BLE001 - it is not known then
            found["driver"] = f"unknown: {error}"
    return found


def show(result: dict[str, Any]) -> None:
    """The short form."""
    sections = result["sections"]
    for name in ("calibration", "costs", "race", "accounting", "sensors", "batches", "memory"):
        print(name, json.dumps(sections.get(name, {}), default=str)[:1500])
    table = sections.get("matrix", {})
    print("alone", json.dumps(table.get("alone")), "solo", json.dumps(table.get("solo_per_s")))
    for row in table.get("rows", []):
        if "problem" in row:
            print(f"{row['scheme']:28} {row['problem'][:90]}")
            continue
        victim = row["victim"]
        figures = " ".join(f"{victim.get(name, -1):8.2f}" for name in ("p50_ms", "p95_ms", "p99_ms"))
        print(
            f"{row['scheme']:28} {row['load']:12} {row['victim_mode']:10} {figures}  x{row['p95_to_alone']:6.2f}"
            f"  kept {row['kept']:.2f} {row['problems'] or ''}"
        )


if __name__ == "__main__":
    main()
