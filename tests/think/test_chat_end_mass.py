"""Whether a sentence ends, asked of a server of others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.think.chat_server_double import (
    Act,
    Asked,
    NoNetwork,
    parrot,
    whole,
)
from tests.think.chat_server_talk import (
    ASK,
    chat,
)
from tests.virtual_time import run

from antiphon.core.flow import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.think.chat_server import ChatServer


pytestmark = pytest.mark.unit


async def warm_mass(model: ChatServer, *texts: str) -> list[float | None]:
    await model.warm_up()
    thinking = model.open()
    return [await thinking.sentence_end_mass([Message("user", text)]) for text in texts]


def test_the_end_of_a_sentence_is_measured_where_the_server_can():
    """A marker that ends the message counts; a final mark of the recognizer does not."""
    server = NoNetwork(parrot)
    model = chat(server)
    cut, end, nothing = run(warm_mass(model, "a tea with", "a tea please.", "..."))

    assert (pytest.approx(0.79, abs=0.01), 0.0, None) == (end, cut, nothing)
    assert ("user", "double") == (model.end_mass_form, model.name)
    last = server.asked[-1].body
    assert [{"role": "user", "content": "a tea please"}] == last["messages"]
    assert (1, True, False) == (last["max_tokens"], last["continue_final_message"], last["add_generation_prompt"])
    assert "stream" not in last


def test_a_server_that_continues_the_assistant_alone_is_asked_from_the_other_side():
    """One that ignores what it does not know would answer instead, which says nothing of the sentence."""

    def script(asked: Asked) -> Sequence[bytes | float | Act]:
        messages = asked.body.get("messages")
        if asked.body.get("logprobs") and messages[-1]["role"] == "user":
            top = [{"token": "I", "logprob": -0.1}]
            return whole({"choices": [{"logprobs": {"content": [{"token": "I", "top_logprobs": top}]}}]})
        return parrot(asked)

    model = chat(NoNetwork(script))

    assert [pytest.approx(0.79, abs=0.01)] == run(warm_mass(model, "a tea please"))
    assert "assistant" == model.end_mass_form


@pytest.mark.parametrize(
    "answer",
    [
        whole({"error": {"message": "Extra inputs are not permitted"}}, 400),
        whole({}, 422),
        whole({}, 500),
        whole({"choices": [{"message": {"content": "x"}}]}),
        whole({"choices": [{"logprobs": None}]}),
        whole({"choices": []}),
        whole([]),
        whole(b"nonsense"),
        [Act.CLOSE],
        [60.0, Act.CLOSE],
    ],
)
def test_a_server_that_cannot_tell_is_not_asked_again(answer):
    """And its replies are none the worse for it."""
    server = NoNetwork(lambda asked: answer if asked.body.get("logprobs") else parrot(asked))
    model = chat(server)

    assert [None, None] == run(warm_mass(model, "a tea please", "a tea please"))
    assert len([asked for asked in server.asked if asked.body.get("logprobs")]) <= 4
    assert "" == model.end_mass_form


def test_an_opinion_that_comes_late_is_done_without():
    """A turn waits 150 ms for it; after three in a row the server is left alone for a minute."""
    slow = [False]

    def script(asked: Asked) -> Sequence[bytes | float | Act]:
        return [60.0, *parrot(asked)] if slow[0] and asked.body.get("logprobs") else parrot(asked)

    server = NoNetwork(script)

    async def late() -> tuple[list[float], float | None]:
        loop = asyncio.get_running_loop()
        model = chat(server)
        await model.warm_up()
        thinking, spent = model.open(), []
        slow[0] = True
        for _ in range(5):
            since = loop.time()
            assert await thinking.sentence_end_mass(ASK) is None
            spent.append(round(loop.time() - since, 3))
        slow[0] = False
        await asyncio.sleep(60)
        return spent, await thinking.sentence_end_mass(ASK)

    spent, mass = run(late())
    assert [0.15, 0.15, 0.15, 0.0, 0.0] == spent
    assert mass is not None
