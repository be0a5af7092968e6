"""`antiphon demo`: a bundled spoken question, answered, and the turn laid open."""

from __future__ import annotations

from contextlib import ExitStack
from importlib import resources
from typing import TYPE_CHECKING

from antiphon.cli.config import add_flags, resolve
from antiphon.cli.converse import Outputs, add_output_flags, hold

if TYPE_CHECKING:
    import argparse

    from antiphon.config import Config

# The bundled question is an order in a coffee shop; examples/barista.py is the long form of this.
INSTRUCTIONS = "You are the barista of a small coffee shop. Answer the customer in one short sentence."
VOCABULARY = ("cappuccino", "latte", "single shot", "double shot", "triple shot", "sugar", "milk")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the line."""
    parser = subparsers.add_parser(
        "demo",
        help="answer a bundled spoken question and show how",
        description="Fetches the default models if need be, plays a recorded question in real time, answers it aloud "
        "into a file, and shows the turn.",
    )
    add_output_flags(parser, out="conversation.wav", timeline="timeline.png")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fetch, play, answer, show."""
    from antiphon.agent import Agent

    config = resolve(arguments).config
    fetch_missing(config)
    agent = Agent(instructions=INSTRUCTIONS, vocabulary=VOCABULARY, max_tokens=60)
    outputs = Outputs(wav=arguments.out, picture=arguments.timeline, json=arguments.json)
    with ExitStack() as stack:
        question = resources.files("antiphon").joinpath("assets/order.flac")
        return hold(agent, config, [stack.enter_context(resources.as_file(question))], outputs)


def fetch_missing(config: Config) -> None:
    """Bring the configured models of the catalogue that are not on this machine; nothing is asked of the network else.

    Raises: as Store.fetch.
    """
    from antiphon.cli.models import progress_display
    from antiphon.models.catalogue import CATALOGUE
    from antiphon.models.store import Store

    # Files and servers of the user's own are theirs to bring.
    chosen = [name for name in config.models.names if name in CATALOGUE]
    store = Store()
    if any(store.state(name).condition != "present" for name in chosen):
        with progress_display() as progress:
            store.fetch(chosen, progress)
