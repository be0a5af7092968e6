"""`antiphon bench corpus`: what it makes of recordings and of our own voice, and what it leaves alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile

from antiphon.audio.files import read
from antiphon.cli import main
from antiphon.cli.bench_corpus import annotated, recordings
from antiphon.core.errors import CallerError
from antiphon.lab.clips import read_corpus
from antiphon.lab.turn_end_corpus import read_turns

if TYPE_CHECKING:
    from pathlib import Path

RATE_HZ = 16_000


class Loudness:
    """A voice detector that takes whatever is loud for speech."""

    name = "loudness"
    frame_samples = 512

    def open(self) -> Loudness:
        return self

    def probability(self, pcm: Any) -> float:
        return float(np.abs(pcm).max() > 0.05)

    def reset(self) -> None:
        pass

    def close(self) -> None:
        pass


def record(path: Path, *spans: tuple[float, float], seconds: float = 2.0, rate_hz: int = RATE_HZ) -> None:
    pcm = 0.001 * np.random.default_rng(1).standard_normal(round(seconds * rate_hz))
    for start_s, end_s in spans:
        times = np.arange(round(start_s * rate_hz), round(end_s * rate_hz))
        pcm[times] += 0.3 * np.sin(2 * np.pi * 150 * times / rate_hz)
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, pcm, rate_hz)


def entries_of(folder: Path, **more: Any) -> dict[str, dict[str, Any]]:
    found = annotated(folder, recordings(folder), Loudness(), kind=more.get("kind"))
    return {entry["file"]: entry for entry in found.entries}


@pytest.mark.unit
def test_an_entry_tells_where_speech_is(tmp_path: Path) -> None:
    """Its edges and pauses, the kind by the subfolder, and the words from the text beside."""
    record(tmp_path / "phone" / "a.wav", (0.5, 1.0), (1.3, 1.6))
    record(tmp_path / "b.FLAC", (0.5, 1.5), rate_hz=48_000)
    (tmp_path / "phone" / "a.txt").write_text("\ufeffA large\n latte. ", encoding="utf-8")
    found = entries_of(tmp_path)
    assert {
        "file": "phone/a.wav",
        "kind": "phone",
        "duration_s": 2.0,
        "speech_start_s": 0.5,
        "speech_end_s": 1.6,
        "inner_pauses_s": [[1.0, 1.3]],
        "text": "A large latte.",
    } == found["phone/a.wav"]
    assert ("speech", 0.5, 1.5) == (
        found["b.FLAC"]["kind"],
        found["b.FLAC"]["speech_start_s"],
        found["b.FLAC"]["speech_end_s"],
    )


@pytest.mark.unit
def test_a_kind_may_be_given_for_all(tmp_path: Path) -> None:
    """It is stronger than folders' names."""
    record(tmp_path / "phone" / "a.wav", (0.5, 1.0))
    assert "mine" == entries_of(tmp_path, kind="mine")["phone/a.wav"]["kind"]


@pytest.mark.unit
def test_what_is_no_turn_is_left_out_with_the_reason(tmp_path: Path) -> None:
    """Silence, damage, and a text that is none; the rest goes on. What is doubtful stays."""
    record(tmp_path / "cut.wav", (0.5, 2.0))
    record(tmp_path / "silent.wav")
    record(tmp_path / "worded.wav", (0.5, 1.0))
    (tmp_path / "worded.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "damaged.wav").write_bytes(b"RIFF no sound")
    found = annotated(tmp_path, recordings(tmp_path), Loudness(), kind=None)
    assert ["cut.wav"] == [entry["file"] for entry in found.entries]
    assert ["damaged.wav", "silent.wav", "worded.wav"] == [line.split(":")[0] for line in found.skipped]
    assert "may have been cut off" in found.doubtful[0]


@pytest.mark.unit
def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    """As is one that is not there."""
    with pytest.raises(CallerError, match="holds 0 recordings"):
        recordings(tmp_path)
    with pytest.raises(CallerError, match="there is no folder"):
        recordings(tmp_path / "missing")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "either recordings or a number"),
        (["DIR", "--synthesise", "3"], "either recordings or a number"),
        (["--synthesise", "3"], "needs a folder"),
        (["--synthesise", "0", "--out", "DIR"], "0 recordings are asked for"),
        (["--synthesise", "1", "--out", "DIR", "--kinds", "odd"], "cannot be synthesised"),
        (["--synthesise", "1", "--out", "DIR", "--snr-db", "99"], "--snr-db is 99"),
        (["DIR"], "manifest.jsonl is there already"),
        (["--synthesise", "1", "--out", "DIR"], "manifest.jsonl is there already"),
    ],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    """Before any model is loaded, and above all before a manifest is replaced."""
    record(tmp_path / "a.wav", (0.5, 1.0))
    (tmp_path / "manifest.jsonl").write_text("somebody's work")
    words = [str(tmp_path) if word == "DIR" else word for word in words]
    assert 2 == main(["bench", "corpus", *words])
    assert expected in capsys.readouterr().err
    assert "somebody's work" == (tmp_path / "manifest.jsonl").read_text()


@pytest.mark.model
def test_a_folder_becomes_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bundled clips, as if they were somebody's: the ends that their own list tells, but for a click behind one."""
    known = {clip.name: clip for clip in read_corpus(None)}
    for clip in known.values():
        (tmp_path / clip.name).write_bytes(clip.path.read_bytes())
    assert 0 == main(["bench", "corpus", str(tmp_path), "--kind", "order"])
    found = {clip.name: clip for clip in read_corpus(tmp_path)}
    assert {"order"} == {clip.kind for clip in found.values()}
    for name, clip in known.items():
        assert pytest.approx(clip.speech_start_s, abs=0.05) == found[name].speech_start_s
        assert pytest.approx(clip.speech_end_s, abs=0.12) == found[name].speech_end_s
    assert "order: 3 recordings" in capsys.readouterr().out
    assert 2 == main(["bench", "corpus", str(tmp_path)])
    assert 0 == main(["bench", "corpus", str(tmp_path), "--force"])


@pytest.mark.model
def test_our_own_voice_makes_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same seed, the same bytes; the manifest says that nobody spoke, and the hesitation is a quiet one."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        assert 0 == main(["bench", "corpus", "--synthesise", "3", "--seed", "5", "--out", str(folder)])
    files = sorted(path.name for path in first.iterdir())
    assert ["clean_00000.flac", "hesitation_00001.flac", "manifest.jsonl", "noisy_00002.flac"] == files
    assert [(first / name).read_bytes() for name in files] == [(second / name).read_bytes() for name in files]
    entries = [json.loads(line) for line in (first / "manifest.jsonl").read_text().splitlines()]
    assert [(True, "hibari-heart", 5)] * 3 == [(each["synthetic"], each["voice"], each["seed"]) for each in entries]
    assert "flatters" in capsys.readouterr().out
    turns = {turn.clip.kind: turn for turn in read_turns(first)}
    assert "hibari-heart" == turns["clean"].synthetic
    hold, _ = turns["hesitation"].pauses
    pcm, rate_hz = read(turns["hesitation"].clip.path)
    inside = pcm[round((hold.start_s + 0.01) * rate_hz) : round((hold.end_s - 0.01) * rate_hz)]
    assert np.abs(inside).max() < 0.01 < np.abs(pcm).max()
