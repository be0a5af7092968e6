"""Detectors of turn ends: what each knows, asks and remembers."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from antiphon.agent import Agent
from antiphon.config import Config
from antiphon.core.errors import CallerError
from antiphon.core.flow import Transcript
from antiphon.detectors import (
    EvidenceTaker,
    Ours,
    OursLive,
    Silence,
    SmartTurn,
    as_silence_lasts,
    opened,
    plugged_in,
)
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.turn_end import KINDS, Fit, TurnEndModel, logit
from antiphon.lab.turn_end_corpus import read_turns
from antiphon.lab.turn_end_judging import judge
from antiphon.lab.turn_end_memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

SOUND = np.zeros(16_000, np.float32)
unit = pytest.mark.unit


class Judge:
    """A prosody judge that says what it is told to, and counts."""

    name = "judge"
    longest_slice_ns = 1
    window_samples = 8000

    def __init__(self, *answers: float) -> None:
        self.answers = list(answers)
        self.heard: list[int] = []

    async def probability(self, pcm: Any) -> float:
        self.heard.append(len(pcm))
        return self.answers.pop(0)


class Taker:
    """Evidence that was taken before; counts how often it is asked for."""

    version = "taker"

    def __init__(self, *stages: float) -> None:
        self.stages = stages
        self.asked = 0

    async def take(self, pcm: Any) -> dict[str, Any]:
        self.asked += 1
        names = ("words", "mass", "all")
        return {
            name: {"kind": "words", "features": {"p": logit(stage)}}
            for name, stage in zip(names, self.stages, strict=False)
        }


MODEL = TurnEndModel({kind: Fit(0.0, {"p": 1.0}) for kind in KINDS})  # believes what it is told


def asked(detector: Any, *moments_s: float) -> list[float]:
    """Its answers in one pause."""

    async def answers() -> list[float]:
        detector.begin()
        return [await detector.probability(SOUND, moment_s) for moment_s in moments_s]

    return asyncio.run(answers())


@unit
def test_a_pause_that_lasts_becomes_an_end() -> None:
    """After one mean pause the odds have grown by e; what is sure stays sure."""
    assert pytest.approx(math.e / (1 + math.e)) == as_silence_lasts(0.5, 0.35, 350)
    assert (0.0, 1.0) == (as_silence_lasts(0.0, 9.0, 350), as_silence_lasts(1.0, 0.0, 350))
    assert pytest.approx(0.2) == as_silence_lasts(0.2, 0.0, 350)
    assert as_silence_lasts(0.5, 0.35, 350) == Silence(350).probability(SOUND, 0.35)


@unit
def test_smart_turn_is_asked_once_in_each_pause() -> None:
    """At the step of 192 ms; then its answer stands, before that nothing is known."""
    prosody = Judge(0.3, 0.8)
    detector = SmartTurn(prosody)
    moments = [round(0.032 * step, 3) for step in range(1, 8)]
    assert [0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.3] == asked(detector, *moments)
    assert [0.8] == asked(detector, 0.2)
    assert [8000, 8000] == prosody.heard


@unit
def test_ours_takes_evidence_once_in_each_pause() -> None:
    """From 100 ms on; then it lasts, and only the silence grows."""
    taker = Taker(0.1, 0.2, 0.6)
    detector = Ours(taker, MODEL, TurnSettings(pause_ms=350))
    expected = [0.0, as_silence_lasts(0.6, 0.128, 350), as_silence_lasts(0.6, 0.35, 350)]
    assert expected == [pytest.approx(each) for each in asked(detector, 0.096, 0.128, 0.35)]
    assert 1 == taker.asked
    asked(detector, 0.128)
    assert 2 == taker.asked


@unit
def test_without_words_there_is_no_turn_to_end() -> None:
    """A cough is answered by nobody."""
    assert [0.0, 0.0] == asked(Ours(Taker(), MODEL, TurnSettings()), 0.2, 1.5)


@unit
@pytest.mark.parametrize(
    ("stages", "answers"),
    [
        ((0.5, 0.5, 0.9), [0.0, 0.0, 1.0]),  # 350 ms * ln(0.1 / 0.04) = 321 ms
        ((0.5, 0.97, 0.1), [1.0, 1.0, 1.0]),  # sure before the prosody was asked
        ((0.97, 0.1, 0.1), [1.0, 1.0, 1.0]),
        ((0.5, 0.5, 0.01), [0.0, 0.0, 0.0]),  # 1123 ms
    ],
)
def test_the_live_rule_waits_as_the_dialogue_would(stages: tuple[float, ...], answers: list[float]) -> None:
    """At 128, 300 and 330 ms, with a risk of 0.04, a mean pause of 350 ms and at least 100 ms of silence."""
    settings = TurnSettings(cut_in_risk=0.04, pause_ms=350, shortest_wait_ms=100)
    assert answers == asked(OursLive(Taker(*stages), MODEL, settings), 0.128, 0.3, 0.33)


class Detection:
    """A voice from the second frame on."""

    frame_samples = 512

    def open(self) -> Detection:
        return self

    def probability(self, pcm: Any) -> float:
        return float(np.abs(pcm).max() > 0.1)

    def reset(self) -> None:
        pass


class Recognition:
    """Hears one sentence."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.begun: int | None = None
        self.fed = 0

    def open(self, vocabulary: Any) -> Recognition:
        return self

    def begin(self, pos_samples: int) -> None:
        self.begun = pos_samples

    def feed(self, frame: Any) -> None:
        self.fed += len(frame.pcm)

    async def transcribe(self, until_samples: int, *, final: bool) -> Transcript:
        return Transcript(text=self.text, heard_samples=until_samples, is_final=final, end_probability=0.7)

    def close(self) -> None:
        pass


class Mind:
    """Has an opinion of the sentence's end."""

    def open(self) -> Mind:
        return self

    async def sentence_end_mass(self, messages: Any) -> float:
        return 0.25

    def close(self) -> None:
        pass


def taker_of(text: str, memory: Memory) -> tuple[EvidenceTaker, Recognition, Judge]:
    ears, prosody = Recognition(text), Judge(0.9, 0.9)
    engines = SimpleNamespace(
        voice_detector=Detection(), quick_recognizer=None, recognizer=ears, language_model=Mind(), prosody=prosody
    )
    return EvidenceTaker(SimpleNamespace(engines=engines), Agent(), Config(), memory), ears, prosody


@unit
def test_evidence_is_what_a_call_would_have() -> None:
    """Stage by stage, from the turn's beginning as voice detection has it; the words themselves are not kept."""
    spoken = np.concatenate([np.zeros(16_000, np.float32), np.full(16_000, 0.3, np.float32)])
    memory = Memory()
    taker, ears, prosody = taker_of("A large latte.", memory)
    evidence = asyncio.run(taker.take(spoken))
    assert ["words+ears", "words+ears+mass", "words+ears+mass+prosody"] == [each["kind"] for each in evidence.values()]
    closed = {"closed": 1.0, "trails": 0.0, "length": math.log(1 + 3), "paused": 0.0}
    opinions = {"ears": logit(0.7), "mass": logit(0.25), "prosody": logit(0.9)}
    assert closed | opinions == evidence["all"]["features"]
    assert (15_872 - 4800, 32_000, [8000]) == (ears.begun, ears.fed, prosody.heard)
    assert evidence == asyncio.run(taker.take(spoken))
    assert ([8000], 1) == (prosody.heard, len(memory))
    assert "latte" not in repr(evidence)


@unit
@pytest.mark.parametrize(("text", "level"), [("", 0.3), ("Words.", 0.0)])
def test_no_words_or_no_voice_are_no_evidence(text: str, level: float) -> None:
    """That is remembered too."""
    taker, _, _ = taker_of(text, memory := Memory())
    assert {} == asyncio.run(taker.take(np.full(16_000, level, np.float32)))
    assert 1 == len(memory)


@unit
def test_a_plug_in_is_found_beside_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class is made, anything else is taken as it is."""
    (tmp_path / "own_detector.py").write_text(
        "class Fixed:\n    def probability(self, pcm, silence_s):\n        return 0.25\n\nready = Fixed()\nempty = 1\n"
    )
    monkeypatch.chdir(tmp_path)
    assert 0.25 == plugged_in("own_detector:Fixed").probability(SOUND, 0.1)
    assert 0.25 == plugged_in("own_detector:ready").probability(SOUND, 0.1)
    for place in ("own_detector:missing", "own_detector:empty", "no_such_module:Fixed", "silent", "own_detector:"):
        with pytest.raises(CallerError, match=place.split(":")[0]):
            plugged_in(place)


@unit
@pytest.mark.parametrize("names", [[], ["silence"] * 9, ["silent"]])
def test_what_cannot_be_opened_is_refused(names: list[str]) -> None:
    """Before any model is loaded."""

    async def nothing() -> None:
        async with opened(names, Agent(), Config(), Memory()):
            pass

    with pytest.raises(CallerError):
        asyncio.run(nothing())


@pytest.mark.model
def test_ours_tells_a_hesitation_from_an_end() -> None:
    """On the bundled hesitant order, by the real engines: 300 ms into either."""
    turns = [turn for turn in read_turns(None) if turn.clip.kind == "hesitation"]

    async def scores() -> list[float]:
        config = Config()
        config = replace(config, capacity=replace(config.capacity, conversations=1))
        async with opened(["ours"], Agent(), config, Memory()) as (detector,):
            found = await judge(turns, detector, step_s=0.1, up_to_s=0.3, memory=Memory())
        return [pause.scores[-1] for pause in found]

    hold, end = asyncio.run(scores())
    assert hold < 0.1 < end  # without a menu, and with a comma behind its last word, the end is far from sure
