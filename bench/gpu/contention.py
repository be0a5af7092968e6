"""Decode steps beside recognition and a vocoder, or beside a bandwidth hog, under each way to share the GPU.

The victim wants a step every PERIOD (`paced`, an open loop: its time runs from when the step was due), or the next one
as soon as one has ended (`continuous`). A step that ends when the next is due already moves those behind it. Each
aggressor keeps two slices asked for at any time. `kept` is the mean over the aggressors of slices a second, to what
they reach together without a victim, on streams of their own.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from grounds import Direct, Laned

from antiphon.gpu.device import Spot
from antiphon.gpu.places import Place
from antiphon.hardware.plan_settings import GpuSettings
from antiphon.scheduling.settings import Order, SchedulingSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grounds import Ground

PERIOD_NS = 25_000_000
LOADS = {"asr+vocoder": ("asr", "vocoder"), "hog": ("hog",)}


def percentiles(values_ns: Sequence[int]) -> dict[str, float | int]:
    """ms, nearest ranks."""
    ranked = sorted(values_ns)
    if not ranked:
        return {"count": 0}
    pick = lambda part: ranked[min(len(ranked) - 1, int(part * len(ranked)))] / 1e6  # noqa: E731
    return {
        "count": len(ranked),
        "p50_ms": pick(0.5),
        "p95_ms": pick(0.95),
        "p99_ms": pick(0.99),
        "max_ms": ranked[-1] / 1e6,
    }


def contend(runner: Any, aggressors: Sequence[str], *, victim: str, seconds: float) -> dict[str, Any]:
    """Run them for so long; victim is "paced", "continuous" or "" for none."""
    stop = threading.Event()
    took: list[int] = []
    counts = dict.fromkeys(aggressors, 0)
    problems: list[str] = []

    def attack(name: str) -> None:
        try:
            flying = [runner.start(name), runner.start(name)]
            while not stop.is_set():
                runner.wait(flying.pop(0))
                counts[name] += 1
                flying.append(runner.start(name))
            for each in flying:
                runner.wait(each)
        except Exception as error:  # noqa: BLE001 - told in the result
            problems.append(f"{name}: {type(error).__name__}: {error}")

    def suffer() -> None:
        try:
            due_ns = time.monotonic_ns() + PERIOD_NS
            while not stop.is_set():
                if victim == "paced":
                    time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
                else:
                    due_ns = time.monotonic_ns()
                next_ns = due_ns + PERIOD_NS if victim == "paced" else due_ns
                runner.wait(runner.start("decode", next_ns))
                took.append(time.monotonic_ns() - due_ns)
                due_ns = max(next_ns, time.monotonic_ns()) if victim == "paced" else 0
        except Exception as error:  # noqa: BLE001 - as above
            problems.append(f"decode: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=attack, args=(name,)) for name in aggressors]
    threads += [threading.Thread(target=suffer)] if victim else []
    began_ns = time.monotonic_ns()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    passed_s = (time.monotonic_ns() - began_ns) / 1e9
    for thread in threads:
        thread.join(60)
    skip = 0 if len(took) < 20 else 3  # the first steps meet cold caches
    rates = {name: count / passed_s for name, count in counts.items()}
    return {"victim": percentiles(took[skip:]), "aggressors_per_s": rates, "problems": problems}


def schemes(ground: Ground, cuts: Sequence[tuple[int, int]]) -> list[tuple[str, Any]]:
    """Names, and what makes each runner; a maker gives the runner and the device to close."""
    whole = lambda level: Spot(place=Place.WHOLE, level=level)  # noqa: E731
    others = ("asr", "vocoder", "hog")
    alike = {name: whole(0) for name in ("decode", *others)}
    levels = {**{name: whole(-1) for name in others}, "vocoder": whole(0), "decode": whole(-3)}
    parted = {
        **{name: Spot(place=Place.OTHERS, level=-1) for name in others},
        "decode": Spot(place=Place.REPLIES, level=-3),
    }

    def direct(spots: Any, cut: Any = None, *, one: bool = False) -> Any:
        def make() -> Any:
            device = ground.open(cut)
            return Direct(ground, device, spots, one_stream=one), device

        return make

    def laned(cut: Any, *, rules: Any = None, **gpu: Any) -> Any:
        def make() -> Any:
            settings = GpuSettings(**gpu)
            device = ground.open(cut, gpu=settings)
            return Laned(ground, device, rules=rules, gpu=settings), None

        return make

    found = [
        ("fifo, one stream", direct(alike, one=True)),
        ("equal streams", direct(alike)),
        ("priorities", direct(levels)),
        *[(f"green contexts {cut[0]}+{cut[1]}", direct(parted, cut)) for cut in cuts],
        *[(f"lane {cut[0]}+{cut[1]}", laned(cut)) for cut in cuts],
        ("lane without partitions", laned(None, partitions=False)),
        ("lane without priorities", laned(cuts[0], priorities=False)),
        ("lane without slicing", laned(cuts[0], slicing=False)),
        ("lane without laxity (fifo)", laned(cuts[0], rules=SchedulingSettings(order=Order.FIFO))),
    ]
    return found if not ground.tiny else [found[0], found[1], found[-4], found[-2]]


def matrix(ground: Ground, cuts: Sequence[tuple[int, int]], *, seconds: float, note: Any) -> dict[str, Any]:
    """The whole table; `note` is given it after each row."""
    rows: list[dict[str, Any]] = []
    device = ground.open()
    spots = {name: Spot(place=Place.WHOLE, level=0) for name in ("decode", "asr", "vocoder", "hog")}
    runner = Direct(ground, device, spots)
    alone = {
        victim: contend(runner, (), victim=victim, seconds=seconds)["victim"] for victim in ("paced", "continuous")
    }
    solo = {
        load: contend(runner, names, victim="", seconds=seconds)["aggressors_per_s"] for load, names in LOADS.items()
    }
    runner.close()
    if ground.is_cuda:
        device.close()
    table: dict[str, Any] = {"alone": alone, "solo_per_s": solo, "rows": rows}
    for name, make in schemes(ground, cuts):
        try:
            runner, opened = make()
        except Exception as error:  # noqa: BLE001 - the other schemes are measured all the same
            rows.append({"scheme": name, "problem": f"{type(error).__name__}: {error}"})
            continue
        for load, names in LOADS.items():
            for victim in ("paced", "continuous"):
                found = contend(runner, names, victim=victim, seconds=seconds)
                kept = [found["aggressors_per_s"][each] / max(1e-9, solo[load][each]) for each in names]
                ratio = found["victim"].get("p95_ms", 0) / max(1e-9, alone[victim].get("p95_ms", 0) or 1e-9)
                rows.append(
                    {
                        "scheme": name,
                        "load": load,
                        "victim_mode": victim,
                        **found,
                        "kept": sum(kept) / len(kept),
                        "p95_to_alone": ratio,
                    }
                )
                if hasattr(runner, "lane"):
                    rows[-1]["places"] = _places(runner.lane)
        runner.close()
        if opened is not None and ground.is_cuda:
            opened.close()
        note(table)
    return table


def _places(lane: Any) -> dict[str, int]:
    """Where slices went and why they waited, of the latest reports; forgotten afterwards."""
    counts: dict[str, int] = {}
    for report in list(lane.reports):
        for key in (f"{report.body} in {report.place}", f"{report.body} waited: {report.reason or 'no'}"):
            counts[key] = counts.get(key, 0) + 1
    lane.reports.clear()
    return counts
