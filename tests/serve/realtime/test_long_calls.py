"""The longer on the line, the same cost: neither memory nor the work that an append takes grows with a call."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import resource
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.doubles import ScriptedRecognizer
from tests.session.mind import mind

from antiphon.audio.encoding import Encoding
from antiphon.audio.pcm import encode
from antiphon.serve.realtime.formats import WireFormat

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

pytestmark = pytest.mark.unit

MULAW = WireFormat("audio/pcmu", 8000)
MINUTE_MS = 60_000


def append_of(pcm: np.ndarray) -> str:
    audio = base64.b64encode(encode(pcm.astype(np.float32), Encoding.MULAW)).decode()
    return json.dumps({"type": "input_audio_buffer.append", "audio": audio})


SILENCE = {ms: append_of(np.zeros(ms * 8)) for ms in (20, 1000)}
VOICE = append_of(0.3 * np.sin(np.arange(20 * 8) * 0.15))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def steps_of(work: Callable[[], object]) -> int:
    """Do the work and count the interpreter's steps in it: a measure that no other program on the machine moves."""
    steps = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count

    traced_before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(traced_before)
    return steps


async def pass_time(client: Client, ms: int, *, step_ms: int, message: str | None = None) -> None:
    """Sound for so long, in real time."""
    for _ in range(ms // step_ms):
        client.call.take(message or SILENCE[step_ms])
        await asyncio.sleep(step_ms / 1000)


async def steps_of_appends(client: Client, count: int) -> list[int]:
    """Silence of 20 ms each, in real time: the interpreter's steps that each took."""
    steps = []
    for _ in range(count):
        steps.append(steps_of(lambda: client.call.take(SILENCE[20])))
        await asyncio.sleep(0.02)
    return steps


async def speak_and_be_answered(client: Client) -> None:
    await pass_time(client, 1000, step_ms=20, message=VOICE)
    await pass_time(client, 4000, step_ms=20)


MINUTES = 3  # after the first; an hour looks the same and takes half a minute
GROWTH_BYTES = 4 * 2**20  # kept sound alone would be 6 MB of 16-bit samples


def forget(client: Client) -> None:
    client.got.clear()
    client.at_ms.clear()


def test_silence_with_a_word_now_and_then_is_bounded() -> None:
    """What is kept of the sound has an end, and so has the work that an append takes."""
    words = tuple((at, f"word{at}.") for at in range(300, (MINUTES + 4) * MINUTE_MS, 900))

    async def act(client: Client) -> None:
        client.update(audio={"input": {"turn_detection": {"type": "server_vad"}, "format": MULAW.wire}})
        await speak_and_be_answered(client)  # a minute, to fill what is bounded by time
        await pass_time(client, MINUTE_MS - 5000, step_ms=1000)
        early = await steps_of_appends(client, 500)
        forget(client)
        gc.collect()
        before = resident_bytes()
        for _ in range(MINUTES):
            await pass_time(client, MINUTE_MS - 5000, step_ms=1000)
            await speak_and_be_answered(client)
            assert client.of("response.done")
            forget(client)
        gc.collect()
        after = resident_bytes()
        late = await steps_of_appends(client, 500)
        assert after - before < GROWTH_BYTES
        assert statistics.median(early) > 100
        assert statistics.mean(late) < 1.1 * statistics.mean(early)

    Talk(ears=ScriptedRecognizer(words), mind=mind(["Yes."])).hold(act)
