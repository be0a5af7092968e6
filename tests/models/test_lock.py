"""One process at a time, and the others are told that they wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from antiphon.models.lock import exclusive

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def test_a_held_lock_is_waited_for_and_the_waiting_told(tmp_path: Path) -> None:
    """on_wait is called once, and the lock is free again after its block."""
    told: list[str] = []
    path = tmp_path / "lock"
    with exclusive(path, on_wait=lambda: told.append("no")):
        release = threading.Event()
        waiter = threading.Thread(target=_hold, args=(path, told, release))
        waiter.start()
        assert release.wait(5)
    waiter.join(5)

    assert told == ["waiting", "mine"]


def _hold(path: Path, told: list[str], release: threading.Event) -> None:
    with exclusive(path, on_wait=lambda: (told.append("waiting"), release.set()), pause=lambda _: None):
        told.append("mine")
