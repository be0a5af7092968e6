"""`antiphon replay LOG`: take the turns of a recorded conversation again, with the same settings or with others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from antiphon.dialogue.log import Log
    from antiphon.dialogue.replay import Comparison, Decision, Difference, Waits
    from antiphon.dialogue.settings import TurnSettings

SCHEMA = "antiphon.replay/1"
UNBOUND = 10_000  # columns of a table that goes into a file or a pipe: a line for each pause
SHOWN_CHARS = 1000  # of one side of a difference; `--json` has all of it


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the line."""
    parser = subparsers.add_parser(
        "replay",
        help="take the turns of a recorded conversation again",
        description="Runs a log that `antiphon converse --record DIR` wrote through the dialogue again. With the same "
        "settings every command must be the same; with others, a table shows what each pause would have become.",
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="a file that --record wrote")
    parser.add_argument(
        "--set",
        dest="config_sets",
        action="append",
        metavar="turn.NAME=VALUE",
        default=[],
        help="set one setting of turn taking; may be repeated",
    )
    parser.add_argument(
        "--without",
        dest="config_without",
        action="append",
        metavar="NAME[,NAME]",
        default=[],
        help="leave mechanisms out: speculation, prefill",
    )
    parser.add_argument("--cut-off", action="store_true", help="leave out a last line that was half written")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay; 1 if the same settings no longer lead to the same commands.

    Raises:
        CallerError: the file is no log, or a setting cannot be replayed.
    """
    from antiphon.dialogue.log import read_log
    from antiphon.dialogue.replay import compare, first_difference
    from antiphon.mechanisms import settings_without

    log = read_log(arguments.log, cut_off=arguments.cut_off)
    settings = changed(log.start.settings, (*settings_without(arguments.config_without), *arguments.config_sets))
    if settings != log.start.settings:
        comparison = compare(log, settings)
        if arguments.json:
            print(json.dumps(compared(log, settings, comparison), indent=2))
        else:
            show(log, settings, comparison)
        return 0
    difference = first_difference(log)
    if arguments.json:
        print(json.dumps(checked(log, difference), indent=2))
    else:
        tell(log, difference, arguments.log)
    return 1 if difference else 0


def changed(recorded: TurnSettings, sets: Sequence[str]) -> TurnSettings:
    """The settings of the log, changed by "turn.name=value" each; neither files nor variables play a part.

    Raises:
        CallerError: a name or value is wrong, or it is no setting of turn taking.
    """
    from dataclasses import fields

    from antiphon.config import Layer, load
    from antiphon.config_values import to_toml
    from antiphon.core.errors import CallerError

    before = [f"turn.{item.name}={_as_text(to_toml(getattr(recorded, item.name)))}" for item in fields(recorded)]
    resolved = load(sets=(*before, *sets), environment={}, folders=())
    for setting in resolved.settings:
        if setting.origin.layer is Layer.FLAG and setting.key.section != "turn":
            raise CallerError(
                f"{setting.key.dotted} cannot be replayed: a log holds what was decided, not what was heard",
                hint="only turn.* can; hold the conversation again to try others",
            )
    return resolved.config.turn


def _as_text(toml: str) -> str:
    """A flag's text is bare where TOML quotes it; lists are the same in both."""
    return json.loads(toml) if toml.startswith('"') else toml


# For people.


def tell(log: Log, difference: Difference | None, path: Path) -> None:
    """Say in a line or four whether the commands are the same."""
    if difference is None:
        commands = sum(len(step.commands) for step in log.steps)
        print(f"{len(log.steps)} stimuli, {commands} commands: the same{_ending(log)}")
        return
    print(f"{path}:{difference.line} leads to something else (the log is of Antiphon {log.antiphon})")
    for name, text in (
        ("stimulus", difference.stimulus),
        ("the log says", difference.recorded),
        ("now comes", difference.replayed),
    ):
        print(f"  {name:<13} {text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + ' ...'}")


def _ending(log: Log) -> str:
    if log.is_full:
        return ", up to the size that the log was allowed"
    return ", up to a last line that was cut off" if log.is_cut_off else ""


def show(log: Log, settings: TurnSettings, comparison: Comparison) -> None:
    """Print what was changed, a row for each pause, and the totals."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else UNBOUND)
    for name, (old, new) in differing(log.start.settings, settings).items():
        console.print(Text.assemble(f"turn.{name}  ", (f"{old}", "dim"), " -> ", (f"{new}", "bold")))
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("at", justify="right", no_wrap=True)
    for heading in ("then", "now"):
        table.add_column(heading, no_wrap=True)
    table.add_column("heard by then")
    start_ns = log.steps[0].stimulus.at_ns if log.steps else 0
    for pause in comparison.pauses:
        table.add_row(
            Text(f"{(pause.ended_ns - start_ns) / SECOND_NS:.2f} s", "dim"),
            _decision(pause.recorded),
            _decision(pause.replayed),
            Text(pause.heard if pause.heard is not None else "(not known)", "" if pause.heard else "dim"),
        )
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        console.print(Text.from_ansi(line.rstrip()), soft_wrap=True)
    console.print()
    for name, waits in (("then", comparison.recorded), ("now", comparison.replayed)):
        console.print(Text(f"{name:<5} {totals(waits)}"))
    for note in notes(log, comparison):
        console.print(Text(note, "dim"))


def _decision(decision: Decision) -> Any:
    from rich.text import Text

    from antiphon.dialogue.replay import Fate

    after = "" if decision.after_ns is None else f" after {decision.after_ns / MILLISECOND_NS:.0f} ms"
    if decision.cut_in:
        return Text(f"{decision.fate}{after}, a cut-in", "red")
    return Text(f"{decision.fate}{after}", "green" if decision.fate is Fate.ANSWERED else "dim")


def totals(waits: Waits) -> str:
    """All pauses in one line."""
    if waits.median_ns is None or waits.p95_ns is None:
        return "nothing answered"
    return (
        f"answered {waits.answered}, silence before it: median {waits.median_ns / MILLISECOND_NS:.0f} ms, "
        f"P95 {waits.p95_ns / MILLISECOND_NS:.0f} ms; cut-ins {waits.cut_ins}"
    )


def notes(log: Log, comparison: Comparison) -> list[str]:
    """What the figures leave out."""
    found = []
    if comparison.without_words:
        found.append(f"{comparison.without_words} x the words are not in the log: counted as not answered")
    if comparison.without_voice:
        found.append(f"{comparison.without_voice} x the tone of voice would have been asked, and is not in the log")
    if ending := _ending(log):
        found.append(f"the log ends early{ending}")
    return found


def differing(old: TurnSettings, new: TurnSettings) -> dict[str, tuple[object, object]]:
    """The settings that were changed: (from, to)."""
    from dataclasses import fields

    names = [item.name for item in fields(old)]
    return {
        name: (getattr(old, name), getattr(new, name)) for name in names if getattr(old, name) != getattr(new, name)
    }


# For programs.


def checked(log: Log, difference: Difference | None) -> dict[str, Any]:
    """The outcome with the same settings."""
    found = None
    if difference:
        found = {
            "line": difference.line,
            "stimulus": json.loads(difference.stimulus),
            "recorded": json.loads(difference.recorded),
            "replayed": json.loads(difference.replayed),
        }
    return {
        **_head(log),
        "stimuli": len(log.steps),
        "commands": sum(len(step.commands) for step in log.steps),
        "difference": found,
    }


def compared(log: Log, settings: TurnSettings, comparison: Comparison) -> dict[str, Any]:
    """The outcome with other settings; times in ms, from the first stimulus or the caller's last speech sample."""
    start_ns = log.steps[0].stimulus.at_ns if log.steps else 0
    return {
        **_head(log),
        "changed": {
            f"turn.{name}": {"recorded": old, "replayed": new}
            for name, (old, new) in differing(log.start.settings, settings).items()
        },
        "pauses": [
            {
                "line": pause.line,
                "at_ms": (pause.ended_ns - start_ns) / MILLISECOND_NS,
                "heard": pause.heard,
                "recorded": _decided(pause.recorded),
                "replayed": _decided(pause.replayed),
            }
            for pause in comparison.pauses
        ],
        "recorded": _waited(comparison.recorded),
        "replayed": _waited(comparison.replayed),
        "without_words": comparison.without_words,
        "without_voice": comparison.without_voice,
    }


def _head(log: Log) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "antiphon": log.antiphon,
        "began": log.began,
        "is_full": log.is_full,
        "is_cut_off": log.is_cut_off,
    }


def _decided(decision: Decision) -> dict[str, Any]:
    after_ms = None if decision.after_ns is None else decision.after_ns / MILLISECOND_NS
    return {"fate": str(decision.fate), "after_ms": after_ms, "cut_in": decision.cut_in}


def _waited(waits: Waits) -> dict[str, Any]:
    return {
        "answered": waits.answered,
        "median_ms": None if waits.median_ns is None else waits.median_ns / MILLISECOND_NS,
        "p95_ms": None if waits.p95_ns is None else waits.p95_ns / MILLISECOND_NS,
        "cut_ins": waits.cut_ins,
    }
