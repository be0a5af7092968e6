"""antiphon simulate: how late replies would be with so many callers on such a machine, by each order of scheduling."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.cli.config import add_flags, resolve
from antiphon.core.clock import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.config import Config
    from antiphon.core.stamps import Stage
    from antiphon.hardware.facts import MachineFacts
    from antiphon.hardware.plan import Plan
    from antiphon.hardware.stage_costs import StageCosts
    from antiphon.scheduling.outcome import Outcome
    from antiphon.scheduling.settings import SchedulingSettings
    from antiphon.scheduling.workload import Workload

SCHEMA = "antiphon.simulation/1"
CALLERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ORDERS = ("none", "fifo", "static", "edf", "laxity")
UNBOUND = 10_000  # columns of a table that goes into a file or a pipe
LEAST_REPLIES = 200  # few callers are simulated for longer, so that a P95 rests on so many
MOST_SECONDS = 3600


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "simulate",
        help="how late replies would be with so many callers, on this machine or another",
        description="Plays recorded turns of one caller for many, on the lanes that the plan has for a machine, in "
        "each order of scheduling. Nothing is computed but the schedule.",
    )
    parser.add_argument("--slices", type=Path, metavar="FILE", help="turns that serve --trace-decisions FILE recorded")
    parser.add_argument("--recorded-on", type=Path, metavar="FILE", help="the machine of --slices, by antiphon probe")
    parser.add_argument("--machine", type=Path, metavar="FILE", help="one that antiphon probe recorded; else this one")
    parser.add_argument("--cores", type=_count, metavar="N", help="with so many cores, all alike")
    parser.add_argument("--callers", type=_callers, default=CALLERS, metavar="N[,N]", help="1,2,4 up to 256")
    parser.add_argument("--orders", type=_orders, default=ORDERS, metavar="NAME[,NAME]", help=", ".join(ORDERS))
    parser.add_argument("--seconds", type=_count, default=60, metavar="S", help="measured, at least (60)")
    parser.add_argument("--period", type=float, metavar="S", help="from one turn of a caller to the next")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the moments at which turns begin (0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there; - for the terminal")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="draw them")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Simulate and tell.

    Raises:
        CallerError: a setting, a file or the recording is wrong, or a result cannot be written.
    """
    from antiphon.core.errors import CallerError, check_range
    from antiphon.scheduling.workload import read_workload

    config = resolve(arguments).config
    check_range("--seconds", arguments.seconds, 1, MOST_SECONDS)
    if arguments.recorded_on and not arguments.slices:
        raise CallerError(
            "--recorded-on is for --slices", hint="leave it out: those that come along know their machine"
        )
    work = read_workload(arguments.slices)
    if arguments.period is not None:
        check_range("--period", arguments.period, 0.5, 3600)
        work = replace(work, period_ns=round(arguments.period * SECOND_NS))
    facts, costs = _machine(arguments, config)
    recorded = _recorded(arguments, config)
    outcomes = []
    for callers in arguments.callers:
        plan = _plan(facts, config, costs, callers)
        here = work.at_speed(_factors(plan, recorded))
        for order in arguments.orders:
            outcomes.append(_outcome(plan, facts, here, config.scheduling, (order, callers), arguments))
            print(f"simulated: {order}, {callers} callers", file=sys.stderr, flush=True)
    if str(arguments.json) == "-":
        print(as_json(outcomes, work, arguments.seed))
    else:
        show(outcomes, work, _cores(facts))
        if arguments.json:
            _write(arguments.json, as_json(outcomes, work, arguments.seed) + "\n")
    if arguments.picture:
        from antiphon.scheduling.outcome_picture import draw

        draw(
            outcomes,
            arguments.picture,
            title=f"Simulated: {_cores(facts):g} cores, a turn every {_period_s(work):.0f} s",
        )
    return 0


# What is simulated.


def _machine(arguments: argparse.Namespace, config: Config) -> tuple[MachineFacts, StageCosts]:
    from antiphon.hardware.calibration import known_costs, model_sizes
    from antiphon.hardware.machine_file import read_machine
    from antiphon.hardware.probe import probe
    from antiphon.hardware.stage_costs import reference_costs

    if arguments.machine:
        facts = read_machine(arguments.machine)
        costs = reference_costs(facts, config.models, model_sizes(config.models))
    else:
        facts = probe()
        costs = known_costs(facts, config.models)
    if arguments.cores:
        cpu = replace(facts.cpu, logical_cores=arguments.cores, usable_cores=arguments.cores)
        facts = replace(facts, cpu=cpu, cores=(), nodes=(), caches=(), quota_cores=None)
    return facts, costs


def _plan(facts: MachineFacts, config: Config, costs: StageCosts, callers: int) -> Plan:
    """As for a server with these settings, but that it lets in at least so many callers."""
    from antiphon.hardware.plan import make_plan

    seats = max(callers, config.capacity.conversations or make_plan(facts, config.models, config, costs).callers)
    config = replace(config, capacity=replace(config.capacity, conversations=seats))
    return make_plan(facts, config.models, config, costs)


def _recorded(arguments: argparse.Namespace, config: Config) -> Plan | None:
    """The plan under which the turns were recorded; None: the one that they are played under."""
    from antiphon.hardware.calibration import model_sizes
    from antiphon.hardware.machine_file import read_machine
    from antiphon.hardware.stage_costs import reference_costs

    if arguments.recorded_on:
        facts = read_machine(arguments.recorded_on)
        return _plan(facts, config, reference_costs(facts, config.models, model_sizes(config.models)), 1)
    if arguments.slices:
        return None
    from antiphon.config import Config as Defaults
    from antiphon.hardware.facts import MachineFacts as Facts
    from antiphon.hardware.probe_cpu import CpuFacts

    flags = frozenset({"avx2", "fma", "avx512f", "avx512_vnni"})
    cpu = CpuFacts(
        model="", architecture="x86_64", logical_cores=2, usable_cores=2, flags=flags, memory_bytes=8 * 2**30
    )
    facts, defaults = Facts(cpu=cpu), Defaults()
    return _plan(facts, defaults, reference_costs(facts, defaults.models, {}), 1)


def _factors(plan: Plan, recorded: Plan | None) -> dict[Stage, float]:
    """How many times as long each stage takes as it was recorded."""
    if recorded is None:
        return {}
    here, there = _costs(plan), _costs(recorded)
    return {stage: here[stage] / there[stage] for stage in here}


def _costs(plan: Plan) -> dict[Stage, float]:
    from antiphon.core.stamps import Stage
    from antiphon.hardware.plan import Role

    costs, threads = plan.costs, plan.stage(Role.LANGUAGE_MODEL).threads
    reading_ns = costs.tokens_ns(1, 0, threads)
    return {
        Stage.RECOGNISE: costs.recognition_ns(plan.stage(Role.RECOGNIZER).threads),
        Stage.PROSODY: costs.prosody.median_ns,
        Stage.PREFILL: reading_ns,
        Stage.JUDGE: reading_ns,
        Stage.THINK: costs.tokens_ns(0, 1, threads),
        Stage.SPEAK: costs.first_chunk.median_ns,
    }


def _outcome(
    plan: Plan,
    facts: MachineFacts,
    work: Workload,
    rules: SchedulingSettings,
    what: tuple[str, int],
    arguments: argparse.Namespace,
) -> Outcome:
    from antiphon.core.errors import CallerError
    from antiphon.hardware.stage_costs import is_served
    from antiphon.loading import lane_facts
    from antiphon.scheduling.outcome import outcome_of
    from antiphon.scheduling.settings import Order
    from antiphon.scheduling.simulated_lanes import Site
    from antiphon.scheduling.simulator import simulate

    order, callers = what
    if any(is_served(stage.model) for stage in plan.stages):
        raise CallerError(
            "a language model behind an address cannot be simulated", hint="choose a model that computes here"
        )
    lanes = lane_facts(plan)
    strange = {each.lane for turn in work.turns for each in turn.slices} - {lane.name for lane in lanes}
    if strange:
        raise CallerError(f"the recording has a lane {min(strange)!r}, which the plan has not", hint="record it anew")
    if order == "none":
        rules = replace(rules, enabled=False)
    else:
        # First come, first served makes way for nobody.
        rules = replace(rules, enabled=True, order=Order(order), yielding=rules.yielding and order != "fifo")
    cores = _cores(facts)
    site = Site(lanes=lanes, rules=rules, cores=cores)
    measured_ns = max(arguments.seconds * SECOND_NS, LEAST_REPLIES * work.period_ns // callers)
    ledger = simulate(site, work, callers=callers, measured_ns=measured_ns, seed=arguments.seed)
    return outcome_of(ledger, order=order, callers=callers, cores=cores)


def _cores(facts: MachineFacts) -> float:
    """That compute: whole ones, on the nodes that the plan uses."""
    from antiphon.hardware.topology import survey

    return survey(facts).computing_cores


# For people and programs.


def show(outcomes: Sequence[Outcome], work: Workload, cores: float) -> None:
    """Print what was simulated, and a row for each order and number of callers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else UNBOUND)
    console.print(f"{cores:g} cores, {len(work.turns)} turns, one every {_period_s(work):.1f} s of each caller")
    if work.note:
        console.print(Text(f"turns: {work.note}", "yellow"))
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("order", no_wrap=True)
    for heading in (
        "callers",
        "P50",
        "P95",
        "unanswered",
        "late",
        "gaps",
        "cores busy",
        "draft waits",
        "ahead",
        "jobs",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in outcomes:
        waits = [_time(one.waits_p95_ms.get(name)) for name in ("draft", "ahead")]
        shares = [f"{share:.0%}" for share in (one.unanswered, one.late, one.gaps, one.busy)]
        times = [_time(one.ready_p50_ms), _time(one.ready_p95_ms)]
        table.add_row(_named(one.order), str(one.callers), *times, *shares, *waits, str(one.jobs))
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        console.print(Text.from_ansi(line.rstrip()), soft_wrap=True)
    console.print()
    console.print(
        "P50, P95: from the pause's being noticed to the reply's first sound. late: jobs after their deadline."
    )
    console.print("gaps: pieces of sound that came when the one before had run out. waits: P95, until a job began.")


def as_json(outcomes: Sequence[Outcome], work: Workload, seed: int) -> str:
    """The figures by order and callers; what never came is null, as is what was not there."""
    rows = [{name: _finite(value) for name, value in asdict(one).items()} for one in outcomes]
    head = {"schema": SCHEMA, "seed": seed, "turns": len(work.turns), "period_s": _period_s(work), "note": work.note}
    return json.dumps({**head, "outcomes": rows}, indent=2)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def _named(order: str) -> str:
    return "no scheduler" if order == "none" else order


def _time(ms: float | None) -> str:
    return "" if ms is None else f"{ms:.0f} ms" if isfinite(ms) else "never"


def _period_s(work: Workload) -> float:
    return work.period_ns / SECOND_NS


def _write(path: Path, text: str) -> None:
    from antiphon.core.errors import CallerError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CallerError(
            f"{path} cannot be written: {error.strerror}", hint="name a file in a folder that you may write to"
        ) from error


# What flags hold.


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return number


def _callers(text: str) -> tuple[int, ...]:
    numbers = tuple(_count(part) for part in text.split(","))
    if max(numbers) > max(CALLERS):
        raise argparse.ArgumentTypeError(f"{max(numbers)} callers are more than {max(CALLERS)}")
    return numbers


def _orders(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in ORDERS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(ORDERS)}")
    return names
