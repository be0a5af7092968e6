"""The command line as a user meets it: what it prints, what it writes, and with which code it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


def antiphon(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "antiphon", *words], capture_output=True, text=True, timeout=110, cwd=cwd, check=False
    )


def test_the_demo_writes_what_it_promises(tmp_path: Path) -> None:
    """One command: the turn is shown, and conversation.wav, timeline.png and the figures are written."""
    done = antiphon("demo", "--json", "turn.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "first sound" in done.stdout
    assert "ms from the last word to the first sound" in done.stdout
    assert soundfile.info(tmp_path / "conversation.wav").channels == 2
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")
    (turn,) = json.loads((tmp_path / "turn.json").read_text())["turns"]
    assert turn["reply"]
    assert turn["timeline"]["voice_to_voice_ms"] > 0


def test_an_agent_file_is_used(tmp_path: Path) -> None:
    """`converse --agent` answers as that agent."""
    clip = ROOT / "src" / "antiphon" / "assets" / "short_order.flac"
    done = antiphon("converse", str(clip), "--agent", str(ROOT / "examples" / "barista.py"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "milk" in done.stdout
    assert list(tmp_path.iterdir()) == []  # nothing was asked for, nothing is written


def _bad(kind: str, folder: Path) -> Path:
    target = folder / f"{kind.replace(' ', '_')}.wav"
    if kind == "empty":
        target.write_bytes(b"")
    elif kind == "not a number":
        soundfile.write(target, np.full(1600, np.nan, np.float32), 16_000, subtype="FLOAT")
    elif kind == "cut off":
        soundfile.write(target, np.zeros(1600, np.float32), 16_000)
        target.write_bytes(target.read_bytes()[:20])
    elif kind == "a folder":
        target.mkdir()
    elif kind == "text":
        target.write_text("This is no sound.")
    return target


@pytest.mark.parametrize("kind", ["empty", "not a number", "cut off", "a folder", "text", "missing"])
def test_a_file_that_cannot_be_heard_is_named_with_a_remedy(tmp_path: Path, kind: str) -> None:
    """Exit code 2, an error that names the file, a hint, no traceback; and it does not take a model's loading."""
    path = _bad(kind, tmp_path)
    done = antiphon("converse", str(path))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert path.name in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["convers", "x.wav"], "did you mean 'converse'?"),
        (["models", "fetch", "wisper-tiny.en"], "whisper-tiny.en"),
        (["config", "--set", "turn.longest_wait=9"], "longest_wait_ms"),
        (["demo", "--set", "turn.cut_in_risk=7"], "cut_in_risk"),
        (["converse", "x.wav", "--agent", "nowhere.py"], "nowhere.py"),
        (["demo", "--set", "models.voice=hibari-hart"], "hibari-heart"),
    ],
)
def test_what_is_misspelt_is_answered_with_the_nearest(words: list[str], said: str) -> None:
    """A wrong command, model, setting or file is an error with its remedy, never a traceback."""
    done = antiphon(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_told() -> None:
    assert antiphon("--version").stdout.startswith("antiphon 0.")


def test_the_example_in_the_docs_runs(tmp_path: Path) -> None:
    """The ten lines of the Python API hold a turn."""
    clip = ROOT / "src" / "antiphon" / "assets" / "short_order.flac"
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "ten_lines.py"), str(clip)],
        capture_output=True,
        text=True,
        timeout=110,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "TurnConfirmed" in done.stdout
    assert "ReplyFinished" in done.stdout
    assert done.stdout.rstrip().endswith("SessionEnded")


def test_a_recorded_conversation_can_be_replayed(tmp_path: Path) -> None:
    """`--record` writes one log for its owner alone; it replays to the same, and with other settings to a table."""
    clip = ROOT / "src" / "antiphon" / "assets" / "short_order.flac"
    done = antiphon("converse", str(clip), "--record", "logs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / "logs").iterdir()
    assert log.name in done.stdout
    same = antiphon("replay", str(log))
    assert same.returncode == 0, same.stdout
    assert "commands: the same" in same.stdout
    other = antiphon("replay", str(log), "--set", "turn.longest_wait_ms=300")
    assert other.returncode == 0, other.stderr
    assert "milk" in other.stdout
    assert "cut-ins" in other.stdout


def test_a_file_can_talk_over_the_reply(tmp_path: Path) -> None:
    """`--barge-in-at` begins the second file while the first is being answered, and says how soon the reply stopped."""
    clips = [str(ROOT / "src" / "antiphon" / "assets" / name) for name in ("short_order.flac", "order.flac")]
    done = antiphon("converse", *clips, "--barge-in-at", "0.8", "--json", "talk.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "talk.json").read_text())
    (barge_in,) = told["barge_ins"]
    assert barge_in["interrupted"]
    assert 0 < barge_in["stop_ms"] < 3000
    assert [True, False] == [reply["interrupted"] for reply in told["replies"] if not reply["retracted"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--barge-in-at", "soon"], "no list of seconds"),
        (["--barge-in-at", "1,2"], "is for 2 files, but 0 have"),
        (["--record", "clip.flac"], "clip.flac"),
    ],
)
def test_a_wrong_request_does_not_take_a_models_loading(tmp_path: Path, words: list[str], said: str) -> None:
    clip = ROOT / "src" / "antiphon" / "assets" / "short_order.flac"
    (tmp_path / "clip.flac").write_bytes(clip.read_bytes())
    done = antiphon("converse", "clip.flac", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Models loaded" not in done.stdout
