"""The engines for a GPU, checked and measured; what fails is written down, and the rest goes on.

    python bench/gpu/engines.py --device cpu --tiny           # does everything run; no figure means anything
    python bench/gpu/engines.py                               # a GPU, all that needs no files
    python bench/gpu/engines.py --parts FOLDER                # and with real weights, as bench/gpu/pack.py packs them

What would prove the engines wrong: a decode step of the 8B shape above 5.5 ms for one caller or 8.0 ms for 64 at 1024
tokens, an encoder window of large-v3's shape above 4 ms or sixteen above 30, less than 99 of 100 tokens alike, or a
page that nobody owns. Random weights, except where real ones are named. Times are the host's, from the launch to the
end of the stream; the device's own by events beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from unpack import unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECTIONS = ("kernels", "decode", "eager", "whisper", "accounting", "language_model", "recognizer", "sanitizer")
SANITIZER_LIMIT_S = 150


class Report:
    """What was found so far, on disk after each piece."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, Any] = {}

    def put(self, section: str, name: str, value: Any) -> None:
        self.found.setdefault(section, {})[name] = value
        print(f"{section} | {name}: {value}", flush=True)
        self.write()

    def write(self) -> None:
        self.path.write_text(json.dumps(self.found, indent=1, default=str) + "\n", encoding="utf-8")


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    args.add_argument("--tiny", action="store_true", help="small shapes and few samples")
    args.add_argument("--parts", type=Path, help="the folder of what pack.py made")
    args.add_argument("--sections", default=",".join(SECTIONS), help="those to run, by comma")
    args.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")) / "engines.json")
    asked = args.parse_args()
    device = torch.device(asked.device)
    report = Report(asked.out)
    report.found["machine"] = machine(device)
    bandwidth = 0.0
    for section in [name for name in SECTIONS if name in asked.sections.split(",")]:
        started = time.monotonic()
        try:
            if section == "decode":
                from decode_speed import ceilings

                found = ceilings(device, tiny=asked.tiny)
                bandwidth = found["copy_bytes_per_s"]
                report.found["ceilings"] = found
            for name, value in pieces(section, device, asked, bandwidth):
                report.put(section, name, value)
        except Exception:  # noqa: BLE001 - the other sections are worth their time
            report.put(section, "error", traceback.format_exc()[-1500:])
        report.put(section, "seconds", round(time.monotonic() - started, 1))
        if device.type == "cuda":
            torch.cuda.empty_cache()
    report.write()


def machine(device: torch.device) -> dict[str, Any]:
    """What the figures were read on."""
    found: dict[str, Any] = {"torch": torch.__version__, "python": sys.version.split()[0], "device": "cpu"}
    if device.type == "cuda":
        import triton

        card = torch.cuda.get_device_properties(device)
        found |= {
            "device": card.name,
            "multiprocessors": card.multi_processor_count,
            "memory_bytes": card.total_memory,
            "cuda": torch.version.cuda,
            "triton": triton.__version__,
            "driver": _said("nvidia-smi", "--query-gpu=driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"),
        }
    return found


def pieces(
    section: str, device: torch.device, asked: argparse.Namespace, bandwidth: float
) -> Iterator[tuple[str, Any]]:
    """Name and figures of each piece of a section, as they come."""
    tiny: bool = asked.tiny
    if section == "kernels":
        from decode_speed import kernels_right

        yield from kernels_right(device, tiny=tiny).items()
    elif section == "decode":
        from decode_speed import steps

        yield from steps(device, bandwidth, tiny=tiny)
    elif section == "eager":
        from decode_speed import eager_transformers

        yield "transformers, batch 1", eager_transformers(device, tiny=tiny)
    elif section == "whisper":
        from whisper_speed import whisper_steps

        yield from whisper_steps(device, tiny=tiny)
    elif section == "accounting":
        from accounting import random_traffic

        yield "random traffic", random_traffic(device, changes=300 if tiny else 10_000, limit_s=90)
    elif section == "sanitizer":
        yield "memcheck", sanitized() if device.type == "cuda" else "needs a GPU"
    elif asked.parts is None:
        yield "left out", "no --parts"
    else:
        unpack(asked.parts)
        import real_weights

        check: Callable[..., Iterator[tuple[str, Any]]] = getattr(real_weights, section)
        yield from check(device, tiny=tiny)


def sanitized() -> dict[str, Any]:
    """compute-sanitizer over the kernels and random traffic, at small shapes."""
    command = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9", sys.executable, __file__]
    command += ["--tiny", "--sections", "kernels,accounting", "--out", "/tmp/sanitized.json"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SANITIZER_LIMIT_S,
            check=False,
            env={**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "0"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)[:300]}
    return {"exit": done.returncode, "said": (done.stdout + done.stderr)[-800:]}


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown: {error}"


if __name__ == "__main__":
    main()
