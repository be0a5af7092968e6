"""The public Python API: who answers, and how to talk to them.

from antiphon import Agent

async with Agent(instructions="You are a barista.").session() as session:
    session.feed(frame)             # the caller's sound, as it comes
    async for event in session:     # what happens, the reply's sound among it
        ...
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from antiphon.act.toolbelt import Toolbelt
from antiphon.config import Config, load
from antiphon.core.errors import CallerError, check_range
from antiphon.runtime import Runtime
from antiphon.session import Session, SessionSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from antiphon.act.tool import Tool
    from antiphon.core.clock import Clock
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus

INSTRUCTIONS = "You are a helpful voice assistant. Answer in one or two short sentences."


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who answers.

    Raises:
        CallerError: a value is out of its range.
    """

    instructions: str = INSTRUCTIONS
    voice: str = ""  # one of `antiphon voices list`, such as "heart" or "piper:/path/voice.onnx"; empty: as configured
    llm: str = (
        ""  # one of the catalogue, a GGUF file's path, or an OpenAI-compatible server's address; empty: as configured
    )
    vocabulary: tuple[str, ...] = ()  # words and phrases that callers are likely to use
    max_tokens: int = 96  # of one reply
    tools: tuple[Tool, ...] = ()  # what it can do besides talk; `@tool` makes one of a function
    greeting: str = ""  # said as soon as a conversation begins
    interruptible: bool = True  # whether callers can talk over its replies, the greeting among them

    def __post_init__(self) -> None:
        check_range("max_tokens", self.max_tokens, 1, 4096)
        Toolbelt(self.tools)  # refuses what is none, and two of one name

    def configured(self, config: Config) -> Config:
        """`config` with this agent's own choices of models."""
        models = config.models
        if self.voice:
            models = replace(models, voice=self.voice)
        if self.llm:
            models = replace(models, language_model=self.llm)
        return replace(config, models=models)

    async def load(self, config: Config | None = None) -> Runtime:
        """Load the models that this agent needs, for any number of conversations; the caller closes the runtime.

        Raises: as Runtime.load.
        """
        config = self.configured(config or load().config)
        runtime = await Runtime.load(config)
        if self.tools:  # getting to know them takes the small model a second or two, and is done once for all callers
            await runtime.meet(self.instructions, Toolbelt(self.tools).specs)
        return runtime

    def settings(self, runtime: Runtime, config: Config) -> SessionSettings:
        """What a conversation with this agent needs besides the models."""
        return SessionSettings(
            turn_end=runtime.turn_end,
            instructions=self.instructions,
            vocabulary=self.vocabulary,
            turn=config.turn,
            chunker=config.chunker,
            spoken_form=config.spoken_form,
            max_tokens=self.max_tokens,
            tools=self.tools,
            greeting=self.greeting,
            interruptible=self.interruptible,
            starts_thinking=config.models.starts_thinking,
        )

    @asynccontextmanager
    async def session(
        self,
        runtime: Runtime | None = None,
        *,
        config: Config | None = None,
        clock: Clock | None = None,
        watch: Callable[[Stimulus, tuple[Command, ...]], None] | None = None,
    ) -> AsyncIterator[Session]:
        """A conversation with this agent; without a `runtime` one is loaded for it alone and closed with it.

        Raises: as Runtime.load and Runtime.open.
        """
        config = config or load().config
        own = None
        if runtime is None:
            runtime = own = await self.load(config)
        try:
            async with runtime.open(self.settings(runtime, config), clock=clock, watch=watch) as session:
                yield session
        finally:
            if own is not None:
                own.close()


def read_agent(path: Path) -> Agent:
    """The object called `agent` in a Python file, which is run for it.

    Raises:
        CallerError: there is no such file, it fails, or it defines no agent.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"{path} cannot be read: {error}", hint="name a Python file that defines `agent`") from error
    names: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(compile(source, str(path), "exec"), names)  # noqa: S102 - the user's own file, run on their request
    except Exception as error:
        raise CallerError(f"{path} failed: {type(error).__name__}: {error}", hint="run it with python first") from error
    agent = names.get("agent")
    if not isinstance(agent, Agent):
        raise CallerError(f"{path} defines no Agent called `agent`", hint="agent = antiphon.Agent(instructions=...)")
    return agent
