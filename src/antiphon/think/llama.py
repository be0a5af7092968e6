"""Messages in, reply text out: a llama.cpp model in this process, shared by all conversations.

Each conversation holds a slot of the model's cache (`slots.py`), so that only what is new of its prompt is read.
While tokens are written, the prompts of other conversations are read in batches between them.

Threads: called on the event loop; each call blocks one thread of the lane, which therefore needs one for each
conversation. A stop, or the end of a reading task, takes effect at the model's next token or prompt batch.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError, EngineError, check_range
from antiphon.core.flow import Message, ToolCall, Usage
from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Job
from antiphon.think.chat_template import ChatTemplate, join_messages, template_for, template_named
from antiphon.think.completion import Completion
from antiphon.think.fitting import Fitting, MessageSizes
from antiphon.think.language_model import AUTO, NONE
from antiphon.think.llama_server import LlamaServer, ServerPlan, check_model_file, read_chat_template
from antiphon.think.llama_settings import LlamaSettings, copies_words
from antiphon.think.seam import Seam, readable
from antiphon.think.sentence_end import end_mass, without_final_mark
from antiphon.think.slots import SlotTable
from antiphon.think.tool_asker import ToolAsker
from antiphon.think.tool_choice import check_choice
from antiphon.think.tool_result import said_result, told_as_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from antiphon.core.flow import ToolSpec
    from antiphon.scheduling.lanes import Lane
    from antiphon.think.completion_server import Completed, CompletionServer
    from antiphon.think.language_model import Written

_MARGIN_TOKENS = 16  # begin of text, the reply's opening marker, and the last token, which needs a place as well
_SMALLEST_CONTEXT_TOKENS = 256


class LlamaModel:
    """The loaded model. It needs a lane of its own with as many threads as conversations."""

    longest_slice_ns = 160 * MILLISECOND_NS  # 32 prompt tokens, two threads of a busy 2-core EPYC; 255 with one thread
    can_go_on = True

    def __init__(self, shared: _Shared, *, name: str) -> None:
        self.name = name
        self._shared = shared

    @classmethod
    def load(
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

        `conversations` have their prompts cached at once, more can be open; `context_tokens` are for each of them.

        Raises:
            CallerError: a value is out of its range, or the file is missing, no model, or of an unknown family.
            EngineError: the model cannot be loaded.
            MachineError: this machine cannot run the engine.
        """
        settings = settings or LlamaSettings()
        check_range("threads", threads, 1, 512)
        check_range("conversations", conversations, 1, 256)
        check_range("context_tokens", context_tokens, _SMALLEST_CONTEXT_TOKENS, 2**20)
        check_model_file(path)
        template = template_named(settings.template) if settings.template else _family(path)
        plan = ServerPlan(
            threads=threads,
            conversations=conversations + 1,  # the last place in the cache is where tools are chosen
            context_tokens=context_tokens,
            batch_tokens=settings.batch_tokens,
        )
        return cls.around(
            LlamaServer(path, plan),
            lane=lane,
            template=template,
            conversations=conversations,
            context_tokens=context_tokens,
            settings=settings,
            copies=copies_words(settings, path.stat().st_size),
            name=path.stem,
        )

    @classmethod
    def around(  # noqa: PLR0913 - what a loader knows, each once
        cls,
        server: CompletionServer,
        *,
        lane: Lane,
        template: ChatTemplate,
        conversations: int,
        context_tokens: int,
        settings: LlamaSettings,
        copies: bool,
        name: str,
    ) -> LlamaModel:
        """The model that `server` computes, whatever it computes on."""
        at_work = set[Completion]()
        asker = ToolAsker(server, lane, at_work, slot=conversations, context_tokens=context_tokens, copies=copies)
        shared = _Shared(
            server=server,
            lane=lane,
            slots=SlotTable(conversations),
            template=template,
            settings=settings,
            context_tokens=context_tokens,
            copies=copies,
            asker=asker,
            sizes=MessageSizes(server),
            at_work=at_work,
        )
        return cls(shared, name=name)

    def open(self) -> LlamaThinking:
        return LlamaThinking(self._shared)

    async def warm_up(self) -> None:
        """Read and write a few tokens, as the first turn will."""
        thinking = self.open()
        async for _ in thinking.write([Message("user", "Hello.")], max_tokens=2):
            pass
        thinking.close()

    def close(self) -> None:
        """Refuse everything from here on; what is at work ends at its next token, and the model is freed then."""
        self._shared.server.close()
        for completion in self._shared.at_work:
            completion.ask_to_stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What the conversations of one model have in common."""

    server: CompletionServer
    lane: Lane
    slots: SlotTable
    template: ChatTemplate
    settings: LlamaSettings
    context_tokens: int
    copies: bool  # see LlamaSettings.tool_words
    asker: ToolAsker
    sizes: MessageSizes
    at_work: set[Completion]


class LlamaThinking:
    """One conversation. Its calls run one after another; a prompt read ahead makes way for any later call."""

    def __init__(self, shared: _Shared) -> None:
        self.usage = Usage()
        self.reached_limit = False
        self._shared = shared
        self._turn = asyncio.Lock()
        self._calls = 0
        self._tool_calls = 0
        self._ahead: Completion | None = None
        self._fitting = Fitting(shared.sizes)
        self._reply_tokens = min(shared.settings.reply_reserve_tokens, shared.context_tokens // 2)
        self._closed = False

    async def prefill(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> None:
        """Read ahead until done, or until a later call of this conversation wants the model.

        The prompt is the same with any tools. What helps to choose one of them is read after it, if there is time.

        Raises:
            CallerError: the last message is not the user's, or the instructions or the tools fill the context.
            EngineError: the model failed.
        """
        completion = await self._begin(messages, Stage.PREFILL, {"n_predict": 1})
        if completion is None:
            return
        call = self._calls
        self._ahead = completion
        try:
            async for _ in completion.steps():
                pass
        finally:
            self._ahead = None
            await completion.stop()
        if tools and call == self._calls and not self._closed:
            wanted = lambda: call == self._calls and not self._closed  # noqa: E731
            await self._shared.asker.read_ahead(messages, tools, is_wanted=wanted)

    async def sentence_end_mass(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),  # noqa: ARG002 - the prompt is the same with any
    ) -> float | None:
        """As the contract says; a final mark of the last message is left out first. None without any words.

        Raises:
            CallerError: the last message is not the user's, or the instructions fill the context.
            EngineError: the model failed.
        """
        if not messages:
            return None
        words = without_final_mark(messages[-1].text)
        if not words:
            return None
        asked = [*messages[:-1], Message(messages[-1].role, words)]
        wanted: dict[str, object] = {"n_predict": 1, "n_probs": self._shared.settings.end_candidates}
        completion = await self._begin(asked, Stage.JUDGE, wanted)
        assert completion is not None
        mass = None
        try:
            async for step in completion.steps():
                if step.candidates:
                    mass = end_mass((token, math.exp(odds)) for token, odds in step.candidates)
        finally:
            await completion.stop()
        return mass

    async def write(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        tools: Sequence[ToolSpec] = (),
        tool_choice: str = AUTO,
        begins_with: str = "",
    ) -> AsyncGenerator[Written, None]:
        """The reply, cut where the model begins to speak for somebody else; or one call and no text.

        What came of a tool is always answered with text, unless `tool_choice` asks for another call. Another
        `write` of the same conversation waits until this one has ended or was closed. A reply takes half of the
        context at most, what it begins with included; where that fills the half, nothing more is written.

        Raises:
            CallerError: there are no words to answer, or `max_tokens` is below 1, or the instructions or the tools fill
                the context, or `tool_choice` is none of `tools`.
            EngineError: the model failed, or was closed.
        """
        if max_tokens < 1:
            raise CallerError(f"max_tokens is {max_tokens}", hint="allow a reply one token or more")
        check_choice(tools, tool_choice)
        self.usage, self.reached_limit = Usage(), False
        returned = bool(messages) and messages[-1].role == "tool"
        if tools and tool_choice != NONE and not begins_with and not (returned and tool_choice == AUTO):
            call = await self._call(messages, tools, tool_choice)
            if call is not None:
                yield call
                return
        if returned and self._shared.copies:
            self._refuse_if_closed()
            said = said_result(messages[-1].text)
            if said.startswith(begins_with):
                if said != begins_with:
                    yield said[len(begins_with) :]
                return
        async with aclosing(self._text(messages, max_tokens, begins_with)) as pieces:
            async for piece in pieces:
                yield piece

    async def _text(self, messages: Sequence[Message], max_tokens: int, written: str) -> AsyncGenerator[str, None]:
        """What the model writes behind `written`, which it, or one like it, wrote before."""
        written = readable(written, self._shared.template.markers)
        written_tokens = await asyncio.to_thread(self._shared.server.count_tokens, written) if written else 0
        max_tokens = min(max_tokens, self._shared.context_tokens // 2 - written_tokens)  # half is for what is answered
        if max_tokens < 1:
            self.reached_limit = True
            return
        self._reply_tokens = written_tokens + max_tokens  # as before it was interrupted, so that the prompt stays
        wanted = {"n_predict": max_tokens, "seed": self._shared.settings.seed + written_tokens}
        for seam in (Seam(written), Seam(written, is_literal=True)):
            completion = await self._begin(messages, Stage.THINK, wanted, reply=seam.held)
            assert completion is not None
            try:
                async for step in completion.steps():
                    text = seam.join(step.text)
                    if text is None:
                        break
                    self._count(step)
                    self.reached_limit = step.reached_limit
                    if text:
                        yield text
                else:
                    if self._shared.server.is_closed:
                        raise EngineError("the language model was closed in the middle of a reply")
                    return
            finally:
                await completion.stop()

    def _count(self, step: Completed) -> None:
        read = Usage()
        if step.prompt_tokens is not None and not self.usage.input_tokens:
            read = Usage(input_tokens=step.prompt_tokens, cached_tokens=step.cached_tokens)
        self.usage = self.usage + read + Usage(output_tokens=bool(step.text))

    async def _call(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> ToolCall | None:
        self._refuse_if_closed()
        self._calls += 1
        if self._ahead is not None:
            self._ahead.ask_to_stop()
        chosen = await self._shared.asker.choose(messages, tools, tool_choice)
        if chosen is None:
            return None
        self._tool_calls += 1
        return ToolCall(f"call_{self._tool_calls}", *chosen)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise EngineError("the conversation is closed")
        if self._shared.server.is_closed:
            raise EngineError("the language model is closed")

    def close(self) -> None:
        self._closed = True
        if self._ahead is not None:
            self._ahead.ask_to_stop()
        for slot in self._shared.slots.forget(self):
            self._shared.server.forget(slot)

    async def _begin(
        self, messages: Sequence[Message], stage: Stage, wanted: Mapping[str, object], *, reply: str | None = None
    ) -> Completion | None:
        """Complete `reply`, or the user's open message, once turn and slot are there; None if a prefill came late."""
        self._calls += 1
        call = self._calls
        if self._ahead is not None:
            self._ahead.ask_to_stop()
        with ExitStack() as held:
            await self._turn.acquire()
            held.callback(self._turn.release)
            if stage is Stage.PREFILL and call != self._calls:
                return None
            if self._closed:
                raise EngineError("the conversation is closed")
            slot = await self._shared.slots.acquire(self)
            held.callback(self._shared.slots.release, slot)
            room = self._shared.context_tokens - self._reply_tokens - _MARGIN_TOKENS
            kept = await self._fitting.fit(join_messages(told_as_text(messages)), room)
            if stage is Stage.PREFILL and call != self._calls:  # somebody asked for more while it was counted
                return None
            prompt = self._shared.template.render(kept, open_last=reply is None) + (reply or "")
            request = {**self._sampling(), **wanted, "prompt": prompt, "id_slot": slot}
            completion = Completion(self._shared.server, self._shared.lane, Job(stage=stage), request)
            self._shared.at_work.add(completion)
            held.callback(self._shared.at_work.discard, completion)
            completion.when_done(held.pop_all().close)
        return completion

    def _sampling(self) -> dict[str, object]:
        settings = self._shared.settings
        return {
            "cache_prompt": True,
            "temperature": settings.temperature,
            "seed": settings.seed,
            "repeat_penalty": settings.repeat_penalty,
            "repeat_last_n": settings.repeat_last_tokens,
            "stop": list(self._shared.template.stops),
            "preserved_tokens": list(self._shared.template.markers),  # come out as text, which then is a stop
        }


def _family(path: Path) -> ChatTemplate:
    template = template_for(read_chat_template(path))
    if template is None:
        raise CallerError(
            f"how {path.name} marks who speaks is unknown",
            hint="set the language model's template; without one in the file, chatml is the most common",
        )
    return template
