"""Conversations on a GPU, and both default models under load through its lane, each mechanism off in turn.

    python bench/gpu/conversations.py --parts FOLDER           # a GPU; FOLDER holds what pack.py made
    python bench/gpu/conversations.py --device cpu --tiny      # does it run; no figure means anything

Sections, in this order, each written to conversations.json when it ends; one that fails is told, and the others go on:
    converse  `antiphon converse` over the package's three recordings; whether it hears and says what a processor does
    serve     `antiphon serve`, with callers who speak the Realtime protocol in real time, measured from outside
    default   SmolLM2-135M writes for many while Whisper tiny.en recognises, both as fast as they can (lane_load.py)
    large     the same with random weights of an 8B model's and large-v3's shapes

What would prove the lane wrong: texts that differ under load from the same engine's alone by more than rounding; a
token's P95 beside recognition above 1.2 times alone; no difference with a mechanism off, which is then not worth it.
The callers of `serve` compute on the machine that serves, at their own expense; their lateness is told.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import json
import os
import subprocess
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from engines import machine
from unpack import CACHE, SITE, UNPACKED, lacks_packages, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
ASSETS = ROOT / "src/antiphon/assets"
ORDERS = ("order.flac", "short_order.flac", "hesitant_order.flac")
CONVERSE_LIMIT_S = 150
LIMIT_S = 585
SECTIONS = ("converse", "serve", "default", "large")


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--tiny", action="store_true", help="few and small, to test the script on a processor")
    parser.add_argument("--parts", type=Path, help="the folder of what pack.py made; without, models of this user's")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, by comma")
    parser.add_argument("--callers", default="1,8", help="of `serve`, a comma list")
    parser.add_argument("--turns", type=int, default=2, help="of each caller")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each load")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for converse and serve")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")) / "conversations.json")
    asked = parser.parse_args()
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    places = [str(ROOT / "src"), str(BENCH), os.environ.get("PYTHONPATH", ""), str(SITE) if lacks_packages() else ""]
    if asked.parts:
        unpack(asked.parts)
        os.environ["ANTIPHON_CACHE"] = str(CACHE)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    sys.path[:0] = [str(ROOT / "src"), str(BENCH)]
    found: dict[str, Any] = {"schema": "antiphon.gpu-conversations/1", "command": " ".join(sys.argv[1:])}
    found["machine"] = machine(torch.device(asked.device)) | {"processors": os.cpu_count(), "is_tiny": asked.tiny}
    work: dict[str, Callable[[Callable[[], None], dict[str, Any]], None]] = {
        "converse": partial(converse, asked),
        "serve": partial(serve, asked),
        "default": partial(load, asked, "default"),
        "large": partial(load, asked, "large"),
    }
    for name in [name for name in SECTIONS if name in asked.only.split(",")]:
        began_s = time.monotonic()
        section: dict[str, Any] = {}
        found.setdefault("sections", {})[name] = section

        def write() -> None:
            asked.out.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")

        try:
            work[name](write, section)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the other sections are worth their time
            section["problem"] = f"{type(error).__name__}: {error}"[-2500:]
            section["where"] = traceback.format_exc()[-1500:]
        section["seconds"] = round(time.monotonic() - began_s, 1)
        write()
        print(f"{name}: {section['seconds']} s {section.get('problem', '')}", flush=True)


def program(asked: argparse.Namespace) -> tuple[str, ...]:
    """What starts `antiphon`: on a processor, one that passes for a GPU."""
    return ("-m", "antiphon") if asked.device == "cuda" else (str(BENCH / "gpu/pretended.py"),)


def settings(asked: argparse.Namespace) -> list[str]:
    """As the command line takes them."""
    return [word for each in asked.set for word in ("--set", each)]


def converse(asked: argparse.Namespace, write: Callable[[], None], section: dict[str, Any]) -> None:
    """The command itself, as a user would give it."""
    if not _converse(asked, write, section):
        section["with_parts"] = section.pop("problem")  # and all that follows goes on without
        asked.set.append("gpu.partitions=false")
        _converse(asked, write, section)


def _converse(asked: argparse.Namespace, write: Callable[[], None], section: dict[str, Any]) -> bool:
    """Whether it came to an end of its own."""
    out = asked.out.with_name("converse.json")
    files = [str(ASSETS / name) for name in ORDERS[: 1 if asked.tiny else None]]
    command = [sys.executable, *program(asked), "converse", *files, "--device", "cuda", "--json", str(out)]
    done = subprocess.run(
        [*command, *settings(asked)], capture_output=True, text=True, timeout=CONVERSE_LIMIT_S, check=False
    )
    section["exit"] = done.returncode
    if not out.is_file():
        section["problem"] = (done.stdout + done.stderr)[-2500:]
        return False
    section["warnings"] = done.stderr[-1500:]
    told = json.loads(out.read_text())
    out.unlink()
    section["ready_ms"] = told["ready_ms"]
    section["turns"] = [
        {
            "heard": turn["text"],
            "said": turn["reply"],
            "voice_to_voice_ms": (turn["timeline"] or {}).get("voice_to_voice_ms"),
            "parts": (turn["timeline"] or {}).get("parts"),
        }
        for turn in told["turns"]
    ]
    section["failures"] = told["failures"]
    expected = UNPACKED / "expected.json"
    if asked.parts and expected.is_file():
        theirs = json.loads(expected.read_text())["turns"]
        for mine, other in zip(section["turns"], theirs, strict=False):
            mine["processor_heard"], mine["processor_said"] = other["text"], other["reply"]
        section["turns_alike"] = {
            "heard": sum(mine["heard"] == other["text"] for mine, other in zip(section["turns"], theirs, strict=False)),
            "said": sum(mine["said"] == other["reply"] for mine, other in zip(section["turns"], theirs, strict=False)),
            "of": len(theirs),
        }
    for turn in section["turns"]:
        print(f"  {turn['voice_to_voice_ms']} ms  {turn['heard']!r} -> {turn['said']!r}", flush=True)
    write()
    return True


def serve(asked: argparse.Namespace, write: Callable[[], None], section: dict[str, Any]) -> None:
    """Callers of bench/callers.py."""
    import callers
    from server_process import ServerProcess

    callers.ServerProcess = partial(ServerProcess, program=program(asked))  # type: ignore[misc, assignment]
    corpus = UNPACKED / "corpus" if asked.parts else ROOT.parent / "shared/corpus/barista"
    clips = callers.read_clips(corpus, ["clean", "hesitation"], 1)
    named = argparse.Namespace(
        agent=ROOT / "examples/barista.py",
        turns=1 if asked.tiny else asked.turns,
        set=["gpu.device=cuda", "scheduling.admission=false", *asked.set],
    )
    section["stages"] = []
    for count in (1,) if asked.tiny else map(int, asked.callers.split(",")):
        stage = callers.Stage(count, period_s=16.0)
        try:
            asyncio.run(callers.hold(stage, clips * (1 + count * named.turns // len(clips)), named))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - fewer callers were worth it
            section["stages"].append({"callers": count, "problem": f"{type(error).__name__}: {error}"[-2500:]})
            break
        report = stage.report()
        section["stages"].append(report | {"texts": [turn.text for turn in stage.turns], "load": stage.load})
        shown = {name: report[name] for name in ("callers", "turns", "v2v_p50_ms", "v2v_p95_ms", "cut_ins", "silent")}
        print(f"  {json.dumps(shown)}", flush=True)
        write()


def load(asked: argparse.Namespace, models: str, write: Callable[[], None], section: dict[str, Any]) -> None:
    """See lane_load.py."""
    from lane_load import measure

    for name, value in measure(models, torch.device(asked.device), seconds=asked.seconds, tiny=asked.tiny):
        section[name] = value
        print(f"  {name}: {json.dumps(value)[:600]}", flush=True)
        write()


if __name__ == "__main__":
    main()
