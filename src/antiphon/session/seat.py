"""The place that a conversation takes among those that share a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from antiphon.scheduling.job import new_caller

if TYPE_CHECKING:
    from antiphon.scheduling.shares import Signs


class Seat(Protocol):
    """Of one conversation."""

    caller: int  # its number, on whose behalf engines work

    def take(self) -> None:
        """The conversation begins.

        Raises:
            MachineError: there is no place left.
        """
        ...

    def leave(self) -> None:
        """It is over; said once, if it had begun."""
        ...

    def hears(self, signs: Signs) -> None:
        """What its microphone gives just now."""
        ...


class OwnSeat:
    """A conversation that shares its engines with nobody."""

    def __init__(self) -> None:
        self.caller = new_caller()

    def take(self) -> None: ...

    def leave(self) -> None: ...

    def hears(self, signs: Signs) -> None: ...
