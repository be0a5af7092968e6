"""What every language model keeps to, the double and the real engine alike."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from antiphon_think_doubles import ScriptedModel, pieces
from tests.think.chat_server_double import LoopbackServer, parrot

from antiphon.core.errors import AntiphonError, CallerError, EngineError
from antiphon.core.flow import Message, ToolSpec
from antiphon.scheduling.lanes import ThreadLane
from antiphon.think.chat_settings import ChatServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from antiphon.gpu.engine_lane import Gpu
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
        pytest.param("torch", marks=[pytest.mark.model, pytest.mark.slow]),
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
    if request.param == "torch":
        pytest.importorskip("torch", reason="needs the environment that scripts/gpu makes")
    from antiphon.think.llama import LlamaModel

    path = request.getfixturevalue("smollm2_file")
    lane = ThreadLane("test-llm", threads=2)
    loaded: list[LlamaModel] = []
    gpus: list[Gpu] = []

    def load_one() -> LlamaModel:
        if request.param == "torch":
            from antiphon.gpu.engine_lane import open_gpu
            from antiphon.think.llama_torch import load_torch_model

            gpus.append(open_gpu("cpu"))
            loaded.append(load_torch_model(path, lane=lane, conversations=2, context_tokens=512, gpu=gpus[-1]))
        else:
            loaded.append(LlamaModel.load(path, lane=lane, threads=1, conversations=2, context_tokens=512))
        return loaded[-1]

    yield load_one
    for model in loaded:
        model.close()
    lane.close()
    for gpu in gpus:
        gpu.close()


def asked_once(url: str) -> LanguageModel:
    from antiphon.think.chat_server import ChatServer

    model = ChatServer.load(url, settings=ChatServerSettings(end_mass_ms=5000))
    with ThreadPoolExecutor() as elsewhere:  # one test loads within its loop
        elsewhere.submit(asyncio.run, model.warm_up()).result(10)
    return model


@pytest.fixture(scope="module")
def model(load) -> LanguageModel:
    return load()


@pytest.fixture(scope="module")
def goer(model) -> LanguageModel:
    """The model, if it can go on with a reply that has begun."""
    if not model.can_go_on:
        pytest.skip("this model says that it cannot go on")
    return model


async def read(
    thinking: Thinking, messages: Sequence[Message], *, max_tokens: int = 24, begins_with: str = "", **tools: object
) -> list[str]:
    writing = thinking.write(messages, max_tokens=max_tokens, begins_with=begins_with, **tools)
    async with aclosing(writing) as reply:
        return [piece async for piece in reply]


def cuts(pieces: Sequence[str]) -> list[int]:
    """Some places between two pieces where a word begins."""
    borders = [place for place in range(1, len(pieces)) if pieces[place][0].isspace()]
    assert len(borders) > 4
    return [borders[0], borders[2], borders[len(borders) // 2], borders[-1]]


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


def test_going_on_gives_the_reply_that_nobody_interrupted(goer):
    """At whichever border it is cut, in the same conversation or in another, and to the same end."""

    async def scenario() -> tuple[list[str], list[tuple[int, str]]]:
        thinking = goer.open()
        whole = await read(thinking, LATTE)
        joined = []
        for place in cuts(whole):
            begun = "".join(whole[:place])
            for at_work in (thinking, goer.open()):
                rest = await read(at_work, LATTE, max_tokens=24 - place, begins_with=begun)
                joined.append((place, begun + "".join(rest)))
        return whole, joined

    whole, joined = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert [(place, "".join(whole)) for place in cuts(whole) for _ in range(2)] == joined


def test_a_space_at_the_cut_is_neither_lost_nor_doubled(goer):
    """Behind a space that was written already comes the word."""

    async def scenario() -> tuple[str, list[str]]:
        thinking = goer.open()
        whole = await read(thinking, LATTE)
        joined = []
        for place in cuts(whole):
            begun = "".join(whole[:place]) + whole[place][0]
            rest = await read(thinking, LATTE, max_tokens=24 - place, begins_with=begun)
            joined.append(begun + "".join(rest))
        return "".join(whole), joined

    whole, joined = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert [whole] * 4 == joined


def test_behind_half_a_word_it_goes_on(goer):
    """The tokens may be others than those of the whole word, but what comes joins, and no piece is empty."""

    async def scenario() -> list[tuple[str, list[str]]]:
        thinking = goer.open()
        text = "".join(await read(thinking, LATTE))
        words = [match.start() for match in re.finditer(r"\b\w{4,}", text)]
        halves = [text[: start + 2] for start in words[:3]]
        return [(begun, await read(thinking, LATTE, max_tokens=12, begins_with=begun)) for begun in halves]

    went_on = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert len(went_on) > 1
    for begun, rest in went_on:
        assert rest
        assert all(rest)
        assert "  " not in begun + "".join(rest)


def test_going_on_is_no_longer_than_asked(goer):
    """`max_tokens` and the count are of what is new."""

    async def scenario() -> tuple[list[str], list[str], int, int]:
        thinking = goer.open()
        whole = await read(thinking, LATTE)
        read_whole = thinking.usage.input_tokens
        place = cuts(whole)[1]
        rest = await read(thinking, LATTE, max_tokens=2, begins_with="".join(whole[:place]))
        assert thinking.usage.output_tokens == len(rest)
        return whole[place : place + 2], rest, read_whole, thinking.usage.input_tokens

    expected, rest, read_whole, read_again = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert expected == rest
    assert 0 < read_whole <= read_again


def test_behind_a_reply_that_is_whole_nothing_comes(goer):
    """Its end is its end."""

    async def scenario() -> tuple[int, list[str]]:
        thinking = goer.open()
        whole = await read(thinking, LATTE, max_tokens=120)
        return len(whole), await read(thinking, LATTE, max_tokens=20, begins_with="".join(whole))

    pieces, rest = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert pieces < 120
    assert [] == rest


def test_a_reply_that_was_stopped_can_be_gone_on_with(goer):
    """What came before the stop and what comes now are the whole reply."""

    async def scenario() -> tuple[str, str]:
        thinking = goer.open()
        begun = ""
        async with aclosing(thinking.write(LATTE, max_tokens=24)) as reply:
            async for piece in reply:
                begun += piece
                if len(begun.split()) > 3:
                    break
        taken = len(begun.split())
        whole = await read(goer.open(), LATTE, max_tokens=16)
        rest = await read(thinking, LATTE, max_tokens=16, begins_with=begun)
        assert taken < len("".join(whole).split())
        return "".join(whole), begun + "".join(rest)

    whole, joined = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert joined.startswith(whole)


def test_a_beginning_may_have_been_written_for_other_words(goer):
    """The caller was heard a little differently, and the reply stays one text."""
    heard = (SYSTEM, Message("user", "I would like a large latte with oat milk please thank you."))

    async def scenario() -> tuple[str, list[str]]:
        thinking = goer.open()
        begun = "".join((await read(thinking, LATTE))[:5])
        return begun, await read(thinking, heard, begins_with=begun)

    begun, rest = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert rest
    assert "  " not in begun + "".join(rest)


def test_who_goes_on_calls_no_tool(goer):
    """Whatever is asked for; the text is the one without tools."""
    tool = ToolSpec(name="make_latte", description="Make a latte.", parameters={"type": "object", "properties": {}})

    async def scenario() -> tuple[list[str], list[list[str]]]:
        thinking = goer.open()
        begun = "".join((await read(thinking, LATTE))[:4])
        plain = await read(thinking, LATTE, begins_with=begun)
        choices = ("auto", "none", "required", "make_latte")
        return plain, [
            await read(thinking, LATTE, begins_with=begun, tools=(tool,), tool_choice=choice) for choice in choices
        ]

    plain, offered = asyncio.run(asyncio.wait_for(scenario(), 60))

    assert plain
    assert [plain] * 4 == offered


def test_who_cannot_go_on_says_what_to_do(model):
    """No server is guessed at: the error names the remedy, and without a beginning all is as ever."""
    if model.can_go_on:
        assert asyncio.run(read(model.open(), LATTE, begins_with="Sure"))
        return
    with pytest.raises(CallerError, match="leave begins_with out"):
        asyncio.run(read(model.open(), LATTE, begins_with="Sure"))

    assert asyncio.run(read(model.open(), LATTE, begins_with=""))


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
