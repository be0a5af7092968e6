"""The flags of `antiphon bench` and its actions -> plans and habits of the lab."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from antiphon.lab.plan import BenchPlan, Eagerness, SessionWishes, TurnDetection
    from antiphon.lab.requirements import Requirement
    from antiphon.lab.schedule import Habits

REQUIRED = "P95 in ms, cut-ins and turns without a reply as counts or per cent: p95=320,cut_ins=2,silent=0"
LOGS = "logs"  # the folder of the recorded conversations, inside the result's


def add_address(parser: argparse.ArgumentParser) -> None:
    """Which server."""
    parser.add_argument("--url", metavar="ws://...", help="the server's Realtime address; without it: our own server")
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument("--key", help="its key; others on this machine can see it in the list of processes")
    keys.add_argument("--key-file", type=Path, metavar="FILE", help="a file that holds it")
    parser.add_argument("--name", default="", help="of the server, in the report")


def add_clips(parser: argparse.ArgumentParser) -> None:
    """What is said, and where the results go."""
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="recorded speech with manifest.jsonl")
    parser.add_argument("--kinds", default="", metavar="A,B", help="of the corpus, for instance clean,noisy")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the order of clips and callers (0)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="of result.json and the report; a new one by date")
    parser.add_argument("--patience-s", type=float, default=10.0, metavar="S", help="until a turn is silent (10)")
    parser.add_argument("--listens-s", type=float, metavar="S", help="to a line's last reply, then hang up; to its end")
    parser.add_argument(
        "--ruler-turns", type=int, default=20, metavar="N", help="of the ruler's own test; 0: none (20)"
    )
    parser.add_argument("--no-stamps", action="store_true", help="do not ask for the server's own stamps")


def add_scenario(parser: argparse.ArgumentParser) -> None:
    """Who says it how often, over which line."""
    parser.add_argument("--turns", type=int, metavar="N", help="in all; without it each clip once")
    parser.add_argument("--callers", type=int, default=1, metavar="N", help="at once (1)")
    parser.add_argument("--scenario", default="single", metavar="NAME", help="single, multi-turn, barge-in, ramp, ...")
    parser.add_argument("--warm-up", type=int, default=0, metavar="N", help="turns before, which do not count (0)")
    parser.add_argument("--period-s", type=float, metavar="S", help="between a caller's turns: an open loop")
    parser.add_argument("--turns-per-line", type=int, default=4, metavar="N", help="of multi-turn (4)")
    parser.add_argument(
        "--barge-in-ms", type=float, default=1500.0, metavar="MS", help="of the reply are heard before that (1500)"
    )
    parser.add_argument("--ramp-limit", type=int, default=64, metavar="N", help="most callers of the ramp (64)")
    parser.add_argument("--soak-minutes", type=float, default=30.0, metavar="M", help="of the soak (30)")
    parser.add_argument("--delay-ms", type=float, default=0.0, metavar="MS", help="of a network to play, one way")
    parser.add_argument("--jitter-ms", type=float, default=0.0, metavar="MS", help="at most, on top of the delay")
    parser.add_argument("--loss", type=float, default=0.0, metavar="SHARE", help="of its messages, sent again later")


def add_wishes(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """What callers ask for; `several`: values of what ends turns, separated by commas."""
    wishes = parser.add_argument_group("what callers ask the server for")
    ends = wishes.add_mutually_exclusive_group(required=several)
    if several:
        ends.add_argument("--eagerness", metavar="LIST", help="of semantic_vad, for instance low,medium,high")
        ends.add_argument("--silence-ms", metavar="LIST", help="of server_vad, for instance 200,300,500")
    else:
        ends.add_argument("--eagerness", choices=("low", "medium", "high", "auto"), help="semantic_vad")
        ends.add_argument("--silence-ms", type=int, metavar="N", help="server_vad with so much silence")
        ends.add_argument("--by-hand", action="store_true", help="no turn detection: the caller commits")
    wishes.add_argument("--vocabulary", default="", metavar="WORDS", help="that will be said")
    wishes.add_argument("--instructions", metavar="TEXT")
    wishes.add_argument("--voice", metavar="NAME")
    wishes.add_argument("--format", default="audio/pcm", metavar="TYPE", help="audio/pcm, audio/pcmu or audio/pcma")


def add_own_server(parser: argparse.ArgumentParser) -> None:
    """How our own server is configured."""
    from antiphon.cli.config import add_flags

    parser.add_argument("--agent", type=Path, metavar="FILE", help="without --url: a Python file with `agent`")
    add_flags(parser)


def out_of(arguments: argparse.Namespace) -> Path:
    """Where the results go."""
    return arguments.out or Path(f"bench-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")


def plan_of(arguments: argparse.Namespace, *, wishes: SessionWishes | None = None) -> BenchPlan:
    """The plan that the flags make; `wishes` in place of those that they make.

    Raises:
        CallerError: a flag is out of range or does not go with another.
    """
    from antiphon.core.errors import CallerError
    from antiphon.lab.plan import BenchPlan, Line

    out = out_of(arguments)
    own_server = server_arguments(arguments)
    if getattr(arguments, "record", False):
        if arguments.url is not None:
            raise CallerError("--record is for a server of our own", hint="leave it out, or --url")
        own_server = (*own_server, "--record", str(out / LOGS))
    return BenchPlan(
        url=arguments.url,
        key=_key(arguments),
        own_server=own_server,
        name=arguments.name,
        corpus=arguments.corpus,
        kinds=kinds_of(arguments),
        callers=arguments.callers,
        turns=arguments.turns,
        scenario=arguments.scenario,
        seed=arguments.seed,
        patience_s=arguments.patience_s,
        wishes=wishes or _wishes(arguments),
        line=Line(delay_ms=arguments.delay_ms, jitter_ms=arguments.jitter_ms, loss=arguments.loss),
        ramp_limit=arguments.ramp_limit,
        soak_minutes=arguments.soak_minutes,
        wants_stamps=not arguments.no_stamps,
        out=out,
    )


def habits_of(arguments: argparse.Namespace) -> Habits:
    """How turns follow each other.

    Raises:
        CallerError: a flag is out of range.
    """
    from antiphon.lab.schedule import Habits

    return Habits(
        warm_up=arguments.warm_up,
        period_s=arguments.period_s,
        turns_per_line=arguments.turns_per_line,
        barge_in_ms=arguments.barge_in_ms,
        listens_s=arguments.listens_s,
        ruler_turns=arguments.ruler_turns,
    )


def kinds_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Of the corpus; none: all."""
    return listed(arguments.kinds)


def listed(text: str) -> tuple[str, ...]:
    """The items of a comma list."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _key(arguments: argparse.Namespace) -> str | None:
    from antiphon.core.errors import CallerError

    if arguments.key_file is None:
        return arguments.key or None
    try:
        return str(arguments.key_file.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"{arguments.key_file} cannot be read", hint="name a text file that holds the key") from error


def _wishes(arguments: argparse.Namespace) -> SessionWishes:
    from antiphon.lab.plan import Eagerness, TurnDetection

    detection = TurnDetection.DEFAULT
    if arguments.eagerness:
        detection = TurnDetection.SEMANTIC
    elif arguments.silence_ms is not None:
        detection = TurnDetection.SERVER
    elif arguments.by_hand:
        detection = TurnDetection.BY_HAND
    return wishes_of(
        arguments,
        turn_detection=detection,
        eagerness=Eagerness(arguments.eagerness) if arguments.eagerness else None,
        silence_ms=arguments.silence_ms,
    )


def wishes_of(
    arguments: argparse.Namespace,
    *,
    turn_detection: TurnDetection,
    eagerness: Eagerness | None = None,
    silence_ms: int | None = None,
) -> SessionWishes:
    """What callers ask for, with this way to end turns.

    Raises:
        CallerError: a value is out of range.
    """
    from antiphon.lab.plan import SessionWishes

    return SessionWishes(
        turn_detection=turn_detection,
        eagerness=eagerness,
        silence_ms=silence_ms,
        vocabulary=arguments.vocabulary,
        instructions=arguments.instructions,
        voice=arguments.voice,
        format=arguments.format,
    )


def server_arguments(arguments: argparse.Namespace) -> tuple[str, ...]:
    """What our own server is started with; what is wrong with it is said before it is started.

    Raises:
        CallerError: a setting's name or value is wrong.
    """
    from antiphon.cli.config import resolve

    sets = list(getattr(arguments, "config_sets", ()))
    without = list(getattr(arguments, "config_without", ()))
    file = getattr(arguments, "config_file", None)
    given = [word for item in sets for word in ("--set", item)]
    given += [word for item in without for word in ("--without", item)]
    given += ["--config", str(file)] if file else []
    given += ["--agent", str(arguments.agent)] if arguments.agent else []
    if getattr(arguments, "url", None) is None:
        resolve(arguments)
    return tuple(given)


def required(text: str | None) -> tuple[Requirement, ...]:
    """What must be met.

    Raises:
        CallerError: it cannot be read.
    """
    from antiphon.lab.requirements import parse

    return parse(text) if text is not None else ()
