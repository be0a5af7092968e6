"""Conversations as they begin -> a log of each one's decisions in a folder, if the owner of the server asked for it.

Off unless `record.folder` is set. A log holds what was said as text, so the folder is for its owner alone; what it is
good for, and how a conversation is deleted, is in docs/replay.md. A conversation is never worse off for its log: one
that cannot be begun or goes on no longer is told once in the server's own log lines, and callers are served on.
Bounds: `record.most_mb` of each log, `record.most_logs` of them, those that lay there before included; whoever moves
old ones away has to start the server again to have more written.
Threads: the event loop; a log's line takes 0.03 ms (dialogue/log.py).
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from antiphon import __version__
from antiphon.core.errors import AntiphonError, CallerError
from antiphon.dialogue.log import StimulusLog
from antiphon.serve.log_lines import SessionLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.log import LogSettings
    from antiphon.dialogue.state import Dialogue
    from antiphon.dialogue.stimuli import Stimulus

SUFFIX = ".jsonl"


class Record(Protocol):
    """Of one conversation."""

    def watch(self, stimulus: Stimulus, commands: tuple[Command, ...]) -> None:
        """One step of it."""
        ...

    def close(self) -> None:
        """It is over."""
        ...


class _None:
    """Nothing is kept."""

    def watch(self, stimulus: Stimulus, commands: tuple[Command, ...]) -> None: ...

    def close(self) -> None: ...


NOT_RECORDED: Record = _None()


class Records:
    """Of one server."""

    def __init__(self, settings: LogSettings, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Make the folder, and count what lies in it.

        Raises:
            CallerError: it cannot be made or read.
        """
        self._settings = settings
        self._now = now
        self._folder = Path(settings.folder) if settings.folder else None
        self._logs = 0
        if self._folder is None:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._logs = sum(path.suffix == SUFFIX for path in self._folder.iterdir())
        except OSError as error:
            raise CallerError(
                f"{self._folder} cannot be written: {error.strerror}", hint="name a folder of your own with --record"
            ) from error

    def begin(self, session: str, start: Dialogue) -> Record:
        """The log of a conversation that begins now, named by the UTC time and the session's name."""
        if self._folder is None:
            return NOT_RECORDED
        lines = SessionLog(session)
        if self._logs >= self._settings.most_logs:
            lines.warning("record.refused", why=f"{self._logs} logs lie in the folder, which is all that may")
            return NOT_RECORDED
        path = self._folder / f"{self._now().astimezone(UTC):%Y%m%dT%H%M%SZ}-{session}{SUFFIX}"
        try:
            log = StimulusLog(path, settings=self._settings, warn=partial(_tell_end, lines))
        except AntiphonError as error:
            lines.warning("record.refused", why=error.message)
            return NOT_RECORDED
        self._logs += 1
        log.begin(start, version=__version__, now=self._now)
        return log


def _tell_end(lines: SessionLog, why: str) -> None:
    lines.warning("record.ended", why=why)
