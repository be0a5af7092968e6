"""Conversations from files in virtual time: what is fed when, and what is kept of what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile
from tests.session.call import Call
from tests.session.doubles import ScriptedRecognizer, caller
from tests.session.mind import mind
from tests.session.test_tools import CALL, clerk, counting
from tests.virtual_time import VirtualClock, run

from antiphon.cli.converse import _record, _tool, barge_ins
from antiphon.cli.picture import conversation_of, draw_turns
from antiphon.cli.rehearsal import Rehearsal, onset_samples
from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.unit

LONG = ["This reply ", "is rather long ", "and goes on ", "for several seconds, ", "as nobody wants."]


def spoken(folder: Path, name: str, *spans: tuple[int, int], until_ms: int) -> Path:
    path = folder / f"{name}.wav"
    soundfile.write(path, np.concatenate([frame.pcm for frame in caller(*spans, until_ms=until_ms)]), 16_000)
    return path


def hold(call: Call, files: Sequence[Path], barge_in_s: Sequence[float | None] = ()) -> Rehearsal:
    async def main() -> Rehearsal:
        clock = VirtualClock()
        rehearsal = Rehearsal(lambda _: None, clock=clock)
        async with Session(call.engines, call.settings, clock=clock) as session:
            await rehearsal.play(session, files, barge_in_s, greeted=bool(call.greeting))
        return rehearsal

    return run(main())


def said(*words: tuple[int, str]) -> ScriptedRecognizer:
    return ScriptedRecognizer(words)


def test_a_file_waits_for_the_reply_to_the_one_before(tmp_path: Path) -> None:
    files = [spoken(tmp_path, name, (500, 1500), until_ms=2000) for name in "ab"]
    rehearsal = hold(Call([], ears=said((1500, "One."), (3800, "Two."), (5300, "Two."))), files)
    first, second = rehearsal.turns
    assert ("One.", "Two.") == (first.text, second.text)
    assert [False, False] == [reply.interrupted for reply in rehearsal.replies]
    assert rehearsal.replies[0].ended_ns < second.began_ns
    assert [] == rehearsal.barge_ins


def test_a_file_can_talk_over_the_reply(tmp_path: Path) -> None:
    """It begins a second after the reply began to sound; the reply stops, and how soon is told."""
    files = [
        spoken(tmp_path, "a", (500, 1500), until_ms=2000),
        spoken(tmp_path, "b", (100, 2500), until_ms=3000),
    ]
    ears = said((1500, "Tell me."), (4000, "No, stop"), (5500, "that, please."))
    rehearsal = hold(Call([], ears=ears, mind=mind(LONG, ["Sorry."])), files, [1.0])
    cut, answer = rehearsal.replies
    assert cut.interrupted
    assert not answer.interrupted
    (barge_in,) = rehearsal.barge_ins
    assert (1, cut.reply) == (barge_in.file, barge_in.reply)
    began_after_ms = (barge_in.speech_ns - cut.began_ns) / MILLISECOND_NS
    assert 1100 <= began_after_ms <= 1140  # the second, a frame, and the file's own 100 ms
    (told,) = _record(rehearsal, 0.0)["barge_ins"]
    assert told["interrupted"]
    assert 0 < told["stop_ms"] < 1500
    assert told["stop_ms"] <= told["decided_ms"] + 20
    assert cut.heard in "".join(LONG)


def test_a_reply_that_ends_sooner_is_not_talked_over(tmp_path: Path) -> None:
    files = [spoken(tmp_path, name, (500, 1500), until_ms=2000) for name in "ab"]
    rehearsal = hold(
        Call([], ears=said((1500, "One."), (3800, "Two."), (5300, "Two.")), mind=mind(["Yes."])), files, [50.0]
    )
    assert [] == rehearsal.barge_ins
    assert 2 == len(rehearsal.turns)


def test_a_cough_over_the_reply_does_not_stop_it(tmp_path: Path) -> None:
    """The reply is softer for a moment and goes on to its end; the file counts as one that talked over it."""
    files = [spoken(tmp_path, "a", (500, 1500), until_ms=2000), spoken(tmp_path, "b", (100, 350), until_ms=600)]
    rehearsal = hold(Call([], ears=said((1500, "Tell me.")), mind=mind(LONG)), files, [1.0])
    (reply,) = rehearsal.replies
    assert not reply.interrupted
    assert "".join(LONG) == reply.heard
    assert reply.soft_ns
    (told,) = _record(rehearsal, 0.0)["barge_ins"]
    assert (False, None) == (told["interrupted"], told["stop_ms"])
    assert told["softer_after_ms"] > 0
    assert all(end is not None for span in _record(rehearsal, 0.0)["replies"][0]["softer_ms"] for end in span)


def test_a_turn_that_went_on_is_one_answer_in_the_end(tmp_path: Path) -> None:
    """Answered too early and taken back: both turns are there, and the last reply is whole."""
    files = [spoken(tmp_path, "a", (500, 1000), (1400, 2000), until_ms=2500)]
    ears = ScriptedRecognizer(((1000, "One."), (2000, "And two.")), delay_ms=20)
    rehearsal = hold(Call([], ears=ears, mind=mind(["Yes."], first_s=0.4)), files)
    assert "Yes." == rehearsal.turns[-1].reply
    assert "Yes." == rehearsal.replies[-1].heard


def test_files_without_speech_come_to_an_end(tmp_path: Path) -> None:
    files = [spoken(tmp_path, name, until_ms=500) for name in "ab"]
    rehearsal = hold(Call([], ears=said()), files, [1.0])
    assert ([], []) == (rehearsal.turns, rehearsal.replies)


def test_files_of_other_rates_are_one_microphone(tmp_path: Path) -> None:
    first = spoken(tmp_path, "a", (500, 1500), until_ms=2000)
    pcm, _ = soundfile.read(first, dtype="float32")
    soundfile.write(tmp_path / "b.wav", np.repeat(pcm, 3), 48_000)
    rehearsal = hold(Call([], ears=said((1500, "One."), (3800, "Two."), (5300, "Two."))), [first, tmp_path / "b.wav"])
    assert 2 == len(rehearsal.turns)


def test_the_picture_has_the_conversation_above_its_turns(tmp_path: Path) -> None:
    """One turn is drawn as ever; with more, the strip comes on top."""
    from PIL import Image

    heights = []
    for names in ("a", "ab"):
        files = [spoken(tmp_path, name, (500, 1500), until_ms=2000) for name in names]
        rehearsal = hold(Call([], ears=said((1500, "One."), (3800, "Two."), (5300, "Two."))), files)
        draw_turns(rehearsal, tmp_path / "turns.png")
        with Image.open(tmp_path / "turns.png") as image:
            heights.append(image.height)
            assert 2400 == image.width
    assert heights[1] > heights[0] * 1.6


def test_who_is_greeted_waits_for_the_end_of_the_greeting(tmp_path: Path) -> None:
    files = [spoken(tmp_path, "a", (500, 1500), until_ms=2000)]
    rehearsal = hold(Call([], ears=said((4000, "One."), (5000, "")), greeting="Welcome to the shop."), files)
    greeting, answer = rehearsal.replies
    assert "Welcome to the shop." == greeting.heard
    assert greeting.ended_ns < rehearsal.turns[0].began_ns < answer.began_ns
    assert [] == rehearsal.barge_ins


def test_tools_are_told_with_what_they_took(tmp_path: Path) -> None:
    order, _ = counting(takes_s=0.3)
    files = [spoken(tmp_path, "a", (500, 1500), until_ms=2000)]
    rehearsal = hold(Call([], ears=said((1500, "One.")), mind=clerk(CALL), tools=(order,)), files)
    (told,) = (_tool(rehearsal, used) for used in rehearsal.tools)
    assert ("order", CALL.arguments, "1", False) == (told["name"], told["arguments"], told["output"], told["failed"])
    assert 300 == pytest.approx(told["duration_ms"], abs=5)
    (drawn,) = conversation_of(rehearsal).tools
    assert told["start_ms"] == drawn.start_ms


@pytest.mark.parametrize(
    ("text", "gaps", "expected"),
    [
        ("", 2, [None, None]),
        ("1.2", 3, [1.2, 1.2, 1.2]),
        ("1.2,,0.8", 3, [1.2, None, 0.8]),
        ("1.2,", 3, [1.2, None]),
        ("", 0, [None]),
    ],
)
def test_when_files_begin_is_a_number_or_a_list(text: str, gaps: int, expected: list[float | None]) -> None:
    assert expected == barge_ins(text, gaps)


@pytest.mark.parametrize(
    ("text", "gaps", "said"),
    [
        ("soon", 1, "no list of seconds"),
        ("1,2", 1, "is for 2 files, but 1 have"),
        ("1", 0, "is for 1 files, but 0 have"),
        ("-1", 1, "is -1.0"),
        ("nan", 1, "is nan"),
        ("90", 1, "is 90.0"),
    ],
)
def test_a_wrong_number_is_told_with_what_is_right(text: str, gaps: int, said: str) -> None:
    with pytest.raises(CallerError, match=said) as caught:
        barge_ins(text, gaps)
    assert caught.value.hint


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_the_first_speech_sample_is_found_in_noise(noise: float) -> None:
    pcm = np.concatenate([frame.pcm for frame in caller((700, 1500), until_ms=2000)])
    pcm = pcm + np.random.default_rng(5).normal(0, noise, len(pcm)).astype(np.float32)
    assert abs(onset_samples(pcm, 16_000) / 16 - 700) <= 10


def test_silence_has_no_onset() -> None:
    assert 0 == onset_samples(np.zeros(0, np.float32), 16_000)
    assert 0 == onset_samples(np.zeros(16_000, np.float32), 16_000)
