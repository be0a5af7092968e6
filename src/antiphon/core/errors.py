"""Every error that Antiphon raises on purpose; the branch says who is to blame, `retryable` what to do.

    AntiphonError
      CallerError    what was asked for is wrong: a setting, a file, a name
      PeerError      another program failed us: a package index, a language model's server
      EngineError    a model failed on one piece of work; the session lives on
      MachineError   this machine lacks something: space, an instruction set, a right
        BusyError    it has no time for one more conversation just now

A message says what happened and the value seen; `hint` says what to do. Neither ever holds a caller's speech.
"""

from __future__ import annotations


class AntiphonError(Exception):
    """The root; catch it to catch all of ours and nothing else."""

    def __init__(self, message: str, *, hint: str = "", retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.retryable = retryable

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class CallerError(AntiphonError):
    """The request is wrong, and only who sent it can mend it."""


class PeerError(AntiphonError):
    """Another program did not do its part."""


class EngineError(AntiphonError):
    """A model failed on one piece of work."""


class MachineError(AntiphonError):
    """This machine lacks what the work needs."""


class BusyError(MachineError):
    """The conversations that are held already leave no time for another."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, retryable=True)


def check_range(name: str, value: float, lowest: float, highest: float) -> None:
    """Raises CallerError unless `lowest <= value <= highest`; a NaN is never in range."""
    if not lowest <= value <= highest:
        raise CallerError(f"{name} is {value}", hint=f"use a value from {lowest} to {highest}")
