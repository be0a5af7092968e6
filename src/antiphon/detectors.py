"""A name in, a detector of turn ends out, for `antiphon bench turn-end`: silence alone, smart-turn, ours, anybody's.

Ours is the live dialogue's judgement without its clock: the words, the recognizer's and the language model's opinions
of the sentence's end and the prosody, all taken once, at the first step EVIDENCE_S into the pause, and the fit that
ships with the package. As the pause lasts on, a pause inside a turn becomes less likely, since those end on average
after `turn.pause_ms`; a turn's end does not:

    probability(t) = p / (p + (1 - p) exp(-t / pause_ms))

That is also all that `silence` knows, with p = 1/2. Threads: the event loop; engines compute on their lanes.
What it does not know: the truth about the pauses, and how long computing takes.
"""

from __future__ import annotations

import importlib
import math
import sys
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import AntiphonError, CallerError
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame
from antiphon.dialogue.history import prompt
from antiphon.dialogue.turn_end import Evidence, wait_ns
from antiphon.hear.ear import Ear
from antiphon.hear.segmenter import VoiceStarted
from antiphon.lab.turn_end_memory import key_of
from antiphon.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from antiphon.agent import Agent
    from antiphon.config import Config
    from antiphon.core.flow import Pcm
    from antiphon.dialogue.settings import TurnSettings
    from antiphon.dialogue.turn_end import TurnEndModel
    from antiphon.hear.prosody import ProsodyJudge
    from antiphon.lab.turn_end_judging import Detector
    from antiphon.lab.turn_end_memory import Memory

SILENCE, SMART_TURN, OURS, OURS_LIVE = "silence", "smart-turn", "ours", "ours-live"
NAMES = (SILENCE, SMART_TURN, OURS, OURS_LIVE)
EVIDENCE_S = 0.1  # when a draft's transcription begins at the earliest
SMART_TURN_S = 0.19  # eot-bench asks it at 200 ms; so the step of 192 ms is the nearest
FRAME_SAMPLES = 320
MOST_DETECTORS = 8


def as_silence_lasts(probability: float, silence_s: float, pause_ms: float) -> float:
    """The probability that the turn is over once a pause that began with `probability` has lasted `silence_s`."""
    goes_on = (1.0 - probability) * math.exp(-1000.0 * silence_s / pause_ms)
    return probability / (probability + goes_on) if probability > 0.0 else 0.0


class Silence:
    """Knows only how long the pause has lasted."""

    name = SILENCE

    def __init__(self, pause_ms: float) -> None:
        self.version = f"pause of {pause_ms} ms"
        self._pause_ms = pause_ms

    def probability(self, pcm: Pcm, silence_s: float) -> float:  # noqa: ARG002 - the sound is no matter
        return as_silence_lasts(0.5, silence_s, self._pause_ms)


class SmartTurn:
    """The prosody judge alone, asked once in each pause, as eot-bench and the pipelines that use it do."""

    name = SMART_TURN

    def __init__(self, judge: ProsodyJudge) -> None:
        self.version = f"{judge.name} at {SMART_TURN_S} s"
        self._judge = judge
        self._answer: float | None = None

    def begin(self) -> None:
        self._answer = None

    async def probability(self, pcm: Pcm, silence_s: float) -> float:
        """0 until it is asked."""
        if self._answer is None and silence_s >= SMART_TURN_S:
            self._answer = await self._judge.probability(pcm[-self._judge.window_samples :])
        return self._answer or 0.0


class EvidenceTaker:
    """What a call with this agent would know of a pause, by the engines at full speed; remembered by the sound."""

    def __init__(self, runtime: Runtime, agent: Agent, config: Config, memory: Memory) -> None:
        self._engines = runtime.engines
        self._agent = agent
        self._memory = memory
        heard_by = config.models.quick_name or config.models.recognizer
        models = (heard_by, config.models.language_model, config.models.prosody)
        self.version = repr((models, config.whisper, agent.instructions, agent.vocabulary))

    async def take(self, pcm: Pcm) -> Mapping[str, Any]:
        """`{"kind": .., "features": {..}}` as a fit takes them, for each stage of a draft; empty without words."""
        key = key_of(self.version, pcm)
        kept = self._memory.get(key)
        if kept is None:
            kept = {stage: _plain(evidence) for stage, evidence in await self._ask(pcm)}
            self._memory.put(key, kept)
        return dict(kept)

    async def _ask(self, pcm: Pcm) -> list[tuple[str, Evidence]]:
        begins = self._begins(pcm)
        if begins is None:
            return []
        recognizer = self._engines.quick_recognizer or self._engines.recognizer
        recognition = recognizer.open(self._agent.vocabulary)
        try:
            recognition.begin(begins)
            for frame in _frames(pcm):
                recognition.feed(frame)
            transcript = await recognition.transcribe(len(pcm), final=True)
        finally:
            recognition.close()
        text = transcript.text.strip()
        if not text:
            return []
        mass, prosody = await self._mass(text), await self._prosody(pcm)
        return [
            ("words", Evidence.of(transcript)),
            ("mass", Evidence.of(transcript, end_mass=mass)),
            ("all", Evidence.of(transcript, end_mass=mass, prosody=prosody)),
        ]

    def _begins(self, pcm: Pcm) -> int | None:
        """Where the turn begins by voice detection, as in a call; None if there is no voice."""
        ear = Ear(self._engines.voice_detector)
        for frame in _frames(pcm):
            for fact in ear.hear(frame):
                if isinstance(fact, VoiceStarted):
                    return fact.start_samples
        return None

    async def _mass(self, text: str) -> float | None:
        thinking = self._engines.language_model.open()
        try:
            return await thinking.sentence_end_mass(prompt(self._agent.instructions, (), text))
        finally:
            thinking.close()

    async def _prosody(self, pcm: Pcm) -> float | None:
        judge = self._engines.prosody
        return await judge.probability(pcm[-judge.window_samples :]) if judge else None


class Ours:
    """The dialogue's judgement: all evidence and the fit."""

    name = OURS
    note = (
        "ours: the fit that ships was made on orders of Picovoice's speech-to-intent-benchmark, the bundled clips "
        "among them; recordings from there flatter it."
    )

    def __init__(self, taker: EvidenceTaker, model: TurnEndModel, settings: TurnSettings) -> None:
        self.version = sha256(repr((taker.version, model, settings)).encode()).hexdigest()
        self._taker = taker
        self._model = model
        self._settings = settings
        self._evidence: Mapping[str, Any] | None = None

    def begin(self) -> None:
        self._evidence = None

    async def probability(self, pcm: Pcm, silence_s: float) -> float:
        """0 until the evidence is there, and where no words were heard: then there is no turn to end."""
        if silence_s < EVIDENCE_S:
            return 0.0
        if self._evidence is None:
            self._evidence = await self._taker.take(pcm)
        return self._judged(self._evidence, silence_s) if self._evidence else 0.0

    def _judged(self, evidence: Mapping[str, Any], silence_s: float) -> float:
        return as_silence_lasts(self._posterior(evidence["all"]), silence_s, self._settings.pause_ms)

    def _posterior(self, known: Mapping[str, Any]) -> float:
        return self._model.fits[known["kind"]].posterior(known["features"])


class OursLive(Ours):
    """The dialogue's rule as it is configured: 1 once it would have answered, before that 0.

    What arrives in a draft is judged as it comes, and the prosody is asked only if the rest asks for more silence.
    """

    name = OURS_LIVE

    def _judged(self, evidence: Mapping[str, Any], silence_s: float) -> float:
        waits_s = [wait_ns(self._posterior(evidence[stage]), self._settings) / SECOND_NS for stage in evidence]
        early = any(wait_s <= EVIDENCE_S for wait_s in waits_s[:-1])
        return float(early or silence_s >= waits_s[-1])


@asynccontextmanager
async def opened(names: Sequence[str], agent: Agent, config: Config, evidence: Memory) -> AsyncIterator[list[Detector]]:
    """The named detectors, in order; engines are loaded if any of them needs some, and freed at the end.

    Raises:
        CallerError: a name is unknown, or a plug-in cannot be loaded.
        MachineError: a model is not on this machine.
    """
    if not names or len(names) > MOST_DETECTORS:
        raise CallerError(f"{len(names)} detectors are named", hint=f"name 1 to {MOST_DETECTORS}: {', '.join(NAMES)}")
    plugged = {name: plugged_in(name) for name in names if name not in NAMES}  # a wrong name shows before models load
    config = agent.configured(config)
    runtime = await Runtime.load(config) if set(names) & set(NAMES[1:]) else None
    try:
        yield [plugged.get(name) or _made(name, runtime, agent, config, evidence) for name in names]
    finally:
        if runtime is not None:
            runtime.close()


def plugged_in(place: str) -> Detector:
    """The detector at `module:Class`; a module in the working directory is found too.

    Raises:
        CallerError: there is none, or it fails or lacks `probability`.
    """
    module, _, name = place.partition(":")
    hint = f"name one of {', '.join(NAMES)}, or module:Class with a method probability(pcm, silence_s)"
    if not module or not name:
        raise CallerError(f"there is no detector {place!r}", hint=hint)
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), name)
        detector = found() if isinstance(found, type) else found
    except AntiphonError:
        raise
    except Exception as error:  # whatever a stranger's module raises
        raise CallerError(f"{place} cannot be loaded: {type(error).__name__}: {error}", hint=hint) from error
    finally:
        sys.path.remove(here)
    if not callable(getattr(detector, "probability", None)):
        raise CallerError(f"{place} has no method probability", hint=hint)
    checked: Detector = detector
    return checked


def _made(name: str, runtime: Runtime | None, agent: Agent, config: Config, evidence: Memory) -> Detector:
    if name == SILENCE:
        return Silence(config.turn.pause_ms)
    assert runtime is not None
    if name == SMART_TURN:
        if runtime.engines.prosody is None:
            raise CallerError("no prosody judge is configured", hint="leave smart-turn out, or set models.prosody")
        return SmartTurn(runtime.engines.prosody)
    kind = Ours if name == OURS else OursLive
    return kind(EvidenceTaker(runtime, agent, config, evidence), runtime.turn_end, config.turn)


def _plain(evidence: Evidence) -> dict[str, Any]:
    """As the memory keeps it: what was said is no part of it."""
    return {"kind": evidence.kind, "features": evidence.features()}


def _frames(pcm: Pcm) -> Iterator[AudioFrame]:
    for pos in range(0, len(pcm), FRAME_SAMPLES):
        yield AudioFrame(pcm[pos : pos + FRAME_SAMPLES], HEARING_RATE_HZ, pos, 0)
