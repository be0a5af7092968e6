"""Messages and tools in, the call that the model would make, or none, out: tool use for models that have no say in it.

All questions of all conversations are asked in one place of the model's cache, which they do not share with the
conversations themselves: what the model is shown to choose a tool (`tool_choice.py`) never stands in a conversation,
so the replies are what they would be without tools, and each question reads only its own sentence anew.

Threads: the event loop only. Questions wait for each other, first come, first served.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError, EngineError
from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Claim, Job, claimed, current_claim
from antiphon.think.argument_grammar import argument_grammar
from antiphon.think.completion import Completion
from antiphon.think.language_model import AUTO, REQUIRED
from antiphon.think.option_odds import option_odds
from antiphon.think.slots import SlotTable
from antiphon.think.tool_choice import (
    IDLE_SENTENCES,
    LEAST_EVIDENCE,
    ToolChoice,
    leanings_of,
    sentence_to_judge,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from antiphon.core.flow import Message, ToolSpec
    from antiphon.scheduling.lanes import Lane
    from antiphon.think.completion_server import Completed, CompletionServer

_CANDIDATES = 500  # whose odds are told; a name beyond them counts as the last of them
_LONGEST_ARGUMENTS_TOKENS = 160
_ROOM_TOKENS = 320  # for the sentence and the arguments
_BELTS_KEPT = 32  # sets of tools whose leanings are known; the oldest is forgotten


class ToolAsker:
    """Asks one model; shared by all conversations."""

    def __init__(
        self,
        server: CompletionServer,
        lane: Lane,
        at_work: set[Completion],
        *,
        slot: int,
        context_tokens: int,
        copies: bool,
    ) -> None:
        """`copies`: arguments are made of the caller's own words."""
        self._server = server
        self._lane = lane
        self._at_work = at_work
        self._slot = slot
        self._context_tokens = context_tokens
        self._copies = copies
        self._turns = SlotTable(1)
        self._claim = Claim()
        self._askers: list[Claim] = []  # whose turn it is, and who wait for theirs
        self._known: dict[str, _Belt] = {}

    async def read_ahead(
        self, messages: Sequence[Message], specs: Sequence[ToolSpec], *, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Get to know the tools if they are new, and read what the caller has said so far, for as long as `is_wanted`.

        Raises: as `choose`.
        """
        async with self._turn():
            belt = await self._belt(ToolChoice(tuple(specs)))
            while not belt.is_learnt and is_wanted():
                await self._learn_next(belt)
            if is_wanted():
                await self._ask({"prompt": belt.choice.begun(sentence_to_judge(messages)), "n_predict": 1})

    async def choose(
        self, messages: Sequence[Message], specs: Sequence[ToolSpec], tool_choice: str = AUTO
    ) -> tuple[str, str] | None:
        """The name of the tool that the caller's last words need and the arguments as JSON; None if they need none.

        Raises:
            CallerError: the tools are too many for the model's context.
            EngineError: the model failed.
        """
        sentence = sentence_to_judge(messages)
        async with self._turn():
            name: str | None = tool_choice
            if tool_choice in {AUTO, REQUIRED}:
                evidence = await self._evidence(sentence, specs)
                most = max(evidence)
                if tool_choice == AUTO and most < LEAST_EVIDENCE:
                    return None
                name = specs[evidence.index(most)].name
            spec = next(spec for spec in specs if spec.name == name)
            return spec.name, await self._arguments(sentence, specs, spec)

    async def evidence(self, messages: Sequence[Message], specs: Sequence[ToolSpec]) -> tuple[float, ...]:
        """What speaks for each tool, in nats; `choose` takes one from LEAST_EVIDENCE on.

        Raises: as `choose`.
        """
        async with self._turn():
            return await self._evidence(sentence_to_judge(messages), specs)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """The place in the cache for one question; whoever has it is as urgent as the most urgent who waits for it."""
        asker = current_claim()
        self._askers.append(asker)
        self._hurry()
        turn = None
        try:
            turn = await self._turns.acquire(self)
            with claimed(self._claim):
                yield
        finally:
            self._askers.remove(asker)
            self._hurry()
            if turn is not None:
                self._turns.release(turn)

    def _hurry(self) -> None:
        first = min(self._askers, key=lambda asker: asker.urgency, default=None)
        if first is not None:
            self._claim.caller, self._claim.turn = first.caller, first.turn
            self._claim.urgency, self._claim.deadline_ns = first.urgency, first.deadline_ns

    async def _evidence(self, sentence: str, specs: Sequence[ToolSpec]) -> tuple[float, ...]:
        belt = await self._belt(ToolChoice(tuple(specs)))
        while not belt.is_learnt:
            await self._learn_next(belt)
        odds = await self._odds(belt, sentence)
        return belt.choice.evidence(sentence, odds, leanings_of(belt.idle_odds))

    async def _arguments(self, sentence: str, specs: Sequence[ToolSpec], spec: ToolSpec) -> str:
        choice = ToolChoice(tuple(specs))
        grammar = argument_grammar(spec.parameters, sentence if self._copies else "")
        wanted = {"n_predict": _LONGEST_ARGUMENTS_TOKENS, "grammar": grammar}
        steps = await self._ask({"prompt": choice.arguments(sentence, spec.name), **wanted})
        return "".join(step.text for step in steps).strip()

    async def _belt(self, choice: ToolChoice) -> _Belt:
        known = self._known.get(choice.head)
        if known is not None:
            return known
        texts = (choice.head, *choice.options)
        head, *options = [await asyncio.to_thread(self._server.tokens, text) for text in texts]
        if len(head) > self._context_tokens - _ROOM_TOKENS:
            raise CallerError(
                f"the {len(choice.specs)} tools take {len(head)} tokens of the language model's context to describe",
                hint="shorten the descriptions or raise capacity.context_tokens",
            )
        if len(self._known) >= _BELTS_KEPT:
            self._known.pop(next(iter(self._known)))
        belt = self._known[choice.head] = _Belt(choice, options)
        return belt

    async def _learn_next(self, belt: _Belt) -> None:
        belt.idle_odds.append(await self._odds(belt, IDLE_SENTENCES[len(belt.idle_odds)]))

    async def _odds(self, belt: _Belt, sentence: str) -> list[float]:
        question = belt.choice.question(sentence)
        asking = option_odds(belt.options)
        likely: dict[int, float] | None = None
        while True:
            try:
                begun = asking.send(likely) if likely is not None else next(asking)
            except StopIteration as done:
                return list(done.value)
            prompt: object = [question, *begun] if begun else question
            steps = await self._ask({"prompt": prompt, "n_predict": 1, "n_probs": _CANDIDATES})
            step = next((step for step in steps if step.candidates), None)
            if step is None:
                raise EngineError("the language model was closed while a tool was being chosen")
            odds = (odds for _, odds in step.candidates)
            likely = dict(zip(step.candidate_ids, odds, strict=True))

    async def _ask(self, wanted: dict[str, object]) -> list[Completed]:
        request = {"cache_prompt": True, "temperature": 0.0, "id_slot": self._slot, **wanted}
        completion = Completion(self._server, self._lane, Job(stage=Stage.THINK), request)
        self._at_work.add(completion)
        completion.when_done(lambda: self._at_work.discard(completion))
        try:
            return [step async for step in completion.steps()]
        finally:
            await completion.stop()


class _Belt:
    """What is known of one set of tools."""

    def __init__(self, choice: ToolChoice, options: Sequence[tuple[int, ...]]) -> None:
        self.choice = choice
        self.options = options  # as tokens
        self.idle_odds: list[list[float]] = []  # of the first of IDLE_SENTENCES

    @property
    def is_learnt(self) -> bool:
        return len(self.idle_odds) == len(IDLE_SENTENCES)
