"""Pipecat with the same models as everybody -> a server that the lab's caller can talk to.

    .peers/pipecat/bin/python bench/peers/pipecat_server.py --port 8903 --settings '{"stop": "smart-turn", ...}'

The pipeline is the one of Pipecat's own examples: transport, Whisper, the user's aggregator with Silero, the language
model, the voice, transport. Each caller gets a pipeline of their own; Whisper's weights are loaded once and shared,
or every call would begin with loading them. Only what `--settings` names differs from Pipecat's defaults.
Threads: the event loop, and those that Pipecat starts.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import sys
from itertools import count
from typing import Any

import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair, LLMUserAggregatorParams
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.services.whisper import stt as whisper
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.workers.runner import WorkerRunner
from pipecat_wire import Conversation, RealtimeSerializer, Reporter

NO_KEY = "none"  # the services insist on one
VOICE = "alloy"  # likewise; there is one voice behind the address
SMART_TURN, TIMEOUT = "smart-turn", "timeout"

_SESSIONS = count()


def transcriber(settings: dict[str, Any]) -> whisper.WhisperSTTService:
    """Whisper as Pipecat runs it, with the vocabulary."""
    told = whisper.WhisperSTTService.Settings(model=settings["whisper"], initial_prompt=settings["vocabulary"] or None)
    return whisper.WhisperSTTService(compute_type="int8", settings=told)  # its default makes a float32 model of ours


def turn_ends(settings: dict[str, Any]) -> UserTurnStrategies:
    """Pipecat's own choice, smart-turn, or a wait alone."""
    if settings["stop"] == SMART_TURN:
        return UserTurnStrategies()
    wait_s = settings["user_speech_timeout_s"]
    return UserTurnStrategies(stop=[SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=wait_s)])


async def converse(socket: WebSocket, settings: dict[str, Any]) -> None:
    """One caller, from the first event to the line's end."""
    await socket.accept()
    conversation = Conversation(f"sess_pipecat_{next(_SESSIONS)}", socket.send_text)
    serializer = RealtimeSerializer(conversation)
    params = FastAPIWebsocketParams(audio_in_enabled=True, audio_out_enabled=True, serializer=serializer)
    transport = FastAPIWebsocketTransport(websocket=socket, params=params)
    user = LLMUserAggregatorParams(vad_analyzer=SileroVADAnalyzer(), user_turn_strategies=turn_ends(settings))
    aggregators = LLMContextAggregatorPair(LLMContext(), user_params=user)
    told = OpenAILLMService.Settings(model="local", system_instruction=settings["instructions"])
    writer = OpenAILLMService(api_key=NO_KEY, base_url=settings["language_model_url"], settings=told)
    sound = OpenAITTSService.Settings(model="local", voice=VOICE)
    voice = OpenAITTSService(api_key=NO_KEY, base_url=settings["voice_url"], settings=sound)
    stages = [transport.input(), transcriber(settings), aggregators.user(), writer, voice, transport.output()]
    pipeline = Pipeline([*stages, aggregators.assistant()])
    worker = PipelineWorker(pipeline, params=PipelineParams(), observers=[Reporter(conversation)], enable_rtvi=False)

    @transport.event_handler("on_client_connected")
    async def greet(_transport: Any, _socket: WebSocket) -> None:
        await conversation.tell("session.created", session=conversation.session)

    @transport.event_handler("on_client_disconnected")
    async def end(_transport: Any, _socket: WebSocket) -> None:
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


def application(settings: dict[str, Any]) -> FastAPI:
    """The server, its Whisper loaded."""
    whisper.WhisperModel = functools.cache(whisper.WhisperModel)
    transcriber(settings)
    served = FastAPI()

    @served.websocket("/v1/realtime")
    async def realtime(socket: WebSocket) -> None:
        await converse(socket, settings)

    return served


async def main(arguments: argparse.Namespace) -> None:
    """Serve until SIGTERM."""
    logger.remove()
    logger.add(sys.stderr, level=arguments.log_level)
    settings = json.loads(arguments.settings)
    config = uvicorn.Config(application(settings), host="127.0.0.1", port=arguments.port, log_level="warning")
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--settings", required=True, help="JSON, as settings.py makes it")
    parser.add_argument("--log-level", default="WARNING")
    asyncio.run(main(parser.parse_args()))
