"""What the server does in -> JSON lines on a stream, written by a thread of its own.

A line has `time`, `level`, `event`, and for a session's its id and the `traceparent` it came with. It never holds
speech, text or keys: of an error that is not one of ours only the type and the place are written, for its message may
quote what it choked on. Threads: any thread may log and none waits: when nobody reads the stream, lines are dropped
and counted.
"""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from antiphon.core.errors import AntiphonError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

LOGGER = logging.getLogger("antiphon.serve")
FOREIGN = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")  # of whom only warnings are of interest
MOST_LINES = 2000  # that wait to be written
LAST_LINES_S = 1.0  # for what waits when the server ends
FIELDS = "antiphon_fields"


class SessionLog:
    """Lines of one session, or of the server with an empty id."""

    def __init__(self, session: str = "", traceparent: str = "") -> None:
        self._about: dict[str, object] = {"session": session} if session else {}
        if traceparent:
            self._about["traceparent"] = traceparent

    def debug(self, event: str, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, error: BaseException | None = None, **fields: object) -> None:
        self._write(logging.ERROR, event, fields | ({} if error is None else {"error": describe(error)}))

    def _write(self, level: int, event: str, fields: dict[str, object]) -> None:
        if LOGGER.isEnabledFor(level):
            LOGGER.log(level, event, extra={FIELDS: self._about | fields})


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        is_ours = hasattr(record, FIELDS)
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.msg if is_ours else record.name,
        }
        if is_ours:
            line |= getattr(record, FIELDS)
        elif record.exc_info and record.exc_info[1] is not None:
            line["error"] = describe(record.exc_info[1])
        else:
            line["message"] = str(record.msg).partition("\n")[
                0
            ]  # unformatted: what would be filled in may be a client's
        return json.dumps(line, ensure_ascii=True, default=str)


def describe(error: BaseException) -> str:
    """An error without anything that it may quote: ours in words, others by type and place."""
    if isinstance(error, AntiphonError):
        return error.message
    if isinstance(error, BaseExceptionGroup):
        return f"{type(error).__name__}({', '.join(describe(each) for each in error.exceptions)})"
    return f"{type(error).__name__} at {places(list(traceback.walk_tb(error.__traceback__))[-3:])}"


def places(frames: Iterable[tuple[FrameType, int]]) -> str:
    """Where code stands, as (frame, line), without its values; no file is read for it."""
    return " > ".join(
        f"{Path(frame.f_code.co_filename).name}:{line} {frame.f_code.co_qualname}" for frame, line in frames
    )


class _Dropping(logging.Handler):
    """Hands records to a thread that writes them, or drops them when too many wait."""

    def __init__(self, writer: logging.Handler, on_lost: Callable[[], None]) -> None:
        super().__init__()
        self._writer = writer
        self._on_lost = on_lost
        self._records: queue.Queue[logging.LogRecord | None] = queue.Queue(MOST_LINES)
        self._thread = threading.Thread(target=self._run, name="antiphon-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._records.put_nowait(record)
        except queue.Full:
            self._on_lost()

    def close(self) -> None:
        """Write what waits; a stream that takes nothing gets a second, no more."""
        with suppress(queue.Full):
            self._records.put(None, timeout=LAST_LINES_S)
            self._thread.join(LAST_LINES_S)
        super().close()

    def _run(self) -> None:
        while (record := self._records.get()) is not None:
            self._writer.handle(record)


@contextmanager
def written(
    stream: TextIO | None = None, *, level: int = logging.INFO, on_lost: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Write lines to `stream`, standard error if none is given, until the context is left."""
    writer = logging.StreamHandler(stream or sys.stderr)
    writer.setFormatter(JsonFormatter())
    handler = _Dropping(writer, on_lost)
    before = []
    for name in (LOGGER.name, *FOREIGN):
        logger = logging.getLogger(name)
        before.append((logger, logger.handlers, logger.level, logger.propagate))
        has_parent_here = name.startswith("uvicorn.")
        logger.handlers = [] if has_parent_here else [handler]
        logger.setLevel(level if name == LOGGER.name else logging.WARNING)
        logger.propagate = has_parent_here
    try:
        yield
    finally:
        for logger, handlers, was_level, propagate in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(was_level)
        handler.close()
