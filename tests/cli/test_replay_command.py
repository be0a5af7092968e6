"""`antiphon replay`: what it prints, and with which code it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.dialogue.test_replay import by_hand

from antiphon.cli import main
from antiphon.dialogue.log import StimulusLog

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    """A hesitation of 800 ms and a turn end."""
    log = by_hand()
    with StimulusLog.create(tmp_path, warn=pytest.fail) as written:
        written.begin(log.start, version="0")
        for step in log.steps:
            written.watch(step.stimulus, step.commands)
    return written.path


def test_the_same_settings_are_the_same(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["replay", str(log_file)])
    assert "8 stimuli, " in (told := capsys.readouterr().out)
    assert "commands: the same\n" in told


def test_naming_a_setting_as_it_was_is_no_change(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log's own settings count, not those of this machine."""
    assert 0 == main(["replay", str(log_file), "--set", "turn.longest_wait_ms=1000"])
    assert "the same" in capsys.readouterr().out


def test_a_difference_is_shown_and_is_a_finding(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, the line, what it said and what comes now."""
    log_file.write_text(log_file.read_text().replace('"is":"StartDraft","draft":1', '"is":"StartDraft","draft":9'))
    assert 1 == main(["replay", str(log_file)])
    told = capsys.readouterr().out
    assert f"{log_file}:3 leads to something else" in told
    assert '"draft": 9' in told
    assert '"draft": 1' in told


def test_a_difference_as_json(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_file.write_text(log_file.read_text().replace('"is":"StartDraft","draft":1', '"is":"StartDraft","draft":9'))
    assert 1 == main(["replay", str(log_file), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert ("antiphon.replay/1", 8, 3) == (told["schema"], told["stimuli"], told["difference"]["line"])


def test_other_settings_are_a_table(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each pause, a cut-in named, the totals of both."""
    assert 0 == main(["replay", str(log_file), "--set", "turn.longest_wait_ms=500"])
    told = capsys.readouterr().out
    assert "turn.longest_wait_ms  1000 -> 500" in told
    assert "went on after 800 ms" in told
    assert "answered after 500 ms, a cut-in" in told
    assert "I want a latte." in told
    assert "then  answered 1, silence before it: median 300 ms, P95 300 ms; cut-ins 0" in told
    assert "now   answered 2, silence before it: median 400 ms, P95 500 ms; cut-ins 1" in told


def test_other_settings_as_json(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["replay", str(log_file), "--without", "speculation", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert {"turn.speculate": {"recorded": True, "replayed": False}} == told["changed"]
    assert {"fate": "went on", "after_ms": 800.0, "cut_in": False} == told["pauses"][0]["recorded"]
    assert 1000.0 == told["pauses"][0]["at_ms"]
    assert 1 == told["recorded"]["answered"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "models.voice=hibari-emma"], "models.voice cannot be replayed"),
        (["--set", "cpu.voice_threads=2"], "cpu.voice_threads cannot be replayed"),
        (["--without", "prosody"], "models.prosody cannot be replayed"),
        (["--set", "turn.stalled_ms=900"], "turn.stalled_ms cannot be replayed"),
        (["--set", "turn.longest_wait=9"], "did you mean turn.longest_wait_ms?"),
        (["--set", "turn.cut_in_risk=7"], "cut_in_risk is 7.0"),
        (["--set", "turn.longest_wait_ms"], "gives no value"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    log_file: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    """Exit code 2, which setting, and a hint."""
    assert 2 == main(["replay", str(log_file), *words])
    told = capsys.readouterr().err
    assert said in told
    assert "hint: " in told


def test_half_a_last_line_can_be_left_out(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_file.write_bytes(log_file.read_bytes()[:-3])
    assert 2 == main(["replay", str(log_file)])
    assert "--cut-off" in capsys.readouterr().err
    assert 0 == main(["replay", str(log_file), "--cut-off"])
    assert "7 stimuli" in (told := capsys.readouterr().out)
    assert "cut off" in told


def test_no_log_is_refused_without_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my card number is\n")
    assert 2 == main(["replay", str(path)])
    told = capsys.readouterr().err
    assert "is no log" in told
    assert "card" not in told
