"""Messages in, reply text out: a llama.cpp model in this process, shared by all conversations.

Each conversation holds a slot of the model's cache (`slots.py`), so that only what is new of its prompt is read.
While tokens are written, the prompts of other conversations are read in batches between them.

Threads: called on the event loop; each call blocks one thread of the lane, which therefore needs one for each
conversation. Pieces come back through queues that hold a whole reply, so a slow reader never blocks a worker.
"""

from __future__ import annotations

import asyncio
import math
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import Message
from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Job
from antiphon.think.chat_template import ChatTemplate, join_messages, template_for, template_named
from antiphon.think.context_window import choose_window, head_length, last_words
from antiphon.think.llama_server import Completed, LlamaServer, ServerPlan, read_chat_template
from antiphon.think.sentence_end import end_mass, without_final_mark
from antiphon.think.slots import SlotTable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from antiphon.scheduling.lanes import Lane

_MARGIN_TOKENS = 16  # what a template adds around the messages, begin-of-text and assistant's opener included
_SMALLEST_CONTEXT_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSettings:
    """How replies are chosen.

    Raises:
        CallerError: a value is out of its range; the message names the field.
    """

    temperature: float = 0.0  # 0: the likeliest token, the same reply every time
    seed: int = 0  # of the draw, with a temperature
    repeat_penalty: float = 1.1  # 1: none; a small model left alone with 1.0 goes in circles
    repeat_last_tokens: int = 64
    template: str = ""  # a name of chat_template.TEMPLATES; empty: what the model file says
    batch_tokens: int = 32  # read in one go; a stop takes effect after it, other conversations wait for it
    end_candidates: int = 40  # tokens looked at for the end of a sentence
    reply_reserve_tokens: int = 256  # kept free for the reply when a prompt is read ahead

    def __post_init__(self) -> None:
        _check_range("temperature", self.temperature, 0, 2)
        _check_range("seed", self.seed, 0, 2**32 - 2)
        _check_range("repeat_penalty", self.repeat_penalty, 1, 2)
        _check_range("repeat_last_tokens", self.repeat_last_tokens, 0, 4096)
        _check_range("batch_tokens", self.batch_tokens, 1, 4096)
        _check_range("end_candidates", self.end_candidates, 1, 1000)
        _check_range("reply_reserve_tokens", self.reply_reserve_tokens, 1, 65536)
        if self.template:
            template_named(self.template)


class LlamaModel:
    """The loaded model. It needs a lane of its own with as many threads as conversations."""

    longest_slice_ns = 130 * MILLISECOND_NS  # a batch of 32 prompt tokens with two threads; with one, 190

    def __init__(self, server: LlamaServer, plan: ServerPlan, *, name: str, lane: Lane, settings: LlamaSettings) -> None:
        self.name = name
        self.settings = settings
        self.plan = plan
        self._server = server
        self._lane = lane
        self._slots = SlotTable(plan.conversations)
        self._template = template_named(settings.template or "chatml")
        self._sizes: dict[Message, int] = {}

    @classmethod
    def load(  # noqa: PLR0913 - a loader's job is to take what the plan decided
        cls,
        path: Path,
        *,
        lane: Lane,
        threads: int,
        conversations: int,
        context_tokens: int,
        settings: LlamaSettings | None = None,
    ) -> LlamaModel:
        """Load a .gguf file; blocks for as long as that takes.

        Raises:
            CallerError: a value is out of its range, or the file is missing, no model, or of an unknown family.
            EngineError: the model cannot be loaded.
            MachineError: this machine cannot run the engine.
        """
        settings = settings or LlamaSettings()
        _check_range("threads", threads, 1, 512)
        _check_range("conversations", conversations, 1, 256)
        _check_range("context_tokens", context_tokens, _SMALLEST_CONTEXT_TOKENS, 2**20)
        plan = ServerPlan(
            threads=threads,
            conversations=conversations,
            context_tokens=context_tokens,
            batch_tokens=settings.batch_tokens,
        )
        server = LlamaServer(path, plan)
        model = cls(server, plan, name=path.stem, lane=lane, settings=settings)
        if not settings.template:
            model._template = _family(path)
        return model

    def open(self) -> LlamaThinking:
        return LlamaThinking(self)

    async def warm_up(self) -> None:
        """Read and write a few tokens, as the first turn will."""
        thinking = self.open()
        async for _ in thinking.write([Message("user", "Hello.")], max_tokens=2):
            pass
        thinking.close()

    def close(self) -> None:
        """Stop what is at work at its next token, and refuse everything from here on."""
        self._server.close()
"""
