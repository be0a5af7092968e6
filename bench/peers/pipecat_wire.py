"""The Realtime protocol as a serializer and an observer of Pipecat's: what the lab's caller needs of it, and no more.

Pipecat's WebSocket transport takes a serializer for each client's protocol, as it has for telephone companies; so
there is no hop and no process between the caller and Pipecat's own transport. In come `session.update` and
`input_audio_buffer.append`; out go session, transcript, response and sound events. Anything else is ignored.
Runs in Pipecat's environment. Units: PCM16, 24 kHz on the wire both ways, 16 kHz inside on the way in: Pipecat's
defaults. Its own resampler would hold the caller's sound back by 42 ms on the average and 76 at most, which no client
that speaks its own protocol at 16 kHz pays; so a short filter is used here, which holds back half a millisecond.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from pipecat.frames.frames import (
    BotStoppedSpeakingFrame,
    Frame,
    InputAudioRawFrame,
    InterruptionFrame,
    OutputAudioRawFrame,
    TranscriptionFrame,
    TTSTextFrame,
    UserStartedSpeakingFrame,
    UserStoppedSpeakingFrame,
)
from pipecat.observers.base_observer import BaseObserver, FramePushed
from pipecat.processors.frame_processor import FrameDirection
from pipecat.serializers.base_serializer import FrameSerializer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pipecat.processors.frame_processor import FrameProcessorSetup

WIRE_HZ, INSIDE_HZ = 24_000, 16_000
UP, DOWN = 2, 3  # from the one to the other
TAPS = 49  # at 48 kHz
CUTOFF_HZ = 7_400
SOUND = {"type": "audio/pcm", "rate": WIRE_HZ}


class Conversation:
    """What both sides of one line share: its names, and which reply is going on."""

    def __init__(self, name: str, send: Callable[[str], Awaitable[None]]) -> None:
        self.session = {
            "id": name,
            "type": "realtime",
            "audio": {"input": {"format": SOUND}, "output": {"format": SOUND}},
        }
        self._send = send
        self._numbers = count()
        self._response = ""
        self._item = ""  # the turn of the caller's that goes on
        self._heard: list[str] = []  # in it

    async def tell(self, kind: str, **fields: Any) -> None:
        """Send one event."""
        await self._send(event(kind, **fields))

    async def user_began(self) -> None:
        """A turn of the caller's begins."""
        await self.tell("input_audio_buffer.speech_started", item_id=self._turn(), audio_start_ms=0)

    async def user_ended(self) -> None:
        """Pipecat has decided that the turn is over."""
        item, self._item = self._turn(), ""
        self._heard.clear()
        await self.tell("input_audio_buffer.speech_stopped", item_id=item, audio_end_ms=0)
        await self.tell("input_audio_buffer.committed", item_id=item)

    async def heard(self, text: str) -> None:
        """A transcript; a turn with pauses has several, and one that comes after its end begins another turn."""
        item = self._turn()
        self._heard.append(text.strip())
        kind = "conversation.item.input_audio_transcription.completed"
        await self.tell(kind, item_id=item, content_index=0, transcript=" ".join(self._heard))

    def _turn(self) -> str:
        self._item = self._item or f"item_{next(self._numbers)}"
        return self._item

    async def said(self, text: str) -> None:
        """What the voice was given to say, in the reply that goes on."""
        name = self.response()
        await self.tell("response.output_audio_transcript.delta", response_id=name, item_id=name, delta=text + " ")

    def response(self) -> str:
        """The name of the reply that goes on; one begins if there is none."""
        self._response = self._response or f"resp_{next(self._numbers)}"
        return self._response

    async def reply_ended(self, status: str) -> None:
        """The reply that goes on is over, if there is one."""
        name, self._response = self._response, ""
        if name:
            await self.tell("response.done", response={"id": name, "status": status})


class Downsampler:
    """24 kHz in, 16 kHz out, as it comes: PCM16 of any length."""

    def __init__(self) -> None:
        places = (np.arange(TAPS) - TAPS // 2) / (WIRE_HZ * UP)
        taps = np.sinc(2 * CUTOFF_HZ * places) * np.hamming(TAPS)
        self._taps = taps / taps.sum() * UP
        self._held = np.zeros(TAPS - 1)  # at 48 kHz
        self._skip = 0  # samples at 48 kHz until the next one that is kept

    def push(self, pcm: bytes) -> bytes:
        """What can be said of the sound so far."""
        samples = np.frombuffer(pcm, "<i2")
        spread = np.zeros(len(samples) * UP)
        spread[::UP] = samples
        line = np.concatenate([self._held, spread])
        self._held = line[len(line) - (TAPS - 1) :]
        smooth = np.convolve(line, self._taps, "valid") if len(spread) else spread
        kept = smooth[self._skip :: DOWN]
        self._skip = (self._skip - len(spread)) % DOWN
        return np.round(kept).clip(-32768, 32767).astype("<i2").tobytes()


class RealtimeSerializer(FrameSerializer):
    """Frames of Pipecat's as events of the protocol, and back."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self._conversation = conversation
        self._resampler = Downsampler()

    async def setup(self, setup: FrameProcessorSetup) -> None:
        """Make sure that the pipeline runs at the rate that the sound is brought to."""
        assert setup.audio_in_sample_rate == INSIDE_HZ

    async def serialize(self, frame: Frame) -> str | None:
        """The event that a frame of the output transport becomes; None if it is not told."""
        if isinstance(frame, OutputAudioRawFrame):
            name = self._conversation.response()
            sound = b64encode(frame.audio).decode("ascii")
            return event("response.output_audio.delta", response_id=name, item_id=name, delta=sound)
        if isinstance(frame, InterruptionFrame):
            await self._conversation.reply_ended("cancelled")
        return None

    async def deserialize(self, data: str | bytes) -> Frame | None:
        """The sound of a client's event; None if it holds none."""
        told = json.loads(data)
        if told.get("type") == "input_audio_buffer.append":
            pcm = self._resampler.push(b64decode(told["audio"]))
            return InputAudioRawFrame(audio=pcm, sample_rate=INSIDE_HZ, num_channels=1) if pcm else None
        if told.get("type") == "session.update":
            await self._conversation.tell("session.updated", session=self._conversation.session)
        return None


class Reporter(BaseObserver):
    """Tells the caller what Pipecat heard and when turns and replies ended."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(observe_every_push=False)
        self._conversation = conversation

    async def on_push_frame(self, data: FramePushed) -> None:
        """Called once for each frame; what is broadcast is two frames, of which one goes downstream."""
        if data.direction is not FrameDirection.DOWNSTREAM:
            return
        match data.frame:
            case UserStartedSpeakingFrame():
                await self._conversation.user_began()
            case UserStoppedSpeakingFrame():
                await self._conversation.user_ended()
            case TranscriptionFrame(text=text):
                await self._conversation.heard(text)
            case TTSTextFrame(text=text):
                await self._conversation.said(text)
            case BotStoppedSpeakingFrame():
                await self._conversation.reply_ended("completed")
            case _:
                pass


_EVENTS = count()


def event(kind: str, **fields: Any) -> str:
    """An event of the server's as it is sent."""
    return json.dumps({"type": kind, "event_id": f"event_{next(_EVENTS)}", **fields})
