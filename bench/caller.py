"""One caller on the line: clips in, 20 ms at a time; what the server sends back out, as turns with their latencies.

Speaks OpenAI's Realtime protocol as any client would, and plays what it gets at once. Units: samples at RATE_HZ, ns of
the clock that is given. Threads: one event loop; a turn's sound is judged when the turn is over.
What it does not know: servers and their figures.
"""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from antiphon.audio.level import audible_span
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS, samples_to_ns
from slots import slot_is_heard

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from antiphon.core.clock import Clock

RATE_HZ = 24_000
CHUNK_SAMPLES = RATE_HZ // 50
CHUNK_NS = 20 * MILLISECOND_NS
PATIENCE_S = 10.0  # a turn without a reply by then is silent
REST_S = 0.5  # of silence after a reply, before the next turn may begin
GAP_NS = 5 * MILLISECOND_NS  # a break in a reply that is shorter nobody hears


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clip:
    """Something to say."""

    name: str
    kind: str
    end_s: float  # the last speech sample
    slots: tuple[str, ...]
    pcm: npt.NDArray[np.int16]
    tone: npt.NDArray[np.int16]  # of the room, for the time after


@dataclass(slots=True)
class Turn:
    """One clip, as it went."""

    caller: int
    clip: str
    kind: str
    began_late_ms: float = 0.0  # against the schedule
    text: str = ""
    v2v_ms: float | None = None  # None: cut-in or no reply
    cut_in_ms: float | None = None  # how long before the true end
    splits: int = 0  # turns that one utterance was answered in, less one
    slots: int = 0
    slots_heard: int = 0
    is_of_another: bool = False  # the words fit what another caller said at the time better
    gaps: int = 0  # breaks in the replies' sound
    gap_max_ms: float = 0.0
    reply_s: float = 0.0


@dataclass(slots=True)
class Heard:
    """One reply's sound as it came: when each part would be played, and the part."""

    parts: list[tuple[int, npt.NDArray[np.int16]]] = field(default_factory=list)
    free_ns: int = 0  # when all of it has been played
    gaps_ns: list[int] = field(default_factory=list)

    def add(self, now_ns: int, pcm: npt.NDArray[np.int16]) -> None:
        if self.parts and now_ns - self.free_ns > GAP_NS:
            self.gaps_ns.append(now_ns - self.free_ns)
        start_ns = max(now_ns, self.free_ns)
        self.parts.append((start_ns, pcm))
        self.free_ns = start_ns + samples_to_ns(len(pcm), RATE_HZ)

    def first_audible_ns(self) -> int | None:
        """When its first audible sample was played."""
        if not self.parts:
            return None
        whole = np.concatenate([pcm for _, pcm in self.parts]).astype(np.float32) / 32_768
        first, end = audible_span(whole, RATE_HZ)
        if first == end:
            return None
        for start_ns, pcm in self.parts:
            if first < len(pcm):
                return start_ns + samples_to_ns(first, RATE_HZ)
            first -= len(pcm)
        return None


class Caller:
    """One connection and what is said over it."""

    def __init__(self, number: int, clips: list[Clip], *, clock: Clock, period_s: float) -> None:
        self.number = number
        self.turns: list[Turn] = []
        self.mic_late_ms: list[float] = []
        self.strays = 0
        self.now_saying: Clip | None = None  # the latest clip, for the others to compare with
        self.others: list[Caller] = []
        self._clips = clips
        self._clock = clock
        self._period_ns = round(period_s * SECOND_NS)
        self._socket: ClientConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._sound: npt.NDArray[np.int16] = np.zeros(0, np.int16)  # still to be sent
        self._tone: npt.NDArray[np.int16] = np.zeros(0, np.int16)  # behind it, for ever
        self._to_end_samples = -1  # of the sound, until its last speech sample; negative: it is past
        self._ended_ns = 0  # when that was sent
        self._replies: dict[str, Heard] = {}
        self._active: set[str] = set()
        self._responses: set[str] = set()  # that this caller was told of
        self._texts: list[str] = []
        self._quiet_ns = 0  # since when no reply is active

    async def connect(self, url: str) -> None:
        """Connect, and wait until the session is as we want it."""
        self._socket = await connect(url, compression=None, max_size=2**22)
        await self._send({"type": "session.update", "session": SESSION})
        async for message in self._socket:
            kind = json.loads(message)["type"]
            if kind == "session.updated":
                break
            if kind == "error":
                raise SystemExit(f"caller {self.number} was refused: {str(message)[:300]}")
        first = self._clips[0].tone
        self._tone = np.concatenate([first[::-1], first])
        self._tasks = [asyncio.create_task(self._microphone()), asyncio.create_task(self._listen())]

    async def speak_all(self, first_ns: int, on_turn: Callable[[Turn], None]) -> None:
        """Say every clip when it is due, or when the reply before it is over.

        Raises: whatever ended the connection.
        """
        for place, clip in enumerate(self._clips):
            due_ns = first_ns + place * self._period_ns
            await asyncio.sleep(max(0, due_ns - self._clock.now_ns()) / SECOND_NS)
            await self._until(self._is_quiet)
            turn = Turn(self.number, clip.name, clip.kind, slots=len(clip.slots))
            turn.began_late_ms = max(0, self._clock.now_ns() - due_ns) / MILLISECOND_NS
            await self._say(clip, turn)
            self.turns.append(turn)
            on_turn(turn)

    async def leave(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._socket is not None:
            await self._socket.close()

    async def _say(self, clip: Clip, turn: Turn) -> None:
        """Say one clip and hear the reply out."""
        self._replies, self._texts, self._ended_ns = {}, [], 0
        self.now_saying = clip
        at_once = [other.now_saying for other in self.others if other.now_saying is not None]
        tone = clip.tone if len(clip.tone) else np.zeros(CHUNK_SAMPLES, np.int16)
        self._sound, self._tone = clip.pcm, np.concatenate([tone[::-1], tone])
        self._to_end_samples = round(clip.end_s * RATE_HZ)
        await self._until(lambda: self._ended_ns > 0)
        ended_ns = self._ended_ns
        patience_ns = ended_ns + round(PATIENCE_S * SECOND_NS)
        await self._until(lambda: self._has_answered(ended_ns) or self._clock.now_ns() > patience_ns)
        await self._until(self._is_quiet)
        firsts = [at for heard in self._replies.values() if (at := heard.first_audible_ns()) is not None]
        if early := [at for at in firsts if at < ended_ns]:
            turn.cut_in_ms = (ended_ns - min(early)) / MILLISECOND_NS
        elif firsts and min(firsts) <= patience_ns:
            turn.v2v_ms = (min(firsts) - ended_ns) / MILLISECOND_NS
        self._note(turn, clip, at_once)

    def _note(self, turn: Turn, clip: Clip, at_once: list[Clip]) -> None:
        turn.text = " ".join(self._texts)
        turn.splits = max(0, len(self._texts) - 1)
        turn.slots_heard = _heard(clip, turn.text)
        mine = turn.slots_heard / max(1, len(clip.slots))
        turn.is_of_another = any(_heard(one, turn.text) / max(1, len(one.slots)) > mine for one in at_once)
        gaps = [ns for heard in self._replies.values() for ns in heard.gaps_ns]
        turn.gaps, turn.gap_max_ms = len(gaps), max(gaps, default=0) / MILLISECOND_NS
        samples = sum(len(pcm) for heard in self._replies.values() for _, pcm in heard.parts)
        turn.reply_s = samples / RATE_HZ

    def _has_answered(self, ended_ns: int) -> bool:
        """Whether a reply that goes on after the caller's end was heard in full."""
        return self._is_quiet() and any(heard.free_ns > ended_ns for heard in self._replies.values())

    def _is_quiet(self) -> bool:
        free_ns = max((heard.free_ns for heard in self._replies.values()), default=0)
        return not self._active and self._clock.now_ns() > max(free_ns, self._quiet_ns) + REST_S * SECOND_NS

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            for task in self._tasks:
                if task.done():
                    task.result()
                    raise SystemExit(f"caller {self.number} lost the connection")
            await asyncio.sleep(0.02)

    async def _microphone(self) -> None:
        """Send 20 ms every 20 ms, whatever they hold; what was late does not delay what follows."""
        due_ns = self._clock.now_ns()
        while True:
            due_ns += CHUNK_NS
            await asyncio.sleep(max(0, due_ns - self._clock.now_ns()) / SECOND_NS)
            self.mic_late_ms.append((self._clock.now_ns() - due_ns) / MILLISECOND_NS)
            samples = self._next_chunk()
            await self._send({"type": "input_audio_buffer.append", "audio": base64.b64encode(samples).decode()})

    def _next_chunk(self) -> bytes:
        if 0 <= self._to_end_samples < CHUNK_SAMPLES:
            behind_ns = samples_to_ns(CHUNK_SAMPLES - self._to_end_samples, RATE_HZ)
            self._ended_ns = self._clock.now_ns() - behind_ns
        self._to_end_samples -= CHUNK_SAMPLES
        while len(self._sound) < CHUNK_SAMPLES:
            self._sound = np.concatenate([self._sound, self._tone])
        chunk, self._sound = self._sound[:CHUNK_SAMPLES], self._sound[CHUNK_SAMPLES:]
        return chunk.astype("<i2").tobytes()

    async def _listen(self) -> None:
        assert self._socket is not None
        async for message in self._socket:
            self._take(json.loads(message))

    def _take(self, event: dict[str, Any]) -> None:
        now_ns, kind = self._clock.now_ns(), event["type"]
        if kind == "response.created":
            response = event["response"]["id"]
            self._responses.add(response)
            self._active.add(response)
        elif kind == "response.output_audio.delta":
            response = event["response_id"]
            self.strays += response not in self._responses
            pcm = np.frombuffer(base64.b64decode(event["delta"]), "<i2")
            self._replies.setdefault(response, Heard()).add(now_ns, pcm)
        elif kind == "response.done":
            response = event["response"]["id"]
            self.strays += response not in self._responses
            self._active.discard(response)
            self._quiet_ns = now_ns
        elif kind == "conversation.item.input_audio_transcription.completed":
            self._texts.append(event["transcript"])
        elif kind == "error":
            raise SystemExit(f"caller {self.number} got an error: {json.dumps(event)[:300]}")

    async def _send(self, event: dict[str, object]) -> None:
        assert self._socket is not None
        await self._socket.send(json.dumps(event))


SESSION = {
    "type": "realtime",
    "output_modalities": ["audio"],
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": RATE_HZ},
            "transcription": {"model": "whisper-1"},
            "turn_detection": {"type": "semantic_vad"},
        },
        "output": {"format": {"type": "audio/pcm", "rate": RATE_HZ}},
    },
}


def _heard(clip: Clip, text: str) -> int:
    return sum(slot_is_heard(slot, text) for slot in clip.slots)
