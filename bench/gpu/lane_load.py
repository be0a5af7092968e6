"""Writers and a recognizer at full load through one GPU's lane, each mechanism left out in turn.

Regime: closed loops. Each of some callers has a reply written to its own prompt, again and again; a thread recognises
windows of ten seconds, four at a time, as work ahead of a pause. A token's gap is what its caller sees: the time since
the token before. `alone` is each of the two without the other, with every mechanism on.
Texts: what each caller is written under load against the same engine's alone, and against float32 on the processor.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from timing import summary
from unpack import UNPACKED

from antiphon.core.stamps import Stage
from antiphon.gpu.engine_lane import open_gpu
from antiphon.gpu.llama.engine import Asked, LlamaEngine
from antiphon.gpu.llama.pages import PAGE_TOKENS
from antiphon.gpu.llama.shape import EIGHT_BILLION, LlamaShape
from antiphon.gpu.llama.step import LlamaStep
from antiphon.gpu.llama.tokens import tokens_of_vocabulary
from antiphon.gpu.llama.weights import gather_weights, random_weights
from antiphon.gpu.weights.gguf_file import GgufFile
from antiphon.gpu.whisper.model import Marks, WhisperModel
from antiphon.gpu.whisper.weights import LARGE_V3, WritingRules, load_whisper, random_whisper
from antiphon.hardware.plan_settings import GpuSettings
from antiphon.mechanisms import settings_without
from antiphon.models.store import Store
from antiphon.scheduling.job import Claim, Errand, Job, Urgency, doing
from antiphon.scheduling.shares import Signs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from antiphon.gpu.llama.engine import Told
    from antiphon.gpu.llama.weights import LlamaWeights
    from antiphon.gpu.slices import SliceReport
    from antiphon.gpu.whisper.weights import WhisperWeights

CONTEXT = 512
NEW_TOKENS = 64  # of a reply
WINDOWS = 4  # recognised together
TEN_SECONDS = 1000  # columns
PROMPT_WORDS = "Please tell me, in a few plain words, what you would like to drink today, and number"
WITHOUT = (
    "",
    "gpu-partitions",
    "gpu-slicing",
    "gpu-graphs",
    "gpu-priorities",
    "gpu-batching",
    "gpu-hold-back",
    "gpu-partitions,gpu-priorities",
)
SOMEBODY_BEGINS = Signs(voiced_frames=30, certainty=1.0, energy_ratio=3.0)  # a sign that moves the cut
TINY_LLAMA = LlamaShape(
    layers=2, hidden=128, heads=4, kv_heads=2, head_size=32, feed_forward=256, vocabulary=512, context_tokens=CONTEXT
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Weights on the device, and what they are asked."""

    llama: LlamaWeights
    whisper: WhisperWeights
    rules: WritingRules
    marks: Marks
    prompts: list[list[int]]  # one a caller
    windows: list[npt.NDArray[np.float32]]
    hear_tokens: int  # random weights never end a text by themselves


@dataclass(slots=True)
class Seen:
    """What the two loops saw."""

    gaps_ms: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    hear_ms: list[float] = field(default_factory=list)
    texts: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # the caller, and what was written
    heard: Counter[tuple[tuple[int, ...], ...]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0  # until the last of what was begun had ended

    def report(self) -> dict[str, Any]:
        seconds = self.seconds
        return {
            "seconds": round(seconds, 2),
            "tokens_per_s": round(len(self.gaps_ms) / seconds, 1),
            "windows_per_s": round(len(self.hear_ms) * WINDOWS / seconds, 2),
            "gap": summary(self.gaps_ms) if self.gaps_ms else None,
            "first_token": summary(self.first_ms) if self.first_ms else None,
            "recognition": summary(self.hear_ms) if self.hear_ms else None,
            "failures": self.failures[:3],
        }


class Bench:
    """Both engines on one lane."""

    def __init__(self, models: Models, device: torch.device, without: str) -> None:
        off = [
            each.removeprefix("gpu.").removesuffix("=false") for each in settings_without([without] if without else [])
        ]
        callers = len(models.prompts)
        gpu_settings = replace(GpuSettings(reply_batch=callers), **dict.fromkeys(off, False))
        started = time.monotonic()
        self.gpu = open_gpu(str(device), gpu=gpu_settings)
        self.models = models
        pages = 1 + callers * CONTEXT // PAGE_TOKENS
        step = LlamaStep(models.llama, pages=pages, context_tokens=CONTEXT)
        self.engine = LlamaEngine(step, self.gpu.engine(), pages=pages, ends=())
        self.whisper = WhisperModel(models.whisper, models.rules, models.marks, gpu=self.gpu)
        self.gpu.prepare()
        self.engine.start()
        self.ready_s = time.monotonic() - started

    def close(self) -> None:
        self.engine.close()
        self.gpu.close()

    def run(self, seconds: float, *, writes: bool = True, hears: bool = True) -> Seen:
        """Both loops, or one."""
        seen, began_s = Seen(), time.monotonic()
        until = began_s + seconds
        loops: list[Callable[[], None]] = []
        if writes:
            loops += [self._writer(place, seen, until) for place in range(len(self.models.prompts))]
        if hears:
            loops.append(self._hearer(seen, until))
        threads = [threading.Thread(target=loop, daemon=True) for loop in loops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 120)
        seen.seconds = time.monotonic() - began_s
        return seen

    def written(self, place: int, times: list[int] | None = None) -> tuple[int, ...]:
        """One reply."""
        tokens: list[int] = []

        def take(told: Told) -> bool:
            if told.token is not None:
                tokens.append(told.token)
                if times is not None:
                    times.append(time.perf_counter_ns())
            return False

        errand = Errand(job=Job(stage=Stage.THINK), claim=Claim(caller=place + 1, urgency=Urgency.CONFIRMED))
        prompt = self.models.prompts[place]
        self.engine.submit(
            Asked(owner=place, prompt=prompt, take=take, most_tokens=NEW_TOKENS, penalty=1.1, errand=errand)
        ).wait()
        return tuple(tokens)

    def heard(self) -> tuple[tuple[int, ...], ...]:
        """The windows' texts."""
        marks = self.models.marks
        with doing((Errand(job=Job(stage=Stage.RECOGNISE), claim=Claim(urgency=Urgency.AHEAD)),)):
            encoded = self.whisper.encode(self.models.windows)
            found = self.whisper.generate(
                encoded,
                [[marks.start, marks.no_times]] * len(encoded),
                max_length=2 * self.models.hear_tokens,
                no_repeat=8,
            )
        return tuple(tuple(each.tokens) for each in found)

    def _writer(self, place: int, seen: Seen, until: float) -> Callable[[], None]:
        def loop() -> None:
            while time.monotonic() < until:
                times: list[int] = []
                began = time.perf_counter_ns()
                try:
                    text = self.written(place, times)
                except Exception as error:  # noqa: BLE001 - told in the report
                    seen.failures.append(f"writing: {type(error).__name__}: {error}")
                    return
                seen.first_ms.append((times[0] - began) / 1e6)
                seen.gaps_ms.extend((later - earlier) / 1e6 for earlier, later in itertools.pairwise(times))
                seen.texts.append((place, text))
                self.engine.forget(place)

        return loop

    def _hearer(self, seen: Seen, until: float) -> Callable[[], None]:
        def loop() -> None:
            while time.monotonic() < until:
                began = time.perf_counter_ns()
                try:
                    text = self.heard()
                except Exception as error:  # noqa: BLE001 - told in the report
                    seen.failures.append(f"recognition: {type(error).__name__}: {error}")
                    return
                seen.hear_ms.append((time.perf_counter_ns() - began) / 1e6)
                seen.heard[text] += 1

        return loop


def measure(models: str, device: torch.device, *, seconds: float, tiny: bool) -> Iterator[tuple[str, Any]]:
    """Name and figures of each piece, as they come."""
    loaded = _default(device, tiny=tiny) if models == "default" else _large(device, tiny=tiny)
    seconds = 0.5 if tiny else seconds
    alone: list[tuple[int, ...]] = []
    heard: tuple[tuple[int, ...], ...] = ()
    for without in WITHOUT[: 2 if tiny else None]:
        name = f"without {without}" if without else "everything"
        bench = None
        try:
            bench = Bench(loaded, device, without)
            if not alone:
                alone = [bench.written(place) for place in range(len(loaded.prompts))]
                heard = bench.heard()
                for kind, flags in (("writing alone", {"hears": False}), ("recognition alone", {"writes": False})):
                    yield kind, bench.run(seconds, **flags).report()
            bench.run(0.2)  # rare buckets are captured in the first quiet moments
            time.sleep(0.3)
            yield name, _under_load(bench, seconds, alone, heard)
            if not without:
                bench.gpu.lane.sense(SOMEBODY_BEGINS)
                yield "somebody begins", _under_load(bench, seconds, alone, heard)
        except Exception as error:  # noqa: BLE001 - the other ways are worth their time
            yield name, {"problem": f"{type(error).__name__}: {error}"[-800:], "cause": repr(error.__cause__)[-800:]}
        finally:
            if bench is not None:
                bench.close()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if models == "default":
        yield "float32 on the processor", _against_exact(loaded, alone)


def _under_load(
    bench: Bench, seconds: float, alone: list[tuple[int, ...]], heard: tuple[tuple[int, ...], ...]
) -> dict[str, Any]:
    """Both loops beside each other."""
    slices: list[SliceReport] = []
    bench.gpu.lane.watchers.append(slices.append)
    seen = bench.run(seconds)
    bench.gpu.lane.watchers.remove(slices.append)
    figures = {"slices": _slices(slices), "start": _start(bench), "memory": _memory(bench)}
    return seen.report() | _texts(seen, alone, heard) | figures


def _texts(seen: Seen, alone: list[tuple[int, ...]], heard: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    """Under load against alone."""
    return {
        "texts": len(seen.texts),
        "texts_as_alone": sum(text == alone[place] for place, text in seen.texts),
        "tokens_as_alone": round(statistics.fmean(_alike(text, alone[place]) for place, text in seen.texts), 4)
        if seen.texts
        else None,
        "recognitions": sum(seen.heard.values()),
        "recognitions_as_alone": seen.heard[heard],
    }


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """How far they begin alike, as a share."""
    place = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return place / max(1, len(other))


def _slices(reports: list[SliceReport]) -> dict[str, Any]:
    """What the lane says of them, by body."""
    found: dict[str, Any] = {}
    for body in sorted({report.body or "call" for report in reports}):
        own = [report for report in reports if (report.body or "call") == body and report.began_ns]
        if not own:
            continue
        found[body] = {
            "count": len(own),
            "graphs": sum(report.is_graph for report in own),
            "waited": summary([report.waited_ns / 1e6 for report in own]),
            "took": summary([report.took_ns / 1e6 for report in own if report.took_ns is not None] or [0.0]),
            "launch_us_p50": round(float(np.median([report.launch_ns / 1e3 for report in own])), 1),
            "places": dict(Counter(f"{report.place} {report.level}" for report in own)),
            "reasons": dict(Counter(report.reason for report in own if report.reason).most_common(4)),
        }
    return found


def _start(bench: Bench) -> dict[str, Any]:
    """What the start cost."""
    registry = bench.gpu.lane.device.registry
    reports = registry.report()
    captured = [each for each in reports if not each.problem]
    return {
        "ready_s": round(bench.ready_s, 2),
        "graphs": len(captured),
        "capture_s": round(sum(each.capture_ns for each in reports) / 1e9, 2),
        "pool_mib": round(sum(each.pool_bytes for each in reports) / 2**20, 1),
        "problems": sorted({each.problem for each in reports if each.problem})[:3],
        "eager_runs": registry.eager_runs,
    }


def _memory(bench: Bench) -> dict[str, Any]:
    """What the sensors saw of it."""
    readings = list(bench.gpu.sensors.readings)
    known = [each.fragmentation for each in readings if each.fragmentation is not None]
    return {
        "looks": len(readings),
        "held": sum(each.holds_background for each in readings),
        "worst": max(known, default=None),
    }


def _against_exact(loaded: Models, alone: list[tuple[int, ...]]) -> dict[str, Any]:
    """The same prompts with the same weights in float32 on the processor, some callers at once."""
    host = torch.device("cpu")
    file = GgufFile(Store().file("smollm2-135m-instruct-q4_1"))
    weights = gather_weights(file.shape(), file.tensor, device=host, dtype=torch.float32)
    some = replace(loaded, llama=weights, prompts=loaded.prompts[:8])
    gpu = open_gpu("cpu")
    pages = 1 + len(some.prompts) * CONTEXT // PAGE_TOKENS
    engine = LlamaEngine(LlamaStep(weights, pages=pages, context_tokens=CONTEXT), gpu.engine(), pages=pages, ends=())
    works = [
        engine.submit(Asked(owner=place, prompt=prompt, take=lambda _: False, most_tokens=NEW_TOKENS, penalty=1.1))
        for place, prompt in enumerate(some.prompts)
    ]
    while engine.turn():
        pass
    gpu.close()
    exact = [tuple(work.written) for work in works]
    return {
        "texts": len(exact),
        "texts_alike": sum(one == other for one, other in zip(alone, exact, strict=False)),
        "tokens_alike": round(statistics.fmean(map(_alike, alone[: len(exact)], exact)), 4),
    }


def _default(device: torch.device, *, tiny: bool) -> Models:
    store = Store()
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    file = GgufFile(store.file("smollm2-135m-instruct-q4_1"))
    tokens = tokens_of_vocabulary(file.vocabulary())
    folder = store.locate("whisper-tiny.en")
    whisper, rules = load_whisper(folder, device=device, dtype=dtype)
    vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    return Models(
        llama=gather_weights(file.shape(), file.tensor, device=device, dtype=dtype),
        whisper=whisper,
        rules=rules,
        marks=Marks.of(vocabulary),
        prompts=[tokens.encode(f"{PROMPT_WORDS} {place}?") for place in range(2 if tiny else 16)],
        windows=_windows(whisper.shape.bins),
        hear_tokens=60,
    )


def _large(device: torch.device, *, tiny: bool) -> Models:
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    llama = TINY_LLAMA if tiny else replace(EIGHT_BILLION, context_tokens=CONTEXT)
    whisper = LARGE_V3
    if tiny:
        whisper = replace(
            whisper, width=64, heads=2, feed_forward=128, encoder_layers=2, decoder_layers=2, vocabulary=600
        )
    source = np.random.default_rng(3)
    return Models(
        llama=random_weights(llama, device=device, dtype=dtype),
        whisper=random_whisper(whisper, device=device, dtype=torch.float16 if device.type == "cuda" else dtype),
        rules=WritingRules(),
        marks=Marks(start=1, no_times=2, end=whisper.vocabulary - 1, no_speech=4),
        prompts=[source.integers(10, llama.vocabulary, 60).tolist() for _ in range(2 if tiny else 8)],
        windows=_windows(whisper.bins),
        hear_tokens=6,
    )


def _windows(bins: int) -> list[npt.NDArray[np.float32]]:
    """Real clips where they were packed and fit, else noise."""
    file = UNPACKED / "clips.npz"
    if bins == 80 and file.is_file():
        from windows import window_of

        clips = np.load(file)
        made = [window_of(clips[f"clip_{place}"]) for place in range(20)]
        short = [each for each in made if each.shape[1] == TEN_SECONDS][:WINDOWS]
        if len(short) == WINDOWS:
            return short
    source = np.random.default_rng(2)
    return [source.standard_normal((bins, TEN_SECONDS)).astype(np.float32) for _ in range(WINDOWS)]
