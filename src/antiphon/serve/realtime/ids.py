"""Names that the server gives: events, items, responses; each its own within a session, and rising.

Pure but for the counter; what it does not know: names that clients choose, which never begin with a counted stem.
"""

from __future__ import annotations


class Ids:
    """Of one session."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._made: dict[str, int] = {}

    def new(self, kind: str) -> str:
        """The next name of a kind: `item_9f3a1c_000012`."""
        count = self._made.get(kind, 0) + 1
        self._made[kind] = count
        return f"{kind}_{self._stem}_{count:06d}"
