"""Corpora: what is read, what is chosen, what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile

from antiphon.core.errors import CallerError
from antiphon.lab.clips import choose, read_corpus
from antiphon.lab.microphone import prepare
from antiphon.lab.sound_format import format_named

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

ENTRY = {"file": "a.wav", "kind": "clean", "speech_start_s": 0.1, "speech_end_s": 0.8, "slots": {"size": "large"}}


def corpus(folder: Path, *entries: Any) -> Path:
    for entry in entries:
        if isinstance(entry, dict) and "file" in entry:
            soundfile.write(folder / entry["file"], np.full(16_000, 0.1, np.float32), 16_000)
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (folder / "manifest.jsonl").write_text("\n".join(lines))
    return folder


def test_a_manifest_is_read(tmp_path: Path) -> None:
    """With what it says, and without what it leaves out."""
    (clip,) = read_corpus(corpus(tmp_path, ENTRY))
    assert ("a.wav", "clean", 0.1, 0.8, {"size": "large"}, "") == (
        clip.name,
        clip.kind,
        clip.speech_start_s,
        clip.speech_end_s,
        clip.slots,
        clip.text,
    )


def test_some_clips_come_along() -> None:
    """Enough to try it out."""
    assert {"clean", "hesitation"} == {clip.kind for clip in read_corpus(None)}


def test_sound_without_a_manifest_is_refused(tmp_path: Path) -> None:
    """For nobody says where its speech ends."""
    soundfile.write(tmp_path / "a.flac", np.zeros(100), 16_000)
    with pytest.raises(CallerError, match="1 sound files, but no manifest") as caught:
        read_corpus(tmp_path)
    assert "speech_end_s" in caught.value.hint


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{", "line 1 is no JSON"),
        ("[]", "no JSON object"),
        ({**ENTRY, "speech_end_s": 0.05}, "speech goes from 0.1 to 0.05 s"),
        ({**ENTRY, "speech_end_s": "0.8"}, "`speech_end_s` is missing or no number"),
        ('{"file": "gone.wav", "speech_start_s": 0, "speech_end_s": 1}', "there is no file"),
        ("", "lists 0 clips"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, entry: Any, words: str) -> None:
    """By line and field."""
    with pytest.raises(CallerError, match=words):
        read_corpus(corpus(tmp_path, entry))


def test_speech_beyond_the_end_of_the_file_is_refused(tmp_path: Path) -> None:
    """The truth about it cannot be true."""
    (clip,) = read_corpus(corpus(tmp_path, {**ENTRY, "speech_end_s": 1.2}))
    with pytest.raises(CallerError, match=r"lasts 1.00 s, but its speech ends at 1.2 s"):
        prepare(clip, format_named("audio/pcm"))


def test_the_choice_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    """In whatever order the manifest lists the clips, and a smaller one is the beginning of a larger one."""
    entries = [{**ENTRY, "file": f"{name}.wav", "kind": "ab"[name > "d"]} for name in "abcdefgh"]
    clips = read_corpus(corpus(tmp_path, *entries))
    eight = choose(clips, seed=3)
    assert eight == choose(clips[::-1], seed=3)
    assert eight[:3] == choose(clips, limit=3, seed=3)
    assert eight != choose(clips, seed=4)
    assert {"b"} == {clip.kind for clip in choose(clips, kinds=("b",))}
    with pytest.raises(CallerError, match="no clip is of kind 'c'") as caught:
        choose(clips, kinds=("c",))
    assert "a, b" in caught.value.hint
