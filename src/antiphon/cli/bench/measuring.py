"""`antiphon bench` by itself: one run, its result and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.cli.bench.flags import habits_of, plan_of, required

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from antiphon.lab.plan import BenchPlan
    from antiphon.lab.requirements import Requirement
    from antiphon.lab.result import Run, Turn
    from antiphon.lab.schedule import Habits

ADMITTING = "--set capacity.conversations=N lets more callers in than the server would by itself"


def run(arguments: argparse.Namespace) -> int:
    """Measure, write result.json and the report, and judge: 1 if a requirement is not met.

    Raises:
        CallerError: what was asked for is wrong.
        PeerError: the server cannot be reached.
        MachineError: the results cannot be written.
    """
    from antiphon.lab.result import Outcome

    wanted = required(arguments.require)
    plan = plan_of(arguments)
    found, files = measured(plan, habits_of(arguments))
    code = conclude(found, wanted, files)
    if plan.url is None and any(turn.outcome is Outcome.REFUSED for turn in found.turns):
        print(f"hint: {ADMITTING}")
    return code


def measured(plan: BenchPlan, habits: Habits) -> tuple[Run, tuple[Path, ...]]:
    """Carry out a plan and write its result and report; if Ctrl-C ends it, what was measured until then is written.

    Raises: as `antiphon.lab.measure.measure`, and MachineError if the results cannot be written.
    """
    from antiphon.lab.loop import run as in_loop
    from antiphon.lab.measure import measure
    from antiphon.lab.report import write_report
    from antiphon.lab.schedule import RAMP
    from antiphon.lab.store import write_run
    from antiphon.lab.terminal import Bar

    assert plan.out is not None
    turns: list[Turn] = []
    callers = plan.ramp_limit if plan.scenario == RAMP else plan.callers
    with Bar(turns_of(plan)) as bar:

        async def take(turn: Turn) -> None:
            turns.append(turn)
            await bar.take(turn)

        try:
            found = in_loop(measure(plan, on_turn=take, habits=habits), callers=callers)
        except KeyboardInterrupt:
            if turns:
                write_run(cut_short(plan, turns), plan.out)
            raise
    file = write_run(found, plan.out)
    page, *_ = write_report(found, plan.out)
    return found, (file, page)


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


def conclude(run: Run, wanted: tuple[Requirement, ...], files: Sequence[Path]) -> int:
    """Show the figures and where they are, and judge them."""
    from antiphon.lab.requirements import judge
    from antiphon.lab.terminal import show_findings, show_run
    from antiphon.lab.validity import is_void

    out = console()
    show_run(run, out)
    show_files(files, out)
    findings = judge(run, wanted)
    show_findings(findings, is_void=bool(findings) and is_void(run), console=out)
    return 0 if all(finding.is_met for finding in findings) else 1


def show_files(files: Sequence[Path], out: Console) -> None:
    """A line for each."""
    for file in files:
        out.print(str(file), markup=False, soft_wrap=True)


def console() -> Console:
    """Standard output, as wide as it needs to be where it is no terminal."""
    import sys

    from rich.console import Console

    from antiphon.cli.config import UNBOUND

    return Console(highlight=False, width=None if sys.stdout.isatty() else UNBOUND)
