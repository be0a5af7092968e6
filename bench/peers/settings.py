"""A server's name in -> how it is started, with which settings, and what is to be known of them.

All servers get the same models, the same instructions, the same length of replies, and the same vocabulary where they
take one. `defaults` is what a peer does when nothing about turns or speed is said; `fast` is the quickest that its
documentation offers. What it does not know: how anything is measured.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.models.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antiphon.agent import Agent

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".peers"
AGENT = ROOT / "examples" / "barista.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Where a peer finds the models, and what it is to say."""

    recognizer: Path
    turn_end: Path
    language_model_url: str
    voice_url: str
    agent: Agent

    @property
    def vocabulary(self) -> str:
        """The words as Whisper takes them in front of what it hears."""
        return ", ".join(self.agent.vocabulary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server at one of its settings."""

    name: str
    environment: str  # a folder of .peers; empty: this one
    command: Callable[[Models, int], list[str]]  # what is started, on that port
    takes_vocabulary: bool
    needs_models: bool = True  # of model_server.py
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)  # what differs from its defaults

    @property
    def python(self) -> Path:
        """The interpreter of its environment.

        Raises:
            CallerError: the environment was not made.
        """
        if not self.environment:
            return Path(sys.executable)
        folder = ENVIRONMENTS / self.environment
        if not (folder / "READY").exists():
            raise CallerError(
                f"there is no environment of {self.environment}",
                hint=f"make it: bench/peers/make_environment {self.environment}",
            )
        return folder / "bin" / "python"


def models(agent: Agent, *, language_model_port: int, voice_port: int) -> Models:
    """The models as peers find them.

    Raises:
        MachineError: one was not fetched.
    """
    store = Store()
    return Models(
        recognizer=store.locate("whisper-tiny.en"),
        turn_end=store.file("smart-turn-v3.2"),
        language_model_url=f"http://127.0.0.1:{language_model_port}/v1",
        voice_url=f"http://127.0.0.1:{voice_port}/v1",
        agent=agent,
    )


def _ours(_: Models, port: int) -> list[str]:
    return ["-m", "antiphon", "serve", "--agent", str(AGENT), "--host", "127.0.0.1", "--port", str(port)]


def _pipecat(name: str, settings: Mapping[str, object]) -> Server:
    def command(found: Models, port: int) -> list[str]:
        told = {
            "whisper": str(found.recognizer),
            "vocabulary": found.vocabulary,
            "instructions": found.agent.instructions,
            "language_model_url": found.language_model_url,
            "voice_url": found.voice_url,
            **settings,
        }
        return [str(HERE / "pipecat_server.py"), "--port", str(port), "--settings", json.dumps(told)]

    return Server(name=name, environment="pipecat", command=command, takes_vocabulary=True, settings=settings)


def _speech_to_speech(name: str, *flags: str) -> Server:
    folder = ENVIRONMENTS / "speech-to-speech"

    def command(found: Models, port: int) -> list[str]:
        same = {
            "stt": "faster-whisper",
            "faster_whisper_stt_model_name": found.recognizer,
            "faster_whisper_stt_compute_type": "int8",
            "llm_backend": "chat-completions",
            "model_name": "local",
            "responses_api_base_url": found.language_model_url,
            "responses_api_api_key": "none",
            "init_chat_prompt": found.agent.instructions,
            "tts": "openai",
            "openai_tts_base_url": found.voice_url,
            "smart_turn_model_path": found.turn_end,
            "host": "127.0.0.1",
            "port": port,
        }
        words = [word for flag, value in same.items() for word in (f"--{flag}", str(value))]
        return ["-m", "speech_to_speech.cli", "serve", *words, *flags]

    variables = {"TORCH_HOME": str(folder / "torch"), "NLTK_DATA": str(folder / "nltk_data"), "HF_HUB_OFFLINE": "1"}
    return Server(
        name=name,
        environment="speech-to-speech",
        command=command,
        takes_vocabulary=False,  # its Whisper handler has no way to give it one
        variables=variables,
        settings={"flags": list(flags)},
    )


_ONE_SENTENCE = ("--stream_batch_sentences", "1")
_NO_HOLD = ("--speculative_reopen_ms", "0")
_NO_LIVE = ("--no_enable_live_transcription",)

SERVERS = {
    server.name: server
    for server in (
        Server(name="antiphon", environment="", command=_ours, takes_vocabulary=True, needs_models=False),
        _pipecat("pipecat", {"stop": "smart-turn"}),
        _pipecat("pipecat-fast", {"stop": "timeout", "user_speech_timeout_s": 0.0}),
        _speech_to_speech("speech-to-speech"),
        _speech_to_speech("speech-to-speech-fast", *_NO_LIVE, *_NO_HOLD, *_ONE_SENTENCE, "--no_smart_turn"),
        _speech_to_speech("speech-to-speech-fast-smart-turn", *_NO_LIVE, *_NO_HOLD, *_ONE_SENTENCE),
    )
}
