"""The command line of `antiphon bench` -> its parser, and that of each action."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.cli.bench import flags
from antiphon.cli.bench.ablate import add as add_ablate
from antiphon.cli.bench.measuring import run
from antiphon.cli.bench.replay import add as add_replay
from antiphon.cli.bench.results import add as add_results
from antiphon.cli.bench.sweep import add as add_sweep
from antiphon.cli.bench_corpus import add as add_corpus
from antiphon.cli.bench_turn_end import add as add_turn_end

if TYPE_CHECKING:
    import argparse


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the line."""
    parser = subparsers.add_parser(
        "bench",
        help="measure voice-to-voice latency and cut-ins of any OpenAI-Realtime server",
        description="Says recorded speech to a server in real time and measures from outside when the reply is heard. "
        "Without --url it starts a server of its own.",
        epilog="docs/lab.md says what is measured, and what a corpus is.",
    )
    flags.add_address(parser)
    flags.add_clips(parser)
    flags.add_scenario(parser)
    flags.add_own_server(parser)
    flags.add_wishes(parser)
    parser.add_argument("--require", metavar="LIST", help=f"end with code 1 unless it is met: {flags.REQUIRED}")
    parser.add_argument(
        "--record",
        action="store_true",
        help="our own server writes down what it decides by, for `antiphon bench replay`; it holds what was said",
    )
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(metavar="ACTION", title="more than one run")
    for add_action in (add_results, add_sweep, add_ablate, add_replay, add_turn_end, add_corpus):
        add_action(actions)
