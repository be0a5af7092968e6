"""Programs that were written for OpenAI's server talk to ours: the same file, four ways, over a real socket."""

from __future__ import annotations

import wave
from typing import TYPE_CHECKING

import pytest
from tests.clients.barista_double import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.conftest import Server
    from tests.think.chat_server_double import LoopbackServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(300)]

clients = pytest.mark.parametrize("client", ["openai_async", "openai_sync", "openai_agents", "pipecat_service"])


@clients
def test_a_spoken_turn(client: str, server: Server, clip: Path) -> None:
    """The order is understood and answered aloud, by the models that ship; what was played is what was sent."""
    came = server.call(client, clip)

    assert ([], True) == (came["errors"], came["is_done"])
    # on a machine that is too slow the order's pause can end a turn, and the rest of it comes as another
    assert {"triple", "shot", "cappuccino", "sugar", "milk"} <= _words(" ".join(came["transcripts"]))
    answer = came["replies"][-1]
    assert answer["text"]
    assert ("completed", 0) == (answer["status"], answer["late_ms"])
    assert answer["latency_ms"] > 0
    assert answer["sound_ms"] > 300
    with wave.open(str(server.folder / "reply.wav")) as sound:
        written_ms = sound.getnframes() * 1000 // sound.getframerate()
    assert written_ms == pytest.approx(sum(reply["sound_ms"] for reply in came["replies"]), abs=5)


@clients
def test_a_forced_tool(client: str, server: Server, clip: Path) -> None:
    """The model has to use the tool, the client runs it, and a reply follows."""
    came = server.call(client, clip, "--tool", "forced")

    assert ([], True) == (came["errors"], came["is_done"])
    (call,) = came["calls"]
    assert "look_up_price" == call["name"]
    assert "drink" in call["arguments"]
    answer = came["replies"][-1]
    assert answer["text"]
    assert ("completed", False) == (answer["status"], answer["is_call"])


@clients
def test_a_tool_that_the_model_wants(client: str, scripted_server: Server, clip: Path) -> None:
    """The call's arguments are the model's, and what the tool says is spoken."""
    came = scripted_server.call(client, clip, "--tool", "free")

    assert ([], True) == (came["errors"], came["is_done"])
    (call,) = came["calls"]
    assert {"name": "look_up_price", "output": "A cappuccino is three dollars."} == {
        name: call[name] for name in ("name", "output")
    }
    # Pipecat hands a tool's text over as JSON
    assert "A cappuccino is three dollars." == came["replies"][-1]["text"].strip().strip('"')


@clients
def test_an_interruption(
    client: str, scripted_server: Server, language_model: LoopbackServer, clip: Path, short_clip: Path
) -> None:
    """A second order over the reply to the first: that reply ends, no sound of it follows, and what was not heard is
    not remembered."""
    came = scripted_server.call(client, clip, "--interrupt", str(short_clip))

    assert ([], True) == (came["errors"], came["is_done"])
    cut, answer = came["replies"][-2:]
    assert 0 == cut["late_ms"]
    # Pipecat tells a reply that ended early from a whole one only if its own buffer was not played out yet
    assert cut["status"] in ({"cancelled", "completed"} if client == "pipecat_service" else {"cancelled"})
    assert "Skim milk it is." == answer["text"].strip()
    assert ("completed", 0) == (answer["status"], answer["late_ms"])
    assert 2 == len(came["transcripts"])
    messages = [asked.body["messages"] for asked in language_model.asked if "messages" in asked.body][-1]
    (remembered,) = [
        message["content"] for message in messages if message["role"] == "assistant" and "triple" in message["content"]
    ]
    assert len(remembered) < len(LONG)
    assert _words(remembered) <= _words(LONG)


def _words(text: str) -> set[str]:
    return {word.strip(".,!?-…") for word in text.lower().split()} - {""}
