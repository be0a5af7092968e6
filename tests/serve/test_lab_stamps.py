"""The lab measures a server of ours, with doubles for engines, and gets the stamps that it asks for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile
from tests.lab.fake_server import silence, tone
from tests.serve.doubles import house, running

from antiphon.lab import loop
from antiphon.lab.measure import measure
from antiphon.lab.plan import BenchPlan
from antiphon.lab.result import Outcome, Run
from antiphon.lab.schedule import Habits
from antiphon.lab.waterfall import NAMES
from antiphon.serve.protocol import pick_up

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.lab.result import Turn

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BUSY_MS = 400.0  # what a loaded machine may add


def test_a_turn_of_the_lab_has_the_server_s_stages(tmp_path: Path) -> None:
    """All that its report has words for, none later than the sound that the lab has heard."""
    pcm = np.concatenate([silence(300, 16_000), tone(1500, 16_000), silence(300, 16_000)])
    soundfile.write(tmp_path / "a.wav", pcm, 16_000)
    line = {"file": "a.wav", "speech_start_s": 0.3, "speech_end_s": 1.8, "text": ""}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(line))

    async def take(_turn: Turn) -> None:
        pass

    async def main() -> Run:
        async with running(house(pick_up=pick_up)) as place:
            plan = BenchPlan(url=place.url, corpus=tmp_path, turns=1)
            return await measure(plan, on_turn=take, habits=Habits(ruler_turns=0, pause_s=0.0))

    run = loop.run(main())
    (turn,) = run.turns
    assert (Outcome.ANSWERED, ["antiphon.timeline"], ()) == (turn.outcome, run.server["include"], run.notes)
    assert set(NAMES) == set(turn.stages_ms)
    assert turn.v2v_ms is not None
    assert 0 < turn.stages_ms["antiphon.reply.first_sound"] <= turn.v2v_ms + BUSY_MS
