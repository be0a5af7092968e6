"""Plays voices and noises over a spoken reply, in real time and in process, and sees what becomes of the reply.

Backchannels are spoken by the default voice at three pitches (a reading of "mm-hmm" is no recording of one); coughs,
doors and keys are made of shaped noise; kitchen noise is recorded (the tails of the corpus's noisy clips).
Interruptions are recorded orders of the corpus, and short commands by the default voice. A reply that is stopped or
paused by the first three groups is a false interruption; one that sounds on over the last two is a missed one.
Stop times run from the overlay's first speech sample to the end of the last frame handed out.

What would falsify it: a time to silence shorter than voice detection takes (two frames of 32 ms).

Usage: python bench/overlaps.py [--corpus DIR] [--without NAME] [--set KEY=VALUE] [--limit N] [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from antiphon import Agent
from antiphon.audio.files import FileSource, Playback, read
from antiphon.audio.level import audible_span
from antiphon.audio.resample import resample
from antiphon.config import load
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS, MonotonicClock
from antiphon.core.flow import TextChunk
from antiphon.lab.machine import Load, fingerprint
from antiphon.mechanisms import settings_without
from antiphon.session.events import ReplyAudio, ReplyDucked, ReplyFinished, ReplyPaused, ReplyStarted, TurnStarted
from corpus_turns import percentile, wilson

if TYPE_CHECKING:
    from antiphon.config import Config
    from antiphon.core.flow import Pcm
    from antiphon.runtime import Runtime

ROOT = Path(__file__).parents[1]
RATE_HZ = 16_000
REPLY = (
    "We have espresso, americano, latte, cappuccino, mocha and drip coffee, each of them in four sizes, "
    "with whole milk, skim milk, soy milk or almond milk, and if you like we can add sugar, cream or cinnamon "
    "to any of these drinks."
)
BACKCHANNELS = (
    "Mm-hmm.",
    "Uh-huh.",
    "Yeah.",
    "Okay.",
    "Right.",
    "I see.",
    "Oh, okay.",
    "Sure.",
    "Got it.",
    "Yeah, yeah.",
)
COMMANDS = (
    "Stop.",
    "Wait.",
    "No.",
    "Hold on.",
    "Excuse me.",
    "No, I want tea.",
    "Stop it please.",
    "Can I get a mocha?",
)
PITCHES = (0.85, 1.0, 1.2)
BEFORE_S, AFTER_S = 1.5, 2.5


@dataclass(slots=True)
class Trial:
    """One overlay, and what it did."""

    group: str
    name: str
    stopped: bool = False
    paused: bool = False
    ducked_ms: float = 0.0
    turn_opened: bool = False
    silence_ms: float | None = None  # from the overlay's first speech sample to the reply's last sample


async def spoken(runtime: Runtime, text: str, pitch: float) -> Pcm:
    """The default voice, its pitch and pace changed together."""
    voice = runtime.engines.synthesizer
    chunk = TextChunk(text=text, index=0, start_chars=0, is_last=True)
    pcm = np.concatenate([piece.pcm async for piece in voice.speak(chunk)])
    return resample(pcm, round(voice.rate_hz * pitch), RATE_HZ)


def noises(random: np.random.Generator) -> dict[str, Pcm]:
    """Coughs, doors and keys, as loud as speech."""

    def burst(length_s: float, decay_s: float, low: float, high: float) -> Pcm:
        count = round(length_s * RATE_HZ)
        spectrum = np.fft.rfft(random.standard_normal(count))
        hz = np.fft.rfftfreq(count, 1 / RATE_HZ)
        spectrum[(hz < low) | (hz > high)] = 0
        shaped = np.fft.irfft(spectrum, count) * np.exp(-np.arange(count) / RATE_HZ / decay_s)
        return (0.4 * shaped / np.abs(shaped).max()).astype(np.float32)

    rest = np.zeros(RATE_HZ // 10, np.float32)
    made = {}
    for place in range(4):
        made[f"cough {place}"] = np.concatenate([burst(0.25, 0.09, 250, 5000), rest, burst(0.3, 0.12, 250, 5000)])
        made[f"door {place}"] = burst(0.5, 0.08, 30, 400)
        made[f"keys {place}"] = np.concatenate([burst(0.05, 0.01, 1500, 7500), rest] * 5)
    return made


def recorded(corpus: Path) -> tuple[dict[str, Pcm], dict[str, Pcm]]:
    """(kitchen noise, spoken orders)."""
    clips = [json.loads(line) for line in (corpus / "manifest.jsonl").read_text().splitlines()]
    kitchen, orders = {}, {}
    for clip in clips:
        pcm, _ = read(corpus / clip["file"])
        start, end = (round(clip[key] * RATE_HZ) for key in ("speech_start_s", "speech_end_s"))
        if clip["kind"] == "noisy" and len(kitchen) < 12:
            kitchen[clip["file"]] = 2 * pcm[end + RATE_HZ // 5 : end + RATE_HZ]
        if clip["kind"] == "clean" and len(orders) < 20:
            orders[clip["file"]] = pcm[start:end]
    return kitchen, orders


async def overlay(runtime: Runtime, config: Config, trial: Trial, sound: Pcm) -> None:
    """Hold one session: a reply, and `sound` over it."""
    clock = MonotonicClock()
    first, _ = audible_span(sound, RATE_HZ)
    hiss = np.random.default_rng(1)
    rest = lambda seconds: (0.0005 * hiss.standard_normal(round(seconds * RATE_HZ))).astype(np.float32)  # noqa: E731
    source = FileSource(
        np.concatenate([rest(BEFORE_S), sound + rest(len(sound) / RATE_HZ)[: len(sound)], rest(AFTER_S)]),
        RATE_HZ,
        clock=clock,
        playback=Playback(tail_ms=0),
    )
    began = asyncio.Event()
    last_ns, soft_ns = 0, 0

    async def listen() -> None:
        nonlocal last_ns, soft_ns
        async for event in session:
            match event:
                case ReplyStarted():
                    began.set()
                case ReplyAudio(frame=frame) if not trial.stopped:
                    last_ns = frame.end_ns
                case ReplyDucked(soft=True, at_ns=at_ns):
                    soft_ns = at_ns
                case ReplyDucked(soft=False, at_ns=at_ns):
                    trial.ducked_ms = max(trial.ducked_ms, (at_ns - soft_ns) / MILLISECOND_NS)
                case ReplyPaused():
                    trial.paused = True
                case TurnStarted():
                    trial.turn_opened = True
                case ReplyFinished(interrupted=True):
                    trial.stopped = True
                    return

    async with runtime.open(Agent().settings(runtime, config)) as session:
        listener = asyncio.create_task(listen())
        session.say(REPLY)
        await began.wait()
        async for frame in source:
            session.feed(frame)
            if trial.stopped:
                break
        listener.cancel()
    if trial.stopped:
        assert source.start_ns is not None
        speech_ns = source.start_ns + round((BEFORE_S + first / RATE_HZ) * SECOND_NS)
        trial.silence_ms = (last_ns - speech_ns) / MILLISECOND_NS


def summary(trials: list[Trial]) -> dict[str, object]:
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.group].append(trial)
    return {
        group: {
            "trials": len(of),
            "stopped": sum(one.stopped for one in of),
            "stopped_wilson": wilson(sum(one.stopped for one in of), len(of)),
            "paused": sum(one.paused for one in of),
            "turns_opened": sum(one.turn_opened for one in of),
            "ducked_max_ms": max(one.ducked_ms for one in of),
            "silence_p50_ms": percentile([one.silence_ms for one in of if one.silence_ms is not None], 0.5),
            "silence_p95_ms": percentile([one.silence_ms for one in of if one.silence_ms is not None], 0.95),
        }
        for group, of in groups.items()
    }


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    config = load(sets=(*settings_without(arguments.without), *arguments.set)).config
    runtime = await Agent().load(config)
    machine_load = Load()
    try:
        overlays: list[tuple[str, str, Pcm]] = []
        for pitch in PITCHES:
            overlays += [
                ("backchannel", f"{text} x{pitch}", await spoken(runtime, text, pitch)) for text in BACKCHANNELS
            ]
        overlays += [("made noise", name, pcm) for name, pcm in noises(np.random.default_rng(0)).items()]
        overlays += [
            ("command", text, await spoken(runtime, text, pitch)) for text in COMMANDS for pitch in (0.85, 1.2)
        ]
        if arguments.corpus.is_dir():
            kitchen, orders = recorded(arguments.corpus)
            overlays += [("recorded noise", name, pcm) for name, pcm in kitchen.items()]
            overlays += [("recorded order", name, pcm) for name, pcm in orders.items()]
        trials = []
        for group, name, pcm in overlays[:: arguments.every]:
            trial = Trial(group, name)
            await overlay(runtime, config, trial, pcm)
            trials.append(trial)
            print(
                asdict(trial) if arguments.verbose else ".", end="\n" * arguments.verbose, file=sys.stderr, flush=True
            )
    finally:
        runtime.close()
    return {
        "schema": "antiphon.overlaps/1",
        "command": " ".join(sys.argv),
        "machine": fingerprint(),
        "load": machine_load.report(),
        "without": arguments.without,
        "settings": asdict(config.turn),
        "groups": summary(trials),
        "trials": [asdict(trial) for trial in trials],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="leave a mechanism out")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--every", type=int, default=1, help="only each so manyeth overlay")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({"load": result["load"], "groups": result["groups"]}, indent=1))


if __name__ == "__main__":
    main()
