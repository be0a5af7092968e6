"""`antiphon bench sweep`: a server measured at several ways to end turns, and the frontier of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.cli.bench import flags
from antiphon.cli.bench.measuring import console, measured, show_files

if TYPE_CHECKING:
    import argparse

    from antiphon.lab.plan import SessionWishes

MOST_VALUES = 50


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "sweep",
        help="measure any server at several ways to end turns, one run each",
        description="A run for each eagerness or silence, on the same clips, and the frontier of them all.",
    )
    flags.add_address(parser)
    flags.add_clips(parser)
    flags.add_scenario(parser)
    flags.add_own_server(parser)
    flags.add_wishes(parser, several=True)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure each value, write and show.

    Raises:
        CallerError: what was asked for is wrong.
        PeerError: the server cannot be reached.
        MachineError: the results cannot be written.
    """
    from antiphon.lab.summary import summarise
    from antiphon.lab.trade import Family, Trial, show_trade, write_trade

    wished = wishes(arguments)
    folder = flags.out_of(arguments)
    habits = flags.habits_of(arguments)
    plan = flags.plan_of(arguments, wishes=wished[0][2])
    out = console()
    trials = []
    for number, (name, settings, wish) in enumerate(wished, 1):
        out.print(f"{number} of {len(wished)}: {name}", markup=False)
        found, _ = measured(replace(plan, wishes=wish, out=folder / name.replace(" ", "-")), habits)
        trials.append(Trial(name=name, settings=settings, summary=summarise(found.turns)))
    family = Family(name=plan.shown_name, trials=tuple(trials))
    about = {"made_by": "antiphon bench sweep", "run": {"name": plan.shown_name, "settings": plan.settings()}}
    files = write_trade([family], folder, about)
    show_trade([family], out)
    show_files(files, out)
    return 0


def wishes(arguments: argparse.Namespace) -> list[tuple[str, dict[str, object], SessionWishes]]:
    """Each value's name, settings and wishes.

    Raises:
        CallerError: a value is none, or out of range.
    """
    from antiphon.core.errors import CallerError
    from antiphon.lab.plan import Eagerness, TurnDetection

    values = list(dict.fromkeys(flags.listed(arguments.eagerness or arguments.silence_ms)))
    if not 1 <= len(values) <= MOST_VALUES:
        raise CallerError(f"{len(values)} values are listed", hint=f"name 1 to {MOST_VALUES}, separated by commas")
    found: list[tuple[str, dict[str, object], SessionWishes]] = []
    for value in values:
        if arguments.eagerness:
            if value not in set(Eagerness):
                raise CallerError(f"--eagerness {value} is none", hint=f"use of {', '.join(Eagerness)}")
            wish = flags.wishes_of(arguments, turn_detection=TurnDetection.SEMANTIC, eagerness=Eagerness(value))
            found.append((f"eagerness {value}", {"eagerness": value}, wish))
        else:
            if not value.isdecimal():
                raise CallerError(f"--silence-ms {value} is no number of ms", hint="for instance 200,300,500")
            wish = flags.wishes_of(arguments, turn_detection=TurnDetection.SERVER, silence_ms=int(value))
            found.append((f"silence {value} ms", {"silence_ms": int(value)}, wish))
    return found
