"""All engines that are there are warmed up and freed, and none that is not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from antiphon.session import Engines

pytestmark = pytest.mark.unit

NEEDED = ("voice_detector", "recognizer", "language_model", "synthesizer")
WARM = {"recognizer", "language_model", "synthesizer"}  # the voice detector needs no warming


@dataclass
class Engine:
    """Notes what is done to it."""

    done: list[str] = field(default_factory=list)

    async def warm_up(self) -> None:
        self.done.append("warmed")

    def close(self) -> None:
        self.done.append("closed")


@pytest.mark.parametrize("more", [(), ("prosody",), ("quick_recognizer",), ("prosody", "quick_recognizer")])
def test_each_engine_is_warmed_up_and_closed_once(more: tuple[str, ...]) -> None:
    made: dict[str, Any] = {name: Engine() for name in (*NEEDED, *more)}
    engines = Engines(**made)
    asyncio.run(engines.warm_up())
    warmed = {name for name, engine in made.items() if engine.done}
    engines.close()

    assert {*WARM, *more} == warmed
    assert {1} == {engine.done.count("closed") for engine in made.values()}
