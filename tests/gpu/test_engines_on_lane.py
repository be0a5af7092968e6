"""The decode engine and Whisper compute as slices of the lane; torch on the processor."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs the environment that scripts/gpu makes")

from antiphon.core.errors import MachineError  # noqa: E402
from antiphon.core.stamps import Stage  # noqa: E402
from antiphon.gpu.batch_size import Demand  # noqa: E402
from antiphon.gpu.engine_lane import open_gpu  # noqa: E402
from antiphon.gpu.llama.engine import Asked, LlamaEngine  # noqa: E402
from antiphon.gpu.llama.shape import LlamaShape  # noqa: E402
from antiphon.gpu.llama.sizes import at_start, sizing_of  # noqa: E402
from antiphon.gpu.llama.step import LlamaStep, StepBucket  # noqa: E402
from antiphon.gpu.llama.weights import random_weights  # noqa: E402
from antiphon.gpu.slices import Fate  # noqa: E402
from antiphon.hardware.plan_settings import GpuSettings  # noqa: E402
from antiphon.scheduling.job import Claim, Errand, Job, Urgency  # noqa: E402

pytestmark = [pytest.mark.unit, pytest.mark.slow]

CPU = torch.device("cpu")
MS = 1_000_000
TINY = LlamaShape(
    layers=2, hidden=32, heads=4, kv_heads=2, head_size=16, feed_forward=48, vocabulary=97, context_tokens=512
)


@pytest.fixture
def gpu():
    opened = open_gpu("cpu", gpu=GpuSettings(reply_batch=2))
    yield opened
    opened.close()


def step() -> LlamaStep:
    return LlamaStep(random_weights(TINY, device=CPU, dtype=torch.float32), pages=40, context_tokens=256)


def engine_on(gpu) -> LlamaEngine:
    return LlamaEngine(step(), gpu.engine(), pages=40, ends=())


def asked(owner: int, stage: Stage, urgency: Urgency, *, tokens: int = 3, deadline_ns: int | None = None) -> Asked:
    claim = Claim(urgency=urgency, deadline_ns=deadline_ns)
    return Asked(
        owner=owner,
        prompt=[owner, 5, 7],
        take=lambda _: False,
        most_tokens=tokens,
        errand=Errand(job=Job(stage=stage), claim=claim),
    )


def test_a_step_is_a_slice_of_the_most_urgent_in_it(gpu):
    """Reading ahead alone has its own level; with somebody who waits for a reply the step is a reply's."""
    engine = engine_on(gpu)
    engine.submit(asked(1, Stage.PREFILL, Urgency.AHEAD))
    engine.turn()
    engine.submit(asked(2, Stage.THINK, Urgency.CONFIRMED, deadline_ns=77))
    engine.turn()

    ahead, reply = gpu.lane.reports
    assert (Stage.PREFILL, -1) == (ahead.stage, ahead.level)
    assert (Stage.THINK, -3, 77) == (reply.stage, reply.level, reply.deadline_ns)
    assert reply.took_ns


def test_no_more_write_in_a_step_than_the_setting_says(gpu):
    """`gpu.reply_batch`: the third takes turns with the others, and all end."""
    engine = engine_on(gpu)
    works = [engine.submit(asked(owner, Stage.THINK, Urgency.CONFIRMED, tokens=6)) for owner in range(3)]
    while engine.turn():
        pass
    assert [6, 6, 6] == [len(work.written) for work in works]
    buckets = [report.bucket.rows for report in gpu.lane.reports]
    assert 2 == max(buckets[1:])


def test_how_many_write_follows_from_what_steps_take_unless_that_is_off():
    """`gpu.adaptive_batch`: the largest step within its time; without, as many as may."""
    made, moment = step(), Demand(callers=64, within_ns=25 * MS)
    adaptive, fixed = sizing_of(made, 64, adapts=True), sizing_of(made, 64, adapts=False)
    for sizing in (adaptive, fixed):
        for size in (1, 8, 64):
            sizing.learn(size, (10 + size) * MS)
    assert 8 == adaptive.choose(moment)
    assert 64 == fixed.choose(moment)


def test_an_urgent_sequence_takes_along_the_step_that_is_held_back(gpu):
    """Background work waits while memory is in pieces, but never in the way of who comes; nothing is computed twice."""
    gpu.lane.hold_background(True)
    engine = engine_on(gpu)
    engine.start()
    held = engine.submit(asked(1, Stage.THINK, Urgency.BACKGROUND))
    assert not held.done.wait(0.1)
    engine.submit(asked(2, Stage.THINK, Urgency.CONFIRMED)).wait()
    gpu.lane.hold_background(False)
    held.wait()
    engine.close()
    assert [Fate.CANCELLED] == [report.fate for report in gpu.lane.reports if report.fate is not Fate.DONE]
    alone = engine_on(gpu)
    again = alone.submit(asked(1, Stage.THINK, Urgency.CONFIRMED))
    while alone.turn():
        pass
    assert again.written == held.written


def test_the_first_step_of_a_bucket_says_nothing_of_the_next(gpu):
    """In it libraries load and kernels are compiled: learnt, it would keep callers out of a batch for good."""
    engine, learnt = engine_on(gpu), []
    engine.sizing = SimpleNamespace(choose=lambda _: 2, learn=lambda size, _: learnt.append(size))
    engine.submit(asked(1, Stage.THINK, Urgency.CONFIRMED, tokens=4))
    while engine.turn():
        pass
    assert [1, 1] == learnt  # of one that read, and three that wrote


def test_a_closed_lane_fails_who_is_at_work(gpu):
    """With an error of ours, and the engine's thread ends."""
    engine = engine_on(gpu)
    waiting = asked(1, Stage.THINK, Urgency.CONFIRMED, tokens=200)
    work = engine.submit(waiting)
    engine.turn()
    gpu.close()
    with pytest.raises(Exception, match="closed"):
        engine.turn()
    engine.close()
    assert work.error is not None


def test_buckets_of_the_start_cover_every_caller_and_length():
    """One row for each caller, a prompt's beside them, all contexts."""
    expected = {StepBucket(rows, context) for rows in (1, 2, 4, 16, 32) for context in (64, 128, 256)}
    assert expected == set(at_start(step(), 3, 16))


def test_contexts_are_bounded_by_the_memory_for_them():
    """`gpu.context_mib`: fewer pages than all conversations could fill, or a message that says what to raise."""
    from antiphon.think.llama_torch import _pages

    weights = random_weights(TINY, device=CPU, dtype=torch.float32)  # 512 bytes a token
    assert 1 + 11 * 4 == _pages(weights, 10, 256, None)
    assert 32 == _pages(weights, 10, 256, 1 << 20)
    with pytest.raises(MachineError, match="hold 3 pages"):
        _pages(weights, 10, 256, 100_000)
