"""A file of Linux's /proc or /sys -> its text, its number, or its list of cores; a file that is not there is empty.

Threads: any; blocks for one read. Knows the forms in which the kernel writes, not what they mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MOST_CORES = 1 << 16  # more than any kernel is built for; a list that claims more is damaged


def read_text(file: Path) -> str:
    """The whole text; "" if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # ValueError: a path with a zero byte
        return ""


def read_number(file: Path) -> int | None:
    """The number, which may be negative, that is all the file holds; None for anything else."""
    return number_of(read_text(file))


def number_of(text: str) -> int | None:
    """A decimal number in ASCII and of a length that a kernel writes; None for anything else."""
    text = text.strip()
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= 20 else None


def list_of(text: str) -> tuple[int, ...]:
    """Numbers of cores or nodes written as `0-3,8`; what makes no sense is left out."""
    numbers: set[int] = set()
    for piece in text.strip().split(","):
        low, _, high = piece.partition("-")
        first, last = number_of(low), number_of(high or low)
        if first is not None and last is not None and 0 <= first <= last < MOST_CORES:
            numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def numbered_folders(parent: Path, prefix: str) -> dict[int, Path]:
    """The folders named by the prefix and a number, as cpu0, in order; empty if there are none."""
    try:
        names = [entry.name for entry in parent.iterdir()]
    except OSError:
        return {}
    numbers = {number_of(name.removeprefix(prefix)): name for name in names if name.startswith(prefix)}
    found = sorted((number, name) for number, name in numbers.items() if number is not None and number >= 0)
    return {number: parent / name for number, name in found}
