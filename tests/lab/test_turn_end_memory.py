"""What is kept for the next evaluation, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from antiphon.core.errors import MachineError
from antiphon.lab.turn_end_memory import Memory, key_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def test_what_was_kept_is_there_next_time(tmp_path: Path) -> None:
    """In a file, made with its folder."""
    memory = Memory(tmp_path / "kept" / "scores.json")
    memory.put("a", [0.5])
    memory.save()
    assert [0.5] == Memory(tmp_path / "kept" / "scores.json").get("a")


def test_the_longest_unused_goes_first() -> None:
    """Of two places the one that was read just now stays."""
    memory = Memory(most=2)
    memory.put("a", 1)
    memory.put("b", 2)
    memory.get("a")
    memory.put("c", 3)
    assert (1, None, 3, 2) == (memory.get("a"), memory.get("b"), memory.get("c"), len(memory))


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"schema": "other", "entries": {"a": 1}}', '{"entries": 1}'])
def test_a_file_that_is_none_of_ours_is_forgotten(tmp_path: Path, text: str) -> None:
    """It only saves work."""
    (tmp_path / "scores.json").write_text(text)
    assert 0 == len(Memory(tmp_path / "scores.json"))


def test_nothing_new_is_not_written(tmp_path: Path) -> None:
    """Without a file there is nothing to write either."""
    Memory(tmp_path / "scores.json").save()
    Memory().save()
    assert [] == list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """As whose fault it is."""
    (tmp_path / "kept").write_text("")
    memory = Memory(tmp_path / "kept" / "scores.json")
    memory.put("a", 1)
    with pytest.raises(MachineError, match="cannot be written"):
        memory.save()


def test_a_key_depends_on_the_sound_and_all_else() -> None:
    """And on nothing more."""
    sound = np.zeros(3, np.float32)
    keys = {key_of("v", sound, 1), key_of("w", sound, 1), key_of("v", sound + 1, 1), key_of("v", sound, 2)}
    assert 4 == len(keys)
    assert key_of("v", sound, 1) == key_of("v", sound.copy(), 1)
