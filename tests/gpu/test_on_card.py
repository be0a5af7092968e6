"""What only a card can show: graphs, streams, parts and events under the engines. Skipped where there is none."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="needs the environment that scripts/gpu makes")

from antiphon.core.stamps import Stage  # noqa: E402
from antiphon.gpu.engine_lane import Want, open_gpu  # noqa: E402
from antiphon.gpu.llama.engine import Asked, LlamaEngine  # noqa: E402
from antiphon.gpu.llama.shape import LlamaShape  # noqa: E402
from antiphon.gpu.llama.step import LlamaStep  # noqa: E402
from antiphon.gpu.llama.weights import random_weights  # noqa: E402
from antiphon.gpu.places import Place  # noqa: E402
from antiphon.gpu.slices import Fate  # noqa: E402
from antiphon.gpu.whisper.model import Marks, WhisperModel  # noqa: E402
from antiphon.gpu.whisper.weights import LARGE_V3, WritingRules, random_whisper  # noqa: E402
from antiphon.hardware.plan_settings import GpuSettings  # noqa: E402
from antiphon.scheduling.job import Claim, Errand, Job, Urgency  # noqa: E402
from antiphon.scheduling.shares import Signs  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU that torch sees"),
]

CARD = "cuda:0"
LLAMA = LlamaShape(
    layers=2, hidden=128, heads=4, kv_heads=2, head_size=32, feed_forward=256, vocabulary=512, context_tokens=512
)
WHISPER = replace(LARGE_V3, width=64, heads=2, feed_forward=128, encoder_layers=2, decoder_layers=2, vocabulary=600)
REPLY = Claim(urgency=Urgency.CONFIRMED)
BEGINS = Signs(voiced_frames=30, certainty=1.0, energy_ratio=3.0)
PAGES = 65


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    """Convolutions in float32, too."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture
def opened():
    """GPUs by their settings; closed afterwards."""
    gpus = []

    def open_with(**settings):
        gpus.append(open_gpu(CARD, gpu=GpuSettings(reply_batch=4, **settings)))
        return gpus[-1]

    yield open_with
    for gpu in gpus:
        gpu.close()


@pytest.fixture(scope="module")
def llama():
    return random_weights(LLAMA, device=torch.device(CARD), dtype=torch.float32)


@pytest.fixture(scope="module")
def whisper():
    return random_whisper(WHISPER, device=torch.device(CARD), dtype=torch.float32)


def engine_on(gpu, weights) -> LlamaEngine:
    step = LlamaStep(weights, pages=PAGES, context_tokens=256)
    return LlamaEngine(step, gpu.engine(), pages=PAGES, ends=())


def whisper_on(gpu, weights) -> WhisperModel:
    marks = Marks(start=1, no_times=2, end=599, no_speech=4)
    return WhisperModel(weights, WritingRules(never=(5,)), marks, gpu=gpu)


def asked(owner: int, *, tokens: int = 12, take=lambda _: False, urgency: Urgency = Urgency.CONFIRMED) -> Asked:
    errand = Errand(job=Job(stage=Stage.THINK), claim=Claim(urgency=urgency))
    prompt = [(owner * 37 + place * 11) % LLAMA.vocabulary for place in range(20 + owner)]
    return Asked(owner=owner, prompt=prompt, take=take, most_tokens=tokens, errand=errand)


def written(gpu, weights, owners: int = 3) -> list[list[int]]:
    engine = engine_on(gpu, weights)
    gpu.prepare()
    works = [engine.submit(asked(owner)) for owner in range(owners)]
    while engine.turn():
        pass
    return [work.written for work in works]


def heard(gpu, weights, *, windows: int = 2) -> list[list[int]]:
    model = whisper_on(gpu, weights)
    gpu.prepare()
    drawn = torch.Generator().manual_seed(4)
    sound = [torch.randn(WHISPER.bins, 1000, generator=drawn).numpy() for _ in range(windows)]
    found = model.generate(model.encode(sound), [[1, 2]] * windows, max_length=20, no_repeat=4)
    return [each.tokens for each in found]


def test_graphs_write_and_hear_what_eager_does(opened, llama, whisper):
    """And they are graphs, captured at the start, with their cost known."""
    graphs, eager = opened(), opened(graphs=False)
    assert written(graphs, llama) == written(eager, llama)
    assert heard(graphs, whisper) == heard(eager, whisper)
    assert any(report.is_graph for report in graphs.lane.reports)
    assert not any(report.is_graph for report in eager.lane.reports)
    captured = graphs.lane.device.registry.report()
    assert not [each.problem for each in captured if each.problem]
    assert all(each.capture_ns for each in captured)


def test_the_card_writes_and_hears_what_the_processor_does(opened, llama, whisper):
    """In float32, with the same weights."""
    host = open_gpu("cpu")
    card = opened()
    assert written(host, _moved(llama)) == written(card, llama)
    assert heard(host, _moved(whisper)) == heard(card, whisper)
    host.close()


@pytest.mark.parametrize("off", ["slicing", "graphs", "priorities", "partitions", "adaptive_batch", None])
def test_engines_beside_each_other_say_what_they_say_alone(opened, llama, whisper, off):
    """Whatever is turned off, however it is cut: streams, pools and parts that ran into each other would show."""
    gpu = opened(**({off: False} if off else {}))
    texts, sounds = written(gpu, llama), heard(gpu, whisper)
    engine, model = engine_on(gpu, llama), whisper_on(gpu, whisper)
    gpu.prepare()
    engine.start()
    drawn = torch.Generator().manual_seed(4)
    windows = [torch.randn(WHISPER.bins, 1000, generator=drawn).numpy() for _ in range(2)]
    differing = []

    def recognise():
        for _ in range(8):
            found = model.generate(model.encode(windows), [[1, 2]] * 2, max_length=20, no_repeat=4)
            if [each.tokens for each in found] != sounds:
                differing.append("sound")

    thread = threading.Thread(target=recognise)
    thread.start()
    for signs in (Signs(), BEGINS) * 4:
        gpu.lane.sense(signs)
        works = [engine.submit(asked(owner)) for owner in range(3)]
        for work in works:
            work.wait()
        if [work.written for work in works] != texts:
            differing.append("text")
    thread.join(60)
    engine.close()
    assert not thread.is_alive()
    assert [] == differing


def test_a_slice_is_timed_by_events_and_placed(opened, llama):
    """A step beside recognition has the replies' part where the card could be cut."""
    gpu = opened()
    gate = threading.Event()
    engine = engine_on(gpu, llama)
    gpu.prepare()
    ahead = Want(stage=Stage.RECOGNISE, claim=Claim(urgency=Urgency.AHEAD))
    beside = threading.Thread(target=gpu.engine().call, args=(lambda: torch.cuda._sleep(200_000_000), ahead))
    beside.start()
    gate.wait(0.01)
    engine.submit(asked(1))
    while engine.turn():
        pass
    beside.join(10)
    steps = [report for report in gpu.lane.reports if report.body.startswith("decode")]
    assert all(report.took_ns for report in steps)
    assert steps[0].place is (Place.REPLIES if gpu.lane.device.is_cut else Place.WHOLE)


def test_random_traffic_leaves_nothing_behind(opened, llama):
    """Sequences that come, are stopped and forgotten: every page comes back, and nothing waits or runs."""
    gpu = opened()
    engine, source, stopped = engine_on(gpu, llama), random.Random(3), set()
    gpu.prepare()
    works = {}
    for _ in range(300):
        owner = source.randrange(6)
        if owner not in works:
            take = lambda _, owner=owner: owner in stopped  # noqa: E731
            works[owner] = engine.submit(asked(owner, tokens=source.randrange(1, 20), take=take))
        elif source.random() < 0.3:
            stopped.add(owner)
        engine.turn()
        engine.book.check()
        for done in [owner for owner, work in works.items() if work.done.is_set()]:
            assert works.pop(done).error is None
            stopped.discard(done)
    while engine.turn():
        pass
    for owner in range(6):
        engine.forget(owner)
    engine.turn()
    engine.book.check()
    assert 0 == engine.book.pool.taken
    assert (0, 0) == gpu.lane.counts()
    assert {Fate.DONE} == {report.fate for report in gpu.lane.reports}


def _moved(weights):
    """The same weights on the processor."""

    def moved(value):
        if isinstance(value, torch.Tensor):
            return value.cpu()
        if isinstance(value, tuple):
            return tuple(map(moved, value))
        if hasattr(value, "__dataclass_fields__") and value is not weights.shape:
            return replace(value, **{name: moved(getattr(value, name)) for name in value.__dataclass_fields__})
        return value

    return moved(weights)
