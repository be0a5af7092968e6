"""What a log line holds, and what it never does."""

from __future__ import annotations

import io
import json
import logging
import threading

import pytest

from antiphon.core.errors import EngineError
from antiphon.serve.log_lines import MOST_LINES, SessionLog, describe, written

pytestmark = pytest.mark.unit

SECRET = "what the caller said"


def test_a_line_is_json_with_the_session(caplog: pytest.LogCaptureFixture) -> None:
    """Each line says when, what and whose."""
    stream = io.StringIO()
    with written(stream):
        SessionLog("sess_1", "00-aa-bb-01").info("turn.confirmed", turn=3, silence_ms=420.5)
        SessionLog().debug("turn.started")
    (line,) = map(json.loads, stream.getvalue().splitlines())

    assert line.pop("time").endswith("Z")
    assert {
        "level": "info",
        "event": "turn.confirmed",
        "session": "sess_1",
        "traceparent": "00-aa-bb-01",
        "turn": 3,
        "silence_ms": 420.5,
    } == line


def failure() -> Exception:
    try:
        int(SECRET)
    except ValueError as error:
        return error
    raise AssertionError


def test_an_error_is_written_without_what_it_quotes() -> None:
    """A foreign error's message may hold speech: only its type and place are written; ours is written whole."""
    stream = io.StringIO()
    with written(stream):
        SessionLog("sess_1").error("session.failed", failure())
        logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=failure())
        logging.getLogger("asyncio").error("Task exception was never retrieved\n%r", failure())
    text = stream.getvalue()

    assert 3 == len(text.splitlines())
    assert SECRET not in text
    assert "ValueError at test_log_lines.py:" in text
    assert "the voice broke" == describe(EngineError("the voice broke", hint="try again"))
    assert "ExceptionGroup(the voice broke)" == describe(ExceptionGroup("", [EngineError("the voice broke")]))


class StuckStream(io.StringIO):
    """Nobody reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def write(self, text: str) -> int:
        self.free.wait()
        return len(text)


def test_a_stream_that_nobody_reads_holds_nobody_up() -> None:
    """Lines beyond the bound are dropped and counted; nobody who logs waits."""
    stream, lost = StuckStream(), []
    with written(stream, on_lost=lambda: lost.append(1)):
        for _ in range(MOST_LINES + 100):
            SessionLog().info("event")
        assert 98 <= len(lost) <= 100  # the writer holds one or two
        stream.free.set()


def test_loggers_are_given_back() -> None:
    """Who embeds the server keeps their logging as it was."""
    before = logging.getLogger("uvicorn").handlers
    with written(io.StringIO()):
        assert logging.getLogger("uvicorn").handlers is not before

    assert logging.getLogger("uvicorn").handlers is before
