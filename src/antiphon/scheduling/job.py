"""A piece of work that an engine asks time for: what it is, how long it may take, by when it is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.core.stamps import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The request; the call itself travels beside it."""

    stage: Stage
    estimate_ns: int = 0  # 0: unknown
    deadline_ns: int | None = None  # None: whenever there is time
