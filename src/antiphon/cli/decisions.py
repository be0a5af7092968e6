"""antiphon decisions: what a server that ran with --trace-decisions computed when, what waited, and for whom."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.scheduling.decisions import Decision

SCHEMA = "antiphon.decisions/1"
LONGEST = 5  # waits that are told one by one
STRETCH_S = 2.0


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "decisions",
        help="what the engines did for whom, who waited, and why",
        description="Reads what antiphon serve --trace-decisions FILE wrote. No speech is in it.",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--caller", type=int, metavar="N", help="of this caller alone")
    parser.add_argument("--longest", type=_count, default=LONGEST, metavar="N", help=f"waits told in full ({LONGEST})")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="draw a stretch of it")
    parser.add_argument(
        "--from", dest="from_s", type=float, metavar="S", help="where it begins; else at the longest wait"
    )
    parser.add_argument("--for", dest="for_s", type=float, default=STRETCH_S, metavar="S", help=f"({STRETCH_S:g})")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read and tell.

    Raises:
        CallerError: the file holds no decisions, or the picture cannot be written.
    """
    from antiphon.core.errors import CallerError, check_range
    from antiphon.scheduling.decisions import read_decisions

    check_range("--for", arguments.for_s, 0.01, 3600)
    every = list(read_decisions(arguments.file))
    asked = [one for one in every if arguments.caller in {None, one.caller}]
    if not asked:
        raise CallerError(
            f"{arguments.file} holds no decision" + (f" for caller {arguments.caller}" if every else ""),
            hint="antiphon serve --trace-decisions FILE writes them while callers speak",
        )
    origin_ns = min(one.asked_ns for one in every)
    ran = [one for one in asked if not (one.dropped and one.took_ns <= 0)]
    longest = sorted(ran, key=lambda one: one.waited_ns, reverse=True)[: arguments.longest]
    if arguments.json:
        print(
            json.dumps({"schema": SCHEMA, "stages": table(ran), "longest": [told(one, origin_ns) for one in longest]})
        )
    else:
        show(ran, longest, origin_ns)
    if arguments.picture:
        from antiphon.scheduling.decisions_picture import draw

        first = longest[0].asked_ns - SECOND_NS // 5 if longest else origin_ns
        from_ns = first if arguments.from_s is None else origin_ns + round(arguments.from_s * SECOND_NS)
        draw(every, arguments.picture, from_ns=from_ns, to_ns=from_ns + round(arguments.for_s * SECOND_NS))
    return 0


def table(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """A row for each stage and class: how many, what they waited and took in ms, how many ended late or made way."""
    from antiphon.lab.statistics import percentile

    groups: dict[tuple[str, str], list[Decision]] = defaultdict(list)
    for one in decisions:
        groups[one.stage, one.urgency].append(one)
    rows = []
    for (stage, urgency), group in sorted(groups.items()):
        waited = [one.waited_ns / MILLISECOND_NS for one in group]
        took = [one.took_ns / MILLISECOND_NS for one in group]
        rows.append(
            {
                "stage": stage,
                "urgency": urgency,
                "jobs": len(group),
                "waited_p50_ms": percentile(waited, 50),
                "waited_p95_ms": percentile(waited, 95),
                "took_p50_ms": percentile(took, 50),
                "took_p95_ms": percentile(took, 95),
                "late": sum(one.ended_ns > one.deadline_ns for one in group),
                "made_way": sum(one.made_way for one in group),
            }
        )
    return rows


def told(one: Decision, origin_ns: int) -> dict[str, Any]:
    """One decision for programs."""
    return {
        "at_s": (one.asked_ns - origin_ns) / SECOND_NS,
        "caller": one.caller,
        "turn": one.turn,
        "stage": one.stage,
        "urgency": one.urgency,
        "waited_ms": one.waited_ns / MILLISECOND_NS,
        "took_ms": one.took_ns / MILLISECOND_NS,
        "reason": one.reason,
        "ahead": list(one.ahead),
    }


def show(decisions: Sequence[Decision], longest: Sequence[Decision], origin_ns: int) -> None:
    """The table, and the longest waits in words."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    columns = Table(box=None, pad_edge=False)
    for name in ("stage", "class"):
        columns.add_column(name)
    for name in ("jobs", "waited P50", "P95", "took P50", "P95", "late", "made way"):
        columns.add_column(name, justify="right")
    for row in table(decisions):
        ms = (row["waited_p50_ms"], row["waited_p95_ms"], row["took_p50_ms"], row["took_p95_ms"])
        cells = (f"{value:.1f} ms" for value in ms)
        columns.add_row(row["stage"], row["urgency"], str(row["jobs"]), *cells, str(row["late"]), str(row["made_way"]))
    console.print(columns)
    for one in longest:
        console.print(f"{(one.asked_ns - origin_ns) / SECOND_NS:.2f} s: {one}", markup=False)


def _count(word: str) -> int:
    number = int(word)
    if number < 0:
        raise argparse.ArgumentTypeError("0 or more")
    return number
