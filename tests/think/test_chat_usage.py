"""What a server tells of a reply besides its text: how many tokens it took, and whether it reached its limit."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from tests.think.chat_server_double import delta, event, reply, said, whole
from tests.think.chat_server_talk import ASK, chat, posts, scripted, written
from tests.virtual_time import run

from antiphon.core.errors import PeerError
from antiphon.core.flow import Usage
from antiphon.think.language_model import KnowsLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.think.chat_server_double import Act

    from antiphon.think.chat_server import ChatServer

pytestmark = pytest.mark.unit

TOLD = {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37, "prompt_tokens_details": {"cached_tokens": 20}}
COUNTED = Usage(input_tokens=30, cached_tokens=20, output_tokens=7)
ASKED = {"include_usage": True}


def answer(*events: bytes | float, finish: str = "stop") -> list[bytes | float | Act]:
    """A reply of one word, and what comes behind its end."""
    return reply(event(delta(content="Yes.")), event(delta(finish=finish)), *events, event(b"[DONE]"))


async def told(model: ChatServer, *, max_tokens: int = 50, most: int = 99) -> tuple[str, Usage | None, bool]:
    """A reply's first `most` pieces, and what is known of it then."""
    thinking, pieces = model.open(), []
    async with aclosing(thinking.write(ASK, max_tokens=max_tokens)) as all_:
        async for piece in all_:
            pieces.append(str(piece))
            if len(pieces) == most:
                break
    assert isinstance(thinking, KnowsLimit)
    return "".join(pieces), thinking.usage, thinking.reached_limit


@pytest.mark.parametrize(
    ("acts", "usage"),
    [
        (answer(event({"choices": [], "usage": TOLD})), COUNTED),
        (answer(0.05, event({"choices": [], "usage": TOLD})), COUNTED),
        (
            answer(event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})),
            Usage(input_tokens=3, output_tokens=1),
        ),
        (reply(event({**delta(content="Yes.", finish="stop"), "usage": TOLD})), COUNTED),
        (answer(), None),
        (answer(5.0, event({"choices": [], "usage": TOLD})), None),  # nobody waits for it that long
        (answer(event({"choices": [], "usage": None})), None),
        (answer(event({"choices": [], "usage": {"prompt_tokens": "3", "completion_tokens": 1}})), None),
        (answer(event({"choices": [], "usage": {"prompt_tokens": -3, "completion_tokens": 1}})), None),
        (answer(event({"choices": [], "usage": {"total_tokens": 9}})), None),
    ],
)
def test_a_count_is_the_servers_or_none(acts: Sequence[bytes | float | Act], usage: Usage | None) -> None:
    assert run(told(chat(scripted(acts)))) == ("Yes.", usage, False)


def test_a_reply_that_was_closed_has_no_count() -> None:
    acts = reply(event(delta(content="One ")), 0.1, event(delta(content="two")), event({"choices": [], "usage": TOLD}))
    assert run(told(chat(scripted(acts)), most=1)) == ("One ", None, False)


def test_each_reply_has_its_own_count() -> None:
    """A count that does not come is not the last one's."""
    model = chat(scripted(answer(event({"choices": [], "usage": TOLD})), answer()))

    async def two() -> list[Usage | None]:
        thinking, found = model.open(), []
        for _ in range(2):
            async with aclosing(thinking.write(ASK, max_tokens=9)) as pieces:
                assert [piece async for piece in pieces] == ["Yes."]
            found.append(thinking.usage)
        return found

    assert run(two()) == [COUNTED, None]


@pytest.mark.parametrize(
    "refusal",
    [
        whole({"error": {"message": "Unknown parameter.", "param": "stream_options"}}, 400),
        whole({"error": {"message": "No.", "param": "stream_options.include_usage"}}, 400),
        whole({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}, 422),
    ],
)
def test_a_server_that_refuses_to_count_is_not_asked_again(refusal: Sequence[bytes | float | Act]) -> None:
    """The reply comes nevertheless, and the next conversation's at its first try."""
    server = scripted(refusal, answer())
    model = chat(server)
    assert ["Yes."] == run(written(model))
    assert ["Yes."] == run(written(model))
    assert [asked.body.get("stream_options") for asked in posts(server)] == [ASKED, None, None]


def test_other_refusals_are_not_taken_for_that() -> None:
    server = scripted(whole({"error": {"message": "Unknown parameter.", "param": "messages"}}, 400))
    with pytest.raises(PeerError, match="field messages"):
        run(written(chat(server)))
    assert len(posts(server)) == 1


def test_what_the_settings_say_of_it_stands() -> None:
    server = scripted(answer())
    run(written(chat(server, extra='{"stream_options": {"include_usage": false}}')))
    assert posts(server)[0].body["stream_options"] == {"include_usage": False}


@pytest.mark.parametrize(
    ("acts", "reached"),
    [
        (answer(finish="length"), True),
        (answer(finish="stop"), False),
        (reply(*said("Yes.")), False),
        (reply(event(delta(content="Yes.")), event(b"[DONE]")), False),
    ],
)
def test_a_limit_is_reached_where_the_server_says_so(acts: Sequence[bytes | float | Act], reached: bool) -> None:
    assert run(told(chat(scripted(acts)))) == ("Yes.", None, reached)


def test_a_server_that_pays_no_heed_to_the_limit_has_reached_it() -> None:
    acts = reply(*[event(delta(content="word " * 20))] * 30, event(delta(finish="stop")))
    assert run(told(chat(scripted(acts)), max_tokens=9))[2] is True
