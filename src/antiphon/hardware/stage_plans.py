"""Where engines may compute, and the settings -> for each stage its engine, device, threads, cores, niceness and width.

Units: logical cores by the system's numbers; niceness adds to the process's own. Threads: pure.
What it does not know: how many callers there are. admission.py says that, and with it how many the language model
serves at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.hardware.reasons import Reason, decide, plural, show_cores
from antiphon.hardware.stage_choices import (
    FEW_THREADS,
    Ground,
    Role,
    choose_cores,
    choose_nice,
    choose_threads,
    few_threads,
    place,
)
from antiphon.hardware.stage_costs import is_moonshine, is_served

if TYPE_CHECKING:
    from collections.abc import Sequence


MANY_CORES = 16  # from so many on, stages get cores of their own, and the recognizer several workers
HUGE_CORES = 64  # from so many on the recognizer's workers are larger
MOST_LANGUAGE_MODEL_THREADS = 16  # writing a token reads all weights once: memory is the limit before the cores are
MOST_WIDTH = 16
QUICK_THREADS = 2  # Moonshine's words after 62 ms against 84, for a quarter more of the cores' time
CORES_EACH = {"prosody": 16, "voice": 8, "quick_recognizer": 8}  # that one call at once is for, where there are many
LONGEST_WAIT_NS = 250 * MILLISECOND_NS  # that a batch may make its callers wait for recognition
MOST_BATCH = 8
BATCH_GAIN = 0.8  # of one caller's time, that a further one adds to a call on a processor


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """How one stage computes."""

    stage: Role
    engine: str
    model: str  # "" for none
    device: str  # cpu, cuda:0, or server
    threads: int  # of one call
    cores: tuple[int, ...]  # logical; (): any
    nice: int
    batch: int  # most callers in one call
    width: int  # calls at once
    reasons: tuple[Reason, ...]


def plan_voice_detector(ground: Ground) -> StagePlan:
    """On the event loop, and not for anybody to move."""
    cost_ms = ground.costs.voice_frame.median_ns / MILLISECOND_NS
    own = f"a frame of 32 ms takes {cost_ms:.2f} ms, less than handing it to a thread and back is worth"
    return _stage(
        Role.VOICE_DETECTOR,
        "onnxruntime",
        ground.choice.voice_detector,
        decide("device", "cpu", f"It is far too small for any other: {own}."),
        decide("threads", 1, f"It runs on the event loop: {own}."),
        decide("cores", (), "The system places the event loop best.", show=show_cores),
        choose_nice(ground, Role.VOICE_DETECTOR),
        decide("batch", 1, "Frames come one by one, each caller's in its own time."),
        decide("width", 1, "There is one event loop."),
    )


def plan_recognizer(ground: Ground) -> StagePlan:
    """The widest stage: every pause waits for it."""
    topology, cpu = ground.topology, ground.cpu
    device = _recognizer_device(ground)
    group = topology.ears
    cores = choose_cores(ground, Role.RECOGNIZER, group)
    share = group.whole if topology.ears is not topology.home else group.whole // 2
    if group.whole < MANY_CORES:
        planned, why = few_threads(ground, group)
    else:
        planned = 2 * FEW_THREADS if share >= HUGE_CORES else FEW_THREADS
        why = (
            f"{share} of the {plural(group.whole, 'whole core')}{place(topology, group)} are for hearing; workers of "
            f"{planned} threads serve more pauses at once than one with many, which small matrices cannot keep busy."
        )
    threads = choose_threads(ground, Role.RECOGNIZER, planned, why, cores[0], cpu.recognizer_threads)
    room = share if group.whole >= MANY_CORES else 1
    wide = max(1, min(MOST_WIDTH, room // threads[0]))
    width = decide(
        "width",
        wide,
        f"{wide} times {plural(threads[0], 'thread')} fill the {share} cores for hearing."
        if wide > 1
        else f"A second worker beside {plural(threads[0], 'thread')} would take cores from the reply.",
        setting="cpu.recognizer_width",
        given=cpu.recognizer_width or None,
    )
    batch = _recognizer_batch(ground, threads[0])
    nice = choose_nice(ground, Role.RECOGNIZER)
    model = ground.choice.recognizer
    return _stage(Role.RECOGNIZER, _recognition_engine(model), model, device, threads, cores, nice, batch, width)


def plan_quick_recognizer(ground: Ground) -> StagePlan:
    """What a reply begins with: short calls, beside whatever else is heard and judged in the pause."""
    model = ground.choice.quick_name
    whole = ground.topology.home.whole
    shares = bool(ground.choice.prosody) and 1 < whole <= QUICK_THREADS
    planned = whole - 1 if shares else min(QUICK_THREADS, whole)
    one_ms, two_ms = (ground.costs.quick_recognition_ns(threads) / MILLISECOND_NS for threads in (1, 2))
    if shares:
        why = (
            f"A pause's words come after about {one_ms:.0f} ms, on one thread more after {two_ms:.0f}; that core "
            f"judges the tone of voice meanwhile, which is wanted with the words."
        )
    elif planned > 1:
        why = (
            f"A pause's words come after about {two_ms:.0f} ms, on one thread after {one_ms:.0f}; of more, a decoder "
            f"that computes a token at a time gains little."
        )
    else:
        why = f"There is one whole core: a pause's words come after about {one_ms:.0f} ms."
    return _single(ground, Role.QUICK_RECOGNIZER, _recognition_engine(model), model, planned_threads=planned, why=why)


def plan_language_model(ground: Ground, callers: int) -> StagePlan:
    """One model for all callers, which it serves together."""
    topology, cpu, costs = ground.topology, ground.cpu, ground.costs
    served = is_served(ground.choice.language_model)
    if served:
        return _served(ground, callers)
    group = topology.home
    cores = choose_cores(ground, Role.LANGUAGE_MODEL, group)
    if group.whole < MANY_CORES:
        planned, why = few_threads(ground, group)
    else:
        apart = topology.ears is not topology.home
        share = group.whole // (2 if apart else 4)
        planned = max(FEW_THREADS, min(MOST_LANGUAGE_MODEL_THREADS, share))
        why = (
            f"A {'half' if apart else 'quarter'} of {plural(group.whole, 'whole core')}{place(topology, group)}, "
            f"{MOST_LANGUAGE_MODEL_THREADS} at most: a token reads all weights, and beyond that memory is the limit."
        )
    threads = choose_threads(ground, Role.LANGUAGE_MODEL, planned, why, cores[0], cpu.language_model_threads)
    rate = 1e9 / max(1.0, costs.tokens_ns(0, 1, threads[0]))
    most = max(1, int(rate / TOKENS_A_SECOND))
    batch = decide(
        "batch",
        max(1, min(callers, most)),
        f"About {rate:.0f} tokens/s carry {plural(most, 'reply')} of {TOKENS_A_SECOND} tokens/s, below which speech "
        f"would run dry; {plural(callers, 'caller')} may be there.".replace("replys", "replies"),
        setting="cpu.language_model_batch",
        given=cpu.language_model_batch or None,
    )
    width = decide(
        "width",
        2 * callers,
        f"Each of {plural(callers, 'caller')} has a reply and a look ahead; these threads only wait for the model.",
        setting="capacity.conversations",
    )
    return _stage(
        Role.LANGUAGE_MODEL,
        "llama.cpp",
        ground.choice.language_model,
        _language_model_device(ground),
        threads,
        cores,
        choose_nice(ground, Role.LANGUAGE_MODEL),
        batch,
        width,
    )


TOKENS_A_SECOND = 12  # speech takes 4 or 5; the rest is for pauses between chunks and for neighbours


def plan_prosody(ground: Ground) -> StagePlan:
    """A short judgement, beside the recognizer's long one."""
    cost_ms = ground.costs.prosody.median_ns / MILLISECOND_NS
    return _single(
        ground,
        Role.PROSODY,
        "onnxruntime" if ground.choice.prosody else "none",
        ground.choice.prosody,
        why=f"{cost_ms:.0f} ms on one thread end before the words are there; a second would slow the recognizer."
        if ground.choice.prosody
        else "Nobody judges the tone of voice: models.prosody is empty.",
    )


def plan_voice(ground: Ground) -> StagePlan:
    """One thread a chunk; several chunks at once where there are cores."""
    chunk_ms = ground.costs.first_chunk.median_ns / MILLISECOND_NS
    return _single(
        ground,
        Role.VOICE,
        "piper" if ground.choice.voice.startswith("piper") else "hibari",
        ground.choice.voice,
        why=f"A first chunk takes {chunk_ms:.0f} ms on one thread, and more gain little.",
    )


def plan_background(ground: Ground) -> StagePlan:
    """Whatever nobody waits for, on the slow cores if there are any."""
    slow = ground.topology.slow
    why = "The slow cores are free for it." if slow else "It runs wherever something is idle."
    return _stage(
        Role.BACKGROUND,
        "antiphon",
        "",
        decide("device", "cpu", "There is nothing to gain elsewhere."),
        decide("threads", 1, "It may take its time."),
        decide("cores", slow, why, show=show_cores),
        choose_nice(ground, Role.BACKGROUND),
        decide("batch", 1, "It serves nobody in particular."),
        decide("width", 1, "One piece after the other is soon enough."),
    )


def _recognition_engine(model: str) -> str:
    return "onnxruntime" if is_moonshine(model) else "ctranslate2"


def _single(ground: Ground, role: Role, engine: str, model: str, *, planned_threads: int = 1, why: str) -> StagePlan:
    """A stage of one thread, or of few, and of one call at once for every so many whole cores."""
    group, cores_each = ground.topology.home, CORES_EACH[role]
    asked, asked_width = int(getattr(ground.cpu, f"{role}_threads")), int(getattr(ground.cpu, f"{role}_width"))
    cores = choose_cores(ground, role, group)
    asked = 0 if asked == planned_threads == 1 else asked  # one is the plan's own too
    threads = choose_threads(ground, role, planned_threads, why, cores[0], asked)
    wide = max(1, min(MOST_WIDTH, group.whole // cores_each))
    width = decide(
        "width",
        wide,
        f"One for every {cores_each} whole cores, at least one, and this process may use "
        f"{group.whole}{place(ground.topology, group)}.",
        setting=f"cpu.{role}_width",
        given=asked_width or None,
    )
    return _stage(
        role,
        engine,
        model,
        decide("device", "cpu", "It is small: a GPU's blocks are better left to the models that need them."),
        threads,
        cores,
        choose_nice(ground, role),
        decide("batch", 1, "The engine takes one piece at a time."),
        width,
    )


def _served(ground: Ground, callers: int) -> StagePlan:
    why = "It computes in its server, not here."
    return _stage(
        Role.LANGUAGE_MODEL,
        "server",
        ground.choice.language_model,
        decide("device", "server", "Its name is an address."),
        decide("threads", 1, why),
        decide("cores", (), why, show=show_cores),
        decide("nice", 0, f"{why} What is done for it here runs on the event loop."),
        decide("batch", callers, "The server makes its own batches; no more than all callers ask at once."),
        decide("width", 2 * callers, "A reply and a look ahead for each caller.", setting="capacity.conversations"),
    )


def _recognizer_device(ground: Ground) -> tuple[str, Reason]:
    asked, gpus = ground.gpu.recognizer, ground.facts.gpus
    if asked == "cuda" and not gpus:
        raise CallerError("gpu.recognizer is cuda, but no GPU was found", hint="leave gpu.recognizer at auto")
    on_gpu = bool(gpus) and asked != "cpu" and not is_moonshine(ground.choice.recognizer)
    if asked == "auto":
        on_gpu = on_gpu and ground.gpu.device == "cuda"
    if not gpus:
        text = "There is no GPU."
    elif is_moonshine(ground.choice.recognizer):
        text = "Moonshine computes on the processor."
    else:
        text = "The settings say where: gpu.device, unless gpu.recognizer does."
    given = f"cuda:{gpus[0].index}" if on_gpu else None if asked == "auto" else "cpu"
    return decide("device", "cpu", text, setting="gpu.recognizer" if asked != "auto" else "gpu.device", given=given)


def _language_model_device(ground: Ground) -> tuple[str, Reason]:
    gpus = ground.facts.gpus
    text = "The built-in engine computes on the processor; gpu.device=cuda or an address as the model's name moves it."
    given = f"cuda:{gpus[0].index}" if gpus and ground.gpu.device == "cuda" else None
    return decide("device", "cpu", text, setting="gpu.device", given=given)


def _recognizer_batch(ground: Ground, threads: int) -> tuple[int, Reason]:
    alone_ns = max(1.0, ground.costs.recognition_ns(threads))
    planned = max(1, min(MOST_BATCH, 1 + int((LONGEST_WAIT_NS - alone_ns) / (BATCH_GAIN * alone_ns))))
    text = (
        f"One turn takes about {alone_ns / MILLISECOND_NS:.0f} ms and each further one {BATCH_GAIN:.0%} of that; "
        f"{LONGEST_WAIT_NS / MILLISECOND_NS:.0f} ms is what a pause may wait."
    )
    given = ground.cpu.recognizer_batch or None
    return decide("batch", planned, text, setting="cpu.recognizer_batch", given=given)


def _stage(
    stage: Role,
    engine: str,
    model: str,
    device: tuple[str, Reason],
    threads: tuple[int, Reason],
    cores: tuple[tuple[int, ...], Reason],
    *rest: tuple[int, Reason],
) -> StagePlan:
    nice, batch, width = rest
    decisions: Sequence[tuple[object, Reason]] = (device, threads, cores, nice, batch, width)
    return StagePlan(
        stage=stage,
        engine=engine,
        model=model,
        device=device[0],
        threads=threads[0],
        cores=cores[0],
        nice=nice[0],
        batch=batch[0],
        width=width[0],
        reasons=tuple(reason for _, reason in decisions),
    )
