"""What speaking the Realtime protocol costs Pipecat, against the protobuf that its own clients speak.

    .peers/pipecat/bin/python bench/peers/wire_cost.py

Prints, for a frame of 20 ms in and one of 40 ms out, the time that each serializer takes; and how much sound Pipecat's
own resampler would hold back on the way from the protocol's 24 kHz to 16 kHz, if it were used. Pipecat's environment;
no server.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from base64 import b64encode
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from pipecat.audio.utils import create_stream_resampler
from pipecat.frames.frames import InputAudioRawFrame, OutputAudioRawFrame
from pipecat.frames.protobufs import frames_pb2
from pipecat.serializers.protobuf import ProtobufFrameSerializer
from pipecat_wire import Conversation, RealtimeSerializer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ROUNDS = 500
IN_MS, OUT_MS = 20, 40
INSIDE_HZ, WIRE_HZ = 16_000, 24_000


async def main() -> None:
    """Measure and print."""
    noise = np.random.default_rng(0)

    def sound(rate_hz: int, ms: int) -> bytes:
        return noise.integers(-3000, 3000, rate_hz * ms // 1000).astype(np.int16).tobytes()

    async def ignore(_text: str) -> None:
        return

    realtime, protobuf = RealtimeSerializer(Conversation("s", ignore)), ProtobufFrameSerializer()
    await realtime.setup(SimpleNamespace(audio_in_sample_rate=INSIDE_HZ))
    append = json.dumps(
        {"type": "input_audio_buffer.append", "audio": b64encode(sound(WIRE_HZ, IN_MS)).decode("ascii")}
    )
    wrapped = frames_pb2.Frame()
    wrapped.audio.audio, wrapped.audio.sample_rate, wrapped.audio.num_channels = sound(INSIDE_HZ, IN_MS), INSIDE_HZ, 1
    packed = wrapped.SerializeToString()
    assert isinstance(await protobuf.deserialize(packed), InputAudioRawFrame)
    reply = OutputAudioRawFrame(sound(WIRE_HZ, OUT_MS), WIRE_HZ, 1)
    figures = {
        "in_realtime_us": await median_us(lambda: realtime.deserialize(append)),
        "in_protobuf_us": await median_us(lambda: protobuf.deserialize(packed)),
        "out_realtime_us": await median_us(lambda: realtime.serialize(reply)),
        "out_protobuf_us": await median_us(lambda: protobuf.serialize(reply)),
        "own_resampler_behind_ms": await behind_ms(sound(WIRE_HZ, IN_MS)),
    }
    print(json.dumps(figures, indent=2))


async def median_us(call: Callable[[], Awaitable[Any]]) -> float:
    """The median time of a call."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        await call()
        taken.append(time.perf_counter_ns() - began)
    return round(statistics.median(taken) / 1000, 1)


async def behind_ms(frame: bytes) -> dict[str, float]:
    """How much sound Pipecat's resampler holds back once it runs."""
    resampler = create_stream_resampler(clear_after_secs=None)
    held = 0.0
    found = []
    for _ in range(200):
        out = await resampler.resample(frame, WIRE_HZ, INSIDE_HZ)
        held += IN_MS - len(out) / 2 / INSIDE_HZ * 1000
        found.append(held)
    found = found[100:]
    return {"mean": round(statistics.mean(found), 1), "max": round(max(found), 1)}


asyncio.run(main())
