"""`antiphon converse FILE ...`: hold a conversation with recorded caller turns."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon import __version__
from antiphon.cli.config import add_flags, resolve
from antiphon.cli.device import add_device, on_device
from antiphon.core.clock import MILLISECOND_NS, MonotonicClock

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rich.console import Console

    from antiphon.agent import Agent
    from antiphon.cli.rehearsal import BargeIn, Rehearsal, ReplyResult
    from antiphon.config import Config
    from antiphon.dialogue.log import StimulusLog
    from antiphon.session.events import ToolUsed

SCHEMA = "antiphon.conversation/1"
LONGEST_BARGE_IN_S = 60.0  # a file's microphone stays open for as long


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the line."""
    parser = subparsers.add_parser(
        "converse",
        help="hold a conversation with recorded caller turns",
        description="Plays each FILE in real time as a caller's turn, answers it, and shows where the time went.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="any audio file that libsndfile reads")
    parser.add_argument("--agent", type=Path, metavar="AGENT.PY", help="a Python file that defines `agent`")
    parser.add_argument(
        "--barge-in-at",
        default="",
        metavar="S[,S...]",
        help="talk over the reply: the next file begins S seconds after the reply to the one before began to sound; "
        "a comma list has one for each next file, empty where it waits for the reply's end, as in 1.2,,0.8",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        help="write what happened and what was decided into a file in DIR, for `antiphon replay`; it holds what was "
        "said, as text",
    )
    add_output_flags(parser)
    add_device(parser)
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

    barge_in_s = barge_ins(arguments.barge_in_at, len(arguments.files) - 1)
    agent = read_agent(arguments.agent) if arguments.agent else Agent()
    outputs = Outputs(wav=arguments.out, picture=arguments.timeline, json=arguments.json, log_folder=arguments.record)
    return hold(agent, on_device(resolve(arguments).config, arguments), arguments.files, outputs, barge_in_s)


def barge_ins(text: str, gaps: int) -> list[float | None]:
    """For each of `gaps` next files how many seconds into the reply it begins; None: after it.

    Raises:
        CallerError: an item is no such number, or there are more items than next files.
    """
    from antiphon.core.errors import CallerError, check_range

    seconds: list[float | None] = []
    for item in (item.strip() for item in text.split(",")):
        try:
            seconds.append(float(item) if item else None)
        except ValueError:
            hint = "seconds, separated by commas, empty where the next file waits: 1.2,,0.8"
            raise CallerError(f"--barge-in-at {text} is no list of seconds", hint=hint) from None
        if item:
            check_range("--barge-in-at", float(item), 0.0, LONGEST_BARGE_IN_S)
    if len(seconds) > max(gaps, 1) or (text.strip() and not gaps):
        raise CallerError(
            f"--barge-in-at {text} is for {len(seconds)} files, but {gaps} have one before them",
            hint="one number for all of them, or at most one for each file after the first",
        )
    return seconds * max(gaps, 1) if len(seconds) == 1 else seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The files to write; None: not asked for."""

    wav: Path | None = None
    picture: Path | None = None
    json: Path | None = None
    log_folder: Path | None = None


def hold(
    agent: Agent,
    config: Config,
    files: Sequence[Path],
    outputs: Outputs,
    barge_in_s: Sequence[float | None] = (),
) -> int:
    """Load the models, hold the conversation, tell about it and write what was asked for."""
    from rich.console import Console

    from antiphon.audio.files import read
    from antiphon.dialogue.log import StimulusLog

    console = Console(highlight=False)
    for file in files:
        read(file)  # a file that cannot be read is told before models are loaded
    with ExitStack() as stack:
        log = None
        if outputs.log_folder:  # nor does a folder that cannot be written to take a model's loading
            warn = partial(console.print, style="yellow")
            log = StimulusLog.create(outputs.log_folder, settings=config.record, warn=warn)
            stack.enter_context(log)
        script = _Script(agent=agent, config=config, files=files, barge_in_s=barge_in_s, log=log)
        return asyncio.run(_hold(script, outputs, console))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """A conversation to hold."""

    agent: Agent
    config: Config
    files: Sequence[Path]
    barge_in_s: Sequence[float | None]
    log: StimulusLog | None


async def _hold(script: _Script, outputs: Outputs, console: Console) -> int:
    from antiphon.cli.narrator import Narrator
    from antiphon.cli.rehearsal import Rehearsal

    agent, log = script.agent, script.log
    config = agent.configured(script.config)
    clock = MonotonicClock()
    started_ns = clock.now_ns()
    runtime = await agent.load(config)
    try:
        ready_ms = (clock.now_ns() - started_ns) / MILLISECOND_NS
        console.print(f"Models loaded and warm after {ready_ms / 1000:.1f} s", style="dim")
        narrator = Narrator(console)
        rehearsal = Rehearsal(narrator.tell)
        settings = agent.settings(runtime, config)
        session = runtime.open(settings, watch=log.watch if log else None)
        if log:
            log.begin(session.dialogue, version=__version__)
        async with session:
            greeted = bool(settings.greeting.strip())
            await rehearsal.play(session, script.files, script.barge_in_s, greeted=greeted)
        narrator.conclude()
    finally:
        runtime.close()
    write(rehearsal, outputs, ready_ms, console)
    if log:
        missing = f"; {log.lost} steps are missing" if log.lost else ""
        console.print(f"{log.path}  what was decided and why, for `antiphon replay`{missing}", soft_wrap=True)
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
        "replies": [_reply(rehearsal, reply) for reply in rehearsal.replies],
        "barge_ins": [_barge_in(rehearsal, barge_in) for barge_in in rehearsal.barge_ins],
        "tools": [_tool(rehearsal, tool) for tool in rehearsal.tools],
        "failures": [{"stage": str(failure.stage), "error": failure.error.message} for failure in rehearsal.failures],
    }


def _reply(rehearsal: Rehearsal, reply: ReplyResult) -> dict[str, Any]:
    """A reply that sounded; times in ms since the first frame."""
    return {
        "turn": reply.turn,
        "reply": reply.reply,
        "start_ms": _since_start_ms(rehearsal, reply.began_ns),
        "end_ms": _since_start_ms(rehearsal, reply.silent_since_ns),
        "heard": reply.heard,
        "interrupted": reply.interrupted,
        "retracted": reply.retracted,
        "softer_ms": _spans_ms(rehearsal, reply.soft_ns),
        "held_ms": _spans_ms(rehearsal, reply.held_ns),
    }


def _barge_in(rehearsal: Rehearsal, barge_in: BargeIn) -> dict[str, Any]:
    """A file that talked over a reply; times from its first speech sample, null where the reply did not yield."""
    over = next(reply for reply in rehearsal.replies if reply.reply == barge_in.reply)
    softer = [start for start, _ in over.soft_ns if start >= barge_in.speech_ns]
    yielded = over.interrupted and over.ended_ns is not None
    return {
        "file": barge_in.file,
        "reply": barge_in.reply,
        "interrupted": over.interrupted,
        "softer_after_ms": (softer[0] - barge_in.speech_ns) / MILLISECOND_NS if softer else None,
        "stop_ms": (over.silent_since_ns - barge_in.speech_ns) / MILLISECOND_NS if yielded else None,
        "decided_ms": (over.ended_ns - barge_in.speech_ns) / MILLISECOND_NS if yielded and over.ended_ns else None,
    }


def _tool(rehearsal: Rehearsal, tool: ToolUsed) -> dict[str, Any]:
    return {
        "turn": tool.turn,
        "reply": tool.reply,
        "name": tool.name,
        "arguments": tool.arguments,
        "output": tool.output,
        "failed": tool.failed,
        "start_ms": _since_start_ms(rehearsal, tool.started_ns),
        "duration_ms": (tool.at_ns - tool.started_ns) / MILLISECOND_NS,
    }


def _since_start_ms(rehearsal: Rehearsal, at_ns: int) -> float:
    return (at_ns - (rehearsal.first_frame_ns or 0)) / MILLISECOND_NS


def _spans_ms(rehearsal: Rehearsal, spans: Sequence[tuple[int, int | None]]) -> list[list[float | None]]:
    return [
        [_since_start_ms(rehearsal, start), None if end is None else _since_start_ms(rehearsal, end)]
        for start, end in spans
    ]
