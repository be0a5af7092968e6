"""What conversations share: the loaded models and the number of callers they may serve; it opens sessions.

Threads: `load` reads models in threads of its own, side by side; everything else happens on the event loop.
"""

from __future__ import annotations

import asyncio
import json
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias, cast

from antiphon.core.errors import MachineError
from antiphon.dialogue.history import prompt
from antiphon.dialogue.turn_end import TurnEndModel
from antiphon.hardware.probe_cpu import probe_cpu
from antiphon.models.store import Store
from antiphon.scheduling.lanes import ThreadLane
from antiphon.scheduling.openmp import limit_spinning
from antiphon.session import Engines, Session, SessionSettings
from antiphon.think.chat_address import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from antiphon.config import Config
    from antiphon.core.clock import Clock
    from antiphon.core.flow import ToolSpec
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.hear.prosody import ProsodyJudge
    from antiphon.hear.recognizer import Recognizer
    from antiphon.hear.voice_detector import VoiceDetector
    from antiphon.scheduling.lanes import Lane
    from antiphon.speak.synthesizer import Synthesizer
    from antiphon.think.language_model import LanguageModel

    _Loaded: TypeAlias = tuple[VoiceDetector, ProsodyJudge | None, Recognizer, LanguageModel, Synthesizer]


class Runtime:
    """Loaded engines, and the conversations that use them; close it, or use it as an async context manager."""

    def __init__(self, engines: Engines, *, conversations: int) -> None:
        self.engines = engines
        self._conversations = conversations
        self._open = 0  # entered and not yet left
        self._lanes: list[Lane] = []

    @classmethod
    async def load(cls, config: Config, *, store: Store | None = None) -> Self:
        """Load the chosen models side by side and warm them up.

        Raises:
            CallerError: a model's name is unknown.
            MachineError: a model is not on this machine, or the machine cannot run it.
            PeerError: the language model's server does not answer as it should.
        """
        limit_spinning()
        lanes = _Lanes(config.capacity.conversations)
        try:
            engines = await _load_engines(config, store or Store(), lanes)
            runtime = cls(engines, conversations=config.capacity.conversations)
            runtime._lanes = lanes.all()
            await engines.warm_up()
        except BaseException:
            for lane in lanes.all():
                lane.close()
            raise
        return runtime

    def open(
        self,
        settings: SessionSettings,
        *,
        clock: Clock | None = None,
        watch: Callable[[Stimulus, tuple[Command, ...]], None] | None = None,
    ) -> Session:
        """A new conversation; enter it as an async context manager to begin, which takes a place until it ends.

        Raises:
            MachineError: as many conversations as may be are open.
        """
        self._refuse_if_full()
        return Session(self.engines, settings, clock=clock, watch=watch, on_open=self._opened, on_close=self._closed)

    def _opened(self) -> None:
        self._refuse_if_full()  # another may have been entered since this one was made
        self._open += 1

    def _closed(self) -> None:
        self._open -= 1

    def _refuse_if_full(self) -> None:
        if self._open >= self._conversations:
            raise MachineError(
                f"{self._open} conversations are open, which is all that may be",
                hint="end one, or raise capacity.conversations",
                retryable=True,
            )

    async def meet(self, instructions: str, tools: Sequence[ToolSpec]) -> None:
        """Let the language model read what every conversation begins with, before the first one does."""
        thinking = self.engines.language_model.open()
        try:
            await thinking.prefill(prompt(instructions, (), "Hello."), tools=tools)
        finally:
            thinking.close()

    @cached_property
    def turn_end(self) -> TurnEndModel:
        """How turn ends are judged: the fit that ships with the package."""
        return default_turn_end()

    def close(self) -> None:
        """Free the engines; open conversations fail from here on."""
        self.engines.close()
        for lane in self._lanes:
            lane.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def default_turn_end() -> TurnEndModel:
    """The fit that ships with the package; bench/turn_end_fit.py makes it."""
    text = resources.files("antiphon").joinpath("assets/turn_end.json").read_text(encoding="utf-8")
    return TurnEndModel.from_dict(json.loads(text))


class _Lanes:
    """A lane per engine: one caller's recognition never waits for another's synthesis."""

    def __init__(self, conversations: int) -> None:
        self.recognizer = ThreadLane("recognizer")
        self.prosody = ThreadLane("prosody")
        self.language_model = ThreadLane("language-model", threads=2 * conversations)
        self.voice = ThreadLane("voice")

    def all(self) -> list[Lane]:
        return [self.recognizer, self.prosody, self.language_model, self.voice]


async def _load_engines(config: Config, store: Store, lanes: _Lanes) -> Engines:
    models, cpu = config.models, config.cpu
    cores = min(4, probe_cpu().usable_cores)  # a container's quota counts, not the host's cores

    def voice_detector() -> VoiceDetector:
        from antiphon.hear.silero import SileroDetector  # noqa: PLC0415 - each engine's library loads in its thread

        return SileroDetector.load(store.file(models.voice_detector))

    def prosody() -> ProsodyJudge | None:
        if not models.prosody:
            return None
        from antiphon.hear.smart_turn import SmartTurnJudge  # noqa: PLC0415

        return SmartTurnJudge.load(store.file(models.prosody), lane=lanes.prosody, threads=cpu.prosody_threads or cores)

    def recognizer() -> Recognizer:
        from antiphon.hear.whisper import WhisperRecognizer  # noqa: PLC0415
        from antiphon.hear.whisper_settings import own_folder  # noqa: PLC0415

        return WhisperRecognizer.load(
            own_folder(models.recognizer) or store.locate(models.recognizer),
            lane=lanes.recognizer,
            threads=cpu.recognizer_threads or cores,
            settings=config.whisper,
        )

    def language_model() -> LanguageModel:
        name = models.language_model
        if is_address(name):
            from antiphon.think.chat_server import ChatServer  # noqa: PLC0415

            return ChatServer.load(name, settings=config.chat_server)
        from antiphon.think.llama import LlamaModel  # noqa: PLC0415

        return LlamaModel.load(
            Path(name).expanduser() if name.endswith(".gguf") else store.file(name),
            lane=lanes.language_model,
            threads=cpu.language_model_threads or cores,
            conversations=config.capacity.conversations,
            context_tokens=config.capacity.context_tokens,
            settings=config.llama,
        )

    def voice() -> Synthesizer:
        from antiphon.speak.voices import load_voice  # noqa: PLC0415

        return load_voice(models.voice, store=store, lane=lanes.voice, threads=cpu.voice_threads or cores)

    loaders = (voice_detector, prosody, recognizer, language_model, voice)
    loaded = await asyncio.gather(*(asyncio.to_thread(load) for load in loaders), return_exceptions=True)
    failures = [each for each in loaded if isinstance(each, BaseException)]
    if failures:
        for each in loaded:
            if each is not None and not isinstance(each, BaseException):
                each.close()
        raise failures[0]
    detector, judge, ears, mind, mouth = cast("_Loaded", loaded)
    return Engines(voice_detector=detector, prosody=judge, recognizer=ears, language_model=mind, synthesizer=mouth)
