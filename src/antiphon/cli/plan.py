"""antiphon plan: which engine computes where, with how many threads, for how many callers, and why each."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.cli.config import add_flags, resolve

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from antiphon.config import Resolved
    from antiphon.hardware.facts import MachineFacts
    from antiphon.hardware.plan import Plan, Reason
    from antiphon.hardware.stage_costs import StageCosts

UNBOUND = 10_000  # columns of a table that goes into a file or a pipe: a line for each choice, whole


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "plan",
        help="which engine computes where, for how many callers, and why",
        description="Shows what was found, what was chosen from it, and why. Each setting named beside a choice "
        "decides it instead.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--machine", type=Path, metavar="FILE", help="plan for a machine recorded by `antiphon probe`")
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="first measure with the chosen models what each stage costs here, and keep it: less than half a minute",
    )
    add_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; 1 if it warns of something.

    Raises:
        CallerError: the configuration is wrong, or asks for what the machine does not have.
        MachineError: a model to calibrate with is not here, or what was measured cannot be kept.
    """
    from antiphon.core.errors import CallerError
    from antiphon.hardware.calibration import known_costs, model_sizes
    from antiphon.hardware.machine_file import read_machine
    from antiphon.hardware.plan import make_plan
    from antiphon.hardware.probe import probe
    from antiphon.hardware.stage_costs import reference_costs

    resolved = resolve(arguments)
    config = resolved.config
    if arguments.machine and arguments.calibrate:
        raise CallerError("a recorded machine cannot be measured", hint="leave out --machine or --calibrate")
    if arguments.machine:
        facts = read_machine(arguments.machine)
        costs = reference_costs(facts, config.models, model_sizes(config.models))
    else:
        facts = probe()
        costs = _calibrated(resolved, facts) if arguments.calibrate else known_costs(facts, config.models)
    plan = make_plan(facts, config.models, config, costs)
    if arguments.json:
        print(as_json(plan, resolved))
    else:
        from rich.console import Console

        show(plan, facts, resolved, Console(width=None if sys.stdout.isatty() else UNBOUND, highlight=False))
    return 1 if plan.warnings else 0


def _calibrated(resolved: Resolved, facts: MachineFacts) -> StageCosts:
    """Measure, and keep it unless other programs spoiled it; progress goes to stderr."""
    import asyncio

    from antiphon.calibrate import MOST_WAITED, calibrate
    from antiphon.hardware.calibration import write_costs

    def note(step: str) -> None:
        print(f"measuring: {step}", file=sys.stderr, flush=True)

    config = resolved.config
    costs = asyncio.run(calibrate(config, facts, note=note))
    if costs.waited > MOST_WAITED:
        message = f"not kept: other programs kept the engines waiting for {costs.waited:.0%} of the time"
        print(f"{message}\nhint: measure again when the machine is quiet", file=sys.stderr)
    else:
        print(f"kept in {write_costs(facts, config.models, costs)}", file=sys.stderr)
    return costs


def as_json(plan: Plan, resolved: Resolved) -> str:
    """The plan field by field; each override with where its setting came from."""
    from antiphon.hardware.stage_costs import QUICK_FIELDS

    origins = _origins(resolved)
    overridden = {
        reason.setting: origins[reason.setting] for _, reason in _lines(plan) if reason.is_overridden and reason.setting
    }
    shown = asdict(plan)
    if not plan.has_quick_recognizer:
        shown["costs"] = {name: value for name, value in shown["costs"].items() if name not in QUICK_FIELDS}
    return json.dumps({"schema": "antiphon.plan/1", **shown, "overridden": overridden}, indent=2)


def show(plan: Plan, facts: MachineFacts, resolved: Resolved, console: Console) -> None:
    """Print what was found, the stages side by side, and then each choice with its reason."""
    from rich.text import Text

    console.print(Text(_found(facts), style="bold"), soft_wrap=True)
    console.print()
    _print(_stage_table(plan), console)
    console.print()
    _print(_reason_table(plan, _origins(resolved)), console)
    if plan.costs.origin == "measured":
        console.print()
        _print(_cost_table(plan), console)
    for warning in plan.warnings:
        console.print(Text(f"\nwarning: {warning}", style="yellow"), soft_wrap=True)


def _found(facts: MachineFacts) -> str:
    cpu = facts.cpu
    parts = [cpu.model or cpu.architecture, f"{cpu.logical_cores} logical cores"]
    if facts.quota_cores is not None:
        parts.append(f"quota of {facts.quota_cores:g}")
    if len(facts.nodes) > 1:
        parts.append(f"{len(facts.nodes)} memory nodes")
    if cpu.memory_bytes is not None:
        parts.append(f"{cpu.memory_bytes / 1e9:.1f} GB")
    parts += [f"{gpu.name} of {gpu.memory_bytes / 1e9:.0f} GB" for gpu in facts.gpus]
    return ", ".join([*parts, *filter(None, [facts.system, facts.container])])


def _stage_table(plan: Plan) -> object:
    from rich.table import Table
    from rich.text import Text

    from antiphon.hardware.reasons import show_cores

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("stage", "engine", "model", "device"):
        table.add_column(heading, no_wrap=True)
    for heading in ("threads", "width", "batch", "nice"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("cores")
    for stage in plan.stages:
        changed = {reason.choice for reason in stage.reasons if reason.is_overridden}
        cells = {
            "device": stage.device,
            "threads": str(stage.threads),
            "width": str(stage.width),
            "batch": str(stage.batch),
            "nice": str(stage.nice),
            "cores": show_cores(stage.cores),
        }
        shown = [Text(f"{value}*", "green") if name in changed else Text(value) for name, value in cells.items()]
        table.add_row(Text(stage.stage), Text(stage.engine), Text(stage.model), *shown)
    return table


def _reason_table(plan: Plan, origins: dict[str, str]) -> object:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("choice", "value", "decided by"):
        table.add_column(heading, no_wrap=True)
    table.add_column("why")
    for subject, reason in _lines(plan):
        if reason.is_overridden:
            by = Text(f"{reason.setting} ({origins[reason.setting]})", "green")
        else:
            by = Text(f"plan; {reason.setting}" if reason.setting else "plan", "dim")
        table.add_row(Text(f"{subject} {reason.choice}".strip()), Text(reason.value), by, Text(reason.text, "dim"))
    return table


def _cost_table(plan: Plan) -> object:
    from rich.table import Table

    from antiphon.hardware.stage_costs import QUICK_FIELDS, TIMES

    costs = plan.costs
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(f"measured {costs.taken}", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("P95", justify="right", no_wrap=True)
    for name in TIMES:
        if name in QUICK_FIELDS and not plan.has_quick_recognizer:
            continue
        cost = getattr(costs, name)
        table.add_row(name.replace("_", " "), f"{cost.median_ns / 1e6:.2f} ms", f"{cost.p95_ns / 1e6:.2f} ms")
    return table


def _lines(plan: Plan) -> list[tuple[str, Reason]]:
    """Every choice, under what it concerns."""
    lines = [("", reason) for reason in plan.reasons]
    lines += [(stage.stage.replace("_", " "), reason) for stage in plan.stages for reason in stage.reasons]
    lines += [("audio thread", reason) for reason in plan.audio.reasons]
    return lines + [(gpu.device, reason) for gpu in plan.gpus for reason in gpu.reasons]


def _origins(resolved: Resolved) -> dict[str, str]:
    """Where each setting's value came from."""
    return {setting.key.dotted: str(setting.origin) for setting in resolved.settings}


def _print(table: object, console: Console) -> None:
    """Print a table without blanks at the ends of its lines."""
    from rich.text import Text

    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        console.print(Text.from_ansi(line.rstrip()), soft_wrap=True)
