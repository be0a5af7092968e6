"""Two models of ours in -> HTTP that any peer can use: OpenAI's chat completions, and speech.

    python bench/peers/model_server.py --port 8901 --voice-port 8902 --reply-tokens 60

The language model is llama.cpp's own server, as peers would have it; only what our server does too is set: greedy
choice, two threads, replies no longer than ours, and OpenMP's threads that sleep when idle. The voice is the one that
our server speaks with, trimmed as there, a sentence at a time, as raw 24 kHz PCM.
Runs in this repository's own environment. Threads: the event loop, the voice's lane, and those of llama.cpp.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
from typing import TYPE_CHECKING, Any

import numpy as np

from antiphon.core.errors import EngineError
from antiphon.core.flow import TextChunk
from antiphon.models.store import Store
from antiphon.scheduling.lanes import ThreadLane
from antiphon.scheduling.openmp import limit_spinning
from antiphon.speak.voices import load_voice

if TYPE_CHECKING:
    from antiphon.speak.synthesizer import Synthesizer

LANGUAGE_MODEL, VOICE = "smollm2-135m-instruct-q4_1", "hibari-heart"
CONTEXT_TOKENS = 4096
LARGEST_BODY = 64 * 1024
HOST = "127.0.0.1"


def language_model(port: int, reply_tokens: int) -> Any:
    """llama.cpp's server on that port, for as long as the object lives."""
    limit_spinning()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(Store().file(LANGUAGE_MODEL))
    params.verbosity = 0
    params.hostnames, params.port = [HOST], port
    params.n_parallel, params.n_ctx = 1, CONTEXT_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.n_predict = reply_tokens
    params.sampling.temp = 0.0
    params.fit_params = False
    params.offline = True
    params.warmup = True
    return xllamacpp.Server(params)


class SpeechDesk:
    """Answers `POST /v1/audio/speech` on one connection after the other, as often as a client asks on it."""

    def __init__(self, voice: Synthesizer) -> None:
        self._voice = voice

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.strip().split("\r\n")
        told = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        length = int(told.get("content-length", "0"))
        if not line.startswith("POST ") or not 0 < length <= LARGEST_BODY:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return False
        text = str(json.loads(await reader.readexactly(length)).get("input", ""))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n")
        await self._speak(text, writer)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _speak(self, text: str, writer: asyncio.StreamWriter) -> None:
        if not text.strip():
            return
        chunk = TextChunk(text=text, index=0, start_chars=0, is_last=True)
        with contextlib.suppress(EngineError):  # nothing in it can be said
            async for piece in self._voice.speak(chunk):
                sound = np.round(piece.pcm * 32767).astype("<i2").tobytes()
                writer.write(f"{len(sound):x}\r\n".encode() + sound + b"\r\n")
                await writer.drain()


async def main(arguments: argparse.Namespace) -> None:
    """Load both, say so, and serve until SIGTERM."""
    model = await asyncio.to_thread(language_model, arguments.port, arguments.reply_tokens)
    lane = ThreadLane("voice")
    voice = await asyncio.to_thread(load_voice, VOICE, store=Store(), lane=lane, threads=1)
    await voice.warm_up()
    server = await asyncio.start_server(SpeechDesk(voice).serve, HOST, arguments.voice_port)
    over = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, over.set)
    print(f"Ready: {model.listening_address}", flush=True)
    async with server:
        await over.wait()
    lane.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--port", type=int, required=True, help="of the language model")
    parser.add_argument("--voice-port", type=int, required=True)
    parser.add_argument("--reply-tokens", type=int, required=True, help="the most of one reply")
    asyncio.run(main(parser.parse_args()))
