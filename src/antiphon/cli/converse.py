"""`antiphon converse FILE ...`: hold a conversation with recorded caller turns."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.cli.config import add_flags, resolve
from antiphon.core.clock import MILLISECOND_NS, MonotonicClock

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rich.console import Console

    from antiphon.agent import Agent
    from antiphon.cli.rehearsal import Rehearsal
    from antiphon.config import Config

SCHEMA = "antiphon.conversation/1"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the line."""
    parser = subparsers.add_parser(
        "converse",
        help="hold a conversation with recorded caller turns",
        description="Plays each FILE in real time as a caller's turn, answers it, and shows where the time went.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="any audio file that libsndfile reads")
    parser.add_argument("--agent", type=Path, metavar="AGENT.PY", help="a Python file that defines `agent`")
    add_output_flags(parser)
    add_flags(parser)
    parser.set_defaults(run=run)


def add_output_flags(parser: argparse.ArgumentParser, *, out: str | None = None, timeline: str | None = None) -> None:
    """Where results go; without a default, a result that is not asked for is not written."""
    default = " (default: %(default)s)"
    parser.add_argument(
        "--out",
        type=Path,
        default=out and Path(out),
        metavar="WAV",
        help="the conversation in stereo: caller left, reply right" + (default if out else ""),
    )
    parser.add_argument(
        "--timeline",
        type=Path,
        default=timeline and Path(timeline),
        metavar="PNG",
        help="where each turn's time went, as a picture" + (default if timeline else ""),
    )
    parser.add_argument("--json", type=Path, metavar="JSON", help="everything that was measured")


def run(arguments: argparse.Namespace) -> int:
    """Hold the conversation; 1 if nothing was heard, or the last turn stayed without an answer."""
    from antiphon.agent import Agent, read_agent

    agent = read_agent(arguments.agent) if arguments.agent else Agent()
    outputs = Outputs(wav=arguments.out, picture=arguments.timeline, json=arguments.json)
    return hold(agent, resolve(arguments).config, arguments.files, outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The files to write; None: not asked for."""

    wav: Path | None = None
    picture: Path | None = None
    json: Path | None = None


def hold(agent: Agent, config: Config, files: Sequence[Path], outputs: Outputs) -> int:
    """Load the models, hold the conversation, tell about it and write what was asked for."""
    from rich.console import Console

    console = Console(highlight=False)
    return asyncio.run(_hold(agent, config, files, outputs, console))


async def _hold(agent: Agent, config: Config, files: Sequence[Path], outputs: Outputs, console: Console) -> int:
    from antiphon.audio.files import read
    from antiphon.cli.narrator import Narrator
    from antiphon.cli.rehearsal import Rehearsal

    for file in files:
        read(file)  # a file that cannot be read is told before models are loaded
    config = agent.configured(config)
    clock = MonotonicClock()
    started_ns = clock.now_ns()
    runtime = await agent.load(config)
    try:
        ready_ms = (clock.now_ns() - started_ns) / MILLISECOND_NS
        console.print(f"Models loaded and warm after {ready_ms / 1000:.1f} s", style="dim")
        narrator = Narrator(console)
        rehearsal = Rehearsal(narrator.tell)
        async with agent.session(runtime, config=config) as session:
            await rehearsal.play(session, files)
        narrator.conclude()
    finally:
        runtime.close()
    write(rehearsal, outputs, ready_ms, console)
    if not rehearsal.turns:
        console.print("No speech was heard.", style="yellow")
    return 0 if rehearsal.turns and rehearsal.turns[-1].reply else 1  # a turn that went on was answered with the next


def write(rehearsal: Rehearsal, outputs: Outputs, ready_ms: float, console: Console) -> None:
    """Write the files that were asked for, and name them."""
    if outputs.wav:
        rehearsal.recording.save(outputs.wav)
        console.print(f"\n{outputs.wav}  the conversation: caller left, Antiphon right")
    timelines = [turn.timeline for turn in rehearsal.turns if turn.timeline]
    if outputs.picture and timelines:
        from antiphon.cli.picture import draw_turns

        draw_turns(rehearsal, outputs.picture)
        console.print(f"{outputs.picture}  where the time went")
    if outputs.json:
        outputs.json.write_text(json.dumps(_record(rehearsal, ready_ms), indent=2) + "\n", encoding="utf-8")
        console.print(f"{outputs.json}  all of it in figures")


def _record(rehearsal: Rehearsal, ready_ms: float) -> dict[str, Any]:
    from antiphon.observe.describe import describe

    return {
        "schema": SCHEMA,
        "ready_ms": ready_ms,
        "turns": [
            {
                "turn": turn.turn,
                "text": turn.text,
                "reply": turn.reply,
                "silence_ms": turn.silence_ns / MILLISECOND_NS,
                "posterior": turn.posterior,
                "end_mass": turn.end_mass,
                "prosody": turn.prosody,
                "timeline": describe(turn.timeline) if turn.timeline else None,
            }
            for turn in rehearsal.turns
        ],
        "failures": [{"stage": str(failure.stage), "error": failure.error.message} for failure in rehearsal.failures],
    }
