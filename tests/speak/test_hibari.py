"""hibari itself: where its words lie, how its pieces join, and what happens when it cannot be loaded."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import hibari
import numpy as np
import pytest

from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import TextChunk
from antiphon.scheduling.lanes import ThreadLane
from antiphon.speak import hibari as engine
from antiphon.speak.hibari import HibariVoice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.core.flow import Pcm, SpeechPiece

pytestmark = pytest.mark.model

HEART = Path(hibari.__file__).parent / "assets" / "hibari.onnx"
REPLY = (
    "Sure,",
    " a small latte with",
    " oat milk.",
    " Would you like it hot? I can also make it cold!\n\n",
    "Just ask.",
)


@pytest.fixture(scope="module")
def lane() -> Iterator[ThreadLane]:
    lane = ThreadLane("test-voice")
    yield lane
    lane.close()


@pytest.fixture(scope="module")
def voice(lane: ThreadLane) -> HibariVoice:
    return HibariVoice.load(HEART, voice="heart", lane=lane)


def spoken(voice: HibariVoice, text: str, *, is_last: bool = True) -> list[SpeechPiece]:
    async def collect() -> list[SpeechPiece]:
        chunk = TextChunk(text=text, index=0, start_chars=0, is_last=is_last)
        return [piece async for piece in voice.speak(chunk)]

    return asyncio.run(collect())


def said(piece: SpeechPiece) -> list[str]:
    return [piece.chunk.text[: chars - piece.chunk.start_chars] for _, chars in piece.marks]


def steepest(pcm: Pcm) -> float:
    return float(np.abs(np.diff(pcm)).max())


def test_joins_cannot_be_heard(voice: HibariVoice) -> None:
    """In 2 ms around a join no step is larger than the largest of the 100 ms before or of the 100 ms after."""
    reply = [
        piece for number, text in enumerate(REPLY) for piece in spoken(voice, text, is_last=number == len(REPLY) - 1)
    ]
    sound = np.concatenate([piece.pcm for piece in reply])
    join = 0
    for piece in reply[:-1]:
        join += len(piece.pcm)
        around = steepest(sound[join - 24 : join + 24])
        before, after = sound[join - 24 - 2400 : join - 24], sound[join + 24 : join + 24 + 2400]

        assert around <= max(steepest(before), steepest(after))
        assert around <= 0.02


def test_words_are_marked_where_they_end(voice: HibariVoice) -> None:
    """One mark per word, as the model's own durations place it: the last one where the voice falls silent."""
    (piece,) = spoken(voice, "What size would you like?")

    assert ["What", "What size", "What size would", "What size would you", "What size would you like?"] == said(piece)
    ends_ms = [samples / 24 for samples, _ in piece.marks]
    assert all(60 <= length <= 700 for length in np.diff([0, *ends_ms]))


def test_what_is_read_otherwise_than_written_keeps_its_span(voice: HibariVoice) -> None:
    """Sums, times and titles are marked once, at the end of their reading, with the text as it was written."""
    (piece,) = spoken(voice, "Dr. Smith owes $5.20 at 7:30pm today")

    assert [
        "Dr.",
        "Dr. Smith",
        "Dr. Smith owes",
        "Dr. Smith owes $5.20",
        "Dr. Smith owes $5.20 at",
        "Dr. Smith owes $5.20 at 7:30pm",
        "Dr. Smith owes $5.20 at 7:30pm today",
    ] == said(piece)


def test_without_the_models_durations_marks_go_by_share_of_phonemes(
    voice: HibariVoice, lane: ThreadLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose graph is named otherwise still sounds the same, and its words lie within 300 ms of theirs."""
    monkeypatch.setattr(engine, "_PHONEME_ENDS", b"/NoSuchTensor")
    plain = HibariVoice.load(None, lane=lane)
    text = "I can make that for you with oat milk."
    (exact,), (shared,) = spoken(voice, text), spoken(plain, text)

    assert exact.pcm.tobytes() == shared.pcm.tobytes()
    assert said(exact) == said(shared)
    off_ms = [abs(a - b) / 24 for (a, _), (b, _) in zip(exact.marks, shared.marks, strict=True)]
    assert max(off_ms) < 300


def test_one_piece_per_sentence(voice: HibariVoice) -> None:
    """A paragraph comes out sentence by sentence, so that the first can be heard while the second is made."""
    pieces = spoken(voice, "One moment. It is here!\nReally? Yes")

    assert ["One moment. ", "It is here!\n", "Really? ", "Yes"] == [piece.chunk.text for piece in pieces]


def test_an_endless_sentence_is_broken_up(voice: HibariVoice) -> None:
    """A sentence past the model's bound comes in several pieces, broken at commas where there are some."""
    text = ", ".join(["the quick brown fox jumps over the lazy dog and sleeps"] * 10) + "."
    pieces = spoken(voice, text)

    assert text == "".join(piece.chunk.text for piece in pieces)
    assert 2 == len(pieces)
    assert pieces[0].chunk.text.endswith(",")


def test_a_language_it_cannot_read_is_an_error_only_alone(voice: HibariVoice) -> None:
    """Foreign words among its own are passed over; nothing but foreign words is a failure, not a silence."""
    assert ["Hello \u4f60\u597d there."] == [piece.chunk.text for piece in spoken(voice, "Hello \u4f60\u597d there.")]
    with pytest.raises(EngineError, match="knows no sound"):
        spoken(voice, "\u4f60\u597d\u3002")


def test_a_model_that_gives_rubbish_is_an_engine_error(voice: HibariVoice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound that is not finite never reaches a listener."""
    from hibari import dsp

    monkeypatch.setattr(dsp, "synth", lambda *_: np.full(24_000, np.nan, np.float32))
    with pytest.raises(EngineError, match="not finite"):
        spoken(voice, "Okay.")
    monkeypatch.setattr(dsp, "synth", lambda *_: np.zeros(24_000, np.float32))
    with pytest.raises(EngineError, match="silence"):
        spoken(voice, "Okay.")


def test_loading_and_speaking_need_no_network(lane: ThreadLane, monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection is even tried, not for a voice that hibari would fetch by itself either."""

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert spoken(HibariVoice.load(HEART, voice="heart", lane=lane), "Okay.")
    with pytest.raises(CallerError, match="not part of hibari's package"):
        HibariVoice.load(None, voice="emma", lane=lane)


def test_the_voice_decides_the_accent(lane: ThreadLane, voice: HibariVoice) -> None:
    """The same model reads by British rules when a British voice is named."""
    british = HibariVoice.load(HEART, voice="emma", lane=lane)

    assert "hibari-emma" == british.name
    assert spoken(voice, "a large bath.")[0].pcm.tobytes() != spoken(british, "a large bath.")[0].pcm.tobytes()


@pytest.mark.parametrize(
    ("path", "name", "message"),
    [
        (Path("no/such/voice.onnx"), "heart", "cannot read"),
        (Path(__file__).parent, "heart", "cannot read"),
        (Path(__file__), "heart", "not a voice"),
        (None, "hart", "there is no voice 'hart'"),
        (HEART.with_name("oov.onnx"), "heart", "not a voice"),
    ],
)
def test_what_cannot_be_loaded_says_so(lane: ThreadLane, path: Path | None, name: str, message: str) -> None:
    with pytest.raises(CallerError, match=message) as caught:
        HibariVoice.load(path, voice=name, lane=lane)

    assert caught.value.hint


def test_an_unknown_voice_suggests_the_nearest(lane: ThreadLane) -> None:
    with pytest.raises(CallerError, match="did you mean 'heart'"):
        HibariVoice.load(None, voice="hart", lane=lane)
