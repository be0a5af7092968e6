"""Loaded engines for a whole module, on one event loop: loading them once is enough."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antiphon.agent import Agent
from antiphon.cli.rehearsal import Rehearsal
from antiphon.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from antiphon.runtime import Runtime
    from antiphon.session.events import Event


@dataclass
class Stage:
    """Somewhere to hold conversations with the real models."""

    runner: asyncio.Runner
    runtime: Runtime

    def hold(self, files: Sequence[Path], agent: Agent) -> tuple[Rehearsal, list[Event]]:
        heard: list[Event] = []
        rehearsal = Rehearsal(heard.append)

        async def main() -> None:
            async with agent.session(self.runtime, config=Config()) as session:
                await rehearsal.play(session, files)

        self.runner.run(main())
        return rehearsal, heard


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    with asyncio.Runner() as runner:
        runtime = runner.run(Agent().load(Config()))
        yield Stage(runner, runtime)
        runtime.close()


@pytest.fixture(scope="session")
def barista() -> Agent:
    return Agent(
        instructions="You are the barista of a small coffee shop. Answer the customer in one short sentence.",
        vocabulary=("cappuccino", "latte", "single shot", "triple shot", "skim milk", "sugar", "twenty ounce"),
        max_tokens=24,
    )


@pytest.fixture(scope="session")
def clip() -> Path:
    """The bundled order: "can I get a triple shot cappuccino with sugar and milk"."""
    return Path(str(resources.files("antiphon").joinpath("assets/order.flac")))


@pytest.fixture(scope="session")
def short_clip() -> Path:
    """The bundled short order: "can I get a cappuccino with skim milk"."""
    return Path(str(resources.files("antiphon").joinpath("assets/short_order.flac")))
