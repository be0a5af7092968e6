"""A function's docstring in, what it says of the function and of each parameter out.

Two ways of writing are read, also side by side: a Google section ("Args:", indented "name: text" or "name (type):
text") and Sphinx fields (":param name: text", ":param type name: text"). Whatever else stands there is left out.
Threads: pure.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SECTION = re.compile(r"(args|arguments|parameters|params)\s*:", re.IGNORECASE)
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_FIELD = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")
_ANY_SECTION = re.compile(r"[A-Z][A-Za-z ]*:\s*$")  # "Returns:", "Raises:" and their like


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says, each text on one line."""

    summary: str  # its first paragraph
    parameters: Mapping[str, str]


def read_docstring(text: str | None) -> Docstring:
    """Never fails: what is written in another way is not found."""
    lines = inspect.cleandoc(text or "").splitlines()
    return Docstring(_summary(lines), dict([*_google(lines), *_sphinx(lines)]))


def _summary(lines: list[str]) -> str:
    kept = []
    for line in lines:
        if not line.strip() or _SECTION.fullmatch(line.strip()) or line.startswith(":") or _ANY_SECTION.fullmatch(line):
            break
        kept.append(line.strip())
    return " ".join(kept)


def _google(lines: list[str]) -> Iterator[tuple[str, str]]:
    start = next((index for index, line in enumerate(lines) if _SECTION.fullmatch(line)), None)
    if start is None:
        return
    name, words, depth = "", "", 0
    for line in lines[start + 1 :]:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:  # the section is over
            break
        depth = depth or indent
        entry = _ENTRY.fullmatch(line.strip()) if indent <= depth else None
        if entry is None:
            words = f"{words} {line.strip()}".strip()
            continue
        if name:
            yield name, words
        name, words = entry[1], entry[2].strip()
    if name:
        yield name, words


def _sphinx(lines: list[str]) -> Iterator[tuple[str, str]]:
    name, words = "", ""
    for line in [*lines, ""]:
        field = _FIELD.fullmatch(line.strip())
        goes_on = bool(line.strip()) and not line.lstrip().startswith(":")
        if name and not goes_on:
            yield name, words
            name = ""
        elif name:
            words = f"{words} {line.strip()}".strip()
        if field is not None:
            name, words = field[1], field[2].strip()
