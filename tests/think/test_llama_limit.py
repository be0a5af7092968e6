"""The model in this process tells whether a reply reached its limit."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from antiphon.core.flow import Message
from antiphon.scheduling.lanes import ThreadLane
from antiphon.think.language_model import KnowsLimit
from antiphon.think.llama import LlamaModel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.model

ASK = (Message("system", "Answer with one word."), Message("user", "Say yes."))


def test_a_reply_tells_whether_it_was_cut(smollm2_file: Path) -> None:
    lane = ThreadLane("test-llm", threads=2)
    model = LlamaModel.load(smollm2_file, lane=lane, threads=1, conversations=1, context_tokens=512)

    async def told() -> list[bool]:
        thinking, found = model.open(), []
        for most in (3, 100, 3):
            async with aclosing(thinking.write(ASK, max_tokens=most)) as pieces:
                async for _ in pieces:
                    pass
            assert isinstance(thinking, KnowsLimit)
            found.append(thinking.reached_limit)
        return found

    try:
        assert asyncio.run(told()) == [True, False, True]
    finally:
        model.close()
        lane.close()
