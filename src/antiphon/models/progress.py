"""How a download tells its progress: calls from the threads that download, in whatever way one wants to show it.

Threads: every method may be called from several threads at once, and must not block for long.
"""

from __future__ import annotations

from typing import Protocol


class Transfer(Protocol):
    """One run of bytes that is on its way."""

    def advance(self, count_bytes: int) -> None:
        """`count_bytes` more have come; negative where a server made us start again."""
        ...

    def end(self) -> None:
        """It is over, well or not."""
        ...


class Progress(Protocol):
    """Where transfers are shown."""

    def begin(self, name: str, total_bytes: int | None) -> Transfer:
        """A transfer begins; the total is None where the server does not say."""
        ...

    def note(self, text: str) -> None:
        """Something that a person who waits would want to know."""
        ...


class SilentTransfer:
    """Shows nothing."""

    def advance(self, count_bytes: int) -> None: ...

    def end(self) -> None: ...


class SilentProgress:
    """Shows nothing."""

    def begin(self, name: str, total_bytes: int | None) -> Transfer:  # noqa: ARG002 - nothing is shown
        return SilentTransfer()

    def note(self, text: str) -> None: ...
