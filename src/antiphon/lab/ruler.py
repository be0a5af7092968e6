"""The lab's own timing, tested against a server whose delays are known -> how far off it is, and what it costs.

The error of a turn is what was measured less what happened: from the capture of the last speech sample to the end of
its frame, the time that the server held the answer by its own stamps, and the silence before the answer's tone. What
remains is how late the frame was sent, the way there and back, and how late the answer was noticed.
Units: ns of the clock, ms in the report. Threads: the event loop.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.pcm import encode
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS, samples_to_ns
from antiphon.core.errors import MachineError
from antiphon.lab import metronome
from antiphon.lab.caller import Manners, opened
from antiphon.lab.clips import Clip
from antiphon.lab.lateness import Lateness
from antiphon.lab.microphone import FRAMES_PER_S, Speech
from antiphon.lab.patience import Patience
from antiphon.lab.plan import SessionWishes
from antiphon.lab.sound_format import format_named
from antiphon.lab.wire import Address, connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from antiphon.core.clock import Clock
    from antiphon.lab.exchange import Exchange

BURST_MS = 105  # ends inside a frame of 20 ms wherever it begins on a frame's border
START_S = 30.0
BETWEEN_S = 0.05


def burst() -> Speech:
    """A clip of one tone."""
    rate_hz = metronome.RATE_HZ
    quiet = np.zeros(rate_hz // 10, np.float32)
    pcm = np.concatenate([quiet, metronome.tone(BURST_MS), quiet])
    end = len(pcm) - len(quiet)
    clip = Clip(name="burst", path=Path(), kind="burst", speech_start_s=0.1, speech_end_s=end / rate_hz)
    sound = np.frombuffer(encode(pcm, "int16"), "<u2")
    return Speech(clip, format_named("audio/pcm"), sound, sound[: len(quiet)], len(quiet), end)


async def try_ruler(turns: int, *, clock: Clock) -> dict[str, float]:
    """p50_ms, p99_ms and max_ms of the error, and cpu_share, the part of a core that one caller takes.

    Raises:
        MachineError: the other process does not start.
    """
    errors, speech = Lateness(), burst()
    manners = Manners(wishes=SessionWishes())
    patience = Patience(answer_s=5.0, settle_s=BETWEEN_S, transcript_s=BETWEEN_S, hears_out=True)
    async with _metronome() as port:
        wire = await connect(Address(url=f"ws://127.0.0.1:{port}/v1/realtime"))
        async with opened(wire, manners, speech, clock=clock, lateness=Lateness()) as caller:
            await caller.quiet()
            began_ns, used_s = clock.now_ns(), _used_s()
            for _ in range(turns):
                exchange = caller.say(speech, at_ns=0)  # from the next frame's border on
                await caller.wait_over(exchange, patience)
                if (error_ns := error_of(exchange, metronome.RATE_HZ)) is not None:
                    errors.add(abs(error_ns))
            share = (_used_s() - used_s) * SECOND_NS / max(1, clock.now_ns() - began_ns)
    if not errors.count:
        raise MachineError("the ruler's test of itself got no answer", hint="is this machine overloaded?")
    figures = {"p50_ms": errors.percentile_ms(50), "p99_ms": errors.percentile_ms(99)}
    figures["max_ms"] = errors.most_ns / MILLISECOND_NS
    return {name: round(value, 3) for name, value in {**figures, "cpu_share": share}.items()}


def error_of(exchange: Exchange, rate_hz: int) -> int | None:
    """Measured less happened, of a turn with the metronome; None if it was not answered."""
    answer = exchange.answer
    if answer is None or answer.first_ns is None or not exchange.stages_ms:
        return None
    frame = rate_hz // FRAMES_PER_S
    to_frame_end_ns = samples_to_ns(-exchange.said.end_samples % frame, rate_hz)
    held_ns = round((exchange.stages_ms["left"] - exchange.stages_ms["came"]) * MILLISECOND_NS)
    happened_ns = to_frame_end_ns + held_ns + metronome.SILENCE_MS * MILLISECOND_NS
    return answer.first_ns - exchange.said.spoken_ns - happened_ns


@asynccontextmanager
async def _metronome() -> AsyncIterator[int]:
    """Its port, while it runs."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "antiphon.lab.metronome", stdin=pipe, stdout=pipe
        )
    except OSError as error:
        raise MachineError(f"{sys.executable} cannot be started: {error.strerror}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            line = await process.stdout.readline()
        if not line.strip().isdigit():
            raise MachineError("the ruler's test server does not start", hint="run python -m antiphon.lab.metronome")
        yield int(line)
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(2.0):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _used_s() -> float:
    """Processor time of this process so far."""
    return time.process_time()
