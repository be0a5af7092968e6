"""All of a reply's sound arrives, once and in order, in events of bounded size, however the voice hands it over."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.serve.realtime.talk import SETUP, Client
from tests.session.call import Call as Scene
from tests.session.mind import mind
from tests.speak.doubles import ToneVoice
from tests.virtual_time import VirtualClock, run

from antiphon.core.clock import samples_to_ns
from antiphon.core.flow import SpeechPiece
from antiphon.serve.encoding import encode
from antiphon.serve.outbox import LONGEST_EVENT_BYTES
from antiphon.serve.realtime.call import Call
from antiphon.session import Session

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from tests.think.doubles import ScriptedModel

    from antiphon.core.flow import Pcm, TextChunk

pytestmark = pytest.mark.unit

RATE_HZ = 24_000
LARGEST_DELTA = 10_000  # characters of base64
ASKED = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]}


class GivenVoice(ToneVoice):
    """Says the same whatever it is asked to, in pieces of given lengths over and over."""

    def __init__(self, pcm: Pcm, sizes: Sequence[int]) -> None:
        super().__init__(rate_hz=RATE_HZ)
        self._pcm = pcm
        self._sizes = sizes

    async def speak(self, chunk: TextChunk) -> AsyncGenerator[SpeechPiece, None]:
        start = count = 0
        while start < len(self._pcm):
            piece = self._pcm[start : start + self._sizes[count % len(self._sizes)]]
            start, count = start + len(piece), count + 1
            yield SpeechPiece(pcm=piece, rate_hz=RATE_HZ, chunk=chunk)


@dataclass
class Listener:
    """Asks for one response of a voice and keeps what came."""

    voice: ToneVoice
    mind: ScriptedModel
    is_paced: bool = True

    def hold(self, act: Callable[[Client], Awaitable[None]]) -> Client:
        return run(self._hold(act))

    async def _hold(self, act: Callable[[Client], Awaitable[None]]) -> Client:
        clock = VirtualClock()
        scene = Scene([], mind=self.mind, voice=self.voice)
        settings = replace(scene.settings, is_paced=self.is_paced, max_tokens=1000)
        async with Session(scene.engines, settings, clock=clock) as session:
            clients: list[Client] = []
            call = Call(session, SETUP, clock=clock, send=lambda event: clients[0].take(event))  # noqa: PLW0108 - it is made below
            clients.append(Client(call, session, clock))
            call.begin()

            async def listen() -> None:
                async for event in session:
                    call.tell(event)

            listening = asyncio.create_task(listen())
            await act(clients[0])
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening
        return clients[0]


async def asks(client: Client) -> None:
    client.send("conversation.item.create", item=ASKED)
    client.send("response.create")
    await client.until("response.done", most_ms=200_000)


def deltas(client: Client) -> list[str]:
    return [event["delta"] for event in client.of("response.output_audio.delta")]


def sound(client: Client) -> np.ndarray:
    """(samples,) int16 as it came."""
    return np.frombuffer(b"".join(map(base64.b64decode, deltas(client))), "<i2")


def ramp(samples: int) -> np.ndarray:
    """(samples,) int16: each its own, as long as they last."""
    return (np.arange(samples) % 65_521 - 32_760).astype(np.int16)


def floats(pcm: np.ndarray) -> Pcm:
    return pcm.astype(np.float32) / np.float32(32_768)


@pytest.mark.parametrize("is_paced", [True, False])
@pytest.mark.parametrize("sizes", [(1, 3, 5, 4095, 2, 1), (960,), (7,)])
def test_any_pieces_give_the_same_samples(sizes: tuple[int, ...], is_paced: bool) -> None:
    """A ramp of odd length, down to the last sample; behind it there may be silence to fill a frame."""
    expected = ramp(24_313)  # 1.013 s, which no frame divides
    if sizes == (7,):
        expected = expected[:2401]  # more pieces than that say nothing new
    client = Listener(GivenVoice(floats(expected), sizes), mind(["Go."]), is_paced).hold(asks)

    heard = sound(client)
    assert len(expected) <= len(heard) < len(expected) + RATE_HZ // 25
    np.testing.assert_array_equal(expected, heard[: len(expected)])
    assert not heard[len(expected) :].any()
    assert max(map(len, deltas(client))) <= LARGEST_DELTA


@pytest.mark.parametrize("is_paced", [True, False])
def test_a_whole_reply_in_one_piece_is_heard_from_its_first_sample_to_its_last(is_paced: bool) -> None:
    """Six seconds at once, a click at either end."""
    pcm = np.zeros(6 * RATE_HZ, np.int16)
    pcm[[0, -1]] = 30_000, -30_000
    client = Listener(GivenVoice(floats(pcm), (len(pcm),)), mind(["Go."]), is_paced).hold(asks)

    np.testing.assert_array_equal(pcm, sound(client))
    assert max(map(len, deltas(client))) <= LARGEST_DELTA
    if is_paced:  # no more than a little ahead of what can be heard
        times_ms = [at for event, at in zip(client.got, client.at_ms, strict=True) if "delta" in event["type"]]
        assert times_ms[-1] - times_ms[0] == pytest.approx(6000, abs=200)


@pytest.mark.parametrize("paid", [0.2, 0.4])
def test_a_short_beginning_leaves_no_hole_behind_it(paid: float) -> None:
    """A few words and then a long sentence, of a voice that takes 0.4 s for each second: there is no silence between
    them, and the first sound comes long before the sentence is voiced."""
    voice = ToneVoice(work_ns=lambda _chunk, sound_ns: round(paid * sound_ns))
    reply = "Well then, " + "here is what I would like you to know about the coffee of this house. " * 3
    words = [f"{word} " for word in reply.split()]
    client = Listener(voice, mind(words)).hold(asks)

    times_ms = [
        at for event, at in zip(client.got, client.at_ms, strict=True) if event["type"] == "response.output_audio.delta"
    ]
    total_ms = samples_to_ns(len(sound(client)), RATE_HZ) // 1_000_000
    asked_ms = next(at for event, at in zip(client.got, client.at_ms, strict=True) if "created" in event["type"])
    gaps = [later - earlier for earlier, later in pairwise(times_ms)]
    assert max(gaps) <= 20 + 50
    assert times_ms[-1] - times_ms[0] <= total_ms + 50
    assert times_ms[0] - asked_ms < paid * total_ms / 2


def test_no_event_of_a_long_reply_is_larger_than_common_clients_take() -> None:
    """Twenty seconds of speech; the item is asked for and comes with as much of its sound as fits into one event."""
    long = ramp(20 * RATE_HZ)

    async def act(client: Client) -> None:
        await asks(client)
        reply = client.of("response.done")[0]["response"]["output"][0]["id"]
        client.send("conversation.item.retrieve", item_id=reply)

    client = Listener(GivenVoice(floats(long), (RATE_HZ,)), mind(["Go."]), is_paced=False).hold(act)
    assert len(long) == len(sound(client))
    assert max(map(len, deltas(client))) <= LARGEST_DELTA
    (item,) = [event["item"] for event in client.of("conversation.item.retrieved")]
    kept = np.frombuffer(base64.b64decode(item["content"][0]["audio"]), "<i2")
    assert len(kept) > 15 * RATE_HZ
    np.testing.assert_array_equal(long[: len(kept)], kept)
    assert max(len(encode(event)) for event in client.got) <= LONGEST_EVENT_BYTES
