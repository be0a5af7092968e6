"""What became of each job: how long it waited and for whom, when it ran, what had been foretold.

`antiphon serve --trace-decisions FILE` writes one line of JSON for each; `antiphon simulate --slices FILE` reads its
times from there. No speech is in it. Units: ns of the monotonic clock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One job, or one stretch of a job that made way in between."""

    number: int
    caller: int
    turn: int = 0
    claim: int = 0  # jobs of one claim serve the same end: one draft, one look at the words so far
    stage: str
    lane: str
    size: int
    urgency: str  # when it began
    asked_ns: int
    began_ns: int
    ended_ns: int
    deadline_ns: int
    estimate_ns: int
    company: int = 0  # others in the same call
    kind: str = ""  # of jobs that can share a call: those of one lane and kind; "": it cannot, or the file is older
    most: int | None = None  # of that kind in one call; None: the file is from before this was written
    can_yield: bool | None = None  # it computes in steps, and can stop between them; None: as above
    reason: str = ""  # why it did not begin at once; "": it did
    ahead: tuple[int, ...] = ()  # the jobs that ran then
    made_way: bool = False  # it stopped for somebody more urgent, and went on later
    dropped: bool = False  # whoever asked for it gave up
    failed: bool = False

    @property
    def waited_ns(self) -> int:
        """From asking to beginning."""
        return self.began_ns - self.asked_ns

    @property
    def took_ns(self) -> int:
        """From beginning to end."""
        return self.ended_ns - self.began_ns

    def __str__(self) -> str:
        waited_ms, took_ms = self.waited_ns / 1e6, self.took_ns / 1e6
        why = f", because {self.reason}" if self.reason else ""
        return f"{self.stage} for caller {self.caller} waited {waited_ms:.1f} ms{why}; it took {took_ms:.1f} ms"


_FIELDS = tuple(item.name for item in fields(Decision))


class DecisionLog:
    """Appends decisions to a file; lines are buffered, and lost if the process is killed."""

    def __init__(self, path: Path) -> None:
        """Raises CallerError if the file cannot be written."""
        try:
            self._file = path.open("a", encoding="utf-8", buffering=1 << 16)
        except OSError as error:
            raise CallerError(
                f"decisions cannot be written to {path}: {error.strerror}", hint="name a file in a folder that exists"
            ) from error

    def write(self, decision: Decision) -> None:
        row = {name: getattr(decision, name) for name in _FIELDS}  # a tenth of what dataclasses.asdict takes
        self._file.write(json.dumps(row, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_decisions(path: Path) -> Iterator[Decision]:
    """The decisions of a file, in the order in which the jobs ended; fields of later versions are ignored.

    Raises:
        CallerError: the file cannot be read, or a line is none of a decision.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CallerError(f"{path} cannot be read: {error.strerror}", hint="name a file of decisions") from error
    for number, line in enumerate(lines, 1):
        try:
            values = {name: value for name, value in json.loads(line).items() if name in _FIELDS}
            yield Decision(**{**values, "ahead": tuple(values.get("ahead", ()))})
        except (ValueError, TypeError, AttributeError) as error:
            raise CallerError(
                f"{path}, line {number} is no decision", hint="antiphon serve --trace-decisions writes such files"
            ) from error
