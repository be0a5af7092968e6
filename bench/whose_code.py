"""A place as the server logs it ("file.py:12 qualname > ...") in -> whether its innermost frame is Antiphon's.

Log lines name files without their folders, so a place counts as ours if one of our files of that name has code of that
qualified name.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import antiphon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

PACKAGE = Path(antiphon.__file__).parent


def is_ours(place: str) -> bool:
    """Whether the innermost frame, the last one named, is ours."""
    innermost = place.rpartition(" > ")[2]
    where, _, name = innermost.partition(" ")
    return (where.partition(":")[0], name) in _all()


@cache
def _all() -> frozenset[tuple[str, str]]:
    return frozenset((path.name, name) for path in PACKAGE.rglob("*.py") for name in _names(path))


def _names(path: Path) -> Iterator[str]:
    waiting: list[CodeType] = [compile(path.read_text(encoding="utf-8"), path.name, "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        yield code.co_qualname
        waiting += [each for each in code.co_consts if hasattr(each, "co_qualname")]
