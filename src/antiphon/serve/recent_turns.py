"""Turns whose outcome is known -> the latest of them, for whoever looks at the server as it runs.

Bounded: the oldest makes room. Prometheus keeps the long run; this is for eyes. Units: epoch seconds, ms.
Threads: the event loop.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 600  # some ten minutes of a busy small server


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentTurn:
    """One."""

    at_s: float
    outcome: str
    voice_to_voice_ms: float | None  # None without a reply that sounded


class RecentTurns:
    """Of one server."""

    def __init__(self, *, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._turns: deque[RecentTurn] = deque(maxlen=MOST)

    def add(self, outcome: str, voice_to_voice_ms: float | None) -> None:
        """One more is known."""
        self._turns.append(RecentTurn(at_s=self._now_s(), outcome=outcome, voice_to_voice_ms=voice_to_voice_ms))

    def wire(self) -> list[dict[str, object]]:
        """As JSON has them, the oldest first."""
        return [
            {"at_s": round(turn.at_s, 2), "outcome": turn.outcome, "voice_to_voice_ms": turn.voice_to_voice_ms}
            for turn in self._turns
        ]
