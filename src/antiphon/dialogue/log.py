"""A conversation's stimuli, and the commands that each led to -> lines of a file, and back.

    {"schema": "antiphon.stimuli/1", "antiphon": "0.1.0", "began": "2026-12-02T09:30:00Z", "start": {a Dialogue}}
    {"stimulus": {"is": "VoiceStarted", ...}, "commands": [{"is": "Listen", ...}, ...]}
    ...
    {"full": 67108864}                                  only if the log grew to its limit, which ends it

The dialogue is a pure function, so this is all that is needed to run it again (dialogue/replay.py). A log holds speech
as text: its file is for its owner alone, and no message of this module repeats what is in it.

Units: moments are ns of the clock that the conversation ran on; `began` alone is of the wall clock.
Threads: `StimulusLog` belongs to the conversation's event loop. A line is one write to the page cache, 0.03 ms with its
encoding, 1 ms where it holds a history of 200 messages; a process that dies loses at most the line it was writing.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from antiphon.core.errors import CallerError, MachineError, check_range
from antiphon.dialogue.codec import Misfit, decode, encode
from antiphon.dialogue.commands import Command
from antiphon.dialogue.state import Dialogue
from antiphon.dialogue.stimuli import Stimulus

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

SCHEMA = "antiphon.stimuli"
VERSION = 1  # rises only if a line changes its meaning; fields that are added have defaults
MEGABYTE = 1024 * 1024
READ_MOST_BYTES = 1024 * MEGABYTE  # what a log that was written with the highest limit can have
MOST_A_SECOND = 10_000  # logs that may begin in one folder in the same second
Commands: TypeAlias = tuple[Command, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Where conversations are recorded, and how much of each is kept.

    Raises:
        CallerError: a value is out of its range.
    """

    folder: Annotated[str, "`antiphon serve` writes each conversation's log into it; empty: nothing is recorded"] = ""
    most_logs: Annotated[int, "that may lie in the folder; conversations beyond them are not recorded"] = 10_000
    most_mb: Annotated[int, "a conversation's log ends at this size, in MB; the conversation goes on"] = 64

    def __post_init__(self) -> None:
        check_range("most_logs", self.most_logs, 1, 1_000_000)
        check_range("most_mb", self.most_mb, 1, 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stimulus and what it led to."""

    line: int  # of the file, from 1
    stimulus: Stimulus
    commands: Commands


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A conversation as it was written down."""

    antiphon: str  # the version that wrote it
    began: str  # UTC, as ISO 8601 has it
    start: Dialogue  # what the first stimulus met
    steps: tuple[Step, ...]
    is_full: bool = False  # it had reached its limit, and the conversation went on
    is_cut_off: bool = False  # its last line was half written, and left out


# Writing.


class StimulusLog:
    """One conversation's file, open for writing; give `watch` to the session, and close it, or use it in a `with`.

    It never raises once it is open: what cannot be written is counted, and told once through `warn`. A log with a gap
    could not be replayed, so the first line that is lost is the end of it.
    """

    def __init__(self, path: Path, *, settings: LogSettings | None = None, warn: Callable[[str], None]) -> None:
        """Create the file, which must not exist.

        Raises:
            CallerError: it exists, or its folder is missing or not to be written to.
        """
        self.path = path
        self.lost = 0  # steps that are not in the file
        self.written_bytes = 0
        self._most_bytes = (settings or LogSettings()).most_mb * MEGABYTE
        self._warn = warn
        self._is_open = True
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        settings: LogSettings | None = None,
        warn: Callable[[str], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> Self:
        """A log in `folder`, which is made if need be, under the first name that is free: UTC date and time, a number.

        Raises:
            CallerError: the folder cannot be made or not be written to.
            MachineError: thousands of logs began in this second.
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(folder, error) from error
        stamp = now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        for number in range(1, MOST_A_SECOND + 1):
            path = folder / f"{stamp}-{number}.jsonl"
            if not path.exists():
                with contextlib.suppress(_TakenError):
                    return cls(path, settings=settings, warn=warn)
        raise MachineError(f"{MOST_A_SECOND} logs began in {folder} in one second", hint="empty it, or name another")

    def begin(self, start: Dialogue, *, version: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Write the first line: what the conversation starts from, and which version of Antiphon holds it."""
        began = now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        head = {"schema": f"{SCHEMA}/{VERSION}", "antiphon": version, "began": began}
        self._put(lambda: {**head, "start": encode(start, Dialogue)})

    def watch(self, stimulus: Stimulus, commands: Commands) -> None:
        """Write one step."""
        if not self._put(lambda: line_of(stimulus, commands)):
            self.lost += 1

    def close(self) -> None:
        """Write no more; once is enough."""
        if self._is_open:
            self._is_open = False
            with contextlib.suppress(OSError):
                os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, line: Callable[[], dict[str, Any]]) -> bool:
        """Whether the line is in the file, whole."""
        if not self._is_open:
            return False
        try:
            text = _text(line())
            if self.written_bytes + len(text) > self._most_bytes:
                self._write(_text({"full": self._most_bytes}))
                self._end(f"the log {self.path} is full at {self._most_bytes // MEGABYTE} MB")
                return False
            self._write(text)
        except OSError as error:
            self._end(f"the log {self.path} cannot be written: {error.strerror}")
            return False
        except Misfit as error:
            self._end(f"the log {self.path} cannot hold this: {error}")
            return False
        return True

    def _write(self, text: bytes) -> None:
        """All of it or nothing: half a line would spoil the log."""
        begun_bytes = 0
        try:
            while begun_bytes < len(text):
                begun_bytes += os.write(self._file, text[begun_bytes:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.written_bytes)
            raise
        self.written_bytes += begun_bytes

    def _end(self, why: str) -> None:
        self.close()
        self._warn(f"{why}; the conversation goes on without one")


class _TakenError(CallerError):
    """Another conversation took the name first."""


def _unwritable(path: Path, error: OSError) -> CallerError:
    if error.errno == errno.EEXIST and path.suffix:
        return _TakenError(f"{path} exists", hint="name another; a log is never written over")
    return CallerError(f"{path} cannot be written: {error.strerror}", hint="name a folder that you may write to")


def line_of(stimulus: Stimulus, commands: Commands) -> dict[str, Any]:
    """One step as JSON.

    Raises:
        Misfit: a value is not of its field's type.
    """
    return {"stimulus": encode(stimulus, Stimulus), "commands": encode(commands, Commands)}


def _text(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


# Reading.


def read_log(path: Path, *, cut_off: bool = False) -> Log:
    """Read a log; with `cut_off` a last line that was half written is left out.

    Raises:
        CallerError: the file cannot be read, is no log, is of another version, or a line of it does not fit; the
            message names the line.
    """
    lines = _lines(path)
    try:
        first = next(lines, (1, b""))
        head = _object(path, first)
        _check_schema(path, head)
        start = _fitting(path, 1, lambda: decode(_part(head, "start"), Dialogue, "start"))
        told = (head.get("antiphon"), head.get("began"))
        steps, is_full, is_cut_off = _steps(path, lines, cut_off=cut_off)
    finally:
        lines.close()
    version, began = (text if isinstance(text, str) and len(text) <= 40 else "" for text in told)
    return Log(antiphon=version, began=began, start=start, steps=steps, is_full=is_full, is_cut_off=is_cut_off)


def _steps(path: Path, lines: Iterator[tuple[int, bytes]], *, cut_off: bool) -> tuple[tuple[Step, ...], bool, bool]:
    """The steps, whether the log was full, and whether it was cut off."""
    steps: list[Step] = []
    for number, text in lines:
        if not text.endswith(b"\n"):
            if cut_off:
                return tuple(steps), False, True
            raise CallerError(
                f"{path}:{number} is half a line: the process ended while it was written",
                hint="`antiphon replay --cut-off` leaves it out",
            )
        line = _object(path, (number, text))
        if "full" in line:
            return tuple(steps), True, False
        steps.append(_fitting(path, number, lambda line=line, number=number: _step(line, number)))  # type: ignore[misc]
    return tuple(steps), False, False


def _step(line: dict[str, Any], number: int) -> Step:
    return Step(
        line=number,
        stimulus=decode(_part(line, "stimulus"), Stimulus, "the stimulus"),
        commands=decode(_part(line, "commands"), Commands, "commands"),
    )


def _lines(path: Path) -> Generator[tuple[int, bytes], None, None]:
    try:
        if path.is_dir():
            raise CallerError(f"{path} is a folder", hint="name one log inside it")
        if path.stat().st_size > READ_MOST_BYTES:
            raise CallerError(f"{path} is larger than {READ_MOST_BYTES // MEGABYTE} MB", hint="no log is: name another")
        with path.open("rb") as file:
            yield from enumerate(file, 1)
    except FileNotFoundError as error:
        raise CallerError(f"there is no file {path}", hint="`antiphon converse --record DIR` writes one") from error
    except OSError as error:
        raise CallerError(f"{path} cannot be read: {error.strerror}", hint="it must be a readable file") from error


def _object(path: Path, numbered: tuple[int, bytes]) -> dict[str, Any]:
    number, text = numbered
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):  # its own words would repeat the line
        line = None
    if isinstance(line, dict):
        return line
    if number == 1:
        raise _no_log(path)
    raise CallerError(f"{path}:{number} is not a line of JSON", hint="the file was changed; take the original")


def _no_log(path: Path) -> CallerError:
    return CallerError(f"{path} is no log of a conversation", hint="`antiphon converse --record DIR` writes one")


def _check_schema(path: Path, head: dict[str, Any]) -> None:
    name, _, version = str(head.get("schema")).partition("/")
    if name != SCHEMA or not version.isdecimal() or len(version) > 6:
        raise _no_log(path)
    if int(version) != VERSION:
        raise CallerError(
            f"{path}:1 is a log of version {version}, and this Antiphon reads version {VERSION}",
            hint=f"replay it with the release that wrote it: {_release(head)}",
        )


def _release(head: dict[str, Any]) -> str:
    told = str(head.get("antiphon"))
    return told if len(told) <= 20 and told.replace(".", "").isalnum() else "its first line does not say which"


def _part(line: dict[str, Any], name: str) -> Any:
    if name not in line:
        raise Misfit(f"the line has no {name!r}")
    return line[name]


def _fitting(path: Path, number: int, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Misfit as error:
        raise CallerError(
            f"{path}:{number}: {error}", hint="a newer Antiphon wrote it, or it was changed: take that release"
        ) from error
    except CallerError as error:
        raise CallerError(f"{path}:{number}: {error.message}", hint=error.hint) from error
    except RecursionError:
        raise CallerError(f"{path}:{number} is nested too deeply", hint="the file was changed") from None
