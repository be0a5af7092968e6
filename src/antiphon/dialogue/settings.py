"""How a conversation takes turns, as values that a user may change."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.errors import CallerError


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """Turn taking; times in milliseconds.

    Raises:
        CallerError: a value is out of its range; the message names the field.
    """

    shortest_wait_ms: int = 100  # silence that a turn's end takes at least, however sure we are
    longest_wait_ms: int = 1200  # silence after which a turn is over, however unfinished it sounds
    longest_turn_s: int = 120  # a turn is answered after this much speech, finished or not
    stalled_ms: int = 500  # no sound at all for this long counts as a pause: the microphone went away
    interrupt_ms: int = 250  # voice over our reply for this long takes the turn back

    def __post_init__(self) -> None:
        check_range("shortest_wait_ms", self.shortest_wait_ms, 0, 10_000)
        check_range("longest_wait_ms", self.longest_wait_ms, self.shortest_wait_ms, 60_000)
        check_range("longest_turn_s", self.longest_turn_s, 1, 3600)
        check_range("stalled_ms", self.stalled_ms, 100, 60_000)
        check_range("interrupt_ms", self.interrupt_ms, 32, 10_000)


def check_range(name: str, value: int, lowest: int, highest: int) -> None:
    """Raises CallerError unless `lowest <= value <= highest`."""
    if not lowest <= value <= highest:
        raise CallerError(f"{name} is {value}", hint=f"use a value from {lowest} to {highest}")
