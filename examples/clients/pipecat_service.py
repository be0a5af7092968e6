"""A caller whose program is a Pipecat pipeline with `OpenAIRealtimeLLMService`: `python pipecat_service.py order.flac`.

Plays the file as a microphone would, prints what was understood and said, and writes the reply's sound to reply.wav.
As in Pipecat's own examples the server speaks first; the file is played after its greeting.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

from loguru import logger
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    Frame,
    FunctionCallResultFrame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMRunFrame,
    LLMUpdateSettingsFrame,
    OutputAudioRawFrame,
    StartFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.realtime.events import (
    AudioConfiguration,
    AudioInput,
    InputAudioTranscription,
    SemanticTurnDetection,
    SessionProperties,
)
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner
from telephone import RATE_HZ, TOOL, Microphone, Sheet, look_up_price, options

if TYPE_CHECKING:
    import argparse

    from pipecat.services.llm_service import FunctionCallParams

BUFFER_S = 0.08  # that the loudspeaker takes ahead


class Ear(BaseInputTransport):
    """Where the pipeline's sound comes from."""

    def __init__(self, microphone: Microphone) -> None:
        super().__init__(TransportParams(audio_in_enabled=True, audio_in_sample_rate=RATE_HZ))
        self._microphone = microphone
        self._speaking: asyncio.Task[None] | None = None

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)
        self._speaking = self.create_task(self._speak())

    async def cleanup(self) -> None:
        await super().cleanup()
        if self._speaking:
            await self.cancel_task(self._speaking)

    async def _speak(self) -> None:
        async for chunk in self._microphone:
            await self.push_audio_frame(InputAudioRawFrame(audio=chunk, sample_rate=RATE_HZ, num_channels=1))


class Mouth(BaseOutputTransport):
    """Where its sound goes: played to nobody, at the pace at which a loudspeaker would take it."""

    def __init__(self) -> None:
        super().__init__(TransportParams(audio_out_enabled=True, audio_out_sample_rate=RATE_HZ))
        self._free_s = 0.0  # when the loudspeaker has played all it was given

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        self._free_s = max(self._free_s, time.monotonic()) + len(frame.audio) / 2 / RATE_HZ
        await asyncio.sleep(self._free_s - time.monotonic() - BUFFER_S)
        return True


class Watch(FrameProcessor):
    """Takes down what passes between two of the pipeline's processors, and passes it on."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self._sheet = sheet
        self._count = 0  # of replies
        self._is_playing = False
        self.ended = asyncio.Event()  # a reply has

    @property
    def _name_of_reply(self) -> str:
        return str(self._count)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        self._note(frame, direction)
        await self.push_frame(frame, direction)

    def _note(self, frame: Frame, direction: FrameDirection) -> None:
        sheet = self._sheet
        match frame:
            case TTSStartedFrame():
                self._count += 1
                sheet.reply(self._name_of_reply)
            case TTSAudioRawFrame():
                sheet.played(self._name_of_reply, frame.audio)
            case TTSTextFrame():
                sheet.said(self._name_of_reply, frame.text)
            case BotStartedSpeakingFrame():
                self._is_playing = True
            case InterruptionFrame() if self._is_playing and direction is FrameDirection.DOWNSTREAM:
                self._is_playing = False
                self._end("cancelled")
            case BotStoppedSpeakingFrame() if self._is_playing:
                self._is_playing = False
                self._end("completed")
            case FunctionCallResultFrame() if direction is FrameDirection.DOWNSTREAM:
                sheet.called(frame.function_name, json.dumps(frame.arguments), str(frame.result))
            case _:
                pass

    def _end(self, status: str) -> None:
        self._sheet.ended(self._name_of_reply, status)
        self.ended.set()


class Caption(FrameProcessor):
    """Takes down what the caller said, which travels against the stream."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self._sheet = sheet

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame):
            self._sheet.heard(frame.text)
        await self.push_frame(frame, direction)


def properties(tool: str | None, choice: str) -> SessionProperties:
    """The settings of a conversation."""
    return SessionProperties(
        audio=AudioConfiguration(
            input=AudioInput(
                transcription=InputAudioTranscription(model="whisper-1"), turn_detection=SemanticTurnDetection()
            )
        ),
        tools=[TOOL] if tool else None,
        tool_choice=choice if tool else None,
    )


def service(chosen: argparse.Namespace, sheet: Sheet) -> OpenAIRealtimeLLMService:
    """The server as a part of a pipeline."""
    settings = OpenAIRealtimeLLMService.Settings

    async def price(call: FunctionCallParams) -> None:
        if chosen.tool == "forced":  # or the next reply would have to use it, too
            again = settings(session_properties=properties(chosen.tool, "none"))
            await call.llm.queue_frame(LLMUpdateSettingsFrame(delta=again))
        await call.result_callback(look_up_price(str(call.arguments["drink"])))

    server = OpenAIRealtimeLLMService(
        api_key=chosen.key,
        base_url=f"{chosen.url}/realtime",
        settings=settings(
            model="antiphon",
            system_instruction="You are the barista of a small coffee shop. Answer in one short sentence.",
            session_properties=properties(chosen.tool, "none" if chosen.tool == "forced" else "auto"),
        ),
    )
    server.register_function("look_up_price", price)
    server.add_event_handler("on_error", lambda _, error: sheet.failed(str(error)))
    return server


async def call(chosen: argparse.Namespace) -> None:
    """Hold the conversation."""
    microphone = Microphone()
    sheet = Sheet("pipecat", microphone, chosen)
    server, watch = service(chosen, sheet), Watch(sheet)
    context = LLMContextAggregatorPair(LLMContext([{"role": "user", "content": "Hello!"}]))
    pipeline = Pipeline(
        [
            Ear(microphone),
            context.user(),
            Caption(sheet),
            server,
            watch,
            Mouth(),
            context.assistant(),
        ]
    )
    worker = PipelineWorker(
        pipeline, params=PipelineParams(audio_in_sample_rate=RATE_HZ, audio_out_sample_rate=RATE_HZ)
    )
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await worker.queue_frames([LLMRunFrame()])
    running = asyncio.create_task(runner.run())
    try:
        async with asyncio.timeout(chosen.limit_s):
            await watch.ended.wait()  # the greeting
            if chosen.tool == "forced":
                delta = OpenAIRealtimeLLMService.Settings(session_properties=properties(chosen.tool, "required"))
                await worker.queue_frames([LLMUpdateSettingsFrame(delta=delta)])
            microphone.say(chosen.file)
            while not sheet.is_done():
                watch.ended.clear()
                await watch.ended.wait()
    except TimeoutError:
        sheet.failed(f"not over after {chosen.limit_s:.0f} s")
    microphone.hang_up()
    await worker.cancel()
    await running
    sheet.close()


if __name__ == "__main__":
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    asyncio.run(call(options(__doc__ or "")))
