"""What goes wrong at a server of others, and what comes of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.think.chat_server_double import (
    LAST_PART,
    Act,
    delta,
    event,
    head,
    part,
    reply,
    said,
    whole,
)
from tests.think.chat_server_talk import (
    ASK,
    KEY,
    SECRET,
    chat,
    posts,
    read,
    refused,
    scripted,
    written,
)
from tests.virtual_time import run

from antiphon.core.errors import PeerError
from antiphon.think.chat_failure import ServerFailure

if TYPE_CHECKING:
    from antiphon.think.language_model import Written

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("status", "body", "message", "retryable"),
    [
        (400, {"error": {"message": SECRET, "param": "messages[0].content"}}, "(field messages)", False),
        (400, {"error": {"message": f"'{SECRET}' in field 'max_tokens'"}}, "(field max_tokens)", False),
        (422, {"detail": [{"loc": ["body", "model"], "msg": SECRET}]}, "(field model)", False),
        (422, {"detail": SECRET}, "does not understand the request", False),
        (400, {"error": {"message": f"maximum context length is 9. {SECRET}"}}, "conversation is too long", False),
        (400, {"message": '"auto" requires --enable-auto-tool-choice'}, "was started without tools", False),
        (401, {"error": {"message": f"Incorrect API key {KEY}"}}, "does not accept the key", False),
        (403, {}, "does not accept the key", False),
        (404, {"error": {"message": "The model `x` does not exist"}}, "has no such model", False),
        (404, b"not found", "no such path", False),
        (307, {}, "sends us elsewhere", False),
        (418, [SECRET], "does not understand the request", False),
        (429, {"error": {"code": "insufficient_quota"}}, "quota is used up", False),
        (429, {}, "too many requests", True),
        (500, {"error": {"message": SECRET}}, "it failed", True),
        (502, b"<html>", "it failed", True),
        (503, {"error": {"message": "Loading model"}}, "still loading its model", True),
    ],
)
def test_a_refusal_is_told_in_our_words(status, body, message, retryable):
    """The status, what is known of the reason, the field if the server names one of ours; never its own words."""
    server = scripted(whole(body, status))
    error = refused(server)

    assert f"answers {status}: " in error.message
    assert message in error.message
    assert (retryable, True) == (error.retryable, bool(error.hint))
    assert (3 if retryable else 1) == len(posts(server))


@pytest.mark.parametrize("failure", [whole({}, 503), [Act.CLOSE], [head(), Act.RESET], [head(), LAST_PART]])
def test_a_failure_that_may_pass_is_tried_again(failure):
    """As long as nothing of the reply came."""
    server = scripted(failure, failure, reply(*said("Yes.")))

    assert ["Yes."] == read(server)
    assert 3 == len(posts(server))
    assert refused(scripted(failure, failure, failure, reply(*said("Yes.")))).retryable


def test_the_server_may_say_how_long_to_wait_but_not_too_long():
    """A second is a pause in speech, a minute is none."""

    async def timed(wait: str) -> tuple[float, list[Written]]:
        model = chat(scripted(whole({}, 429, Retry_After=wait), reply(*said("Yes."))))
        return await written(model), asyncio.get_running_loop().time()

    assert (["Yes."], 0.7) == run(timed("0.7"))
    assert (["Yes."], 0.0) == run(timed("0"))
    for wait in ("60", "Wed, 21 Oct 2037 07:28:00 GMT"):
        with pytest.raises(ServerFailure) as caught:
            run(timed(wait))
        assert caught.value.retryable


def test_all_tries_together_keep_to_the_limit():
    """Silence before the first word is one limit, whatever it is made of."""

    async def timed(*acts: bytes | float | Act) -> tuple[str, float]:
        with pytest.raises(PeerError) as caught:
            await written(chat(scripted(list(acts)), first_token_s=3.0, retries=10))
        return caught.value.message.rpartition("server ")[2], asyncio.get_running_loop().time()

    assert ("was silent for 3 s", 3.0) == run(timed(60.0, head()))
    assert ("was silent for 3 s", 3.0) == run(timed(head(), 60.0))
    assert ("was silent for 3 s", 3.0) == run(timed(head(), *[2.0, part(b": ping\n\n")] * 9))
    assert ("was silent for 3 s", 3.0) == run(timed(1.0, Act.CLOSE))


def test_thinking_counts_as_a_beginning_and_silence_is_measured_from_the_last_byte():
    """A model that thinks for long is no stalled one."""
    events = [event(delta(reasoning="Well")), 4.0] * 9
    assert ["Yes."] == read(scripted(reply(*events, *said("Yes."))), stall_s=5.0, first_token_s=1.0)


@pytest.mark.parametrize(
    ("acts", "message"),
    [
        ([3600.0], "fell silent in the middle of a reply for 5 s"),
        ([Act.RESET], "closed the connection in the middle of a reply"),
        ([Act.CLOSE], "closed the connection in the middle of a reply"),
        ([LAST_PART], "closed the connection in the middle of a reply"),
        ([part(event(delta(content="x"))[:-20]), LAST_PART], "closed the connection in the middle of a reply"),
        ([part(event({"error": {"message": SECRET, "code": 500}}))], "failed in the middle of a reply: it failed"),
        ([part(event({"object": "error", "message": SECRET}))], "failed in the middle of a reply: it failed"),
        ([part(b'error: {"error": {"message": "x"}}\n\n')], "failed in the middle of a reply: it failed"),
        ([part(b"data: " + SECRET.encode() + b"\n\n")], "not a JSON object"),
        ([part(b"data: " + b"[" * 100_000 + b"\n\n")], "not a JSON object"),
        ([part(b"data: " + b"x" * 2_000_000)], "an event of more than 1048576 characters"),
    ],
)
def test_a_failure_in_mid_reply_keeps_what_was_said_and_is_no_new_try(acts, message):
    """What came is handed out; the error says that it is not all."""
    server = scripted([head(), part(event(delta(content="Yes, "))), *acts])

    async def half() -> tuple[list[Written], str]:
        pieces: list[Written] = []
        try:
            async for piece in chat(server).open().write(ASK, max_tokens=9):
                pieces.append(piece)  # noqa: PERF401 - what came before the error counts
        except PeerError as error:
            return pieces, str(error)
        return pieces, "whole"

    pieces, told = run(half())
    assert (["Yes, "], 1) == (pieces, len(posts(server)))
    assert message in told
    assert SECRET not in told


def test_an_error_in_the_stream_before_any_word_is_tried_again_if_it_may_pass():
    broken = [event({"error": {"code": code}}) for code in (503, "400")]

    assert ["Yes."] == read(scripted(reply(broken[0]), reply(*said("Yes."))))
    assert not refused(scripted(reply(broken[1]), reply(*said("Yes.")))).retryable


def test_a_page_for_people_is_no_reply():
    """As a wrong path often brings."""
    assert "a page for people" in refused(scripted(whole(b"<html>", kind="text/html"))).message


def test_a_reply_that_is_closed_closes_its_response():
    server = scripted(reply(*said("a", "b"), 60.0))

    async def closed() -> int:
        pieces = chat(server).open().write(ASK, max_tokens=9)
        assert "a" == await anext(pieces)
        await pieces.aclose()
        return server.closed

    assert 2 == run(closed())  # the list of models is the other
