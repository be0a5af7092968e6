"""What the clients of this folder share: files that speak as a microphone would, and a sheet of what came back.

In: sound files of any rate. Out: 24 kHz 16-bit samples, 20 ms at a time, silence while nothing is said; at the end a
summary as lines or JSON, and a WAV of what was played. Units: bytes of samples, seconds of `time.monotonic`.
Threads: `say` and `hang_up` may be called from any. It knows no client library.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import wave
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import soundfile
import soxr

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

RATE_HZ: Final = 24_000  # the protocol's
CHUNK_S = 0.02
CHUNK_BYTES = int(RATE_HZ * CHUNK_S) * 2
BYTES_PER_MS = RATE_HZ * 2 // 1000
QUIET = 0.02  # of a file's loudest sample; what is softer at its end is not speech
INTERRUPT_AFTER_MS = 1500  # of a reply

TOOL: dict[str, object] = {
    "type": "function",
    "name": "look_up_price",
    "description": "Looks up what a drink costs.",
    "parameters": {
        "type": "object",
        "properties": {"drink": {"type": "string", "description": "the drink's name"}},
        "required": ["drink"],
    },
}


def look_up_price(drink: str) -> str:
    """What a drink costs; every drink costs the same here."""
    return f"A {drink} is three dollars." if drink else "Which drink?"


def options(description: str) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("file", type=Path, help="sound file with what the caller says")
    parser.add_argument("--url", default="ws://127.0.0.1:8000/v1", help="the server, without /realtime")
    parser.add_argument("--key", default="no-key", help="of the server, if it asks for one")
    parser.add_argument("--interrupt", type=Path, metavar="FILE", help="is said over the reply")
    parser.add_argument("--tool", choices=("free", "forced"), help="offer a tool, or make the model use it")
    parser.add_argument("--wav", type=Path, default=Path("reply.wav"), help="where the replies' sound goes")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--limit-s", type=float, default=60.0, help="gives up after")
    return parser.parse_args()


class Microphone:
    """Says files and is silent otherwise, in real time; iterate over it, with `async for` or `for`."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[bytes, bool]] = deque()  # sound, whether it is the last of the speech
        self._next_s = time.monotonic()
        self._is_open = True
        self.spoken_s: float | None = None  # when the last speech ended; None while something is being said

    def say(self, path: Path) -> None:
        """Begin to say a file."""
        sound, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
        samples = soxr.resample(sound.mean(axis=1), rate_hz, RATE_HZ)
        loud = np.flatnonzero(np.abs(samples) > QUIET * np.abs(samples).max())
        data = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        last = int(loud[-1]) * 2 // CHUNK_BYTES
        self.spoken_s = None
        for number, start in enumerate(range(0, len(data), CHUNK_BYTES)):
            self._chunks.append((data[start : start + CHUNK_BYTES].ljust(CHUNK_BYTES, b"\0"), number == last))

    def hang_up(self) -> None:
        """End the iteration."""
        self._is_open = False

    def _take(self) -> bytes:
        chunk, is_last = self._chunks.popleft() if self._chunks else (bytes(CHUNK_BYTES), False)
        if is_last:
            self.spoken_s = time.monotonic()
        self._next_s += CHUNK_S
        return chunk

    def __iter__(self) -> Iterator[bytes]:
        while self._is_open:
            time.sleep(max(0.0, self._next_s - time.monotonic()))
            yield self._take()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._is_open:
            await asyncio.sleep(max(0.0, self._next_s - time.monotonic()))
            yield self._take()


@dataclass(slots=True)
class Reply:
    """What the server said in one response."""

    text: str = ""
    status: str = "in_progress"
    is_call: bool = False
    began_s: float | None = None  # its first sound came
    latency_ms: int | None = None  # from the caller's last sound to the reply's first
    sound: bytearray = field(default_factory=bytearray)
    late_bytes: int = 0  # of sound that came after its end

    @property
    def sound_ms(self) -> int:
        return len(self.sound) // BYTES_PER_MS


class Sheet:
    """What happened, taken down as it happens."""

    def __init__(self, client: str, microphone: Microphone, chosen: argparse.Namespace) -> None:
        self._client = client
        self._microphone = microphone
        self._options = chosen
        self._unsaid: list[Path] = [chosen.interrupt] if chosen.interrupt else []
        self.transcripts: list[str] = []
        self.replies: dict[str, Reply] = {}
        self.calls: list[dict[str, object]] = []
        self.errors: list[str] = []

    def reply(self, name: str) -> Reply:
        """The reply of that name, a new one if there is none."""
        return self.replies.setdefault(name, Reply())

    def heard(self, transcript: str) -> None:
        """The server has understood the caller."""
        self.transcripts.append(transcript)
        self._print("caller:", transcript)

    def played(self, name: str, sound: bytes) -> None:
        """Sound of a reply has come; at the right moment the caller speaks over it."""
        reply = self.reply(name)
        if reply.status != "in_progress":
            reply.late_bytes += len(sound)
            return
        if reply.began_s is None:
            reply.began_s = time.monotonic()
            if self._microphone.spoken_s is not None:
                reply.latency_ms = round((reply.began_s - self._microphone.spoken_s) * 1000)
        reply.sound += sound
        if reply.sound_ms >= INTERRUPT_AFTER_MS:
            self._interrupt(reply)

    def said(self, name: str, text: str) -> None:
        """Some words of a reply have come."""
        self.reply(name).text += text

    def called(self, name: str, arguments: str, output: str) -> None:
        """The model has used a tool."""
        self.calls.append({"name": name, "arguments": arguments, "output": output})
        self._print("tool:", name, arguments, "->", output)

    def ended(self, name: str, status: str) -> None:
        """A reply is over: `completed`, `cancelled` or another of the protocol's words."""
        reply = self.reply(name)
        reply.status = status
        self._print("reply:", reply.text, f"({status}, {reply.sound_ms / 1000:.1f} s, after {reply.latency_ms} ms)")
        self._interrupt(reply)

    def failed(self, error: str) -> None:
        """The server has sent an error, or the client library has one."""
        self.errors.append(error)
        self._print("error:", error)

    def _interrupt(self, reply: Reply) -> None:
        """Say what is left to say, but not over a greeting."""
        if self._unsaid and reply.latency_ms is not None and not reply.is_call:
            self._microphone.say(self._unsaid.pop())

    def is_done(self) -> bool:
        """Whether everything is said, and answered to the end."""
        spoken_s = self._microphone.spoken_s
        if self._unsaid or spoken_s is None:
            return False
        return any(
            reply.status == "completed" and not reply.is_call and reply.began_s is not None and reply.began_s > spoken_s
            for reply in self.replies.values()
        )

    def close(self) -> None:
        """Write the replies' sound and print the summary."""
        with wave.open(str(self._options.wav), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE_HZ)
            file.writeframes(b"".join(reply.sound for reply in self.replies.values()))
        if self._options.json:
            print(json.dumps(self._summary()))

    def _summary(self) -> dict[str, object]:
        replies = [
            {
                "text": reply.text,
                "status": reply.status,
                "is_call": reply.is_call,
                "latency_ms": reply.latency_ms,
                "sound_ms": reply.sound_ms,
                "late_ms": reply.late_bytes // BYTES_PER_MS,
            }
            for reply in self.replies.values()
        ]
        return {
            "client": self._client,
            "is_done": self.is_done(),
            "transcripts": self.transcripts,
            "replies": replies,
            "calls": self.calls,
            "errors": self.errors,
        }

    def _print(self, *words: object) -> None:
        if not self._options.json:
            print(*words, flush=True)
