"""Holds a turn on every clip of the corpus, in real time and in process, and measures from the clip's own end.

Voice-to-voice runs from the clip's last speech sample, as annotated, to the first audible sample that the playout
hands out; the microphone is the clock. There is no network and no device in between, so this is the engine's latency,
not a caller's. A turn with sound before its annotated end is a cut-in and has no latency; a turn without a reply
counts as infinite. What would falsify it: parts of a turn that do not add up to its whole.

Caveats: clips of `hesitation` were spliced, the annotation is good to 20 ms, and one conversation runs at a time.

Usage: python bench/corpus_turns.py [--kinds clean,noisy,hesitation] [--limit N] [--no-vocabulary] [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.agent import read_agent
from antiphon.audio.files import FileSource, Playback
from antiphon.config import load
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS, MonotonicClock
from antiphon.lab.machine import Load, fingerprint
from antiphon.mechanisms import settings_without
from antiphon.observe.waterfall import layout
from antiphon.session.events import ReplyFinished, ReplyStarted, StageFailed, TurnConfirmed, TurnMeasured
from slots import slot_is_heard

if TYPE_CHECKING:
    from antiphon.agent import Agent
    from antiphon.config import Config
    from antiphon.core.stamps import TurnTimeline
    from antiphon.runtime import Runtime

ROOT = Path(__file__).parents[1]
PATIENCE_S = 6  # a turn without a reply by then is silent
SETTLE_S = 0.3  # between clips, so that no work of one is paid for by the next


@dataclass(slots=True)
class Turn:
    """One clip, as it went."""

    clip: str
    kind: str
    text: str = ""
    v2v_ms: float | None = None  # None: cut-in or no reply
    cut_in_ms: float | None = None  # how long before the true end
    splits: int = 0  # turns that one utterance was answered in, less one
    slots: int = 0
    slots_heard: int = 0
    speech_end_error_ms: float | None = None  # our own idea of the last speech sample against the annotation
    parts_ms: dict[str, float] = field(default_factory=dict)
    spans_ms: dict[str, list[float]] = field(default_factory=dict)
    failures: int = 0


async def hold(agent: Agent, config: Config, runtime: Runtime, corpus: Path, clip: dict) -> Turn:
    turn = Turn(clip=clip["file"], kind=clip["kind"])
    clock = MonotonicClock()
    source = FileSource.open(corpus / clip["file"], clock=clock, playback=Playback(tail_ms=PATIENCE_S * 1000))
    sounded, texts = asyncio.Event(), []

    def end_ns() -> int:
        assert source.start_ns is not None
        return source.start_ns + round(clip["speech_end_s"] * SECOND_NS)

    async def listen() -> None:
        async for event in session:
            match event:
                case TurnConfirmed(text=text):
                    texts.append(text)
                case ReplyStarted(at_ns=at_ns):
                    late_ms = (at_ns - end_ns()) / MILLISECOND_NS
                    if late_ms < 0:
                        turn.cut_in_ms = turn.cut_in_ms or -late_ms
                    elif not sounded.is_set():
                        turn.v2v_ms = None if turn.cut_in_ms else late_ms
                        sounded.set()
                case TurnMeasured(timeline=timeline) if sounded.is_set():
                    note_parts(turn, timeline, end_ns())
                case ReplyFinished():
                    pass
                case StageFailed():
                    turn.failures += 1

    async with agent.session(runtime, config=config) as session:
        listener = asyncio.create_task(listen())
        async for frame in source:
            session.feed(frame)
            if sounded.is_set() and turn.parts_ms:
                break
        listener.cancel()
    turn.text = " ".join(texts)
    turn.splits = max(0, len(texts) - 1)
    turn.slots = len(clip["slots"])
    turn.slots_heard = sum(slot_is_heard(value, turn.text) for value in clip["slots"].values())
    return turn


def note_parts(turn: Turn, timeline: TurnTimeline, end_ns: int) -> None:
    waterfall = layout(timeline)
    turn.parts_ms = {part.name: part.duration_ns / MILLISECOND_NS for part in waterfall.parts}
    assert sum(part.duration_ns for part in waterfall.parts) == waterfall.total_ns
    spans = defaultdict(list)
    ended_ns = min(timeline.marks.values())
    for span in timeline.spans:
        if span.end_ns > ended_ns:  # what the pause had to share the cores with
            spans[str(span.stage)].append((span.end_ns - span.start_ns) / MILLISECOND_NS)
    turn.spans_ms = dict(spans)
    turn.speech_end_error_ms = (ended_ns - end_ns) / MILLISECOND_NS


def percentile(values: list[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed; None for no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a proportion (Wilson 1927)."""
    if total == 0:
        return 0.0, 1.0
    z, share = 1.959964, count / total
    middle = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def summary(turns: list[Turn]) -> dict[str, object]:
    answered = [turn for turn in turns if turn.cut_in_ms is None]
    latencies = [math.inf if turn.v2v_ms is None else turn.v2v_ms for turn in answered]
    cut_ins = len(turns) - len(answered)
    parts: dict[str, list[float]] = defaultdict(list)
    spans: dict[str, list[float]] = defaultdict(list)
    for turn in turns:
        for name, ms in turn.parts_ms.items():
            parts[name].append(ms)
        for name, values in turn.spans_ms.items():
            spans[name].extend(values)
    shown = lambda values: {  # noqa: E731
        name: {"p50_ms": percentile(each, 0.5), "p95_ms": percentile(each, 0.95), "n": len(each)}
        for name, each in values.items()
    }
    slots = sum(turn.slots for turn in turns)
    return {
        "turns": len(turns),
        "v2v_p50_ms": percentile(latencies, 0.5),
        "v2v_p95_ms": percentile(latencies, 0.95),
        "v2v_max_ms": max(latencies, default=None),
        "cut_ins": cut_ins,
        "cut_ins_wilson": wilson(cut_ins, len(turns)),
        "silent": sum(turn.v2v_ms is None for turn in answered),
        "splits": sum(turn.splits for turn in turns),
        "failures": sum(turn.failures for turn in turns),
        "slots_heard": sum(turn.slots_heard for turn in turns) / slots if slots else None,
        "parts": shown(parts),
        "spans": shown(spans),
    }


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    agent = read_agent(arguments.agent)
    if arguments.no_vocabulary:
        agent = replace(agent, vocabulary=())
    config = load(sets=(*settings_without(arguments.without), *arguments.set)).config
    clips = [json.loads(line) for line in (arguments.corpus / "manifest.jsonl").read_text().splitlines()]
    clips = [clip for clip in clips if clip["kind"] in arguments.kinds.split(",")]
    random.Random(arguments.seed).shuffle(clips)
    clips = clips[: arguments.limit]
    clock = MonotonicClock()
    started_ns = clock.now_ns()
    runtime = await agent.load(config)
    ready_ms = (clock.now_ns() - started_ns) / MILLISECOND_NS
    turns, machine_load = [], Load()
    try:
        for place, clip in enumerate(clips):
            turns.append(await hold(agent, config, runtime, arguments.corpus, clip))
            print(
                f"{place + 1:3}/{len(clips)} {asdict(turns[-1])}" if arguments.verbose else ".",
                end="\n" * arguments.verbose,
                file=sys.stderr,
                flush=True,
            )
            await asyncio.sleep(SETTLE_S)
    finally:
        runtime.close()
    kinds = sorted({turn.kind for turn in turns})
    return {
        "schema": "antiphon.corpus_turns/1",
        "command": " ".join(sys.argv),
        "machine": fingerprint(),
        "load": machine_load.report(),
        "seed": arguments.seed,
        "vocabulary": not arguments.no_vocabulary,
        "without": arguments.without,
        "settings": asdict(config.turn),
        "ready_ms": ready_ms,
        "kinds": {kind: summary([turn for turn in turns if turn.kind == kind]) for kind in kinds},
        "complete": summary([turn for turn in turns if turn.kind in {"clean", "noisy"}]),
        "turns": [asdict(turn) for turn in turns],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--agent", type=Path, default=ROOT / "examples" / "barista.py")
    parser.add_argument("--kinds", default="clean,noisy,hesitation")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-vocabulary", action="store_true")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="leave a mechanism out")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments))
    text = json.dumps(result, indent=1)
    if arguments.out:
        arguments.out.write_text(text + "\n")
    print(file=sys.stderr)
    for kind, values in {**result["kinds"], "complete": result["complete"]}.items():
        print(kind, json.dumps({key: value for key, value in values.items() if key not in {"parts", "spans"}}))
    print(
        json.dumps({"load": result["load"], "parts": result["complete"]["parts"], "spans": result["complete"]["spans"]})
    )


if __name__ == "__main__":
    main()
