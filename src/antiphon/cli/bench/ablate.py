"""`antiphon bench ablate`: what each mechanism of our own server is worth, by leaving it out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from antiphon.cli.bench import flags
from antiphon.cli.bench.measuring import console, show_files

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from antiphon.lab.clips import Clip
    from antiphon.lab.plan import BenchPlan
    from antiphon.lab.result import Run, Turn
    from antiphon.lab.schedule import Habits

CLIPS = 40
ALIVE = 4
MOST_ALIVE = 16


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "ablate",
        help="leave each mechanism of our own server out, and measure what it was worth",
        description="Starts servers that each lack one mechanism beside one with all of them, and says the same clips "
        "to each in turn.",
        epilog="docs/lab.md says how drift is shared and what the intervals are.",
    )
    flags.add_clips(parser)
    flags.add_own_server(parser)
    parser.add_argument("--clips", type=int, default=CLIPS, metavar="N", help=f"by a hash of their names ({CLIPS})")
    parser.add_argument("--mechanisms", default="", metavar="A,B", help="to leave out, one at a time; all")
    parser.add_argument(
        "--alive",
        type=int,
        default=ALIVE,
        metavar="N",
        help=f"servers at once, each some 0.8 GB, one of them with everything ({ALIVE})",
    )
    parser.add_argument("--warm-up", type=int, default=2, metavar="N", help="turns of each server, not counted (2)")
    parser.add_argument("--vocabulary", default="", metavar="WORDS", help="that will be said")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, write and show.

    Raises:
        CallerError: there is no such mechanism or corpus.
        PeerError: a server does not start.
        MachineError: the results cannot be written.
    """
    from antiphon.core.errors import CallerError, check_range
    from antiphon.lab.ablation import as_json, groups, show_worths, subset, worths
    from antiphon.lab.clips import choose, read_corpus
    from antiphon.lab.plan import BenchPlan, SessionWishes
    from antiphon.lab.schedule import Habits
    from antiphon.mechanisms import MECHANISMS, settings_without

    names = flags.listed(arguments.mechanisms) or tuple(MECHANISMS)
    settings_without(names)  # what is none is told before anything is started
    if len(set(names)) < len(names):
        raise CallerError("a mechanism is named twice", hint="name each once")
    check_range("--clips", arguments.clips, 1, 100_000)
    check_range("--alive", arguments.alive, 2, MOST_ALIVE)
    plan = BenchPlan(
        own_server=flags.server_arguments(arguments),
        corpus=arguments.corpus,
        kinds=flags.kinds_of(arguments),
        seed=arguments.seed,
        patience_s=arguments.patience_s,
        wishes=SessionWishes(vocabulary=arguments.vocabulary),
        wants_stamps=not arguments.no_stamps,
        out=flags.out_of(arguments),
    )
    habits = Habits(warm_up=arguments.warm_up, listens_s=arguments.listens_s, ruler_turns=arguments.ruler_turns)
    clips = subset(choose(read_corpus(plan.corpus), kinds=plan.kinds, seed=plan.seed), arguments.clips)
    assert plan.out is not None
    runs = [_group(group, clips, plan, habits, plan.out) for group in groups(names, arguments.alive)]
    found = worths(runs)
    about = {"made_by": "antiphon bench ablate", "clips": [clip.name for clip in clips], "settings": plan.settings()}
    about["machine"] = dict(next(iter(runs[0].values())).machine)
    file = _write(plan.out, as_json(found, about))
    out = console()
    show_worths(found, out)
    show_files([file], out)
    return 0


def _group(names: Sequence[str], clips: Sequence[Clip], plan: BenchPlan, habits: Habits, out: Path) -> dict[str, Run]:
    """The runs of some mechanisms' absence, and of everything beside them; each is written when it is over."""
    from antiphon.lab.ablation import WITH_ALL
    from antiphon.lab.loop import run as in_loop
    from antiphon.lab.side_by_side import side_by_side
    from antiphon.lab.store import write_run
    from antiphon.lab.terminal import Bar

    variants = {WITH_ALL: (), **{name: ("--without", name) for name in names}}
    with Bar(len(variants) * len(clips)) as bar:

        async def take(_name: str, turn: Turn) -> None:
            await bar.take(turn)

        runs = in_loop(side_by_side(variants, clips, plan, habits, on_turn=take))
    for name, each in runs.items():
        beside = f"-beside-{names[0]}" if name == WITH_ALL else ""
        write_run(each, out / f"{name}{beside}")
    return runs


def _write(folder: Path, found: dict[str, object]) -> Path:
    from antiphon.core.errors import MachineError
    from antiphon.lab.ablation import FILE_NAME

    file = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise MachineError(f"{file} cannot be written: {error.strerror}", hint="name another with --out") from error
    return file
