"""`antiphon bench turn-end`: the whole command, with detectors that need no model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile

from antiphon.cli import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

ENTRY = {"speech_start_s": 0.1, "speech_end_s": 1.2, "inner_pauses_s": [[0.4, 0.9]], "kind": "hesitation"}


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Away from any antiphon.toml."""
    monkeypatch.chdir(tmp_path)


def corpus(folder: Path, **changes: object) -> Path:
    folder.mkdir()
    soundfile.write(folder / "a.wav", np.zeros(48_000, np.float32), 16_000)
    (folder / "manifest.jsonl").write_text(json.dumps({"file": "a.wav"} | ENTRY | changes))
    return folder


def test_the_bundled_clips_are_evaluated_without_a_word_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table, the files, and what was computed, for the next time."""
    assert 0 == main(["bench", "turn-end", "--detectors", "silence", "--out", "here"])
    shown = capsys.readouterr().out
    for expected in ("bundled clips, all: 3 ends, 1 pauses", "silence", "eot-bench", "turn-end.json"):
        assert expected in shown
    plain = json.loads((tmp_path / "here" / "turn-end.json").read_text())
    assert ("antiphon.turn_end/1", "bundled clips", 0.032) == (plain["schema"], plain["corpus"], plain["step_s"])
    assert (tmp_path / "here" / "kept" / "scores.json").is_file()


def test_a_corpus_and_a_detector_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named before or behind the action; synthetic speech is said to be."""
    folder = corpus(tmp_path / "speech", synthetic=True, voice="someone")
    (tmp_path / "own_detector_two.py").write_text(
        "class Knowing:\n"
        "    name = 'knowing'\n"
        "    note = 'knowing: knows the answer'\n"
        "    def probability(self, pcm, silence_s):\n"
        "        return float(len(pcm) > 1.2 * 16000)\n"
    )
    flags = ["--detectors", "own_detector_two:Knowing,silence", "--json"]
    assert 0 == main(["bench", "--corpus", str(folder), "turn-end", *flags, "--out", "x"])
    plain = json.loads(capsys.readouterr().out)
    knowing, silence = plain["groups"]
    assert ("speech", "knowing", 1, 1) == (plain["corpus"], knowing["detector"], knowing["pauses"], knowing["ends"])
    budgets = [each["fewest_cut_offs_within_mean"][0]["cut_offs"] for each in (knowing, silence)]
    assert [0, 1] == budgets
    assert any("someone" in note for note in plain["notes"])
    assert "knowing: knows the answer" in plain["notes"]


def test_the_same_name_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Their figures could not be told apart."""
    assert 2 == main(["bench", "turn-end", "--detectors", "silence,silence", "--out", "x"])
    assert "two detectors are called 'silence'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--step-ms", "5"], "--step-ms is 5"),
        (["--up-to-ms", "100"], "--up-to-ms is 100"),
        (["--limit", "0"], "--limit is 0"),
        (["--detectors", "silent"], "there is no detector 'silent'"),
        (["--detectors", ""], "0 detectors are named"),
        (["--corpus", "missing"], "there is no folder"),
        (["--kinds", "odd", "--detectors", "silence"], "no clip is of kind 'odd'"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any model is loaded."""
    assert 2 == main(["bench", "turn-end", *words, "--out", "x"])
    assert expected in capsys.readouterr().err
