"""The lane's thread: slices in, reports out, on the processor in the GPU's place."""

from __future__ import annotations

import threading

import pytest

from antiphon.core.errors import CallerError, EngineError
from antiphon.core.stamps import Stage
from antiphon.gpu.bell import PosixBell, ThreadBell
from antiphon.gpu.device import HostDevice
from antiphon.gpu.lane import GpuLane
from antiphon.gpu.slices import Fate, Slice
from antiphon.hardware.gpu_parts import Pressure
from antiphon.scheduling.job import Claim, Urgency
from antiphon.scheduling.shares import Signs

pytestmark = pytest.mark.unit


def test_a_registered_body_runs_and_is_told() -> None:
    ran: list[object] = []
    device = HostDevice()
    device.add("toy", lambda bucket: lambda: ran.append(bucket))
    lane = GpuLane(device)
    report = lane.submit(Slice(stage=Stage.THINK, body="toy", bucket=4)).result(10)
    lane.close()
    assert ([4], Fate.DONE, "toy") == (ran, report.fate, report.body)
    assert (0, 0) == lane.counts()


def test_a_call_that_fails_is_an_error_of_its_own_slice() -> None:
    lane = GpuLane(HostDevice())

    def fail() -> None:
        raise ValueError("no such thing")

    with pytest.raises(EngineError, match="no such thing"):
        lane.submit(Slice(stage=Stage.JUDGE, call=fail)).result(10)
    assert Fate.DONE is lane.submit(Slice(stage=Stage.JUDGE, call=lambda: None)).result(10).fate
    lane.close()


def test_a_slice_that_waits_can_be_taken_back() -> None:
    lane, gate = GpuLane(HostDevice()), threading.Event()
    first = lane.submit(Slice(stage=Stage.JUDGE, call=lambda: gate.wait(10) and None))
    second = lane.submit(Slice(stage=Stage.JUDGE, call=lambda: None))
    assert second.cancel()
    gate.set()
    assert (Fate.CANCELLED, Fate.DONE) == (second.report().fate, first.report().fate)
    lane.close()


def test_a_closed_lane_takes_no_more() -> None:
    lane = GpuLane(HostDevice())
    lane.close()
    with pytest.raises(EngineError, match="closed"):
        lane.submit(Slice(stage=Stage.JUDGE, call=lambda: None))


def test_a_slice_has_a_body_or_a_call() -> None:
    with pytest.raises(CallerError, match="either"):
        Slice(stage=Stage.JUDGE)


@pytest.mark.parametrize("kind", [PosixBell, ThreadBell])
def test_a_bell_wakes_once_for_all_that_rang(kind) -> None:
    bell = kind()
    bell.ring()
    bell.ring()
    assert bell.wait(None)
    assert not bell.wait(1000)


class Pressed(HostDevice):
    """Notes the pressures it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.pressures: list[Pressure] = []

    def press(self, pressure: Pressure) -> bool:
        self.pressures.append(pressure)
        return True


@pytest.mark.parametrize(
    ("signs", "pressure"),
    [
        (Signs(voiced_frames=8, certainty=1.0, energy_ratio=3.0), Pressure.SOMEBODY_BEGINS),
        (Signs(decode_lag_ms=1000.0), Pressure.REPLIES_LATE),
        (Signs(tokens_per_s=0.5), Pressure.REPLIES_LATE),
    ],
)
def test_the_moment_decides_the_cut_once_for_each_change(signs: Signs, pressure: Pressure) -> None:
    device = Pressed()
    lane = GpuLane(device)
    for each in (Signs(), signs, signs, Signs()):
        lane.sense(each)
    lane.submit(Slice(stage=Stage.JUDGE, call=lambda: None)).result(10)
    lane.close()
    lane.sense(signs)
    assert [pressure, Pressure.USUAL] == device.pressures


def test_a_reply_that_is_late_here_is_a_sign_of_its_own() -> None:
    device, gate = Pressed(), threading.Event()
    lane = GpuLane(device)
    claim = Claim(urgency=Urgency.CONFIRMED)
    late = Slice(stage=Stage.THINK, call=lambda: gate.wait(10) and None, claim=claim, deadline_ns=1)
    running = lane.submit(late)
    lane.sense(Signs())
    gate.set()
    running.result(10)
    lane.sense(Signs())
    lane.close()
    assert [Pressure.REPLIES_LATE, Pressure.USUAL] == device.pressures
