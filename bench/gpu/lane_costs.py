"""What the lane costs, whether captured bodies disturb each other, whether its books add up, what sensors tell."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import torch
from contention import percentiles
from grounds import Direct, Laned, timed_alone

from antiphon.core.errors import BusyError
from antiphon.core.stamps import Stage
from antiphon.gpu.device import Spot
from antiphon.gpu.gpm import Gpm
from antiphon.gpu.lane import GpuLane
from antiphon.gpu.places import Place
from antiphon.gpu.slices import Slice
from antiphon.scheduling.job import Claim, Urgency

if TYPE_CHECKING:
    from grounds import Ground


def _median(values: list[int]) -> float:
    return sorted(values)[len(values) // 2] / 1e6 if values else float("nan")


def costs(ground: Ground, cut: tuple[int, int]) -> dict[str, Any]:
    """Launching, going through the lane, capturing, waking up."""
    found: dict[str, Any] = {}
    seconds = 0.02 if ground.tiny else 0.5
    device = ground.open(cut)
    runner = Direct(ground, device, {"decode": Spot(place=Place.WHOLE, level=-3)})
    launches: list[int] = []
    for _ in range(5 if ground.tiny else 200):
        began_ns = time.perf_counter_ns()
        started = runner.start("decode")
        launches.append(time.perf_counter_ns() - began_ns)
        runner.wait(started)
    found["direct_launch"] = percentiles(launches)
    found["direct_step"] = percentiles(timed_alone(runner, "decode", seconds))
    if ground.is_cuda:
        found["replay_only"] = percentiles(_replays(runner))
        found["eager_step"] = percentiles(_eager(ground))
        runner.close()
        device.close()
    device = ground.open(cut)
    laned = Laned(ground, device)
    lane = laned.lane
    took: list[int] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s or len(took) < 3:
        began_ns = time.perf_counter_ns()
        laned.wait(laned.start("decode"))
        took.append(time.perf_counter_ns() - began_ns)
    reports = list(lane.reports)
    found["lane_step_closed_loop"] = percentiles(took)
    found["lane_launch"] = percentiles([report.launch_ns for report in reports])
    found["lane_device_time"] = percentiles([report.took_ns or 0 for report in reports])
    found["lane_waited"] = percentiles([report.waited_ns for report in reports])
    lane.reports.clear()
    flying = [laned.start("decode"), laned.start("decode")]
    began_ns, steps, until_s = time.perf_counter_ns(), 0, time.monotonic() + seconds
    while time.monotonic() < until_s or steps < 3:
        laned.wait(flying.pop(0))
        flying.append(laned.start("decode"))
        steps += 1
    found["lane_step_one_ahead_ms"] = (time.perf_counter_ns() - began_ns) / steps / 1e6
    for each in flying:
        laned.wait(each)
    found["went_ahead"] = sum(report.ahead for report in lane.reports)
    empty: list[int] = []
    for _ in range(20 if ground.tiny else 500):
        began_ns = time.perf_counter_ns()
        lane.submit(Slice(stage=Stage.JUDGE, call=_nothing, claim=Claim(urgency=Urgency.DRAFT))).result(10)
        empty.append(time.perf_counter_ns() - began_ns)
    found["lane_empty_slice_there_and_back"] = percentiles(empty)
    if ground.is_cuda:
        found["captures"] = [
            {
                "what": f"{each.name} {each.bucket} {each.place} {each.level}",
                "ms": each.capture_ns / 1e6,
                "pool_mb": each.pool_bytes / 1e6,
                "problem": each.problem,
            }
            for each in device.registry.report()
        ]
    laned.close()
    return found


def _nothing() -> None:
    return


def _replays(runner: Direct) -> list[int]:
    """Host ns of replay() alone, nothing queued before it."""
    took = []
    replay, stream = runner._replays["decode"], runner._streams["decode"]  # noqa: SLF001 - under the hood
    with torch.cuda.stream(stream):
        for _ in range(200):
            stream.synchronize()
            began_ns = time.perf_counter_ns()
            replay()
            took.append(time.perf_counter_ns() - began_ns)
    return took


def _eager(ground: Ground) -> list[int]:
    took, body = [], ground.make("decode")(ground.buckets["decode"])
    for _ in range(20):
        torch.cuda.synchronize()
        began_ns = time.perf_counter_ns()
        body()
        torch.cuda.synchronize()
        took.append(time.perf_counter_ns() - began_ns)
    return took[3:]


def race(ground: Ground, cut: tuple[int, int]) -> dict[str, Any]:
    """Does an encoder's graph give the same beside decode steps as alone, and as eagerly? Exactly, for the first."""
    encoder = ground.bodies["asr"]
    device = ground.open(cut)
    names = ("decode", "asr")
    spots = (
        {"decode": Spot(place=Place.REPLIES, level=-3), "asr": Spot(place=Place.OTHERS, level=-1)},
        {"decode": Spot(place=Place.WHOLE, level=-3), "asr": Spot(place=Place.WHOLE, level=-1)},
    )
    found: dict[str, Any] = {}
    for label, each in zip(("parts", "whole"), spots, strict=True):
        runner = Direct(ground, device, each)
        differing, rounds, worst_eager = 0, 3 if ground.tiny else 60, 0.0
        for _ in range(rounds):
            encoder.input.normal_()
            if ground.is_cuda:
                torch.cuda.synchronize()
            ground.make("asr")(ground.buckets["asr"])()
            if ground.is_cuda:
                torch.cuda.synchronize()
            eager = encoder.output[: ground.buckets["asr"]].float().clone()
            runner.wait(runner.start("asr"))
            alone = encoder.output[: ground.buckets["asr"]].clone()
            encoder.output.fill_(float("nan"))
            if ground.is_cuda:
                torch.cuda.synchronize()
            flying = [runner.start(name) for name in (names[0], names[1], names[0])]
            for one in flying:
                runner.wait(one)
            beside = encoder.output[: ground.buckets["asr"]]
            differing += not torch.equal(alone, beside)
            distance = torch.linalg.vector_norm(alone.float() - eager) / torch.linalg.vector_norm(eager)
            worst_eager = max(worst_eager, float(distance))
        runner.close()
        found[label] = {"rounds": rounds, "differing": differing, "graph_to_eager_norm": worst_eager}
    if ground.is_cuda:
        device.close()
    return found


def accounting(ground: Ground, cut: tuple[int, int]) -> dict[str, Any]:
    """10,000 random submissions and cancellations of short slices leave nothing behind, and every one is told."""
    rng = random.Random(8)
    count = 200 if ground.tiny else 10_000
    device = ground.open(cut)
    ran = 0
    marks = torch.zeros(count, device=ground.device)

    def call() -> None:
        nonlocal ran
        marks[ran].fill_(1)
        ran += 1

    lane = GpuLane(device)
    handles, refused, taken_back = [], 0, 0
    stages = (Stage.THINK, Stage.RECOGNISE, Stage.SPEAK)
    began_s = time.monotonic()
    for _ in range(count):
        asked = Slice(
            stage=rng.choice(stages),
            call=call,
            claim=Claim(urgency=rng.choice(list(Urgency))),
            bandwidth=rng.choice((None, 0.1, 0.9)),
            next_ns=rng.choice((None, time.monotonic_ns())),
        )
        try:
            handles.append(lane.submit(asked))
        except BusyError:
            refused += 1
            handles[0].report()
        if handles and rng.random() < 0.3:
            taken_back += handles[rng.randrange(len(handles))].cancel()
        if len(handles) > 60:
            handles.pop(rng.randrange(len(handles))).report()
    fates: dict[str, int] = {}
    for handle in handles:
        handle.report()
    for report in lane.reports:
        fates[str(report.fate)] = fates.get(str(report.fate), 0) + 1
    waiting, running = lane.counts()
    passed_s = time.monotonic() - began_s
    lane.close()
    return {
        "submitted": count,
        "refused": refused,
        "taken_back": taken_back,
        "ran": ran,
        "left_waiting": waiting,
        "left_running": running,
        "latest_fates": fates,
        "us_each": passed_s / count * 1e6,
        "adds_up": waiting == running == 0,
        "device_counted": float(marks.sum()) == ran,
    }


def sensors(ground: Ground) -> dict[str, Any]:
    """The counters during a known copy and a decode step, what is unknown, and what a look at the memory costs."""
    found: dict[str, Any] = {}
    gone = Gpm("GPU-00000000-0000-0000-0000-000000000000")
    found["of_no_gpu"] = {"problem": gone.problem, "reading": str(gone.look())}
    counters = Gpm(0)
    found["problem"] = counters.problem
    if not ground.is_cuda:
        return found
    device = ground.open()
    runner = Direct(ground, device, {name: Spot(place=Place.WHOLE, level=0) for name in ("decode", "hog", "asr")})
    hog, decoder = ground.bodies["hog"], ground.bodies["decode"]
    for name, moved in (
        ("hog", hog.pass_bytes * ground.buckets["hog"]),
        ("decode", decoder.weight_bytes + ground.buckets["decode"] * decoder.caller_bytes),
        ("asr", 0),
    ):
        counters.look()
        took = timed_alone(runner, name, 0.6)
        reading = counters.look()
        found[name] = {
            "counted_tb_s": moved / (sum(took) / len(took)),  # bytes a ns are GB/s
            "step_ms": _median(took),
            "counters": {
                "bandwidth": reading.bandwidth,
                "multiprocessors": reading.multiprocessors,
                "occupancy": reading.occupancy,
                "tensor": reading.tensor,
            },
        }
        found[name]["counted_tb_s"] /= 1e3
    looks = []
    for _ in range(20):
        began_ns = time.perf_counter_ns()
        blocks, room_bytes = device.memory()
        looks.append(time.perf_counter_ns() - began_ns)
    found["memory_look"] = {**percentiles(looks), "blocks": len(blocks), "room_gb": room_bytes / 1e9}
    counters.close()
    runner.close()
    device.close()
    return found
