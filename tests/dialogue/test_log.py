"""The stimulus log: what is written comes back the same, and a file that is none is refused with a remedy."""

from __future__ import annotations

import errno
import json
import os
import stat
import types
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialogue.conversation import MODEL, SETTINGS

from antiphon.core.errors import CallerError
from antiphon.core.flow import Transcript
from antiphon.dialogue import codec
from antiphon.dialogue import log as log_module
from antiphon.dialogue.commands import Command, ConfirmTurn, EndSession, Listen
from antiphon.dialogue.log import MEGABYTE, LogSettings, StimulusLog, line_of, read_log
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.state import Dialogue
from antiphon.dialogue.stimuli import DraftTranscribed, Stimulus, VoiceStarted
from antiphon.dialogue.turn_end import Evidence, TurnEndModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.unit

START = Dialogue(settings=SETTINGS, turn_end=MODEL, instructions="Be brief.")
SPOKEN = VoiceStarted(at_ns=7, start_samples=3)
SECRET = "my card number is"
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def values(wanted: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type, as the codec's contract has it; new stimuli and commands need nothing here."""
    if is_dataclass(wanted) and wanted not in {TurnSettings, TurnEndModel}:
        hints = codec._hints(wanted)
        return st.builds(wanted, **{item.name: values(hints[item.name]) for item in fields(wanted)})
    if get_origin(wanted) in (Union, types.UnionType):
        return st.one_of(*map(values, get_args(wanted)))
    if get_origin(wanted) is Literal:
        return st.sampled_from(get_args(wanted))
    if get_origin(wanted) is tuple:
        return st.lists(values(get_args(wanted)[0]), max_size=3).map(tuple)
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return st.sampled_from(wanted)
    known = {
        TurnSettings: st.just(SETTINGS),  # which refuses most values
        TurnEndModel: st.just(MODEL),
        object: PLAIN,
        int: st.integers(),
        float: st.floats(allow_nan=False) | st.integers(-9, 9),
        str: st.text(st.characters()),  # lone surrogates too
        bool: st.booleans(),
        types.NoneType: st.none(),
    }
    return known[wanted]


def steps() -> st.SearchStrategy[list[tuple[Stimulus, tuple[Command, ...]]]]:
    commands = st.lists(values(Command), max_size=3).map(tuple)
    return st.lists(st.tuples(values(Stimulus), commands), max_size=5)


def written(folder: Path, said: list[tuple[Stimulus, tuple[Command, ...]]]) -> Path:
    with StimulusLog.create(folder, warn=pytest.fail) as log:
        log.begin(START, version="0")
        for stimulus, commands in said:
            log.watch(stimulus, commands)
    return log.path


@settings(max_examples=150, deadline=None)
@given(said=steps())
def test_any_order_of_stimuli_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[Stimulus, tuple[Command, ...]]]
) -> None:
    """Whatever the dialogue may be told and order, to the type of every number."""
    read = read_log(written(tmp_path_factory.mktemp("log"), said))
    assert said == [(step.stimulus, step.commands) for step in read.steps]
    assert repr(said) == repr([(step.stimulus, step.commands) for step in read.steps])
    assert START == read.start
    assert not read.is_full


@pytest.mark.parametrize("kind", [*get_args(Stimulus), *get_args(Command), Dialogue])
def test_every_field_has_a_type_that_can_be_written(kind: type) -> None:
    """A stimulus or command that is added needs no change of the codec."""
    assert {item.name for item in fields(kind)} == set(codec._hints(kind))


def test_floats_that_json_lacks_come_back() -> None:
    for value in (float("inf"), float("-inf"), float("nan"), -0.0, 5e-324):
        assert repr(value) == repr(codec.decode(json.loads(json.dumps(codec.encode(value, float))), float))


def test_the_first_line_says_what_it_is(tmp_path: Path) -> None:
    """Schema, version of the program, the day, and all that the conversation starts from."""
    log = StimulusLog.create(tmp_path / "logs", warn=pytest.fail, now=lambda: datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    log.begin(START, version="0", now=lambda: datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    log.close()
    head = json.loads(log.path.read_text())
    assert ("antiphon.stimuli/1", "2026-03-04T05:06:07Z") == (head["schema"], head["began"])
    assert SETTINGS.longest_wait_ms == head["start"]["settings"]["longest_wait_ms"]
    assert "20260304T050607Z-1.jsonl" == log.path.name


def test_a_log_is_its_owners_alone_and_never_written_over(tmp_path: Path) -> None:
    """Mode 0600 in a folder of 0700; conversations that begin together get a number each."""
    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    folder = tmp_path / "a" / "logs"
    paths = [StimulusLog.create(folder, warn=pytest.fail, now=lambda: now).path for _ in range(3)]
    assert [f"20260304T050607Z-{number}.jsonl" for number in (1, 2, 3)] == [path.name for path in paths]
    if os.name == "posix":
        assert 0o600 == stat.S_IMODE(paths[0].stat().st_mode)
        assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    with pytest.raises(CallerError, match="exists"):
        StimulusLog(paths[0], warn=pytest.fail)


def test_every_line_is_in_the_file_at_once(tmp_path: Path) -> None:
    """A process that dies loses no line that was written before."""
    log = StimulusLog.create(tmp_path, warn=pytest.fail)
    log.begin(START, version="0")
    log.watch(SPOKEN, (EndSession(),))
    assert 1 == len(read_log(log.path).steps)
    log.close()


def test_a_log_that_is_full_says_so_and_stops(tmp_path: Path) -> None:
    """The conversation goes on, the user is told once, the steps that are missing are counted, the file is whole."""
    told: list[str] = []
    log = StimulusLog.create(tmp_path, settings=LogSettings(most_mb=1), warn=told.append)
    log.begin(START, version="0")
    commands = (Listen(turn=1, from_samples=2),) * 1000
    for _ in range(40):
        log.watch(SPOKEN, commands)
    read = read_log(log.path)
    assert read.is_full
    assert 40 == len(read.steps) + log.lost
    assert log.path.stat().st_size <= MEGABYTE + 100
    (line,) = told
    assert "full at 1 MB" in line


def test_a_full_disk_does_not_end_the_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a line is taken back, the rest is counted, and it is told once."""
    told: list[str] = []
    log = StimulusLog.create(tmp_path, warn=told.append)
    log.begin(START, version="0")
    log.watch(SPOKEN, ())
    write, room = os.write, [10]

    def full(file: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[: room.pop()])

    monkeypatch.setattr(log_module.os, "write", full)
    for _ in range(3):
        log.watch(SPOKEN, ())
    monkeypatch.undo()
    assert 3 == log.lost
    assert 1 == len(read_log(log.path).steps)
    (line,) = told
    assert "No space left" in line


def changed(path: Path, change: Callable[[list[str]], list[str]]) -> Path:
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    return path


def swap(old: str, new: str, line: int = 1) -> Callable[[list[str]], list[str]]:
    return lambda lines: [text.replace(old, new) if place == line else text for place, text in enumerate(lines)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (swap("antiphon.stimuli/1", "antiphon.stimuli/2", 0), ":1 is a log of version 2"),
        (swap("antiphon.stimuli/1", "other/1", 0), "is no log"),
        (lambda _: [SECRET], "is no log"),
        (lambda lines: ["[1]", *lines], "is no log"),
        (swap('"longest_wait_ms":1000', '"longest_wait_ms":-4', 0), ":1: longest_wait_ms is -4"),
        (swap("VoiceStarted", "VoiceVanished"), ":2: the stimulus is of an unknown type 'VoiceVanished'"),
        (swap("VoiceStarted", SECRET), ":2: the stimulus does not say its type"),
        (swap('"at_ns":7', f'"at_ns":"{SECRET}"'), ":2: VoiceStarted.at_ns is text, but must be a whole number"),
        (swap('"at_ns":7', '"at_ns":7.0'), ":2: VoiceStarted.at_ns is a float, but must be a whole number"),
        (swap('"at_ns":7', f'"at_ns":7,"{SECRET}":1'), ":2: VoiceStarted has a field that is none"),
        (swap('"at_ns":7', '"at_ns":7,"loud":1'), ":2: VoiceStarted has no field 'loud'"),
        (swap('"at_ns":7,', ""), ":2: VoiceStarted lacks its field at_ns"),
        (swap('"commands"', '"orders"'), ":2: the line has no 'commands'"),
        (lambda lines: [lines[0], f"{{{SECRET}"], ":2 is not a line of JSON"),
        (lambda lines: [lines[0], "[" * 100_000], ":2 is not a line of JSON"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_without_its_words(
    tmp_path: Path, change: Callable[[list[str]], list[str]], said: str
) -> None:
    """The message names the line and the remedy; what was spoken never stands in it."""
    path = changed(written(tmp_path, [(SPOKEN, ())]), change)
    with pytest.raises(CallerError) as caught:
        read_log(path)
    assert said in caught.value.message
    assert caught.value.hint
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"RIFF\x10\x00\x00\x00WAVE", b'{"schema": 7}\n'])
def test_another_file_is_no_log(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)
    with pytest.raises(CallerError, match="is no log"):
        read_log(path)


def test_a_missing_file_and_a_folder_are_the_callers_errors(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="no file"):
        read_log(tmp_path / "missing.jsonl")
    with pytest.raises(CallerError, match="is a folder"):
        read_log(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(CallerError, match="cannot be written"):
        StimulusLog.create(tmp_path / "file", warn=pytest.fail)


def test_half_a_last_line_is_told_and_can_be_left_out(tmp_path: Path) -> None:
    """A process that was killed while it wrote leaves a log that is still of use."""
    path = written(tmp_path, [(SPOKEN, ()), (SPOKEN, (EndSession(),))])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CallerError, match=":3 is half a line") as caught:
        read_log(path)
    assert "--cut-off" in caught.value.hint
    read = read_log(path, cut_off=True)
    assert (1, True) == (len(read.steps), read.is_cut_off)


def test_a_log_from_before_a_field_had_a_default_is_read(tmp_path: Path) -> None:
    path = changed(written(tmp_path, []), swap('"cut_in_risk":0.05,', "", 0))
    assert (
        Dialogue(settings=type(SETTINGS)(), turn_end=MODEL).settings.cut_in_risk
        == read_log(path).start.settings.cut_in_risk
    )


def test_a_log_from_before_words_were_heard_twice_is_read(tmp_path: Path) -> None:
    """What it lacks was not provisional, and nothing waited to be corrected."""
    transcript = Transcript(text="Yes.", heard_samples=3)
    said = DraftTranscribed(at_ns=7, draft=1, transcript=transcript)
    confirmed = ConfirmTurn(turn=1, draft=1, text="Yes.", posterior=0.5, evidence=Evidence(text="Yes."), forced=False)
    path = changed(
        written(tmp_path, [(said, (confirmed,))]),
        lambda lines: [line.replace(',"provisional":false', "").replace(',"provisional":[]', "") for line in lines],
    )
    assert "provisional" not in path.read_text()
    read = read_log(path)
    assert START == read.start
    assert [(said, (confirmed,))] == [(step.stimulus, step.commands) for step in read.steps]


def test_what_does_not_fit_is_told_once_and_counted(tmp_path: Path) -> None:
    """A stimulus that holds what its type forbids ends the log, not the conversation."""
    told: list[str] = []
    log = StimulusLog.create(tmp_path, warn=told.append)
    log.begin(START, version="0")
    log.watch(VoiceStarted(at_ns="soon", start_samples=0), ())  # type: ignore[arg-type]
    log.watch(SPOKEN, ())
    assert (2, 1) == (log.lost, len(told))


def test_a_step_is_one_line_of_json() -> None:
    line = line_of(SPOKEN, (EndSession(),))
    assert {
        "stimulus": {"is": "VoiceStarted", "at_ns": 7, "start_samples": 3},
        "commands": [{"is": "EndSession"}],
    } == line
