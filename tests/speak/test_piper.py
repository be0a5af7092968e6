"""Piper: how its reading is laid beside the text, what it refuses, and the real engine where it is installed."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.speak.piper_voice import piper_voice, reason_to_skip

from antiphon.core.errors import CallerError, EngineError, MachineError
from antiphon.core.flow import TextChunk
from antiphon.scheduling.lanes import ThreadLane
from antiphon.speak import piper as engine
from antiphon.speak.onnx_output import with_output
from antiphon.speak.piper import PiperVoice, is_sounding, readable, word_ends

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antiphon.core.flow import SpeechPiece

SETTINGS = {
    "audio": {"sample_rate": 22_050},
    "espeak": {"voice": "en-us"},
    "num_symbols": 3,
    "num_speakers": 1,
    "phoneme_id_map": {},
}
needs_piper = pytest.mark.skipif(bool(reason_to_skip()), reason=reason_to_skip() or "it is here")


@pytest.fixture(scope="module")
def lane() -> Iterator[ThreadLane]:
    lane = ThreadLane("test-piper")
    yield lane
    lane.close()


@pytest.fixture(scope="module")
def voice(lane: ThreadLane) -> PiperVoice:
    path = piper_voice()
    assert path is not None
    return PiperVoice.load(path, lane=lane)


def spoken(voice: PiperVoice, text: str) -> list[SpeechPiece]:
    async def collect() -> list[SpeechPiece]:
        chunk = TextChunk(text=text, index=0, start_chars=0, is_last=True)
        return [piece async for piece in voice.speak(chunk)]

    return asyncio.run(collect())


def said(piece: SpeechPiece) -> list[str]:
    return [piece.chunk.text[: chars - piece.chunk.start_chars] for _, chars in piece.marks]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith, Mrs. Hall.", "Dr  Smith, Mrs  Hall."),
        ("*So* [[h\u025b]] `x` \U0001f642\ufe0f!", " So    h\u025b    x    !"),
        ("$5, 20%, 18\u00b0 & more", "$5, 20%, 18\u00b0 & more"),
    ],
)
def test_what_no_person_would_read_out_is_not_read(text: str, expected: str) -> None:
    """Markup, emoji and Piper's own brackets become spaces, so that every position stays."""
    assert expected == readable(text)
    assert len(text) == len(readable(text))


@pytest.mark.unit
def test_marks_and_stress_have_no_sound() -> None:
    assert [True, True, False, False, False, False] == [is_sounding(each) for each in "\u0259\u02b0\u02c8\u02d0,. "[:6]]


@pytest.mark.unit
def test_words_end_where_the_whole_has_them() -> None:
    """Words that grow together, change or vanish in company still end in order and near their place."""
    assert [2, 5] == word_ends(["ab", "cd"], list("ab cd"))
    assert [3, 6] == word_ends([list("\u02c8ab"), list("cd")], list("\u02c8ab cd"))
    assert [2, 4] == word_ends(["ab", "cd"], list("abcd"))  # "for the" is read as one word
    assert [2, 0, 5] == word_ends(["ab", "", "cd"], list("ab cd"))  # a dash has no reading
    assert [2, 5] == word_ends(["xy", "cd"], list("ab cd"))  # read otherwise in company
    assert [0, 2] == word_ends(["x", "ab"], list("ab"))  # not read at all


@pytest.mark.unit
def test_one_more_output_is_appended_as_its_format_wants() -> None:
    """Graph, output and name, each with its length; a name that is not there changes nothing."""
    assert b"..abc" + b"\x3a\x07\x62\x05\x0a\x03abc" == with_output(b"..abc", b"abc")
    assert b"..abc" == with_output(b"..abc", b"xyz")
    assert b"..abc" == with_output(b"..abc", b"")


@pytest.mark.unit
def test_a_file_that_is_missing_is_named(tmp_path: Path, lane: ThreadLane) -> None:
    """The voice, and the settings beside it, each with what to do."""
    with pytest.raises(CallerError, match=r"there is no voice at .*v\.onnx"):
        PiperVoice.load(tmp_path / "v.onnx", lane=lane)
    (tmp_path / "v.onnx").touch()
    with pytest.raises(CallerError, match=r"has no v\.onnx\.json"):
        PiperVoice.load(tmp_path / "v.onnx", lane=lane)
    (tmp_path / "v.onnx.json").write_text("[]")
    with pytest.raises(CallerError, match="does not describe a voice"):
        PiperVoice.load(tmp_path / "v.onnx", lane=lane)
    (tmp_path / "v.onnx.json").write_text("{")
    with pytest.raises(CallerError, match="cannot read"):
        PiperVoice.load(tmp_path / "v.onnx", lane=lane)


@pytest.mark.unit
def test_a_voice_that_would_need_the_network_is_refused(tmp_path: Path, lane: ThreadLane) -> None:
    """Piper fetches a reading model for Chinese by itself; an engine never does."""
    (tmp_path / "v.onnx").touch()
    (tmp_path / "v.onnx.json").write_text(json.dumps(SETTINGS | {"phoneme_type": "pinyin"}))

    with pytest.raises(CallerError, match="reads by 'pinyin'"):
        PiperVoice.load(tmp_path / "v.onnx", lane=lane)


@pytest.mark.unit
def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, lane: ThreadLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "piper", None)
    (tmp_path / "v.onnx").touch()
    (tmp_path / "v.onnx.json").write_text(json.dumps(SETTINGS))

    with pytest.raises(MachineError, match="piper-tts is not installed") as caught:
        PiperVoice.load(tmp_path / "v.onnx", lane=lane)

    assert "pip install 'antiphon[piper]'" == caught.value.hint


@pytest.mark.model
@needs_piper
def test_a_file_that_is_no_model_is_the_callers_error(tmp_path: Path, lane: ThreadLane) -> None:
    (tmp_path / "v.onnx").write_bytes(b"noise")
    (tmp_path / "v.onnx.json").write_text(json.dumps(SETTINGS))

    with pytest.raises(CallerError, match="is not a voice"):
        PiperVoice.load(tmp_path / "v.onnx", lane=lane)


@pytest.mark.model
@needs_piper
def test_words_are_marked_where_the_model_ends_them(voice: PiperVoice) -> None:
    """One mark per word; a sum, a time and a title keep their written span."""
    (piece,) = spoken(voice, "Dr. Smith owes $5.20 at 7:30pm for the tea")

    words = ["Dr.", "Smith", "owes", "$5.20", "at", "7:30pm", "for", "the", "tea"]
    assert [" ".join(words[:count]) for count in range(1, len(words) + 1)] == said(piece)
    ends_ms = [samples * 1000 / voice.rate_hz for samples, _ in piece.marks]
    assert all(30 <= length <= 1700 for length in np.diff([0, *ends_ms]))


@pytest.mark.model
@needs_piper
def test_without_durations_words_go_by_share_of_phonemes(
    voice: PiperVoice, lane: ThreadLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose graph is named otherwise sounds the same; its words lie within 300 ms of where they should."""
    import re

    monkeypatch.setattr(engine, "_DURATIONS", re.compile(rb"no such tensor"))
    path = piper_voice()
    assert path is not None
    plain = PiperVoice.load(path, lane=lane)
    text = "I can make that for you with oat milk."
    (exact,), (shared,) = spoken(voice, text), spoken(plain, text)

    assert exact.pcm.tobytes() == shared.pcm.tobytes()
    assert said(exact) == said(shared)
    assert exact.marks != shared.marks
    off_ms = [abs(a - b) * 1000 / 22_050 for (a, _), (b, _) in zip(exact.marks, shared.marks, strict=True)]
    assert max(off_ms) < 300


@pytest.mark.model
@needs_piper
def test_a_word_that_espeak_would_cut_short_is_refused(voice: PiperVoice) -> None:
    """Half of a number must not be taken for the whole; the message does not quote it."""
    with pytest.raises(EngineError, match="cannot say a word of 400 characters"):
        spoken(voice, "9" * 400)


@pytest.mark.model
@needs_piper
def test_speaking_needs_no_network_and_logs_no_words(
    voice: PiperVoice, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even at the debug level, where Piper itself would write what it says."""
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("it reached for the network"))
    with caplog.at_level(logging.DEBUG):
        assert spoken(voice, "A marmalade sandwich.")

    assert "marmalade" not in caplog.text
