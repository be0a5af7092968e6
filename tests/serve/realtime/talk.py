"""A client and a server in virtual time, with scripted ears, mind and voice between them and no socket."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from tests.serve.realtime.oracle import check
from tests.session.call import ORDER
from tests.session.call import Call as Scene
from tests.session.doubles import ScriptedRecognizer
from tests.session.mind import mind
from tests.virtual_time import VirtualClock, run

from antiphon.audio.pcm import PcmDecoder, encode
from antiphon.core.clock import SECOND_NS
from antiphon.serve.realtime.call import Call, CallSetup
from antiphon.serve.realtime.formats import WireFormat
from antiphon.session import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.think.doubles import ScriptedModel

    from antiphon.act.tool import Tool
    from antiphon.dialogue.settings import TurnSettings
    from antiphon.hear.voice_detector import VoiceDetector

PCM = WireFormat("audio/pcm", 24_000)
SETUP = CallSetup(
    id="sess_test",
    model="antiphon",
    models=("antiphon",),
    voices=("hibari", "other"),
    instructions="Be brief.",
    language="en",
)


@dataclass
class Client:
    """Sends events and keeps what comes back."""

    call: Call
    session: Session
    clock: VirtualClock
    got: list[dict] = field(default_factory=list)
    at_ms: list[int] = field(default_factory=list)  # when each came
    wire_format: WireFormat = PCM
    position_ms: int = 0  # of the stream that was appended

    def take(self, event: dict) -> None:
        json.dumps(event, allow_nan=False)
        check(event)
        self.got.append(event)
        self.at_ms.append(self.clock.now_ns() // 1_000_000)

    def send(self, kind: str, **fields: object) -> list[dict]:
        """Send an event; return what came back at once."""
        before = len(self.got)
        self.call.take(json.dumps({"type": kind, **fields}))
        return self.got[before:]

    def update(self, **session: object) -> list[dict]:
        return self.send("session.update", session={"type": "realtime", **session})

    def append(self, pcm: np.ndarray) -> list[dict]:
        data = encode(pcm.astype(np.float32), self.wire_format.encoding)
        return self.send("input_audio_buffer.append", audio=base64.b64encode(data).decode())

    async def sound(self, *spoken: tuple[int, int], until_ms: int, step_ms: int = 20) -> None:
        """Send the microphone in real time: a tone from each start to each end, by the stream's own time."""
        while self.position_ms < until_ms:
            self.append(self.tone(self.position_ms, self.position_ms + step_ms, spoken))
            self.position_ms += step_ms
            await asyncio.sleep(step_ms / 1000)

    def tone(self, start_ms: int, end_ms: int, spoken: tuple[tuple[int, int], ...]) -> np.ndarray:
        rate = self.wire_format.rate_hz
        time_ms = np.arange(start_ms * rate // 1000, end_ms * rate // 1000) * 1000 / rate
        voiced = np.zeros(len(time_ms), bool)
        for begin, end in spoken:
            voiced |= (time_ms >= begin) & (time_ms < end)
        return np.where(voiced, 0.3 * np.sin(2 * np.pi * 0.2 * time_ms), 0.0)

    async def wait(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)

    async def until(self, kind: str, *, count: int = 1, most_ms: int = 60_000) -> dict:
        """Wait for the event of a kind that comes as the how manyeth."""
        for _ in range(most_ms // 5):
            if len(found := self.of(kind)) >= count:
                return found[count - 1]
            await asyncio.sleep(0.005)
        raise AssertionError(f"no {kind} came; there were {self.kinds}")

    def of(self, kind: str) -> list[dict]:
        return [event for event in self.got if event["type"] == kind]

    @property
    def kinds(self) -> list[str]:
        """The types of all events, runs of deltas as one."""
        kinds: list[str] = []
        for event in self.got:
            if not kinds or kinds[-1] != event["type"]:
                kinds.append(event["type"])
        return kinds

    @property
    def errors(self) -> list[dict]:
        return [event["error"] for event in self.of("error")]

    def heard(self, item_id: str, wire_format: WireFormat | None = None) -> np.ndarray:
        """The sound of an item as it came."""
        decoder = PcmDecoder((wire_format or self.wire_format).encoding)
        deltas = [event["delta"] for event in self.of("response.output_audio.delta") if event["item_id"] == item_id]
        return np.concatenate([decoder.push(base64.b64decode(delta)) for delta in deltas] or [np.zeros(0)])


@dataclass
class Talk:
    """Who the client meets; `hold` lets it act and gives the client back."""

    mind: ScriptedModel = field(default_factory=lambda: mind(["Coming ", "right ", "up. ", "Anything ", "else?"]))
    ears: ScriptedRecognizer = field(default_factory=lambda: ScriptedRecognizer(ORDER))
    tools: tuple[Tool, ...] = ()
    greeting: str = ""
    is_paced: bool = True
    setup: CallSetup = SETUP
    turn: TurnSettings | None = None
    detector: VoiceDetector | None = None
    vocabulary: tuple[str, ...] = ()

    def hold(self, act: Callable[[Client], Awaitable[None]]) -> Client:
        return run(self._hold(act))

    async def _hold(self, act: Callable[[Client], Awaitable[None]]) -> Client:
        clock = VirtualClock()
        scene = Scene([], mind=self.mind, ears=self.ears, tools=self.tools, greeting=self.greeting)
        scene.detector = self.detector or scene.detector
        settings = replace(
            scene.settings, is_paced=self.is_paced, turn=self.turn or scene.turn, vocabulary=self.vocabulary
        )
        async with Session(scene.engines, settings, clock=clock) as session:
            got: list[Callable[[dict], None]] = []
            call = Call(session, self.setup, clock=clock, send=lambda event: got[0](event))  # noqa: PLW0108 - it is made below
            client = Client(call, session, clock)
            got.append(client.take)
            call.begin()

            async def listen() -> None:
                async for event in session:
                    call.tell(event)

            listening = asyncio.create_task(listen())
            try:
                await act(client)
            finally:
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening
        assert not [error for error in client.errors if error["code"] == "internal_error"]
        return client


SECONDS = SECOND_NS
