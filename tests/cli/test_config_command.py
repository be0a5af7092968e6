"""`antiphon config` prints what holds and why, for people and for programs."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from antiphon.cli.config import add, add_flags, markdown, print_table, resolve
from antiphon.config import keys, load
from antiphon.core.errors import CallerError

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the machine that the tests run on."""
    import os

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    for variable in [name for name in os.environ if name.startswith("ANTIPHON_")]:
        monkeypatch.delenv(variable)


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    add(parser.add_subparsers(required=True))
    arguments = parser.parse_args(words)
    outcome: int = arguments.run(arguments)
    return outcome


def test_the_table_is_aligned_and_names_every_origin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("antiphon.toml").write_text("[turn]\nshortest_wait_ms = 90\n", encoding="utf-8")
    monkeypatch.setenv("ANTIPHON_MODELS_VOICE", "my-voice")
    assert run("config", "--set", "cpu.voice_threads=3") == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines[1 : len(keys()) + 1]}
    assert [key.dotted for key in keys()] == list(rows)
    assert rows["turn.shortest_wait_ms"].split()[:3] == ["turn.shortest_wait_ms", "90", "antiphon.toml:2"]
    assert rows["models.voice"].split()[:3] == ["models.voice", '"my-voice"', "ANTIPHON_MODELS_VOICE"]
    assert rows["cpu.voice_threads"].split()[:3] == ["cpu.voice_threads", "3", "--set"]
    assert rows["models.prosody"].endswith("hears whether it sounded finished; empty: nobody does")
    column = lines[0].index("from")
    assert all(line[column - 1] == " " and line[column] != " " for line in rows.values())
    assert lines[-1] == "read antiphon.toml"


def test_the_table_fits_a_narrow_terminal() -> None:
    file = io.StringIO()
    print_table(load(folders=(), environment={}), Console(file=file, width=90, force_terminal=True, color_system=None))
    assert max(len(line) for line in file.getvalue().splitlines()) <= 90


def test_without_a_file_it_says_where_it_looked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("config") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("no file: looked for antiphon.toml and ")


def test_json_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("config", "--json", "--set", "turn.stalled_ms=700") == 0
    record = json.loads(capsys.readouterr().out)
    want = {
        "value": 700,
        "default": 500,
        "origin": "flag",
        "where": "--set",
        "variable": "ANTIPHON_TURN_STALLED_MS",
    }
    assert (None, want) == (record["file"], record["settings"]["turn.stalled_ms"])
    assert [key.dotted for key in keys()] == list(record["settings"])


def test_toml_loads_back_to_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    awkward = 'a "quoted" \\ name\twith \x7f and 模型'
    assert run("config", "--toml", "--set", f"models.voice={awkward}", "--set", "turn.stalled_ms=700") == 0
    text = capsys.readouterr().out
    (tmp_path / "other.toml").write_text(text, encoding="utf-8")
    resolved = load(file=tmp_path / "other.toml", environment={})
    assert (awkward, 700) == (resolved.config.models.voice, resolved.config.turn.stalled_ms)
    assert {"file"} == {str(setting.origin.layer) for setting in resolved.settings}
    assert all(":" in setting.origin.where for setting in resolved.settings)
    assert "# turns speech into words; a name, or the path of a folder\nrecognizer = " in text
    assert "# default: 500\nstalled_ms = 700\n" in text


def test_the_flags_work_before_and_after_the_commands_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.toml").write_text("turn.stalled_ms = 700\n", encoding="utf-8")
    for words in (("--config", "mine.toml", "config"), ("config", "--config", "mine.toml")):
        assert run(*words, "--json") == 0
        assert json.loads(capsys.readouterr().out)["settings"]["turn.stalled_ms"]["value"] == 700


def test_other_commands_reuse_the_flags() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    assert resolve(parser.parse_args([])).config.turn.stalled_ms == 500
    words = ["--set", "turn.stalled_ms=600", "--set", "turn.stalled_ms=700"]
    assert resolve(parser.parse_args(words)).config.turn.stalled_ms == 700


def test_a_mistake_is_raised_for_the_command_line_to_tell() -> None:
    with pytest.raises(CallerError, match=r"did you mean turn\.stalled_ms"):
        run("config", "--set", "turn.stalled=700")


def test_the_reference_lists_every_setting_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("config", "--markdown") == 0
    text = capsys.readouterr().out
    assert markdown() == text
    for key in keys():
        assert text.count(f"| `{key.dotted}` | `{key.variable}` |") == 1
