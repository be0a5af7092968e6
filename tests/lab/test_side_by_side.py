"""Several servers on the same clips, in virtual time: who is spoken to when, and whose turn it was."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile
from tests.lab.fake_server import Answer, InMemory, Script, tone
from tests.virtual_time import VirtualClock, run

from antiphon.lab.clips import read_corpus
from antiphon.lab.own_server import OwnServer
from antiphon.lab.plan import BenchPlan
from antiphon.lab.schedule import Habits
from antiphon.lab.side_by_side import Around, order, side_by_side

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from antiphon.lab.clips import Clip
    from antiphon.lab.result import Run, Turn

pytestmark = pytest.mark.unit


def clips_in(folder: Path, count: int) -> list[Clip]:
    lines = []
    for number in range(count):
        quiet = np.zeros(1600, np.float32)
        soundfile.write(folder / f"{number}.wav", np.concatenate([quiet, tone(200, 16_000), quiet]), 16_000)
        lines.append(json.dumps({"file": f"{number}.wav", "speech_start_s": 0.1, "speech_end_s": 0.3}))
    (folder / "manifest.jsonl").write_text("\n".join(lines))
    return list(read_corpus(folder))


def measured(clips: list[Clip], delays_ms: dict[str, float]) -> tuple[dict[str, Run], list[str], list[tuple[str, ...]]]:
    """Servers that answer so late each: their runs, whose turn came when, and what they were started with."""
    started: list[tuple[str, ...]] = []
    said: list[str] = []

    async def main() -> dict[str, Run]:
        servers = {name: InMemory(Script(answers=(Answer(delay_ms=ms),))) for name, ms in delays_ms.items()}

        @asynccontextmanager
        async def start(arguments: Sequence[str]) -> AsyncIterator[OwnServer]:
            started.append(tuple(arguments))
            yield OwnServer(url=arguments[-1], pid=0)

        async def take(name: str, _turn: Turn) -> None:
            said.append(name)

        plan = BenchPlan(own_server=("--agent", "a.py"))
        try:
            return await side_by_side(
                {name: ("--without", name) for name in delays_ms},
                clips,
                plan,
                Habits(warm_up=1, ruler_turns=0),
                on_turn=take,
                around=Around(start=start, dial=lambda url: servers[url].dial(), clock=VirtualClock()),
            )
        finally:
            for server in servers.values():
                await server.close()

    return run(main()), said, started


def test_each_clip_is_said_to_each_server_in_turn(tmp_path: Path) -> None:
    """Warm-up turns do not count, and each server's turns are its own."""
    runs, said, started = measured(clips_in(tmp_path, 2), {"one": 300, "two": 500})

    assert ["one", "two", "two", "one"] == said
    assert [("--agent", "a.py", "--without", "one"), ("--agent", "a.py", "--without", "two")] == started
    assert {"one": ["0.wav", "1.wav"], "two": ["0.wav", "1.wav"]} == {
        name: [turn.clip for turn in each.turns] for name, each in runs.items()
    }
    assert [0, 1] == [turn.number for turn in runs["one"].turns]
    assert pytest.approx(200, abs=25) == (runs["two"].turns[0].v2v_ms or 0) - (runs["one"].turns[0].v2v_ms or 0)
    assert ["--agent", "a.py", "--without", "two"] == runs["two"].settings["own_server"]


def test_every_server_begins_as_often() -> None:
    """And the second half goes backwards, so that none follows the same one all the time."""
    orders = [order(["a", "b", "c"], number) for number in range(6)]

    assert Counter({"a": 2, "b": 2, "c": 2}) == Counter(each[0] for each in orders)
    assert [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]] == orders[:3]
    assert ["c", "b", "a"] == orders[3]
