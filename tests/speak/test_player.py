"""The player keeps the playout's deadlines: whole replies in virtual time, over a loop that is late now and then."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.speak.doubles import ToneVoice
from tests.speak.pieces import RATE_HZ, counting_piece, tone_piece
from tests.virtual_time import VirtualClock, VirtualTimeLoop, run

from antiphon.core.clock import MILLISECOND_NS as MS
from antiphon.core.clock import SECOND_NS
from antiphon.core.flow import AudioFrame, TextChunk
from antiphon.speak.player import Player, PlayerEvent, ReplyEnded, SoundBegan
from antiphon.speak.playout import Playout, PlayoutSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.unit


@dataclass
class Listener:
    """Everything that came out, and when it was handed over."""

    frames: list[AudioFrame] = field(default_factory=list)
    handed_ns: list[int] = field(default_factory=list)
    events: list[PlayerEvent] = field(default_factory=list)

    def hear(self, frame: AudioFrame) -> None:
        self.frames.append(frame)
        self.handed_ns.append(VirtualClock().now_ns())


@asynccontextmanager
async def playing(listener: Listener, **settings: int) -> AsyncIterator[Player]:
    playout = Playout(rate_hz=RATE_HZ, settings=PlayoutSettings(**settings))
    player = Player(playout, clock=VirtualClock(), sink=listener.hear, listener=listener.events.append)
    task = asyncio.create_task(player.run())
    try:
        yield player
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def virtual_loop() -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


def test_a_reply_plays_in_real_time() -> None:
    """100 ms pushed at 1 s: frames handed over at 1000, 1020 ... 1080 ms, sound at 1001, the end at 1100."""
    listener = Listener()

    async def converse() -> None:
        async with playing(listener) as player:
            await asyncio.sleep(1)
            assert await player.push(0, tone_piece(2400, lead=24))
            player.finish(0)
            await asyncio.sleep(1)

    run(converse())

    assert pytest.approx([1000, 1020, 1040, 1060, 1080], abs=0.01) == [at / MS for at in listener.handed_ns]
    began, ended = listener.events
    assert isinstance(began, SoundBegan)
    assert isinstance(ended, ReplyEnded)
    assert pytest.approx(1001, abs=0.01) == began.at_ns / MS
    assert pytest.approx(1100, abs=0.01) == ended.at_ns / MS
    assert (2400, 10, began.at_ns) == (ended.played.samples, ended.played.chars, ended.played.first_sound_ns)


def test_stalls_of_the_loop_lose_no_time() -> None:
    """60 s with a stall of 10-25 ms every 30-120 ms: sent sound over wall time stays within 1 %, nothing drifts."""
    listener = Listener()
    ratios: list[float] = []

    async def converse() -> None:
        dice = random.Random(7)
        async with playing(listener) as player:
            start_ns = VirtualClock().now_ns()

            async def produce() -> None:
                for second in range(62):
                    await player.push(0, counting_piece(RATE_HZ, first=second * RATE_HZ))

            producing = asyncio.create_task(produce())
            while (elapsed_ns := VirtualClock().now_ns() - start_ns) < 60 * SECOND_NS:
                await asyncio.sleep(dice.uniform(0.03, 0.12))
                virtual_loop().stall(round(dice.uniform(0.010, 0.025) * SECOND_NS))
                await asyncio.sleep(0)  # let the player see the time
                await asyncio.sleep(0)
                elapsed_ns = VirtualClock().now_ns() - start_ns
                if elapsed_ns > 3 * SECOND_NS:
                    ratios.append(len(listener.frames) * 20 * MS / elapsed_ns)
            producing.cancel()
            assert 0 == player.played().gaps

    run(converse())

    assert min(ratios) >= 0.99
    assert max(ratios) <= 1.01
    assert [number * 20 * MS for number in range(len(listener.frames))] == [
        frame.captured_ns - listener.frames[0].captured_ns for frame in listener.frames
    ]
    late_ns = [at - frame.captured_ns for at, frame in zip(listener.handed_ns, listener.frames, strict=True)]
    assert max(late_ns) > 10 * MS  # the stalls did hit
    assert min(late_ns) >= 0


def test_the_queue_is_bounded_and_nothing_is_lost() -> None:
    """A producer of 10 s of sound waits while 500 ms are queued; all of it is heard in the end."""
    listener = Listener()
    pushed_ms: list[float] = []

    async def converse() -> None:
        async with playing(listener, longest_queue_ms=500) as player:
            for piece in range(100):
                await player.push(0, counting_piece(2400, first=2400 * piece))
                pushed_ms.append(VirtualClock().now_ns() / MS)
            player.finish(0)
            await asyncio.sleep(2)

    run(converse())

    assert pushed_ms[4] == 0
    assert all(100 * piece - 620 <= at <= 100 * piece - 480 for piece, at in enumerate(pushed_ms) if piece > 6)
    whole = np.concatenate([frame.pcm for frame in listener.frames])
    assert counting_piece(240_000).pcm.tobytes() == whole.tobytes()
    assert isinstance(listener.events[-1], ReplyEnded)


def test_stop_frees_a_producer_that_waits_for_room() -> None:
    """An interruption wakes the producer, whose piece is then refused: it need not make another."""
    listener = Listener()

    async def converse() -> tuple[bool, int]:
        async with playing(listener, longest_queue_ms=100) as player:
            await player.push(0, counting_piece(24_000))
            waiting = asyncio.create_task(player.push(0, counting_piece(24_000)))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            played = player.stop(0)
            assert played is not None
            return await waiting, played.samples

    assert (False, 1200) == run(converse())


def test_a_newer_reply_does_not_wait_for_room_of_the_older() -> None:
    """The queue that is full is the older reply's, which ends with the newer one's first piece."""
    listener = Listener()

    async def converse() -> int:
        async with playing(listener, longest_queue_ms=100) as player:
            await player.push(0, counting_piece(24_000))
            await asyncio.sleep(0.03)
            await player.push(1, tone_piece(480))
            player.finish(1)
            await asyncio.sleep(1)
            return VirtualClock().now_ns()

    run(converse())

    assert [SoundBegan, ReplyEnded] == [type(event) for event in listener.events]
    assert 3 == len(listener.frames)


def test_an_interruption_from_the_sink_is_obeyed_at_once() -> None:
    """Whoever hears a frame may stop the reply there and then, even when further frames are overdue."""
    frames: list[AudioFrame] = []

    async def converse() -> None:
        def hear(frame: AudioFrame) -> None:
            frames.append(frame)
            if len(frames) == 2:
                player.stop(0)

        player = Player(Playout(rate_hz=RATE_HZ), clock=VirtualClock(), sink=hear, listener=lambda _event: None)
        task = asyncio.create_task(player.run())
        await player.push(0, counting_piece(4800))
        await asyncio.sleep(0.001)
        virtual_loop().stall(150 * MS)
        await asyncio.sleep(0.2)
        task.cancel()

    run(converse())

    assert 2 == len(frames)


def test_waiting_takes_no_turns_of_the_loop() -> None:
    """An hour without a reply, and a reply of 2 s with one turn per frame or so: nothing polls."""
    turns = 0

    class CountingPlayout(Playout):
        def take(self, now_ns: int) -> AudioFrame | None:
            nonlocal turns
            turns += 1
            return super().take(now_ns)

    async def converse() -> None:
        playout = CountingPlayout(rate_hz=RATE_HZ)
        player = Player(playout, clock=VirtualClock(), sink=lambda _frame: None, listener=lambda _event: None)
        task = asyncio.create_task(player.run())
        await asyncio.sleep(3600)
        assert turns <= 1
        await player.push(0, counting_piece(2 * RATE_HZ))
        player.finish(0)
        await asyncio.sleep(3600)
        task.cancel()

    run(converse())

    assert turns <= 1 + 2 * 100 + 10  # for each frame the frame itself and the news that there is no other yet


def spoken(voice: ToneVoice, texts: list[str]) -> Listener:
    """A reply of these chunks, each synthesised when the one before is done, as a conversation does."""
    listener = Listener()

    async def converse() -> None:
        async with playing(listener) as player:
            start = 0
            for index, text in enumerate(texts):
                chunk = TextChunk(text=text, index=index, start_chars=start, is_last=index == len(texts) - 1)
                async for piece in voice.speak(chunk):
                    await player.push(0, piece)
                start = chunk.end_chars
            player.finish(0)
            await asyncio.sleep(60)

    run(converse())
    return listener


def test_a_chunk_that_takes_longer_than_the_one_before_lasts_leaves_a_gap_of_the_difference() -> None:
    """At 0.4 of real time, 0.6 s of sound followed by a chunk of 12 s: silence of 4.8 - 0.6 = 4.2 s, and no more."""
    voice = ToneVoice(work_ns=lambda _chunk, sound_ns: sound_ns * 2 // 5)
    listener = spoken(voice, ["x" * 10, "y" * 200])

    ended = listener.events[-1]
    assert isinstance(ended, ReplyEnded)
    assert (1, 4_200 * MS) == (ended.played.gaps, pytest.approx(ended.played.gap_ns, abs=0.01 * MS))


def test_chunks_that_grow_by_no_more_than_the_voice_is_faster_leave_no_gap() -> None:
    """At 0.4 of real time each chunk may be 2.5 times as long as the one before: the listener hears one run."""
    voice = ToneVoice(work_ns=lambda _chunk, sound_ns: sound_ns * 2 // 5)
    listener = spoken(voice, ["x" * 10, "y" * 25, "z" * 62, "x" * 103])

    ended = listener.events[-1]
    assert isinstance(ended, ReplyEnded)
    assert (0, 0) == (ended.played.gaps, ended.played.gap_ns)
    assert 240 * MS == pytest.approx(listener.frames[0].captured_ns, abs=0.01 * MS)  # the first chunk alone


def test_chunks_with_nothing_to_say_are_passed_over() -> None:
    """Dots, white space and pictures between two words neither sound nor end the reply."""
    listener = spoken(ToneVoice(), ["...", "\n", "\U0001f642", "Fine.", "\u2014", "9"])

    ended = listener.events[-1]
    assert isinstance(ended, ReplyEnded)
    assert len("...\n\U0001f642Fine.\u20149") == ended.played.chars
    assert (4 * 60 + 240 + 60) * 24 == ended.played.samples
