"""How engines compute through the lane, and that each mechanism's off switch reaches them; on the processor."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from antiphon.core.clock import MonotonicClock
from antiphon.core.stamps import Stage
from antiphon.gpu.device import HostDevice
from antiphon.gpu.engine_lane import Gpu, Want, around, open_gpu, wanted
from antiphon.gpu.fragmentation import Block
from antiphon.gpu.places import Place
from antiphon.gpu.registry import Captured
from antiphon.hardware.plan_settings import GpuSettings
from antiphon.mechanisms import settings_without
from antiphon.scheduling.cpu_lanes import CpuScheduler
from antiphon.scheduling.job import Claim, Errand, Job, Urgency, claimed, current_errands, doing
from antiphon.scheduling.lanes import ThreadLane
from antiphon.scheduling.settings import SchedulingSettings
from antiphon.scheduling.ticket import LaneFacts

pytestmark = pytest.mark.unit

REPLY = Want(stage=Stage.THINK, claim=Claim(urgency=Urgency.CONFIRMED))
BACKGROUND = Want(stage=Stage.RECOGNISE, claim=Claim(urgency=Urgency.BACKGROUND))
PIECES = tuple(Block(pool="0", size_bytes=100 << 20, is_free=True) for _ in range(4))


class Capturing:
    """Graphs without a GPU."""

    def warm(self, _name, body, _spot) -> None:
        body()

    def capture(self, _name, body, _spot) -> Captured:
        return Captured(replay=body, pool_bytes=3 << 20)


def opened(*without: str, is_cut: bool = False) -> Gpu:
    """A GPU with everything on but for these mechanisms, by the names that `--without` takes."""
    off = [setting.removeprefix("gpu.").removesuffix("=false") for setting in settings_without(without)]
    settings = GpuSettings(**dict.fromkeys(off, False))
    device = HostDevice(capturer=Capturing(), captures=settings.graphs)
    device.is_cut = is_cut
    return around(device, settings=settings, memory=lambda: (PIECES, 0))


def begun(gpu: Gpu, *wants: Want) -> list:
    """Reports of slices that all wait for the same end, in the order in which they began."""
    lane, gate, ran = gpu.lane, threading.Event(), []
    engine = gpu.engine()
    first = threading.Thread(target=engine.call, args=(lambda: gate.wait(10), REPLY))
    first.start()
    while lane.counts() != (0, 1):
        pass
    threads = []
    for number, want in enumerate(wants):
        body = engine.add(f"body {number}", lambda _, number=number: lambda: ran.append(number))
        threads.append(threading.Thread(target=engine.run, args=(body, 1, want)))
        threads[-1].start()
        while lane.counts()[0] != number + 1:
            pass
    gate.set()
    for thread in (first, *threads):
        thread.join(10)
    reports = [next(each for each in lane.reports if each.body == f"body {number}") for number in ran]
    gpu.close()
    return reports


@pytest.mark.parametrize(("without", "first"), [((), "body 1"), (("gpu-slicing",), "body 0")])
def test_a_reply_goes_first_unless_slicing_is_off(without, first):
    """By the scheduler's order; without it, as they came."""
    assert first == begun(opened(*without), BACKGROUND, REPLY)[0].body


@pytest.mark.parametrize(("without", "level"), [((), -3), (("gpu-priorities",), 0)])
def test_a_reply_has_the_first_level_unless_priorities_are_off(without, level):
    """The level that its stream has."""
    assert level == begun(opened(*without), REPLY)[0].level


@pytest.mark.parametrize(("without", "place"), [((), Place.REPLIES), (("gpu-partitions",), Place.WHOLE)])
def test_a_reply_beside_others_has_its_part_unless_partitions_are_off(without, place):
    """On a GPU whose multiprocessors are cut."""
    reports = begun(opened(*without, is_cut=True), REPLY, BACKGROUND)
    assert place is next(each.place for each in reports if each.body == "body 0")


@pytest.mark.parametrize(("without", "is_graph"), [((), True), (("gpu-graphs",), False)])
def test_what_is_captured_at_the_start_is_replayed_unless_graphs_are_off(without, is_graph, caplog):
    """And what the captures cost is told."""
    gpu = opened(*without)
    engine = gpu.engine()
    body = engine.add("decode", lambda _: lambda: None, is_reply=True, at_start=(1, 8))
    with caplog.at_level(logging.INFO):
        gpu.prepare()
    report = engine.run(body, 8, REPLY)
    gpu.close()
    assert is_graph is report.is_graph
    assert ("2 graphs captured in 0.0 s, 6 MiB" if is_graph else "without graphs") in caplog.text


@pytest.mark.parametrize(("without", "holds"), [((), True), (("gpu-hold-back",), False)])
def test_background_stays_back_while_memory_is_in_pieces_unless_that_is_off(without, holds):
    """And begins soon after its claim has become urgent, which nobody tells the lane."""
    gpu, claim = opened(*without), Claim(urgency=Urgency.BACKGROUND)
    gpu.sensors.look()
    engine, ran = gpu.engine(), threading.Event()
    slice_of = threading.Thread(target=engine.call, args=(ran.set, Want(stage=Stage.RECOGNISE, claim=claim)))
    slice_of.start()
    assert holds is not ran.wait(0.1)
    claim.urgency = Urgency.CONFIRMED
    assert ran.wait(10)
    slice_of.join(10)
    gpu.close()


def test_two_engines_have_bodies_of_their_own():
    """A second recognizer's encoder is another body, with other buffers."""
    gpu = open_gpu("cpu")
    names = [gpu.engine().add("encode", lambda _: lambda: None) for _ in range(2)]
    gpu.close()
    assert ["encode", "encode 2"] == names


def test_a_batch_is_as_urgent_as_its_most_urgent_and_wanted_by_its_earliest():
    """Whoever is in it."""
    urgent, soon = Claim(urgency=Urgency.DRAFT), Claim(urgency=Urgency.AHEAD, deadline_ns=5)
    errands = tuple(Errand(job=Job(stage=Stage.RECOGNISE), claim=claim) for claim in (soon, urgent))
    with doing(errands):
        want = wanted(Stage.RECOGNISE, size=3)
    assert Want(stage=Stage.RECOGNISE, claim=urgent, deadline_ns=5, size=3) == want


@pytest.mark.parametrize("kind", ["threads", "scheduler"])
def test_a_call_knows_on_whose_behalf_it_is_made(kind):
    """On any lane's thread: the claim that was entered where the job was asked for."""

    async def asked() -> tuple[Errand, ...]:
        scheduler = CpuScheduler(SchedulingSettings(), cores=1, clock=MonotonicClock())
        lane = ThreadLane("ear") if kind == "threads" else scheduler.lane(LaneFacts(name="ear"))
        job = Job(stage=Stage.RECOGNISE)
        with claimed(Claim(urgency=Urgency.DRAFT)) as claim:
            found = await lane.run(job, current_errands)
        lane.close()
        assert claim is found[0].claim
        return found

    (found,) = asyncio.run(asked())
    assert Stage.RECOGNISE is found.job.stage
    assert () == current_errands()


def test_a_lane_that_takes_no_cores_begins_beside_those_that_take_all():
    """A recognizer on a GPU does not wait for the processor, and its batches are closed by the earliest deadline."""

    async def together() -> list[int]:
        scheduler = CpuScheduler(SchedulingSettings(), cores=1, clock=MonotonicClock())
        busy, ear = scheduler.lane(LaneFacts(name="busy")), scheduler.lane(LaneFacts(name="ear", cores=0))
        gate, first_gate, sizes = threading.Event(), threading.Event(), []

        def encode(items):
            sizes.append(len(items))
            return items

        def hold(items):
            first_gate.wait(10)
            return items

        job = Job(stage=Stage.RECOGNISE)
        with claimed(Claim(urgency=Urgency.CONFIRMED)):
            on_cores = asyncio.ensure_future(busy.run(job, lambda: gate.wait(10)))
            held = asyncio.ensure_future(ear.run_batch(job, 0, hold, kind="hold", most=1))
            await asyncio.sleep(0.01)
            windows = [asyncio.ensure_future(ear.run_batch(job, n, encode, kind="encode", most=16)) for n in range(3)]
            await asyncio.sleep(0.01)
        first_gate.set()
        await asyncio.gather(held, *windows)
        gate.set()
        await on_cores
        busy.close()
        ear.close()
        return sizes

    assert [3] == asyncio.run(together())
