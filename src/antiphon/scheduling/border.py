"""Where a call that computes in steps can be asked to make way: between two tokens, or two batches of a prompt.

Threads: `ask` on the event loop, `reached` on the thread that computes; both only read and write single attributes.
"""

from __future__ import annotations


class Border:
    """Of one call."""

    def __init__(self) -> None:
        self.is_asked = False  # to make way at the next border
        self.passed = 0  # borders

    def ask(self) -> None:
        """Somebody more urgent waits, or nobody waits for this any more."""
        self.is_asked = True

    def reached(self) -> bool:
        """One more step is done; True if the call is to end here, to be gone on with later."""
        self.passed += 1
        return self.is_asked
