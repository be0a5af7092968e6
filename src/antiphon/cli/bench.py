"""`antiphon bench`: measure a server's voice-to-voice latency and cut-ins from outside; judge and compare results."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rich.console import Console

    from antiphon.lab.plan import BenchPlan, SessionWishes
    from antiphon.lab.requirements import Requirement
    from antiphon.lab.result import Run, Turn
    from antiphon.lab.schedule import Habits

ADMITTING = "--set capacity.conversations=N lets more callers in than the server would by itself"
REQUIRED = "P95 in ms, cut-ins and turns without a reply as counts or per cent: p95=320,cut_ins=2,silent=0"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the line."""
    parser = subparsers.add_parser(
        "bench",
        help="measure voice-to-voice latency and cut-ins of any OpenAI-Realtime server",
        description="Says recorded speech to a server in real time and measures from outside when the reply is heard. "
        "Without --url it starts a server of its own.",
        epilog="docs/lab.md says what is measured, and what a corpus is.",
    )
    _add_what(parser)
    _add_own_server(parser)
    _add_wishes(parser)
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(metavar="ACTION", title="what to do with results")
    comparing = actions.add_parser("compare", help="what one result is worth against another")
    comparing.add_argument("a", type=Path, metavar="A.json", help="a result.json, or its folder")
    comparing.add_argument("b", type=Path, metavar="B.json", help="the one that it is compared with")
    comparing.add_argument("--json", action="store_true", help="print JSON")
    comparing.set_defaults(run=run_compare)
    reporting = actions.add_parser("report", help="make a result's report again, or of several results together")
    reporting.add_argument("results", type=Path, nargs="+", metavar="RESULT.json", help="a result.json, or its folder")
    reporting.add_argument(
        "--out", dest="report_out", type=Path, metavar="DIR", help="where to; the first one's folder"
    )
    reporting.add_argument("--require", dest="report_require", metavar="LIST", help=REQUIRED)
    reporting.set_defaults(run=run_report)


def _add_what(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", metavar="ws://...", help="the server's Realtime address; without it: our own server")
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument("--key", help="its key; others on this machine can see it in the list of processes")
    keys.add_argument("--key-file", type=Path, metavar="FILE", help="a file that holds it")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="recorded speech with manifest.jsonl")
    parser.add_argument("--kinds", default="", metavar="A,B", help="of the corpus, for instance clean,noisy")
    parser.add_argument("--callers", type=int, default=1, metavar="N", help="at once (1)")
    parser.add_argument("--turns", type=int, metavar="N", help="in all; without it each clip once")
    parser.add_argument("--scenario", default="single", metavar="NAME", help="single, multi-turn, barge-in, ramp, ...")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the order of clips and callers (0)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="of result.json and the report; a new one by date")
    parser.add_argument("--name", default="", help="of the server, in the report")
    parser.add_argument("--patience-s", type=float, default=10.0, metavar="S", help="until a turn is silent (10)")
    parser.add_argument("--warm-up", type=int, default=0, metavar="N", help="turns before, which do not count (0)")
    parser.add_argument("--period-s", type=float, metavar="S", help="between a caller's turns: an open loop")
    parser.add_argument("--ramp-limit", type=int, default=64, metavar="N", help="most callers of the ramp (64)")
    parser.add_argument("--soak-minutes", type=float, default=30.0, metavar="M", help="of the soak (30)")
    parser.add_argument("--delay-ms", type=float, default=0.0, metavar="MS", help="of a network to play, one way")
    parser.add_argument("--jitter-ms", type=float, default=0.0, metavar="MS", help="at most, on top of the delay")
    parser.add_argument("--loss", type=float, default=0.0, metavar="SHARE", help="of its messages, sent again later")
    parser.add_argument("--require", metavar="LIST", help=f"end with code 1 unless it is met: {REQUIRED}")


def _add_wishes(parser: argparse.ArgumentParser) -> None:
    wishes = parser.add_argument_group("what callers ask the server for")
    ends = wishes.add_mutually_exclusive_group()
    ends.add_argument("--eagerness", choices=("low", "medium", "high", "auto"), help="semantic_vad")
    ends.add_argument("--silence-ms", type=int, metavar="N", help="server_vad with so much silence")
    ends.add_argument("--by-hand", action="store_true", help="no turn detection: the caller commits")
    wishes.add_argument("--vocabulary", default="", metavar="WORDS", help="that will be said")
    wishes.add_argument("--instructions", metavar="TEXT")
    wishes.add_argument("--voice", metavar="NAME")
    wishes.add_argument("--format", default="audio/pcm", metavar="TYPE", help="audio/pcm, audio/pcmu or audio/pcma")
    wishes.add_argument("--no-stamps", action="store_true", help="do not ask for the server's own stamps")


def _add_own_server(parser: argparse.ArgumentParser) -> None:
    from antiphon.cli.config import add_flags

    parser.add_argument("--agent", type=Path, metavar="FILE", help="without --url: a Python file with `agent`")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, write result.json and the report, and judge: 1 if a requirement is not met.

    Raises:
        CallerError: what was asked for is wrong.
        PeerError: the server cannot be reached.
        MachineError: the results cannot be written.
    """
    from antiphon.lab.report import write_report
    from antiphon.lab.result import Outcome
    from antiphon.lab.store import write_run

    required = _required(arguments.require)
    plan = plan_of(arguments)
    assert plan.out is not None
    measured = _measured(plan, _habits(arguments), plan.out)
    file = write_run(measured, plan.out)
    page, *_ = write_report(measured, plan.out)
    code = _ending(measured, required, (file, page))
    if plan.url is None and any(turn.outcome is Outcome.REFUSED for turn in measured.turns):
        print(f"hint: {ADMITTING}")
    return code


def plan_of(arguments: argparse.Namespace) -> BenchPlan:
    """The plan that the flags make.

    Raises:
        CallerError: a flag is out of range or does not go with another.
    """
    from antiphon.lab.plan import BenchPlan, Line

    return BenchPlan(
        url=arguments.url,
        key=_key(arguments),
        own_server=_server_arguments(arguments),
        name=arguments.name,
        corpus=arguments.corpus,
        kinds=tuple(kind.strip() for kind in arguments.kinds.split(",") if kind.strip()),
        callers=arguments.callers,
        turns=arguments.turns,
        scenario=arguments.scenario,
        seed=arguments.seed,
        patience_s=arguments.patience_s,
        wishes=_wishes(arguments),
        line=Line(delay_ms=arguments.delay_ms, jitter_ms=arguments.jitter_ms, loss=arguments.loss),
        ramp_limit=arguments.ramp_limit,
        soak_minutes=arguments.soak_minutes,
        wants_stamps=not arguments.no_stamps,
        out=arguments.out or Path(f"bench-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"),
    )


def _key(arguments: argparse.Namespace) -> str | None:
    from antiphon.core.errors import CallerError

    if arguments.key_file is None:
        return arguments.key or None
    try:
        return str(arguments.key_file.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"{arguments.key_file} cannot be read", hint="name a text file that holds the key") from error


def _wishes(arguments: argparse.Namespace) -> SessionWishes:
    from antiphon.lab.plan import Eagerness, SessionWishes, TurnDetection

    detection = TurnDetection.DEFAULT
    if arguments.eagerness:
        detection = TurnDetection.SEMANTIC
    elif arguments.silence_ms is not None:
        detection = TurnDetection.SERVER
    elif arguments.by_hand:
        detection = TurnDetection.BY_HAND
    return SessionWishes(
        turn_detection=detection,
        eagerness=Eagerness(arguments.eagerness) if arguments.eagerness else None,
        silence_ms=arguments.silence_ms,
        vocabulary=arguments.vocabulary,
        instructions=arguments.instructions,
        voice=arguments.voice,
        format=arguments.format,
    )


def _server_arguments(arguments: argparse.Namespace) -> tuple[str, ...]:
    """What our own server is started with; what is wrong with it is said before it is started."""
    from antiphon.cli.config import resolve

    sets = list(getattr(arguments, "config_sets", ()))
    without = list(getattr(arguments, "config_without", ()))
    file = getattr(arguments, "config_file", None)
    given = [word for item in sets for word in ("--set", item)]
    given += [word for item in without for word in ("--without", item)]
    given += ["--config", str(file)] if file else []
    given += ["--agent", str(arguments.agent)] if arguments.agent else []
    if arguments.url is None:
        resolve(arguments)
    return tuple(given)


def _habits(arguments: argparse.Namespace) -> Habits:
    from antiphon.lab.schedule import Habits

    return Habits(warm_up=arguments.warm_up, period_s=arguments.period_s)


def _measured(plan: BenchPlan, habits: Habits, out: Path) -> Run:
    """The run; if Ctrl-C ends it, what was measured until then is written first."""
    import asyncio

    from antiphon.lab.measure import measure
    from antiphon.lab.store import write_run
    from antiphon.lab.terminal import Bar

    turns: list[Turn] = []
    with Bar(turns_of(plan)) as bar:

        async def take(turn: Turn) -> None:
            turns.append(turn)
            await bar.take(turn)

        try:
            return asyncio.run(measure(plan, on_turn=take, habits=habits))
        except KeyboardInterrupt:
            if turns:
                write_run(cut_short(plan, turns), out)
            raise


def cut_short(plan: BenchPlan, turns: Sequence[Turn]) -> Run:
    """What is left of a run that was interrupted; nobody knows the load under which it stood."""
    from antiphon.lab.result import Run

    note = "interrupted: these are the turns until then, and the load was not taken down"
    return Run(
        name=plan.shown_name, scenario=plan.scenario, settings=plan.settings(), turns=tuple(turns), notes=(note,)
    )


def turns_of(plan: BenchPlan) -> int | None:
    """How many turns there will be; None where only time tells.

    Raises:
        CallerError: the corpus cannot be read.
    """
    from antiphon.lab.clips import choose, read_corpus

    if plan.scenario in ("ramp", "soak"):
        return None
    return plan.turns or len(choose(read_corpus(plan.corpus), kinds=plan.kinds, seed=plan.seed))


def run_compare(arguments: argparse.Namespace) -> int:
    """Compare two results; 0 whatever comes out.

    Raises:
        CallerError: a file is no result.
    """
    import json

    from antiphon.lab.compare import as_json, compare
    from antiphon.lab.store import read_run
    from antiphon.lab.terminal import show_comparison

    report = compare(read_run(arguments.a), read_run(arguments.b))
    if arguments.json:
        print(json.dumps(as_json(report), indent=2))
    else:
        show_comparison(report, _console())
    return 0


def run_report(arguments: argparse.Namespace) -> int:
    """Make a report again; 1 if a requirement is not met.

    Raises:
        CallerError: a file is no result.
        MachineError: the report cannot be written.
    """
    from antiphon.lab.report import write_report
    from antiphon.lab.store import read_run

    required = _required(arguments.report_require)
    first, *others = [read_run(path) for path in arguments.results]
    path = arguments.results[0]
    folder = arguments.report_out or (path if path.is_dir() else path.parent)
    page, *_ = write_report(first, folder, others=others)
    return _ending(first, required, (page,))


def _required(text: str | None) -> tuple[Requirement, ...]:
    from antiphon.lab.requirements import parse

    return parse(text) if text is not None else ()


def _ending(run: Run, required: tuple[Requirement, ...], files: Sequence[Path]) -> int:
    """Show the figures and where they are, and judge them."""
    from antiphon.lab.requirements import judge
    from antiphon.lab.terminal import show_findings, show_run
    from antiphon.lab.validity import is_void

    console = _console()
    show_run(run, console)
    for file in files:
        console.print(str(file), markup=False, soft_wrap=True)
    findings = judge(run, required)
    show_findings(findings, is_void=bool(findings) and is_void(run), console=console)
    return 0 if all(finding.is_met for finding in findings) else 1


def _console() -> Console:
    """Standard output, as wide as it needs to be where it is no terminal."""
    import sys

    from rich.console import Console

    from antiphon.cli.config import UNBOUND

    return Console(highlight=False, width=None if sys.stdout.isatty() else UNBOUND)
