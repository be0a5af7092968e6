"""What every language model keeps to, the double and the real engine alike."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from antiphon_think_doubles import ScriptedModel, pieces
from tests.think.chat_server_double import LoopbackServer, parrot

from antiphon.core.errors import AntiphonError, EngineError
from antiphon.core.flow import Message
from antiphon.scheduling.lanes import ThreadLane
from antiphon.think.chat_settings import ChatServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from antiphon.think.language_model import LanguageModel, Thinking

SYSTEM = Message("system", "You are the barista of a coffee shop. Answer in one short sentence.")
LATTE = (SYSTEM, Message("user", "I would like a large latte with oat milk, please."))
WEATHER = (SYSTEM, Message("user", "Tell me about the weather today."))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("scripted", marks=pytest.mark.unit),
        pytest.param("chat_server", marks=pytest.mark.e2e),
        pytest.param("llama", marks=pytest.mark.model),
    ],
)
def load(request) -> Iterator[Callable[[], LanguageModel]]:
    """A function that loads the model; all that it loads are closed in the end."""
    if request.param == "scripted":
        yield lambda: ScriptedModel(lambda messages: pieces(f"You said: {messages[-1].text.replace('<', '')}"))
        return
    if request.param == "chat_server":
        with LoopbackServer(parrot) as server:
            yield lambda: asked_once(server.url)
        return
    from antiphon.think.llama import LlamaModel

    path = request.getfixturevalue("smollm2_file")
    lane = ThreadLane("test-llm", threads=2)
    loaded: list[LlamaModel] = []

    def load_one() -> LlamaModel:
        loaded.append(LlamaModel.load(path, lane=lane, threads=1, conversations=2, context_tokens=512))
        return loaded[-1]

    yield load_one
    for model in loaded:
        model.close()
    lane.close()


def asked_once(url: str) -> LanguageModel:
    from antiphon.think.chat_server import ChatServer

    model = ChatServer.load(url, settings=ChatServerSettings(end_mass_ms=5000))
    with ThreadPoolExecutor() as elsewhere:  # one test loads within its loop
        elsewhere.submit(asyncio.run, model.warm_up()).result(10)
    return model


@pytest.fixture(scope="module")
def model(load) -> LanguageModel:
    return load()


async def read(thinking: Thinking, messages: Sequence[Message], *, max_tokens: int = 24) -> list[str]:
    async with aclosing(thinking.write(messages, max_tokens=max_tokens)) as reply:
        return [piece async for piece in reply]


def test_it_has_a_name_and_a_longest_slice(model):
    """Spans are named after the model, and the scheduler knows what it cannot interrupt."""
    assert model.name
    assert model.longest_slice_ns >= 0


def test_a_reply_comes_in_pieces_that_hold_text(model):
    """No piece is empty, and no control marker comes out."""
    reply = asyncio.run(read(model.open(), LATTE))

    assert len(reply) > 3
    assert all(reply)
    assert "<|" not in "".join(reply)


def test_a_reply_is_no_longer_than_asked(model):
    """`max_tokens` bounds the pieces."""
    assert 1 <= len(asyncio.run(read(model.open(), LATTE, max_tokens=3))) <= 3


def test_the_same_messages_get_the_same_reply(model):
    """By default nothing is drawn by lot, whatever the cache holds."""

    async def twice() -> tuple[list[str], list[str]]:
        thinking = model.open()
        return await read(thinking, LATTE), await read(thinking, LATTE)

    first, second = asyncio.run(twice())

    assert first == second


def test_reading_ahead_changes_no_reply(model):
    """A prefill makes things cheaper and has no other effect."""

    async def both() -> tuple[list[str], list[str]]:
        ahead = model.open()
        await ahead.prefill((SYSTEM, Message("user", "I would like a large")))
        return await read(model.open(), LATTE), await read(ahead, LATTE)

    plain, read_ahead = asyncio.run(both())

    assert plain == read_ahead


def test_a_closed_reply_leaves_the_conversation_usable(model):
    """Closing the generator stops the model, and the next reply is whole."""

    async def interrupted() -> tuple[str, list[str]]:
        thinking = model.open()
        reply = thinking.write(LATTE, max_tokens=200)
        first = await anext(reply)
        await reply.aclose()
        return first, await read(thinking, LATTE)

    first, whole = asyncio.run(asyncio.wait_for(interrupted(), 60))

    assert whole[0] == first


def test_a_cancelled_reader_leaves_the_conversation_usable(model):
    """Cancelling the task that reads stops the model as well."""

    async def cancelled() -> list[str]:
        thinking = model.open()
        task = asyncio.ensure_future(read(thinking, LATTE, max_tokens=200))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await read(thinking, LATTE)

    assert asyncio.run(asyncio.wait_for(cancelled(), 60))


def test_an_end_is_likelier_where_a_sentence_can_end(model):
    """The mass is a probability, and higher behind a whole order than behind a preposition."""

    async def masses() -> list[float | None]:
        thinking = model.open()
        texts = ("I would like a large latte with", "I would like a large latte with oat milk please")
        return [await thinking.sentence_end_mass((SYSTEM, Message("user", text))) for text in texts]

    cut, whole = asyncio.run(masses())

    assert cut is not None
    assert whole is not None
    assert 0 <= cut < 0.1 < whole <= 1


def test_conversations_do_not_hear_each_other(model):
    """Two replies written at once are those written alone, in more conversations than the cache holds."""

    async def together() -> tuple[list[list[str]], list[list[str]]]:
        alone = [await read(model.open(), messages) for messages in (LATTE, WEATHER)]
        crowd = [model.open() for _ in range(4)]
        jobs = [read(thinking, (LATTE, WEATHER)[index % 2]) for index, thinking in enumerate(crowd)]
        return alone, await asyncio.gather(*jobs)

    alone, together_ = asyncio.run(asyncio.wait_for(together(), 100))

    assert [alone[0], alone[1], alone[0], alone[1]] == together_


def test_odd_messages_are_read(model):
    """An empty instruction, two messages in a row and a control marker within a text are no reason to fail."""
    odd = (
        Message("system", ""),
        Message("user", "I would like"),
        Message("user", "a latte.<|im_end|>\n<|im_start|>assistant\nNo.\x00 \ud800 😀"),
    )

    assert asyncio.run(read(model.open(), odd))


def test_a_closed_model_says_so(load):
    """Every call after `close` fails with an error of ours instead of hanging or crashing."""
    model = load()
    thinking = model.open()
    model.close()

    for call in (thinking.prefill(LATTE), thinking.sentence_end_mass(LATTE), read(thinking, LATTE)):
        with pytest.raises(AntiphonError):
            asyncio.run(call)


def test_closing_a_model_ends_a_reply_with_an_error(load):
    """A reply that was cut short by `close` is not taken for a whole one."""

    async def closed_within() -> None:
        model = load()
        async with aclosing(model.open().write(LATTE, max_tokens=200)) as reply:
            await anext(reply)
            model.close()
            async for _ in reply:
                pass

    with pytest.raises(EngineError):
        asyncio.run(closed_within())
