"""Is the batch controller as good as the best fixed size, on three shapes of load? And is its picture right?

`steady`: 64 callers, no deadline. `tight`: 64 callers, and a step may take no longer than one of 16 and a tenth; tokens
of a longer step do not count. `tide`: callers come and go, 2 to 64 of them for 0.1 s each, the same for everybody; a
step may take 25 ms. The figure is tokens in time a second. Every size runs as a graph, the same graphs for all.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from grounds import Direct

from antiphon.gpu.batch_size import BandwidthModel, Demand, Fixed, SourceRule
from antiphon.gpu.device import Spot
from antiphon.gpu.gpm import Gpm
from antiphon.gpu.places import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grounds import Ground

    from antiphon.gpu.batch_size import Sizing

SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)
LOOK_NS = 110_000_000


def batches(ground: Ground) -> dict[str, Any]:
    """The table."""
    sizes = (1, 2, 4) if ground.tiny else SIZES
    seconds = 0.03 if ground.tiny else 0.8
    device = ground.open()
    runners: dict[int, Direct] = {}
    kept = dict(ground.buckets)
    for size in sizes:
        ground.buckets["decode"] = size
        runners[size] = Direct(ground, device, {"decode": Spot(place=Place.WHOLE, level=-3)})
    ground.buckets = kept
    steps = {size: _step(runners[size]) for size in sizes}
    decoder = ground.bodies["decode"]
    counters = Gpm(0)
    middle = sizes[len(sizes) // 2]
    loads = {"steady": None, "tight": round(steps[middle] * 1.1), "tide": 25_000_000}
    found: dict[str, Any] = {"step_ms": {size: took / 1e6 for size, took in steps.items()}, "loads": {}}

    def model() -> BandwidthModel:
        return BandwidthModel(
            buckets=sizes,
            weight_bytes=decoder.weight_bytes,
            caller_bytes=decoder.caller_bytes,
            peak_bytes_s=ground.peak_bytes_s,
        )

    for load, within_ns in loads.items():
        ways: dict[str, Sizing] = {f"fixed {size}": Fixed(size=size) for size in sizes}
        ways |= {"source rule": SourceRule(buckets=sizes), "bandwidth model": model()}
        rates = {name: _rate(runners, way, load, within_ns, seconds, counters, sizes) for name, way in ways.items()}
        best = max(rate for name, rate in rates.items() if name.startswith("fixed"))
        found["loads"][load] = {
            "within_ms": None if within_ns is None else within_ns / 1e6,
            "tokens_s": rates,
            "best_fixed": best,
            "model_to_best": rates["bandwidth model"] / max(best, 1e-9),
            "source_to_best": rates["source rule"] / max(best, 1e-9),
        }
    found["bandwidth"] = _foretold(model(), runners, steps, counters, sizes, ground)
    for runner in runners.values():
        runner.close()
    if ground.is_cuda:
        device.close()
    return found


def _step(runner: Direct) -> int:
    took = []
    for _ in range(12):
        began_ns = time.perf_counter_ns()
        runner.wait(runner.start("decode"))
        took.append(time.perf_counter_ns() - began_ns)
    return sorted(took[2:])[len(took[2:]) // 2]


def _callers(load: str, most: int, at_ns: int) -> int:
    if load != "tide":
        return most
    return random.Random(at_ns // 100_000_000).choice([size for size in (2, 3, 6, 12, 20, 40, 64) if size <= most])


def _rate(  # noqa: PLR0913, PLR0917 - a measurement's circumstances
    runners: dict[int, Direct],
    way: Sizing,
    load: str,
    within_ns: int | None,
    seconds: float,
    counters: Gpm,
    sizes: Sequence[int],
) -> float:
    began_ns = time.perf_counter_ns()
    tokens, bandwidth, looked_ns = 0, None, began_ns
    counters.look()
    while (passed_ns := time.perf_counter_ns() - began_ns) < seconds * 1e9:
        callers = _callers(load, sizes[-1], passed_ns)
        demand = Demand(callers=callers, within_ns=within_ns, bandwidth=bandwidth, fragmentation=0.0, most=sizes[-1])
        size = way.choose(demand)
        start_ns = time.perf_counter_ns()
        runners[size].wait(runners[size].start("decode"))
        took_ns = time.perf_counter_ns() - start_ns
        way.learn(size, took_ns)
        if within_ns is None or took_ns <= within_ns:
            tokens += min(size, callers)
        if isinstance(way, SourceRule) and start_ns - looked_ns > LOOK_NS:
            bandwidth, looked_ns = counters.look().bandwidth, start_ns
    return tokens / ((time.perf_counter_ns() - began_ns) / 1e9)


def _foretold(
    model: BandwidthModel,
    runners: dict[int, Direct],
    steps: dict[int, int],
    counters: Gpm,
    sizes: Sequence[int],
    ground: Ground,
) -> dict[str, Any]:
    """Steps of all sizes foretold from two that were seen, and bandwidths against counters and counted bytes."""
    for size in (sizes[0], sizes[len(sizes) // 2]):
        model.learn(size, steps[size])
    rows = {}
    decoder = ground.bodies["decode"]
    for size in sizes:
        counters.look()
        until_s, count, began_ns = time.monotonic() + (0.01 if ground.tiny else 0.35), 0, time.perf_counter_ns()
        while time.monotonic() < until_s:
            runners[size].wait(runners[size].start("decode"))
            count += 1
        each_ns = (time.perf_counter_ns() - began_ns) / max(1, count)
        counted = (decoder.weight_bytes + size * decoder.caller_bytes) / (each_ns / 1e9)
        rows[size] = {
            "step_ms": each_ns / 1e6,
            "foretold_ms": model.step_ns(size) / 1e6,
            "foretold_bandwidth": model.bandwidth(size),
            "counted_bandwidth": counted / ground.peak_bytes_s,
            "counters_bandwidth": counters.look().bandwidth,  # of the datasheet's peak
        }
    return rows
