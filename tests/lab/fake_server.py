"""A Realtime server that does exactly what its script says, over a line in memory or a real socket.

Its ears are exact: a voice is there while samples are loud, and the script's next answer is due `delay_ms` after the
frame arrived in which the voice stopped. So in virtual time every latency is known to the nanosecond.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from antiphon.audio.pcm import PcmDecoder, encode
from antiphon.lab.clips import Clip
from antiphon.lab.microphone import Speech
from antiphon.lab.sound_format import SoundFormat, format_named
from antiphon.lab.wire import LineLostError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

LOUD = 0.1
BETA_NAMES = {
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
}


def tone(ms: float, rate_hz: int) -> np.ndarray:
    """Loud from its first sample to its last."""
    return np.where(np.arange(round(rate_hz * ms / 1000)) % 24 < 12, 0.5, -0.5).astype(np.float32)


def silence(ms: float, rate_hz: int) -> np.ndarray:
    return np.zeros(round(rate_hz * ms / 1000), np.float32)


def speech(
    *parts_ms: float,
    lead_ms: float = 100,
    tail_ms: float = 100,
    name: str = "burst",
    wire: str = "audio/pcm",
    **clip: Any,
) -> Speech:
    """Tones with pauses between them: tone, pause, tone, ..., as a clip of `kind` burst."""
    sound_format = format_named(wire)
    rate_hz = sound_format.rate_hz
    spoken = [(silence if place % 2 else tone)(ms, rate_hz) for place, ms in enumerate(parts_ms)]
    pcm = np.concatenate([silence(lead_ms, rate_hz), *spoken, silence(tail_ms, rate_hz)])
    width = sound_format.encoding.width_bytes
    end_ms = lead_ms + sum(parts_ms)
    plain: dict[str, Any] = {"kind": "burst", "speech_start_s": lead_ms / 1000, "speech_end_s": end_ms / 1000}
    said = Clip(**{"name": name, "path": Path(name), **plain, **clip})
    as_sent = np.frombuffer(encode(pcm, sound_format.encoding), f"<u{width}")
    quiet = np.frombuffer(encode(silence(20, rate_hz), sound_format.encoding), f"<u{width}")
    return Speech(said, sound_format, as_sent, quiet, round(lead_ms * rate_hz / 1000), round(end_ms * rate_hz / 1000))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is done when a voice stops."""

    delay_ms: float = 300.0
    sound_ms: tuple[float, ...] = (600.0,)  # tone, silence, tone, ...
    padding_ms: float = 0.0  # of silence before it
    click_ms: float = 0.0  # a click this long at the very beginning
    chunk_ms: float = 100.0
    is_paced: bool = False  # chunks leave as they are played; else all at once
    stalls: tuple[tuple[int, float], ...] = ()  # (before which chunk, ms)
    status: str = "completed"
    error: str = ""  # an error event in place of an answer
    hangs_up: bool = False  # with the first sound gone
    is_silent: bool = False  # nothing at all
    ends: bool = True  # with response.done
    transcript: str = "one latte"
    stages: dict[str, float] | None = None


@dataclass(kw_only=True)
class Script:
    """One server."""

    answers: tuple[Answer, ...] = (Answer(),)  # in turn, over all sessions; the last one again and again
    greeting: Answer | None = None
    beta: bool = False
    refuses: str = ""  # code of the error that every session begins with
    is_full: bool = False  # every session is closed at once
    close_code: int = 1000  # after a refusal
    refuses_update: str = ""
    knows_stamps: bool = False
    notices_ms: float = 200.0  # until a voice over a reply stops it
    keeps_off_ms: float = 0.0  # how wrong it is about what it kept
    output: dict[str, Any] | None = None  # the format it says it answers in, whatever is asked
    got: list[dict[str, Any]] = field(default_factory=list)  # events of the clients, their sound left out
    numbers: Any = field(default_factory=count)
    taken: int = 0

    def next(self) -> Answer:
        self.taken += 1
        return self.answers[min(self.taken, len(self.answers)) - 1]


class End:
    """One end of a line in memory."""

    def __init__(self, inbox: asyncio.Queue[str | int], outbox: asyncio.Queue[str | int]) -> None:
        self._inbox, self._outbox = inbox, outbox
        self._code: int | None = None

    async def send(self, text: str) -> None:
        if self._code is not None:
            raise LineLostError(f"the server closed the line with code {self._code}", close_code=self._code)
        self._outbox.put_nowait(text)

    async def receive(self) -> str:
        if self._code is None:
            got = await self._inbox.get()
            if isinstance(got, str):
                return got
            self._code = got
        raise LineLostError(f"the server closed the line with code {self._code}", close_code=self._code)

    async def close(self, code: int = 1000) -> None:
        self._outbox.put_nowait(code)


class InMemory:
    """Dials a scripted server; `close` it at the end."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.dialled = 0
        self._sessions: set[asyncio.Task[None]] = set()

    async def dial(self) -> End:
        self.dialled += 1
        there: asyncio.Queue[str | int] = asyncio.Queue()
        back: asyncio.Queue[str | int] = asyncio.Queue()
        session = _Session(self.script, End(there, back))
        task = asyncio.create_task(session.run())
        self._sessions.add(task)
        return End(back, there)

    async def close(self) -> None:
        for task in self._sessions:
            task.cancel()
        for got in await asyncio.gather(*self._sessions, return_exceptions=True):
            if isinstance(got, Exception):
                raise got


class _Socket:
    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket

    async def send(self, text: str) -> None:
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise LineLostError("closed") from error

    async def receive(self) -> str:
        try:
            return str(await self._socket.recv())
        except ConnectionClosed as error:
            raise LineLostError("closed") from error

    async def close(self, code: int = 1000) -> None:
        await self._socket.close(code)


@asynccontextmanager
async def on_socket(script: Script, **more: Any) -> AsyncIterator[str]:
    """A scripted server on a real socket; its address."""

    async def converse(socket: ServerConnection) -> None:
        await _Session(script, _Socket(socket)).run()

    async with serve(converse, "127.0.0.1", 0, compression=None, **more) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/realtime"


class _Session:
    def __init__(self, script: Script, wire: Any) -> None:
        self._script, self._wire = script, wire
        self._format = format_named("audio/pcm")
        self._heard_format = self._format
        self._decoder = PcmDecoder("int16")
        self._is_voice = self._by_hand = False
        self._replying: asyncio.Task[None] | None = None
        self._item = ""
        self._kept_ms = 0.0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            with suppress(LineLostError):
                await self._run()
            if self._replying:
                self._replying.cancel()

    async def _run(self) -> None:
        script = self._script
        if script.refuses:
            await self._put("error", error={"code": script.refuses, "message": "all places are taken"})
        if script.refuses or script.is_full:
            await self._wire.close(script.close_code)
            return
        await self._put("session.created", session=self._session())
        if script.greeting:
            self._replying = self._tasks.create_task(self._answer(script.greeting))
        while True:
            event = json.loads(await self._wire.receive())
            audio = event.pop("audio", None)
            if event["type"] != "input_audio_buffer.append":
                script.got.append(event)
            if audio is not None:
                await self._hear(b64decode(audio))
            else:
                await self._obey(event)

    async def _obey(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "session.update":
                await self._update(event["session"])
            case "response.create":
                self._replying = self._tasks.create_task(self._answer(self._script.next()))
            case "conversation.item.truncate":
                self._kept_ms = event["audio_end_ms"] + self._script.keeps_off_ms
                await self._put("conversation.item.truncated", item_id=event["item_id"], audio_end_ms=self._kept_ms)
            case "conversation.item.retrieve":
                kept = encode(silence(self._kept_ms, self._format.rate_hz), self._format.encoding)
                part = {"type": "output_audio", "audio": b64encode(kept).decode()}
                await self._put("conversation.item.retrieved", item={"id": event["item_id"], "content": [part]})

    async def _update(self, asked: dict[str, Any]) -> None:
        script = self._script
        if script.refuses_update or ("include" in asked and not script.knows_stamps):
            await self._put("error", error={"code": script.refuses_update or "invalid_value", "message": "no"})
            return
        sound = asked.get("audio", {}).get("input", asked)
        self._by_hand = "turn_detection" in sound and sound["turn_detection"] is None
        name = asked.get("input_audio_format") or sound.get("format", {}).get("type", "audio/pcm")
        self._format = self._heard_format = format_named(name)
        if script.output:
            self._format = SoundFormat(script.output["type"], script.output.get("rate", 8000))
        self._decoder = PcmDecoder(self._heard_format.encoding)
        await self._put("session.updated", session=self._session())

    def _session(self) -> dict[str, Any]:
        if self._script.beta:
            name = self._format.beta
            return {"modalities": ["audio"], "input_audio_format": name, "output_audio_format": name}
        sounds = {"input": {"format": self._heard_format.ga}, "output": {"format": self._format.ga}}
        return {"type": "realtime", "model": "scripted", "audio": sounds}

    async def _hear(self, data: bytes) -> None:
        pcm = np.abs(self._decoder.push(data))
        was, self._is_voice = self._is_voice, bool(pcm[-1] > LOUD)
        if self._by_hand:
            return
        if self._is_voice and not was:
            self._tasks.create_task(self._notice())
        elif (was or bool(pcm.max() > LOUD)) and not self._is_voice:
            self._tasks.create_task(self._turn(self._script.next()))

    async def _notice(self) -> None:
        replying = self._replying if self._replying and not self._replying.done() else None
        if replying:
            await asyncio.sleep(self._script.notices_ms / 1000)
            replying.cancel()
        await self._put("input_audio_buffer.speech_started", item_id="said")
        if replying and self._item:
            await self._put("response.done", response={"id": self._item, "status": "cancelled"})

    async def _turn(self, answer: Answer) -> None:
        await self._put("input_audio_buffer.speech_stopped", item_id="said")
        if answer.is_silent:
            return
        await asyncio.sleep(answer.delay_ms / 1000)
        if answer.error:
            await self._put("error", error={"code": answer.error, "message": "sorry"})
            return
        number = next(self._script.numbers)
        item = f"said_{number}"
        await self._put("input_audio_buffer.committed", item_id=item)
        if answer.transcript:
            kind = "conversation.item.input_audio_transcription.completed"
            await self._put(kind, item_id=item, transcript=answer.transcript)
        self._replying = self._tasks.create_task(self._answer(answer))

    async def _answer(self, answer: Answer) -> None:
        name = self._item = f"resp_{next(self._script.numbers)}"
        place = {"response_id": name, "item_id": name}
        await self._put("response.created", response={"id": name, "status": "in_progress"})
        stalls = dict(answer.stalls)
        for place_of, chunk in enumerate(self._chunks(answer)):
            if place_of in stalls:
                await asyncio.sleep(stalls[place_of] / 1000)
            await self._put("response.output_audio.delta", **place, delta=b64encode(chunk).decode())
            if answer.hangs_up:
                await self._wire.close(1011)
                return
            if answer.is_paced:
                await asyncio.sleep(answer.chunk_ms / 1000)
        await self._put("response.output_audio_transcript.delta", **place, delta="Coming up.")
        if answer.stages:
            await self._put("antiphon.turn.timeline", stages=answer.stages)
        if answer.ends:
            done: dict[str, Any] = {"id": name, "status": answer.status}
            if answer.status == "failed":
                done["status_details"] = {"type": "failed", "error": {"code": "llm_failed", "message": "no"}}
            await self._put("response.done", response=done)

    def _chunks(self, answer: Answer) -> Iterable[bytes]:
        rate_hz = self._format.rate_hz
        parts = [tone(answer.click_ms, rate_hz), silence(answer.padding_ms, rate_hz)]
        parts += [(silence if place % 2 else tone)(ms, rate_hz) for place, ms in enumerate(answer.sound_ms)]
        pcm = np.concatenate(parts)
        step = round(rate_hz * answer.chunk_ms / 1000)
        return (encode(pcm[start : start + step], self._format.encoding) for start in range(0, len(pcm), step))

    async def _put(self, kind: str, **fields: Any) -> None:
        kind = BETA_NAMES.get(kind, kind) if self._script.beta else kind
        try:
            await self._wire.send(json.dumps({"type": kind, **fields}))
        except LineLostError:
            return
