"""Trials at several settings: their frontier in figures, words and JSON."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from tests.lab.runs import turn

from antiphon.lab import charts
from antiphon.lab.result import Outcome
from antiphon.lab.summary import summarise
from antiphon.lab.trade import Family, Trial, show_trade, words, write_trade

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def trial(name: str, p95_ms: float | None, cut_ins: int) -> Trial:
    """Of a hundred turns, all as fast."""
    cut = [turn(None, outcome=Outcome.CUT_IN)] * cut_ins
    return Trial(name=name, settings={"x": name}, summary=summarise([turn(p95_ms)] * (100 - cut_ins) + cut))


FAMILY = Family(
    name="ours",
    trials=(trial("slow", 600, 0), trial("fast", 200, 20), trial("worse", 500, 10), trial("lost", None, 3)),
)


def test_the_frontier_is_what_no_mixture_beats() -> None:
    """Half of slow and half of fast is 400 ms at 10 %, which is better than 500."""
    assert ["slow", "fast"] == [each.name for each in FAMILY.best]
    assert "ours: 4 trials, 2 on the frontier; P95 390 ms on the average from 1 to 20 % of cut-ins." == words(FAMILY)


def test_a_number_needs_a_point_at_the_left() -> None:
    family = Family(name="theirs", trials=(trial("fast", 200, 20),))

    assert "theirs: 1 trials, 1 on the frontier; no area, for none cuts in on 1 % of turns or fewer." == words(family)


def test_all_of_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An infinite P95 is null, and has no place on the frontier."""
    monkeypatch.setattr(charts, "can_draw", lambda: False)
    (file,) = write_trade([FAMILY], tmp_path / "new", {"made_by": "x"})
    told = json.loads(file.read_text())

    assert ("antiphon.trade/1", "x") == (told["schema"], told["made_by"])
    assert ["slow", "fast"] == told["families"][0]["frontier"]
    assert [600, 200, 500, None] == [each["p95_ms"] for each in told["families"][0]["trials"]]
    assert [0, 20, 10, 3] == [each["cut_ins"] for each in told["families"][0]["trials"]]


def test_it_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    _, picture = write_trade([FAMILY, Family(name="none", trials=())], tmp_path, {})

    assert picture.read_bytes().startswith(b"\x89PNG")


def test_it_is_shown() -> None:
    console = Console(file=io.StringIO(), width=200)
    show_trade([FAMILY], console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]

    assert "20 of 100" in shown
    assert "never" in shown
