"""The contract of what computes completions: llama.cpp on a processor, our own engine on a GPU.

Threads: every call blocks and belongs on a worker thread, any number at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Completed:
    """One step of a completion: a piece of text, or only progress through the prompt."""

    text: str
    reached_limit: bool = field(default=False, kw_only=True)  # the last step: no more tokens were allowed
    candidates: tuple[tuple[str, float], ...] = ()  # likely tokens here and their log-probabilities, if asked for
    candidate_ids: tuple[int, ...] = ()  # the same tokens' numbers
    prompt_tokens: int | None = None  # of the whole prompt, while it is read
    cached_tokens: int = 0  # of these, those that need not be read
    read_tokens: int = 0  # of these, those that are read by now


class CompletionServer(Protocol):
    """A loaded model. A request is what llama.cpp's server takes; what is used of it stands in `llama.py`."""

    @property
    def is_closed(self) -> bool: ...

    def complete(self, request: Mapping[str, object], take: Callable[[Completed], bool]) -> None:
        """Run one completion and hand its steps to `take`, until that returns True or the completion ends.

        Raises:
            EngineError: the model failed, or it was closed before the call.
        """
        ...

    def tokens(self, text: str) -> tuple[int, ...]:
        """The tokens of `text`, control markers included.

        Raises:
            EngineError: the model failed.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """How many these are; raises the same."""
        ...

    def forget(self, slot: int) -> None:
        """Nobody needs what a slot holds any more."""
        ...

    def close(self) -> None:
        """Accept no more calls."""
        ...
