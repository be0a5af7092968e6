"""What leaves the microphone, when, and what is known of it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.lab.fake_server import speech
from tests.virtual_time import VirtualClock, VirtualTimeLoop, run

from antiphon.core.clock import MILLISECOND_NS
from antiphon.lab.lateness import Lateness
from antiphon.lab.microphone import Microphone

pytestmark = pytest.mark.unit

FRAME_BYTES = 960


class Ear:
    """Takes frames down with the moment they came."""

    def __init__(self, *, stalls_at: int = -1, stall_ms: int = 0) -> None:
        self.frames: list[tuple[float, bytes]] = []
        self._stalls_at, self._stall_ms = stalls_at, stall_ms

    def pack(self, data: bytes) -> partial[Any]:
        return partial(self.send, data)

    async def send(self, data: bytes) -> None:
        self.frames.append((VirtualClock().now_ns() / MILLISECOND_NS, data))
        if len(self.frames) == self._stalls_at:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualTimeLoop)
            loop.stall(self._stall_ms * MILLISECOND_NS)

    @property
    def samples(self) -> np.ndarray:
        return np.frombuffer(b"".join(data for _, data in self.frames), "<i2")


async def listen(ear: Ear, microphone: Microphone, ms: float) -> None:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(microphone.run())
        await asyncio.sleep(ms / 1000 + 0.001)
        task.cancel()


def test_frames_leave_when_their_last_sample_was_captured() -> None:
    """Every 20 ms from the beginning, and for ever."""

    async def main() -> Ear:
        ear = Ear()
        microphone = Microphone(speech(100), clock=VirtualClock(), lateness=Lateness(), pack=ear.pack)
        await listen(ear, microphone, 400)
        return ear

    ear = run(main())
    assert [20.0 * number for number in range(1, 21)] == pytest.approx([at_ms for at_ms, _ in ear.frames])
    assert {FRAME_BYTES} == {len(data) for _, data in ear.frames}


def test_a_late_frame_moves_no_other() -> None:
    """Those that are overdue leave at once, the next ones on time; how late they were is known."""

    async def main() -> tuple[Ear, Lateness]:
        ear, lateness = Ear(stalls_at=3, stall_ms=70), Lateness()
        await listen(ear, Microphone(speech(100), clock=VirtualClock(), lateness=lateness, pack=ear.pack), 240)
        return ear, lateness

    ear, lateness = run(main())
    assert [20, 40, 60, 130, 130, 130, 140, 160, 180, 200, 220, 240] == pytest.approx([at for at, _ in ear.frames])
    assert 70.0 == lateness.percentile_ms(100)  # the frame whose sending took so long


def test_a_clip_is_said_to_the_sample() -> None:
    """At the moment asked for, in the midst of a frame too; before and behind it is the room."""

    async def main() -> tuple[Ear, tuple[float, ...]]:
        ear = Ear()
        clip = speech(100, lead_ms=30, tail_ms=30)
        microphone = Microphone(clip, clock=VirtualClock(), lateness=Lateness(), pack=ear.pack)
        said = microphone.say(clip, at_ns=33 * MILLISECOND_NS)
        await listen(ear, microphone, 300)
        times = said.started_ns, said.speech_ns, said.spoken_ns
        return ear, tuple(ns / MILLISECOND_NS for ns in times)

    ear, times_ms = run(main())
    assert (33, 63, 163) == times_ms
    loud = np.flatnonzero(np.abs(ear.samples) > 1000)
    assert (63 * 24, 163 * 24 - 1) == (loud[0], loud[-1])


def test_what_was_captured_does_not_change() -> None:
    """A clip that is to be said in the past is said from the frame on that is being captured, after what is said."""

    async def main() -> tuple[float, float]:
        ear = Ear()
        clip = speech(100, lead_ms=30, tail_ms=30)
        microphone = Microphone(clip, clock=VirtualClock(), lateness=Lateness(), pack=ear.pack)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(microphone.run())
            await asyncio.sleep(0.105)
            first = microphone.say(clip, at_ns=0)
            second = microphone.say(clip, at_ns=0, lead_samples=240)
            task.cancel()
        return first.started_ns / MILLISECOND_NS, second.speech_ns / MILLISECOND_NS

    assert (100, 100 + 160 + 10) == run(main())


def test_what_follows_the_last_speech_sample_is_done_after_its_frame() -> None:
    """And before the next one."""

    async def main() -> list[int]:
        ear, done = Ear(), []

        async def then() -> None:
            done.append(len(ear.frames))

        clip = speech(105, lead_ms=20)
        microphone = Microphone(clip, clock=VirtualClock(), lateness=Lateness(), pack=ear.pack)
        microphone.say(clip, at_ns=0, then=then)
        await listen(ear, microphone, 300)
        return done

    assert [7] == run(main())
