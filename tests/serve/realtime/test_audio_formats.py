"""Sound both ways: every format, any cut, one timeline."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from tests.serve.realtime.talk import Client, Talk
from tests.session.doubles import ScriptedRecognizer
from tests.virtual_time import VirtualClock, VirtualTimeLoop, run

from antiphon.audio.pcm import encode
from antiphon.core.clock import MILLISECOND_NS
from antiphon.serve.realtime.formats import WireFormat
from antiphon.serve.realtime.input_buffer import InputBuffer
from antiphon.serve.realtime.output_audio import OutputAudio

pytestmark = pytest.mark.unit

FORMATS = [
    WireFormat("audio/pcm", 24_000),
    WireFormat("audio/pcm", 16_000),
    WireFormat("audio/pcm", 8_000),
    WireFormat("audio/pcmu", 8_000),
    WireFormat("audio/pcma", 8_000),
]


@pytest.mark.parametrize("wire_format", FORMATS, ids=str)
def test_each_format_is_heard_and_spoken(wire_format: WireFormat) -> None:
    """The echo shows it, the words are understood, and a second of speech has as many bytes as it should."""

    async def act(client: Client) -> None:
        sound = {"format": wire_format.wire}
        (updated,) = client.update(audio={"input": sound, "output": sound})
        assert updated["session"]["audio"]["output"]["format"] == wire_format.wire
        client.wire_format = wire_format
        await client.sound((500, 2000), until_ms=2000)
        await client.sound((500, 2000), until_ms=7000)

    client = Talk().hold(act)
    (item,) = client.of("response.done")[0]["response"]["output"]
    deltas = [base64.b64decode(event["delta"]) for event in client.of("response.output_audio.delta")]
    seconds = sum(map(len, deltas)) / wire_format.encoding.width_bytes / wire_format.rate_hz
    assert seconds == pytest.approx(31 * 0.06, abs=0.6)
    assert max(map(len, deltas)) <= wire_format.rate_hz // 10 * wire_format.encoding.width_bytes
    heard = client.heard(item["id"], wire_format)
    assert float(np.abs(heard).max()) > 0.05
    assert client.session.history[0] == ("user", "A latte, please.")


def test_a_new_format_goes_on_where_the_old_one_ended() -> None:
    """Positions count all sound of the session."""

    async def act(client: Client) -> None:
        await client.sound(until_ms=3000)
        client.wire_format = WireFormat("audio/pcmu", 8000)
        client.update(audio={"input": {"format": client.wire_format.wire}})
        await client.sound((3500, 5000), until_ms=7500)

    client = Talk(ears=ScriptedRecognizer(((4900, "A latte, please."),))).hold(act)
    (stopped,) = client.of("input_audio_buffer.speech_stopped")
    assert stopped["audio_end_ms"] == pytest.approx(5000, abs=64)


def test_appends_may_be_cut_at_any_byte() -> None:
    """One byte at a time, and odd numbers, give the sound that one piece gives."""
    rng = np.random.default_rng(3)
    data = encode(rng.uniform(-0.5, 0.5, 2400).astype(np.float32), "int16")

    async def frames(sizes: list[int]) -> np.ndarray:
        buffer, at, runs = InputBuffer(FORMATS[0], VirtualClock()), 0, []
        for size in sizes:
            runs += buffer.push(data[at : at + size])
            at += size
        runs += buffer.flush()
        return np.concatenate([frame.pcm for frame in runs])

    whole = run(frames([len(data)]))
    assert len(whole) == 1600
    for sizes in ([1] * len(data), [3] * (len(data) // 3), [*range(1, 97), 144]):
        np.testing.assert_array_equal(whole, run(frames(sizes)))


def test_times_of_capture_follow_the_arrival() -> None:
    """In real time they are the microphone's; what comes at once was captured no earlier than what came before."""

    async def stamps() -> None:
        loop = VirtualTimeLoop.stall
        clock = VirtualClock()
        buffer = InputBuffer(FORMATS[1], clock)
        step = bytes(640)
        for _ in range(5):
            loop(_running(), 20 * MILLISECOND_NS)
            (frame,) = buffer.push(step)
            assert frame.end_ns == clock.now_ns()
        burst = buffer.push(bytes(32_000 * 10))
        assert all(frame.captured_ns == clock.now_ns() for frame in burst)
        loop(_running(), 4000 * MILLISECOND_NS)  # the network stalls, and catches up
        late = buffer.push(bytes(32_000 * 4))
        assert late[-1].end_ns == clock.now_ns()
        assert late[0].captured_ns == clock.now_ns() - 4000 * MILLISECOND_NS
        assert [frame.pos_samples for frame in late] == list(range(161_600, 161_600 + 64_000, 320))

    run(stamps())


def _running() -> VirtualTimeLoop:
    import asyncio

    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


def test_fifteen_mebibytes_at_once_are_taken_and_more_are_not() -> None:
    async def act(client: Client) -> None:
        client.update(audio={"input": {"turn_detection": None}})
        size = 15 * 2**20
        assert client.send("input_audio_buffer.append", audio=base64.b64encode(bytes(size)).decode()) == []
        (refused,) = client.send("input_audio_buffer.append", audio=base64.b64encode(bytes(size + 1)).decode())
        assert refused["error"]["param"] == "audio"

    Talk().hold(act)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "missing_required_parameter"),
        ({"audio": None}, "missing_required_parameter"),
        ({"audio": 5}, "invalid_type"),
        ({"audio": "***"}, "invalid_base64"),
        ({"audio": "AAA"}, "invalid_base64"),
        ({"audio": "äöü"}, "invalid_base64"),
    ],
)
def test_sound_that_is_none_is_refused(fields: dict, code: str) -> None:
    async def act(client: Client) -> None:
        (refused,) = client.send("input_audio_buffer.append", **fields)
        assert (refused["error"]["code"], refused["error"]["param"]) == (code, "audio")
        assert client.send("input_audio_buffer.append", audio="") == []

    Talk().hold(act)


def test_output_joins_without_a_seam() -> None:
    """Cut into frames and resampled, a tone is the tone that was resampled in one go."""
    from antiphon.audio.resample import Resampler
    from antiphon.core.flow import AudioFrame

    tone = np.sin(np.arange(22_050) * 0.05).astype(np.float32) * np.float32(0.5)
    whole = Resampler(22_050, 24_000)
    expected = np.concatenate([whole.push(tone), whole.flush()])
    output, deltas = OutputAudio(FORMATS[0]), []
    for start in range(0, len(tone), 441):
        deltas += output.push(AudioFrame(tone[start : start + 441], 22_050, start, 0))
    deltas += output.finish()
    data = b"".join(base64.b64decode(delta) for delta in deltas)
    assert data == encode(expected, "int16")
    assert output.duration_ms == 1000
