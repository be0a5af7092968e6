"""The kernel's ways to write numbers and lists are read, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from antiphon.hardware.kernel_files import list_of, number_of, numbered_folders, read_text

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("0", (0,)),
        ("", ()),
        ("\n", ()),
        ("8,0-1", (0, 1, 8)),
        ("3-1", ()),
        ("a,1", (1,)),
        ("0-99999999999", ()),
        ("-1", ()),
        ("1-2-3", ()),
    ],
)
def test_lists(text: str, expected: tuple[int, ...]) -> None:
    """Ranges and single numbers; a list that claims a million cores is damaged."""
    assert expected == list_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12\n", 12),
        ("-1", -1),
        ("", None),
        ("max", None),
        ("1.5", None),
        ("--1", None),
        ("²", None),
        ("9" * 5000, None),
    ],
)
def test_numbers(text: str, expected: int | None) -> None:
    """Decimal ones, as long as the kernel writes them."""
    assert expected == number_of(text)


def test_numbered_folders(tmp_path: Path) -> None:
    """By number and not by letter; neighbours of like names are none."""
    for name in ("cpu10", "cpu2", "cpufreq", "cpuidle", "cpu", "online"):
        (tmp_path / name).mkdir()

    assert [2, 10] == list(numbered_folders(tmp_path, "cpu"))
    assert {} == numbered_folders(tmp_path / "nowhere", "cpu")


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    """A folder, a missing file, a name that no file can have."""
    assert ["", "", ""] == [read_text(tmp_path / name) for name in (".", "nowhere", "a\0b")]
