"""What an engine's call loses beside another engine's, and a reply beside other replies, on this machine's cores.

Regime: the engines as a server loads them, on lanes with the plan's threads and niceness; the scheduler is told that
there are cores for all, so that nobody waits. The language model writes REPLY_TOKENS tokens, alone, beside a neighbour
that computes without a pause, and together with other replies; blocks in turn, ROUNDS of them. `pace` is the tokens'
against alone, each reply's of several; `asked` what core_shares.paces has for the same; `one_more` what each further
reply adds to a step, as a part of one alone.
It would be wrong if others computed meanwhile: `load` says.

    python bench/beside.py [--threads 2] [--rounds 3] [--out results/beside.json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.calibrate import SENTENCE, _order, _spoken
from antiphon.config import Config
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame, Message
from antiphon.lab.machine import Load, fingerprint
from antiphon.runtime import Runtime
from antiphon.scheduling.core_shares import Want, paces
from antiphon.scheduling.processor import WEIGHT_A_STEP

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ROOT = Path(__file__).parents[1]
REPLY_TOKENS = 40
PLENTY = 64  # cores, as the scheduler is told
NEIGHBOURS = ("voice", "quick_recognizer", "prosody", "recognizer")
TOGETHER = ("2 replies", "4 replies")


async def write(runtime: Runtime, number: int) -> float:
    """ns a token, from the first to the last."""
    thinking = runtime.engines.language_model.open()
    messages = [
        Message("system", f"Cafe {number} answers in many words. It sells {number} kinds of coffee, tea and cake."),
        Message("user", "Please tell me all about the coffee that you sell here, and how each of them is made."),
    ]
    try:
        async with aclosing(thinking.write(messages, max_tokens=REPLY_TOKENS)) as reply:
            times = [time.perf_counter_ns() async for _ in reply]
    finally:
        thinking.close()
    return (times[-1] - times[0]) / max(1, len(times) - 1)


def neighbour(runtime: Runtime, name: str) -> Callable[[], Awaitable[object]]:
    """One of its calls."""
    engines, pcm = runtime.engines, _order()

    async def heard(recognizer: object) -> None:
        recognition = recognizer.open()  # type: ignore[attr-defined]
        recognition.feed(AudioFrame(pcm=pcm[:1], rate_hz=HEARING_RATE_HZ, pos_samples=0, captured_ns=0))
        recognition.begin(0)
        recognition.feed(AudioFrame(pcm=pcm[1:], rate_hz=HEARING_RATE_HZ, pos_samples=1, captured_ns=0))
        await recognition.transcribe(len(pcm), final=True)
        recognition.close()

    match name:
        case "voice":
            return lambda: _spoken(engines.synthesizer, SENTENCE)
        case "prosody":
            assert engines.prosody is not None
            judge = engines.prosody
            return lambda: judge.probability(pcm)
        case "quick_recognizer":
            return lambda: heard(engines.quick_recognizer)
    return lambda: heard(engines.recognizer)


async def beside(runtime: Runtime, name: str, number: int) -> float:
    call, done = neighbour(runtime, name), asyncio.Event()

    async def go_on() -> None:
        while not done.is_set():
            await call()

    task = asyncio.ensure_future(go_on())
    try:
        return await write(runtime, number)
    finally:
        done.set()
        with suppress(asyncio.CancelledError):
            await task


async def together(runtime: Runtime, count: int, number: int) -> float:
    return statistics.mean(await asyncio.gather(*(write(runtime, 100 * place + number) for place in range(count))))


async def block(runtime: Runtime, name: str, number: int) -> float:
    """ns a token."""
    if name == "alone":
        return await write(runtime, number)
    if name in TOGETHER:
        return await together(runtime, int(name.partition(" ")[0]), number)
    return await beside(runtime, name, number)


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    config = Config()
    config = replace(
        config,
        capacity=replace(config.capacity, conversations=4),
        cpu=replace(config.cpu, language_model_threads=arguments.threads, recognizer_threads=arguments.threads),
    )
    cells: dict[str, list[float]] = {}
    async with await Runtime.load(config) as runtime:
        assert runtime.scheduler is not None
        runtime.scheduler._policy.cores = PLENTY  # noqa: SLF001 - nobody waits
        load, number = Load(), 0
        for _ in range(arguments.rounds):
            for name in ("alone", *NEIGHBOURS, *TOGETHER):
                number += 1
                cells.setdefault(name, []).append(await block(runtime, name, number))
        plan = runtime.plan
        told = load.report()
    alone = statistics.median(cells["alone"])
    rows = []
    for name, values in cells.items():
        row: dict[str, object] = {"beside": name, "ms_a_token": [round(value / 1e6, 2) for value in values]}
        row["pace"] = round(alone / statistics.median(values), 3)
        if name in NEIGHBOURS:
            wants = [
                Want(1, stage.threads, WEIGHT_A_STEP**-stage.nice)
                for stage in (plan.stage("language_model"), plan.stage(name))
            ]
            row["asked"] = round(paces(2, wants)[0][0], 3)
        elif name != "alone":
            count = int(name.partition(" ")[0])
            row["one_more"] = round((statistics.median(values) / alone - 1) / (count - 1), 3)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return {"threads": arguments.threads, "load": told, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="2,1", help="of the language model and the recognizer, a comma list")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "beside.json")
    arguments = parser.parse_args()
    cells = [
        asyncio.run(measure(argparse.Namespace(threads=int(word), rounds=arguments.rounds)))
        for word in arguments.threads.split(",")
    ]
    result = {"schema": "antiphon.beside/1", "command": " ".join(sys.argv), "machine": fingerprint(), "cells": cells}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
