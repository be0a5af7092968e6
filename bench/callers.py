"""Holds conversations with a real server over WebSockets, with 1, 2 and 4 callers at once, and measures from outside.

Regime: `antiphon serve examples/barista.py` as a process of its own for each number of callers, real models, loopback;
callers share the machine's cores with it. A caller's microphone sends 20 ms every 20 ms without a break: a clip of the
corpus, then the clip's own room tone. Arrivals are open: a caller's turns are due every PERIOD_S after its first, and
callers begin at even distances. A turn that is due while a reply still sounds begins when it has been silent for
REST_S, as a polite caller's would; the next ones stay due when they were, and how late turns began is told.

Voice-to-voice runs from the clip's true last speech sample, as annotated, when the chunk that holds it was sent, to
when the first audible sample of a reply sounds at a client that plays at once what it gets: found by level, and not
before earlier sound was played. Turns with audible reply before their true end are cut-ins and have no latency, turns
without a reply within PATIENCE_S are silent and count as infinite. Loop lag is the server's own (see LoopWatch),
counted while conversations run. What would falsify a run: the callers' own microphones late (`mic_late_p99_ms`).

A run is valid if steal is at most 2 %, others took at most 0.05 cores, and the microphones' P99 lateness is at
most 5 ms. Takes turns x period + 30 s for each number of callers: 16 minutes as it stands, 2 with
`--callers 4 --turns 4`. A quantile of the lag is the upper edge of its bucket.

Usage: python bench/callers.py [--callers 1,2,4] [--turns N] [--period S] [--set KEY=VALUE] [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from antiphon.audio.encoding import to_int16
from antiphon.audio.files import read, room_tone
from antiphon.audio.resample import resample
from antiphon.core.clock import SECOND_NS, MonotonicClock
from antiphon.lab.machine import Load, fingerprint
from caller import RATE_HZ, Caller, Clip, Turn
from corpus_turns import percentile, wilson
from server_process import Lag, ServerProcess
from whose_code import is_ours

ROOT = Path(__file__).parents[1]
PERIOD_S = 24.0  # a clip of 6 s, a wait and the longest reply, 15 s: with less, callers wait and the load is closed
STALL_MS = 20  # the server is told to log what holds its loop for longer
MOST_MIC_LATE_MS = 5.0
SETTLE_S = 1.0


def read_clips(corpus: Path, kinds: list[str], seed: int) -> list[Clip]:
    """The corpus in an order of chance, brought to the wire's rate once, before anybody calls."""
    lines = [json.loads(line) for line in (corpus / "manifest.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["kind"] in kinds]
    random.Random(seed).shuffle(lines)
    clips = []
    for line in lines:
        pcm, rate_hz = read(corpus / line["file"])
        tone = room_tone(pcm, rate_hz)
        clips.append(
            Clip(
                name=line["file"],
                kind=line["kind"],
                end_s=line["speech_end_s"],
                slots=tuple(line["slots"].values()),
                pcm=to_int16(resample(pcm, rate_hz, RATE_HZ)),
                tone=to_int16(resample(tone, rate_hz, RATE_HZ)),
            )
        )
    return clips


@dataclass(slots=True)
class Stage:
    """One number of callers."""

    callers: int
    seconds: float = 0.0
    load: dict[str, float | bool | None] = field(default_factory=dict)
    rss_mib: float = 0.0  # at the end, everybody still there
    rss_idle_mib: float = 0.0  # before anybody came
    cpu_s: float = 0.0
    loop_ran_s: float = 0.0
    loop_waited_s: float = 0.0  # for a core
    period_s: float = PERIOD_S
    lag: Lag | None = None
    held: list[dict[str, object]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # other warnings and errors of the log
    mic_late_p99_ms: float | None = None
    mic_late_max_ms: float | None = None
    turns: list[Turn] = field(default_factory=list)
    strays: int = 0  # events about something that was not this caller's

    def report(self) -> dict[str, object]:
        """Its figures."""
        turns = self.turns
        minutes = self.seconds / 60
        whole = [turn for turn in turns if turn.cut_in_ms is None]
        latencies = [math.inf if turn.v2v_ms is None else turn.v2v_ms for turn in whole]
        cut_ins = len(turns) - len(whole)
        slots = sum(turn.slots for turn in turns)
        lag = self.lag
        return {
            "callers": self.callers,
            "is_valid": self.is_valid,
            "turns": len(turns),
            "v2v_p50_ms": percentile(latencies, 0.5),
            "v2v_p95_ms": percentile(latencies, 0.95),
            "v2v_max_ms": max(latencies, default=None),
            "cut_ins": cut_ins,
            "cut_ins_wilson": wilson(cut_ins, len(turns)),
            "silent": sum(turn.v2v_ms is None for turn in whole),
            "splits": sum(turn.splits for turn in turns),
            "turns_per_minute": len(turns) / minutes,
            "began_late_p95_ms": percentile([turn.began_late_ms for turn in turns], 0.95),
            "gaps": sum(turn.gaps for turn in turns),
            "gap_max_ms": max((turn.gap_max_ms for turn in turns), default=0.0),
            "slots_heard": sum(turn.slots_heard for turn in turns) / slots if slots else None,
            "cross_talk": {"strays": self.strays, "others_words": sum(turn.is_of_another for turn in turns)},
            "lag": asdict(lag) if lag else None,
            "lag_goal_met": lag is not None and lag.p999_ms is not None and lag.p999_ms <= 20,
            "stalls_told": dict(Counter(str(line["whose"]) for line in self.held)),
            "stalls_untold": sum(int(str(line.get("untold", 0))) for line in self.held),
            "cpu_s_per_conversation_minute": self.cpu_s / (self.callers * minutes),
            "loop_ran_share": self.loop_ran_s / self.seconds,
            "loop_waited_share": self.loop_waited_s / self.seconds,
            "rss_idle_mib": self.rss_idle_mib,
            "rss_mib": self.rss_mib,
            "mib_per_caller": (self.rss_mib - self.rss_idle_mib) / self.callers,
            "mic_late_p99_ms": self.mic_late_p99_ms,
            "mic_late_max_ms": self.mic_late_max_ms,
            "failures": self.failures,
        }

    @property
    def is_valid(self) -> bool | None:
        """Whether it was measured on a quiet machine by callers that kept time; None: the machine does not tell."""
        quiet = self.load.get("is_valid")
        if quiet is None or self.mic_late_p99_ms is None:
            return None
        return bool(quiet) and self.mic_late_p99_ms <= MOST_MIC_LATE_MS


async def hold(stage: Stage, clips: list[Clip], arguments: argparse.Namespace) -> None:
    """Hold the conversations of one stage."""
    load = Load()
    sets = [f"serve.stall_ms={STALL_MS}", f"capacity.conversations={max(4, stage.callers)}", *arguments.set]
    flags = [str(arguments.agent), *(word for one in sets for word in ("--set", one))]
    clock = MonotonicClock()
    async with ServerProcess(flags) as server:
        await asyncio.sleep(SETTLE_S)
        stage.rss_idle_mib = server.facts().rss_mib
        callers = [
            Caller(number, clips[number :: stage.callers][: arguments.turns], clock=clock, period_s=stage.period_s)
            for number in range(stage.callers)
        ]
        for caller in callers:
            caller.others = [other for other in callers if other is not caller]
        async with asyncio.timeout(60):
            for caller in callers:
                await caller.connect(server.url)
        await asyncio.sleep(SETTLE_S)
        before, place, was = await server.metrics(), server.log_place(), server.facts()
        started_ns = clock.now_ns()
        async with asyncio.TaskGroup() as tasks:
            for caller in callers:
                first_ns = started_ns + round(caller.number / stage.callers * stage.period_s * SECOND_NS)
                tasks.create_task(caller.speak_all(first_ns, lambda turn: tell(stage, turn)))
        stage.seconds = (clock.now_ns() - started_ns) / SECOND_NS
        now = server.facts()
        stage.rss_mib, stage.cpu_s = now.rss_mib, now.cpu_s - was.cpu_s
        stage.loop_ran_s, stage.loop_waited_s = now.loop_ran_s - was.loop_ran_s, now.loop_waited_s - was.loop_waited_s
        stage.lag = Lag.between(before, await server.metrics())
        for caller in callers:
            await caller.leave()
        for line in server.log_lines(place):
            note_line(stage, line)
    stage.load = load.report()  # the server has been waited for: its time is ours
    late = [ms for caller in callers for ms in caller.mic_late_ms]
    stage.mic_late_p99_ms, stage.mic_late_max_ms = percentile(late, 0.99), max(late, default=None)
    stage.turns = [turn for caller in callers for turn in caller.turns]
    stage.strays = sum(caller.strays for caller in callers)


def note_line(stage: Stage, line: dict[str, object]) -> None:
    """Sort one log line of the server's."""
    if str(line.get("event", "")).startswith("loop."):
        at = str(line.get("at", ""))
        whose = "nobody" if not at else "unseen" if at == "unseen" else "ours" if is_ours(at) else "others"
        stage.held.append({**line, "whose": whose})
    elif line.get("level") in {"warning", "error"} or line.get("event") == "unreadable":
        stage.failures.append(json.dumps(line))


def tell(stage: Stage, turn: Turn) -> None:
    """A line of progress."""
    v2v = "cut in" if turn.cut_in_ms else "silent" if turn.v2v_ms is None else f"{turn.v2v_ms:.0f} ms"
    print(f"{stage.callers} callers, {turn.caller}: {turn.clip} {v2v}", file=sys.stderr, flush=True)


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    clips = read_clips(arguments.corpus, arguments.kinds.split(","), arguments.seed)
    stages = []
    for count in (int(word) for word in arguments.callers.split(",")):
        stage = Stage(count, period_s=arguments.period)
        rounds = -(-count * arguments.turns // len(clips))
        await hold(stage, clips * rounds, arguments)
        stages.append(stage)
        print(json.dumps(stage.report(), indent=1), flush=True)
    return {
        "schema": "antiphon.callers/1",
        "command": " ".join(sys.argv),
        "machine": fingerprint(),
        "is_valid": all(stage.is_valid for stage in stages),
        "period_s": arguments.period,
        "seed": arguments.seed,
        "set": arguments.set,
        "mib_per_further_caller": further(stages),
        "stages": [
            {**stage.report(), "load": stage.load, "held": stage.held, "each": [asdict(turn) for turn in stage.turns]}
            for stage in stages
        ],
    }


def further(stages: list[Stage]) -> float | None:
    """What a caller adds once the first is there: the first also fills what all share."""
    first, last = stages[0], stages[-1]
    if first.callers == last.callers:
        return None
    grown = (last.rss_mib - last.rss_idle_mib) - (first.rss_mib - first.rss_idle_mib)
    return grown / (last.callers - first.callers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--agent", type=Path, default=ROOT / "examples" / "barista.py")
    parser.add_argument("--callers", default="1,2,4", help="how many at once, a comma list")
    parser.add_argument("--turns", type=int, default=12, help="of each caller")
    parser.add_argument("--period", type=float, default=PERIOD_S, help="s from one turn's beginning to the next")
    parser.add_argument("--kinds", default="clean,noisy,hesitation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "callers.json")
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments))
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key != "stages"}, indent=1))


if __name__ == "__main__":
    main()
