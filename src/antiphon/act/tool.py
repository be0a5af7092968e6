"""A Python function in, a tool that a language model can use out.

Threads: everything on the event loop; a plain function runs in a thread of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import check_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.flow import ToolSpec

PREAMBLE = "One moment."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something that the agent can do besides talk; `tool` makes one of a function.

    Raises:
        CallerError: a value is out of its range.
    """

    spec: ToolSpec
    function: Callable[..., object]  # plain or async; takes the parameters by name
    side_effects: bool = True  # without any it may run before the turn is confirmed, and for nothing
    timeout_s: float = 10.0
    preamble: str = PREAMBLE  # said while it runs, if that takes a while and the model has said nothing; may be empty

    def __post_init__(self) -> None:
        check_range("timeout_s", self.timeout_s, 0.01, 3600)

    async def run(self, arguments: str) -> Outcome:
        """Call the function with a JSON object's members.

        Whatever goes wrong is told to the model: arguments that do not fit, an exception, no result in time. A
        plain function that takes too long cannot be stopped; its result is dropped.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call, as the model reads it."""

    text: str
    failed: bool = False
