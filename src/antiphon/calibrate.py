"""The chosen models on this machine -> what each stage of a turn costs here, measured with the engines themselves.

The engines are loaded as a server would, for one conversation, and called by themselves, one after the other: what a
stage takes beside its neighbours is the plan's to estimate. The sound is the bundled order. Takes 12 s of processor
time. Units: ns. Threads: `calibrate` is called on an event loop, which it holds for a few ms at a time.
What it does not know: where costs are kept.
"""

from __future__ import annotations

import math
import statistics
import time
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.audio.files import read
from antiphon.audio.resample import resample
from antiphon.core.errors import EngineError
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame, Message, TextChunk
from antiphon.hardware.calibration import model_sizes
from antiphon.hardware.plan import make_plan
from antiphon.hardware.stage_costs import Cost, is_served, reference_costs
from antiphon.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from antiphon.config import Config
    from antiphon.core.flow import Pcm
    from antiphon.hardware.facts import MachineFacts
    from antiphon.hardware.plan import Plan
    from antiphon.hardware.stage_costs import StageCosts
    from antiphon.hear.prosody import ProsodyJudge
    from antiphon.hear.recognizer import Recognizer
    from antiphon.hear.voice_detector import VoiceDetector
    from antiphon.models.store import Store
    from antiphon.speak.synthesizer import Synthesizer
    from antiphon.think.language_model import LanguageModel, Thinking

FRAMES = 300
REPEATS = 9  # of what takes tenths of a second: the P95 of so few is their largest
FEWEST = 3  # repeats, where
LONGEST_S = 3.0  # is over before: a slow machine's figures matter as much, and nobody waits for minutes
MOST_WAITED = 0.15  # share of the time; above it the figures are those of the neighbours
REPLY_TOKENS = 24
FIRST_CHUNK = "Sure, one latte coming,"
SENTENCE = "Your triple shot cappuccino with skim milk will be ready for you in just a few minutes."
STEPS = ("loading the models", "voice detection", "tone of voice", "recognition", "language model", "voice")
QUICK_STEP = "quick recognition"


async def calibrate(
    config: Config, facts: MachineFacts, *, store: Store | None = None, note: Callable[[str], None] = lambda _: None
) -> StageCosts:
    """Measure; `note` is told what comes next.

    Raises:
        AntiphonError: a model cannot be loaded, or fails.
    """
    estimated = reference_costs(facts, config.models, model_sizes(config.models))
    plan = make_plan(facts, config.models, config, estimated)
    pcm = _order()
    note(STEPS[0])
    async with await Runtime.load(_alone(config, plan), store=store) as runtime:
        engines, costs = runtime.engines, estimated
        loaded_bytes = _resident_bytes()
        waiting = _Waiting()
        note(STEPS[1])
        costs = replace(costs, voice_frame=_voice_frame(engines.voice_detector, pcm))
        if engines.prosody is not None:
            note(STEPS[2])
            costs = replace(costs, prosody=await _prosody(engines.prosody, pcm))
        note(STEPS[3])
        encode, decode = await _recognition(engines.recognizer, pcm)
        costs = replace(costs, encode=encode, decode=decode, recognizer_threads=plan.stage("recognizer").threads)
        if engines.quick_recognizer is not None:
            note(QUICK_STEP)
            quick = _cost(await _heard(engines.quick_recognizer, pcm, has_looked=True))
            costs = replace(costs, quick_recognition=quick, quick_recognizer_threads=_quick_threads(plan))
        if not is_served(config.models.language_model):
            note(STEPS[4])
            prompt_token, generated_token = await _tokens(engines.language_model)
            threads = plan.stage("language_model").threads
            costs = replace(costs, prompt_token=prompt_token, generated_token=generated_token)
            costs = replace(costs, language_model_threads=threads)
        note(STEPS[5])
        first_chunk, voice_second = await _voice(engines.synthesizer)
        costs = replace(costs, first_chunk=first_chunk, voice_second=voice_second, waited=waiting.share())
    # one conversation has two places in the language model's cache, its own and the one where tools are chosen
    contexts = 2 * config.capacity.context_tokens * costs.context_bytes_a_token
    base_bytes = loaded_bytes - contexts if loaded_bytes > contexts else costs.base_bytes
    taken = datetime.now(UTC).isoformat(timespec="seconds")
    return replace(costs, base_bytes=base_bytes, origin="measured", taken=taken)


def _alone(config: Config, plan: Plan) -> Config:
    """The configuration for one conversation, with the plan's threads."""
    cpu = replace(
        config.cpu,
        recognizer_threads=plan.stage("recognizer").threads,
        quick_recognizer_threads=_quick_threads(plan),
        language_model_threads=0 if is_served(config.models.language_model) else plan.stage("language_model").threads,
        prosody_threads=1,
        voice_threads=1,
    )
    return replace(
        config,
        cpu=cpu,
        capacity=replace(config.capacity, conversations=1),
    )


def _quick_threads(plan: Plan) -> int:
    return plan.stage("quick_recognizer").threads if plan.has_quick_recognizer else 0


def _order() -> Pcm:
    file = Path(str(resources.files("antiphon").joinpath("assets/order.flac")))
    pcm, rate_hz = read(file)
    return resample(pcm, rate_hz, HEARING_RATE_HZ)  # (samples,) f32, 4 s of speech


def _voice_frame(detector: VoiceDetector, pcm: Pcm) -> Cost:
    voice, size = detector.open(), detector.frame_samples
    starts = range(0, len(pcm) - size, size)
    taken = []
    for number in range(FRAMES):
        offset = starts[number % len(starts)]
        began_ns = time.perf_counter_ns()
        voice.probability(pcm[offset : offset + size])
        taken.append(time.perf_counter_ns() - began_ns)
    return _cost(taken)


async def _prosody(judge: ProsodyJudge, pcm: Pcm) -> Cost:
    taken = []
    for _ in _repeats():
        began_ns = time.perf_counter_ns()
        await judge.probability(pcm)
        taken.append(time.perf_counter_ns() - began_ns)
    return _cost(taken)


async def _recognition(recognizer: Recognizer, pcm: Pcm) -> tuple[Cost, Cost]:
    """(encode, decode). Another engine than Whisper has no such parts: all of its time is decoding."""
    whole = await _heard(recognizer, pcm)
    encoded = await _encode(recognizer, pcm)
    decoded = [max(1, ns - encoded.median_ns) for ns in whole]
    return encoded, _cost(decoded)


async def _heard(recognizer: Recognizer, pcm: Pcm, *, has_looked: bool = False) -> list[int]:
    """ns, for each time that the turn was heard; `has_looked`: a second before, it was heard as far as that."""
    whole = []
    looks_at = len(pcm) - HEARING_RATE_HZ
    for _ in _repeats():
        recognition = recognizer.open()
        recognition.feed(AudioFrame(pcm=pcm[:1], rate_hz=HEARING_RATE_HZ, pos_samples=0, captured_ns=0))
        recognition.begin(0)
        recognition.feed(AudioFrame(pcm=pcm[1:], rate_hz=HEARING_RATE_HZ, pos_samples=1, captured_ns=0))
        if has_looked:
            await recognition.transcribe(looks_at, final=False)
        began_ns = time.perf_counter_ns()
        await recognition.transcribe(len(pcm), final=True)
        whole.append(time.perf_counter_ns() - began_ns)
        recognition.close()
    return whole


async def _encode(recognizer: Recognizer, pcm: Pcm) -> Cost:
    from antiphon.hear.mel import COLUMNS_PER_SECOND, log_mel  # noqa: PLC0415 - loads arrays
    from antiphon.hear.whisper import WhisperRecognizer  # noqa: PLC0415
    from antiphon.hear.whisper_recognition import LEAST_COLUMNS, PADDING_COLUMNS  # noqa: PLC0415

    if not isinstance(recognizer, WhisperRecognizer):
        return Cost(median_ns=1, p95_ns=1)
    columns = max(LEAST_COLUMNS, len(pcm) * COLUMNS_PER_SECOND // HEARING_RATE_HZ + PADDING_COLUMNS)
    logs = log_mel(pcm, columns + columns % 2, bins=recognizer.bins)  # (columns, bins)
    taken = []
    for _ in _repeats():
        began_ns = time.perf_counter_ns()
        await recognizer.encode(logs)
        taken.append(time.perf_counter_ns() - began_ns)
    return _cost(taken)


async def _tokens(model: LanguageModel) -> tuple[Cost, Cost]:
    """(a token read, a token written); each repeat is a conversation that begins otherwise, so that nothing is cached.

    Raises:
        EngineError: the model wrote too little to measure.
    """
    read_ns, written_ns = [], []
    for number in _repeats():
        thinking = model.open()
        messages = [
            Message("system", f"Cafe {number} answers in many words. It sells {number} kinds of coffee, tea and cake."),
            Message("user", "Please tell me all about the coffee that you sell here, and how each of them is made."),
        ]
        try:
            prompt_ns, token_ns = await _reply(thinking, messages)
        finally:
            thinking.close()
        if prompt_ns and token_ns:
            read_ns.append(prompt_ns)
            written_ns.append(token_ns)
    if not read_ns:
        raise EngineError(
            "the language model wrote no reply to measure", hint="choose another with models.language_model"
        )
    return _cost(read_ns), _cost(written_ns)


async def _reply(thinking: Thinking, messages: Sequence[Message]) -> tuple[float, float]:
    """ns for each token read and each written; 0 where there were none."""
    began_ns = time.perf_counter_ns()
    first_ns = last_ns = 0
    pieces = 0
    async with aclosing(thinking.write(messages, max_tokens=REPLY_TOKENS)) as reply:
        async for _ in reply:
            last_ns = time.perf_counter_ns()
            first_ns = first_ns or last_ns
            pieces += 1
    usage = thinking.usage
    if usage is None or pieces < 2:
        return 0.0, 0.0
    tokens = max(pieces, usage.output_tokens)
    token_ns = (last_ns - first_ns) / (tokens - 1)
    fresh = usage.input_tokens - usage.cached_tokens
    return max(1.0, (first_ns - began_ns - token_ns) / fresh) if fresh > 0 else 0.0, token_ns


async def _voice(synthesizer: Synthesizer) -> tuple[Cost, Cost]:
    """(the first chunk, a second of speech)."""
    chunks, seconds = [], []
    for _ in _repeats():
        chunks.append((await _spoken(synthesizer, FIRST_CHUNK))[0])
        taken_ns, sound_s = await _spoken(synthesizer, SENTENCE)
        seconds.append(taken_ns / sound_s)
    return _cost(chunks), _cost(seconds)


async def _spoken(synthesizer: Synthesizer, text: str) -> tuple[float, float]:
    """(ns that it took, seconds of sound).

    Raises:
        EngineError: no sound came.
    """
    began_ns, samples = time.perf_counter_ns(), 0
    async for piece in synthesizer.speak(TextChunk(text=text, index=0, start_chars=0, is_last=True)):
        samples += len(piece.pcm)
    if not samples:
        raise EngineError(f"{synthesizer.name} gave no sound for a sentence", hint="choose another voice")
    return float(time.perf_counter_ns() - began_ns), samples / synthesizer.rate_hz


def _repeats() -> Iterator[int]:
    began_s = time.monotonic()
    for number in range(REPEATS):
        if number >= FEWEST and time.monotonic() - began_s > LONGEST_S:
            return
        yield number


class _Waiting:
    """How long this process's threads were ready for a core and had none."""

    def __init__(self) -> None:
        self._before = _ran_and_waited_ns()

    def share(self) -> float:
        """Of the time since; 0 where the system does not tell."""
        ran_ns, waited_ns = (now - then for now, then in zip(_ran_and_waited_ns(), self._before, strict=True))
        return min(1.0, max(0, waited_ns) / max(1, ran_ns + waited_ns))


def _ran_and_waited_ns() -> tuple[int, int]:
    """Over all threads that live."""
    ran = waited = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError, ValueError):  # the thread has ended
            numbers = [int(word) for word in file.read_text(encoding="ascii").split()]
            ran, waited = ran + numbers[0], waited + numbers[1]
    return ran, waited


def _cost(taken_ns: Sequence[float]) -> Cost:
    ranked = sorted(taken_ns)
    return Cost(
        median_ns=max(1, round(statistics.median(ranked))),
        p95_ns=max(1, round(ranked[math.ceil(0.95 * len(ranked)) - 1])),
    )


def _resident_bytes() -> int:
    """What this process holds in memory; 0 where the system has no such file."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    sizes = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(sizes[0]) * 1024 if sizes else 0
