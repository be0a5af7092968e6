"""Each engine loads on the lane that the plan has for it, a quick recognizer only where one is named."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.hardware.planning import QUICK, config, plan, recorded

from antiphon import loading
from antiphon.core.clock import MonotonicClock
from antiphon.core.errors import CallerError, MachineError
from antiphon.hardware.plan import Role
from antiphon.loading import Lanes, load_engines
from antiphon.models.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.config import Config
    from antiphon.hardware.stage_plans import StagePlan
    from antiphon.scheduling.lanes import Lane

pytestmark = pytest.mark.unit


class Ears:
    """A recognizer that is loaded in no time."""

    def __init__(self, name: str, lane: Lane, threads: int) -> None:
        self.loaded = (name, lane, threads)
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def ears(monkeypatch: pytest.MonkeyPatch) -> list[Ears]:
    """The recognizers that were loaded."""
    loaded: list[Ears] = []

    def load(name: str, _config: Config, _store: Store, lane: Lane, stage: StagePlan, _gpu: object) -> Ears:
        loaded.append(Ears(name, lane, stage.threads))
        return loaded[-1]

    monkeypatch.setattr(loading, "_recognizer", load)
    return loaded


def test_two_recognizers_load_side_by_side_and_are_freed_with_the_rest(ears: list[Ears], tmp_path: Path) -> None:
    """Each on its own lane with its own threads; as another model is missing here, both are closed again."""
    settings = config(models={**QUICK, "prosody": ""})
    made = plan(recorded("vm_2_cores"), settings)
    lanes = Lanes.of(made, settings, MonotonicClock())
    try:
        with pytest.raises(MachineError, match="not on this machine"):
            asyncio.run(load_engines(settings, Store(tmp_path), made, lanes))
    finally:
        lanes.close()
    by_name: dict[str, Any] = {each.loaded[0]: each for each in ears}

    assert (lanes.by_role[Role.RECOGNIZER], 2) == by_name["whisper-tiny.en"].loaded[1:]
    assert (lanes.by_role[Role.QUICK_RECOGNIZER], 2) == by_name["moonshine-tiny.en"].loaded[1:]
    assert all(each.is_closed for each in ears)


def test_without_a_name_there_is_no_second_one(ears: list[Ears], tmp_path: Path) -> None:
    settings = config(models={"prosody": ""})
    made = plan(recorded("vm_2_cores"), settings)
    lanes = Lanes.of(made, settings, MonotonicClock())
    try:
        with pytest.raises(MachineError):
            asyncio.run(load_engines(settings, Store(tmp_path), made, lanes))
    finally:
        lanes.close()

    assert ["whisper-tiny.en"] == [each.loaded[0] for each in ears]
    assert Role.QUICK_RECOGNIZER not in lanes.by_role


@pytest.mark.parametrize(("name", "kind"), [("moonshine-tiny.em", CallerError), ("moonshine-tiny.en", MachineError)])
def test_a_quick_recognizer_that_is_not_here_is_told(name: str, kind: type[Exception], tmp_path: Path) -> None:
    """By its name, as any other model."""
    settings = config(models={"quick_recognizer": name})
    made = plan(recorded("vm_2_cores"), settings)
    lanes = Lanes.of(made, settings, MonotonicClock())
    try:
        with pytest.raises(kind, match="moonshine-tiny"):
            loading._recognizer(
                name, settings, Store(tmp_path), lanes.by_role[Role.QUICK_RECOGNIZER], made.stage(Role.QUICK_RECOGNIZER)
            )
    finally:
        lanes.close()
