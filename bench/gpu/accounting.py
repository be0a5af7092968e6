"""Sequences that come, go, are stopped and forgotten at random, on the device: is every page accounted for?"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import torch

from antiphon.gpu.engine_lane import open_gpu
from antiphon.gpu.llama.engine import Asked, LlamaEngine, Told, Work
from antiphon.gpu.llama.shape import LlamaShape
from antiphon.gpu.llama.step import LlamaStep
from antiphon.gpu.llama.weights import random_weights

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE = LlamaShape(
    layers=2, hidden=64, heads=4, kv_heads=2, head_size=16, feed_forward=96, vocabulary=97, context_tokens=512
)
PAGES = 120


def random_traffic(device: torch.device, *, changes: int, limit_s: float, owners: int = 60) -> dict[str, Any]:
    """Runs until so many admissions, stops and forgettings are done or the time is over; fails if a page is lost."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    step = LlamaStep(random_weights(SHAPE, device=device, dtype=dtype), pages=PAGES, context_tokens=256)
    gpu = open_gpu(str(device))
    engine = LlamaEngine(step, gpu.engine(), pages=PAGES, ends=(3,))
    source = random.Random(11)
    beginnings = [[source.randrange(SHAPE.vocabulary) for _ in range(200)] for _ in range(8)]
    works: dict[int, Work] = {}
    stopped: set[int] = set()
    counts = {"admitted": 0, "stopped": 0, "forgotten": 0, "steps": 0, "refused": 0}
    started = time.monotonic()
    while sum(counts[kind] for kind in ("admitted", "stopped", "forgotten")) < changes:
        if time.monotonic() - started > limit_s:
            break
        for owner in source.sample(range(owners), source.choice((0, 1, 2, 30))):
            if owner in works:
                if source.random() < 0.5:
                    stopped.add(owner)
                    counts["stopped"] += 1
            elif source.random() < 0.1:
                engine.forget(owner)
                counts["forgotten"] += 1
            else:
                prompt = source.choice(beginnings)[: source.randrange(1, 200)]
                if source.random() < 0.3:
                    prompt = [*prompt[:-1], source.randrange(SHAPE.vocabulary)]
                heat = source.choice((0.0, 0.7))
                works[owner] = engine.submit(
                    Asked(
                        owner=owner,
                        prompt=prompt,
                        take=_until(owner, stopped),
                        most_tokens=source.randrange(1, 40),
                        temperature=heat,
                        penalty=1.1,
                        seed=owner,
                    )
                )
                counts["admitted"] += 1
        counts["steps"] += engine.turn()
        engine.book.check()
        for owner in [owner for owner, work in works.items() if work.done.is_set()]:
            counts["refused"] += works.pop(owner).error is not None
            stopped.discard(owner)
    for owner in range(owners):
        stopped.add(owner)
    while engine.turn():
        pass
    for owner in range(owners):
        engine.forget(owner)
    engine.turn()
    engine.book.check()
    gpu.close()
    taken = engine.book.pool.taken
    assert taken == 0, f"{taken} pages are still taken though all is forgotten"
    return counts | {"seconds": round(time.monotonic() - started, 1), "pages_left_taken": taken}


def _until(owner: int, stopped: set[int]) -> Callable[[Told], bool]:
    return lambda _: owner in stopped
