"""`antiphon bench turn-end`: how early detectors know that a turn is over, without playing sound in real time."""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.lab.turn_end_corpus import RecordedTurn
    from antiphon.lab.turn_end_report import Evaluation

DETECTORS = "silence,smart-turn,ours"
BUNDLED = "bundled clips"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the action."""
    from antiphon.cli.config import add_flags

    parser = subparsers.add_parser(
        "turn-end",
        help="how early detectors know that a turn is over, from recordings, at full speed",
        description="Asks detectors of turn ends in every pause of recorded turns. Definitions as in eot-bench; waits "
        "are silence alone, computing is not counted.",
        epilog="docs/lab.md says what the figures mean and what a detector of your own looks like.",
    )
    # SUPPRESS: what was given before the action's name stays.
    parser.add_argument("--corpus", type=Path, metavar="DIR", default=argparse.SUPPRESS, help="with manifest.jsonl")
    parser.add_argument("--kinds", metavar="A,B", default=argparse.SUPPRESS, help="of the corpus; all by default")
    parser.add_argument("--limit", type=int, metavar="N", help="of the turns, chosen by the seed")
    parser.add_argument("--seed", type=int, metavar="S", default=argparse.SUPPRESS, help="of that choice (0)")
    parser.add_argument(
        "--detectors",
        default=DETECTORS,
        metavar="A,B",
        help=f"of silence, smart-turn, ours, ours-live, module:Class ({DETECTORS})",
    )
    parser.add_argument(
        "--agent", type=Path, metavar="FILE", default=argparse.SUPPRESS, help="a Python file with `agent`, for ours"
    )
    parser.add_argument("--step-ms", type=int, default=32, metavar="MS", help="between two questions (32)")
    parser.add_argument("--up-to-ms", type=int, default=1600, metavar="MS", help="of a pause are looked at (1600)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=argparse.SUPPRESS, help="of the results; kept work too"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write and show; 0 is the only outcome.

    Raises:
        CallerError: what was asked for is wrong.
        EngineError: a detector failed.
        MachineError: a model is not here, or the results cannot be written.
    """
    import json

    from antiphon.core.errors import check_range
    from antiphon.lab.turn_end_report import as_json, show, write_evaluation

    check_range("--step-ms", arguments.step_ms, 10, 500)
    check_range("--up-to-ms", arguments.up_to_ms, max(200, arguments.step_ms), 10_000)
    if arguments.limit is not None:
        check_range("--limit", arguments.limit, 1, 1_000_000)
    out = getattr(arguments, "out", None) or Path(f"turn-end-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    evaluation = asyncio.run(_evaluated(arguments, out))
    files = write_evaluation(evaluation, out)
    if arguments.json:
        print(json.dumps(as_json(evaluation), indent=1))
        return 0
    from rich.console import Console

    show(evaluation, Console(highlight=False, width=None if sys.stdout.isatty() else 160))
    print("written: " + ", ".join(map(str, files)))
    return 0


async def _evaluated(arguments: argparse.Namespace, out: Path) -> Evaluation:
    from antiphon.agent import Agent, read_agent
    from antiphon.cli.bench_corpus import Bar
    from antiphon.cli.config import resolve
    from antiphon.core.errors import CallerError
    from antiphon.detectors import opened
    from antiphon.lab.turn_end_corpus import read_turns
    from antiphon.lab.turn_end_judging import judge, name_of, note_of
    from antiphon.lab.turn_end_memory import Memory
    from antiphon.lab.turn_end_report import evaluate

    corpus = getattr(arguments, "corpus", None)
    kinds = _listed(getattr(arguments, "kinds", None) or "")
    turns = read_turns(corpus, kinds=kinds, limit=arguments.limit, seed=getattr(arguments, "seed", 0))
    agent_file = getattr(arguments, "agent", None)
    agent = read_agent(agent_file) if agent_file else Agent()
    step_s, up_to_s = arguments.step_ms / 1000, arguments.up_to_ms / 1000
    memories = [Memory(out / "kept" / f"{name}.json") for name in ("evidence", "scores")]
    evidence, scores = memories
    judged, remarks = {}, notes(turns)
    try:
        async with opened(_listed(arguments.detectors), agent, resolve(arguments).config, evidence) as detectors:
            for detector in detectors:
                name = name_of(detector)
                if name in judged:
                    raise CallerError(f"two detectors are called {name!r}", hint="give one of them another `name`")
                remarks += [note] if (note := note_of(detector)) and note not in remarks else []
                with Bar(name, len(turns)) as step:
                    judged[name] = await judge(
                        turns, detector, step_s=step_s, up_to_s=up_to_s, memory=scores, on_turn=step
                    )
    finally:
        for memory in memories:  # what was computed until an interruption need not be computed again
            memory.save()
    shown = corpus.resolve().name if corpus else BUNDLED
    return evaluate(judged, corpus=shown, step_s=step_s, up_to_s=up_to_s, notes=remarks)


def notes(turns: Sequence[RecordedTurn]) -> list[str]:
    """What is to be known of the recordings."""
    found = []
    voices = sorted({turn.synthetic for turn in turns if turn.synthetic})
    if voices:
        count = sum(bool(turn.synthetic) for turn in turns)
        found.append(
            f"{count} of {len(turns)} turns are synthetic speech ({', '.join(voices)}): its prosody flatters detectors."
        )
    return found


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
