"""`antiphon bench replay RUN`: what a recorded run would have been with other settings, and the frontier of many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.cli.bench.flags import LOGS
from antiphon.cli.bench.measuring import console, measured, show_files

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rich.console import Console

    from antiphon.hindsight.sweep import Check, Hindsight, Swept
    from antiphon.hindsight.validate import Difference
    from antiphon.lab.result import Run

OURS = "ours"
MOST_VALIDATED = 50


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "replay",
        help="what a recorded run would have been with other settings of turn taking",
        description="Takes the turns of a run of `antiphon bench --record` again with every combination of the values "
        "given, and shows which of them no other beats in latency and cut-ins.",
        epilog="docs/lab.md says how it is done, and how far to trust it.",
    )
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="the folder of the run")
    parser.add_argument("--logs", type=Path, metavar="DIR", help=f"of the conversations; RUN/{LOGS}")
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="turn.NAME=A,B,C",
        help="values to try; may be repeated, then every combination is tried",
    )
    parser.add_argument("--no-baselines", action="store_true", help="leave out silence alone and smart-turn alone")
    parser.add_argument(
        "--validate", type=int, default=0, metavar="N", help="measure N of the points live too, most on the frontier"
    )
    parser.add_argument("--out", dest="replay_out", type=Path, metavar="DIR", help="of the results; RUN/replay")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Sweep, write and show; with --validate, 1 if the replay was off by more than it may.

    Raises:
        CallerError: there is no such run or log, or a setting cannot be replayed.
        MachineError: the results cannot be written.
    """
    import json

    from antiphon.core.errors import check_range
    from antiphon.hindsight.join import join
    from antiphon.hindsight.sweep import Hindsight
    from antiphon.lab.store import read_run
    from antiphon.lab.trade import as_json, show_trade, write_trade

    check_range("--validate", arguments.validate, 0, MOST_VALIDATED)
    folder = arguments.run_folder if arguments.run_folder.is_dir() else arguments.run_folder.parent
    recorded = read_run(arguments.run_folder)
    hindsight = Hindsight(join(recorded, arguments.logs or folder / LOGS))
    out_folder = arguments.replay_out or folder / "replay"
    out = console()
    check = hindsight.check(_variants([])[0])
    found = _sweeps(hindsight, arguments.sweep, baselines=not arguments.no_baselines, out=out)
    families = [each.family for each in found]
    about = _about(recorded, hindsight, check, found)
    files = write_trade(families, out_folder, about)
    if arguments.json:
        print(json.dumps(as_json(families, about), indent=2))
    else:
        show_trade(families, out)
        for note in notes(hindsight, check, found):
            out.print(note, style="dim", markup=False, soft_wrap=True)
        show_files(files, out)
    if not arguments.validate:
        return 0
    return _validate(recorded, found[0], arguments.validate, out_folder, out)


def _variants(sweeps: Sequence[str]) -> list[Any]:
    from antiphon.cli.replay import changed
    from antiphon.hindsight.policies import grid, swept

    return swept(grid(sweeps), changed)


def _sweeps(hindsight: Hindsight, sweeps: Sequence[str], *, baselines: bool, out: Console) -> list[Swept]:
    from functools import partial

    from rich.progress import Progress

    from antiphon.hindsight.policies import silence_alone, smart_turn_alone

    policies = [(OURS, _variants(sweeps))]
    if baselines:
        policies += [("silence", silence_alone()), ("smart-turn", smart_turn_alone())]
    count = sum(len(variants) for _, variants in policies)
    with Progress(console=out, transient=True) as progress:
        step = partial(progress.advance, progress.add_task("Replaying", total=count))
        return [hindsight.sweep(name, variants, on_trial=step) for name, variants in policies]


def _about(recorded: Run, hindsight: Hindsight, check: Check, found: Sequence[Swept]) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "made_by": "antiphon bench replay",
        "run": {"name": recorded.name, "settings": dict(recorded.settings), "machine": dict(recorded.machine)},
        "left_out": hindsight.joined.left_out,
        "check": asdict(check),
        "unknown": {each.family.name: each.unknown for each in found},
        "without_voice": {each.family.name: each.without_voice for each in found},
        "skipped": {each.family.name: each.skipped for each in found},
    }


def notes(hindsight: Hindsight, check: Check, found: Sequence[Swept]) -> list[str]:
    """How well the replay fits what was measured, and what its figures leave out."""
    same = f"{check.same_outcome} of {check.turns} turns come out as they were"
    said = [f"The recorded settings again: {same}, latencies within {check.worst_ms:.1f} ms."]
    if check.own_lags < check.turns:
        said.append(
            f"{check.turns - check.own_lags} turns had no reply that was heard: the others' median lag is theirs."
        )
    said += [f"{count} turns left out: {why}." for why, count in hindsight.joined.left_out.items()]
    for each in found:
        name, trials = each.family.name, len(each.family.trials)
        if each.unknown:
            said.append(
                f"{name}: {each.unknown} turns in {trials} trials left out, for their words are not in the log."
            )
        if each.without_voice:
            said.append(
                f"{name}: the tone of voice was asked {each.without_voice} times in {trials} trials where the log "
                "has none; record with longer waits to have it."
            )
        said += [f"{name}: {count} combinations skipped: {why}." for why, count in each.skipped.items()]
    return said


def _validate(recorded: Run, ours: Swept, count: int, folder: Path, out: Console) -> int:
    """Measure some points live, and say how far the replay was off."""
    import json

    from antiphon.core.errors import MachineError
    from antiphon.hindsight.validate import Difference, chosen, plan_again
    from antiphon.lab.summary import summarise

    found: list[Difference] = []
    for number, trial in enumerate(chosen(ours.family, count), 1):
        plan, habits = plan_again(recorded, trial.settings, folder / f"live-{number}")
        out.print(f"{number} of {count}: {trial.name}", markup=False)
        live, _ = measured(plan, habits)
        difference = Difference(
            name=trial.name, settings=trial.settings, replayed=trial.summary, live=summarise(live.turns)
        )
        found.append(difference)
        out.print(sentence(difference), markup=False, soft_wrap=True)
    file = folder / "validation.json"
    try:
        file.write_text(json.dumps([each.as_json() for each in found], indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise MachineError(f"{file} cannot be written: {error.strerror}", hint="name another folder") from error
    show_files([file], out)
    return 0 if all(each.is_near for each in found) else 1


def sentence(difference: Difference) -> str:
    """How far the replay was off at one setting."""
    from antiphon.lab.statistics import shown_ms

    live, replayed = difference.live, difference.replayed
    apart = "" if difference.p95_ms is None else f" ({difference.p95_ms:+.0f} ms)"
    verdict = "near" if difference.is_near else "off"
    return (
        f"{difference.name}: P95 {shown_ms(live.p95_ms)} live, {shown_ms(replayed.p95_ms)} replayed{apart}; cut-ins "
        f"{live.cut_ins} live, {replayed.cut_ins} replayed: {verdict}."
    )
