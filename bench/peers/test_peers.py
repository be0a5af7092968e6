"""Servers side by side: the same clips for all, blocks in turn, and one result that adds nothing up wrongly.

Run by hand: `pytest bench/peers`. Nothing here needs a peer's environment.
"""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from merging import merged, merged_load, table
from model_server import SpeechDesk
from processes import Watch, free_port, running
from run import Account, cut, turned, write_corpus
from settings import AGENT, SERVERS, Models

from antiphon.agent import read_agent
from antiphon.core.errors import CallerError, EngineError, PeerError
from antiphon.core.flow import SpeechPiece, TextChunk
from antiphon.lab.clips import read_corpus
from antiphon.lab.result import Outcome, Run, Turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.unit

QUIET = {"steal": 0.0, "busy_by_others": 0.0, "ticks": 100}


def block(*v2v_ms: float, load: dict[str, float] = QUIET, name: str = "a") -> Run:
    turns = tuple(
        Turn(
            clip=f"{place}.flac",
            kind="clean",
            outcome=Outcome.ANSWERED,
            started_s=float(place),
            v2v_ms=ms,
            reply_ms=place * 600.0,
        )
        for place, ms in enumerate(v2v_ms)
    )
    return Run(name=name, scenario="single", settings={}, load=load, ruler={"p99_ms": 1.0}, turns=turns, notes=("n",))


def test_blocks_become_one_run() -> None:
    """Turns are counted on, the ruler is as bad as in its worst block, and a note is told once."""
    worse = replace(block(300.0), ruler={"p99_ms": 4.0})
    run = merged([block(100.0, 200.0), worse], name="b", settings={"x": 1}, notes=["m"])

    assert [turn.number for turn in run.turns] == [0, 1, 2]
    assert [turn.started_s for turn in run.turns] == [0.0, 1.0, 2.0]
    assert (run.ruler, run.notes, run.name, run.settings) == ({"p99_ms": 4.0}, ("n", "m"), "b", {"x": 1})


def test_one_void_block_makes_the_whole_void() -> None:
    """Shares are means by time, but a long quiet run does not hide a short noisy block."""
    noisy = {"steal": 0.0, "busy_by_others": 1.0, "ticks": 100}
    load = merged_load([{**QUIET, "ticks": 9900}, noisy])

    assert load == {"steal": 0.0, "busy_by_others": 0.01, "void_blocks": 1, "is_valid": False}
    assert merged_load([QUIET, QUIET])["is_valid"] is True


def test_the_table_says_what_is_void_and_how_much_slower_a_peer_is() -> None:
    ours = merged([block(*range(100, 112))], name="ours", settings={})
    noisy = {"steal": 0.0, "busy_by_others": 1.0, "ticks": 100}
    theirs = merged([block(*range(200, 224, 2), load=noisy)], name="theirs", settings={})
    text = table([ours, theirs])

    assert "Void by the load of the machine: theirs." in text
    assert "| theirs | 12 | clean | 210 ms | 222 ms | 222 ms | 0 of 12 | 0 | 0 | 1 |  | 2.00 (" in text
    assert "| ours | 12 | clean | 105 ms | 111 ms | 111 ms | 0 of 12 | 0 | 0 | 1 |  |  |" in text


def test_each_block_has_its_share_of_each_kind(tmp_path: Path) -> None:
    """No clip is lost or said twice, and a corpus of one block can be read back."""
    for kind in ("clean", "hesitation"):
        for number in range(9):
            (tmp_path / f"{kind}{number}.wav").touch()
    entries = [
        {"file": path.name, "kind": path.stem[:-1], "speech_start_s": 0.5, "speech_end_s": 1.5}
        for path in tmp_path.glob("*.wav")
    ]
    (tmp_path / "manifest.jsonl").write_text("\n".join(map(json.dumps, entries)))
    blocks = cut(Namespace(corpus=tmp_path, kinds="clean, hesitation", blocks=3, clips=7, seed=0))
    write_corpus(blocks[0], tmp_path / "0")

    assert [len(one) for one in blocks] == [6, 4, 4]
    assert len({clip.name for one in blocks for clip in one}) == 14
    assert sorted(clip.name for clip in blocks[0]) == sorted(clip.name for clip in read_corpus(tmp_path / "0"))


def test_every_server_is_first_once() -> None:
    """And what came before it is not always the same."""
    accounts = [Account(SERVERS[name]) for name in list(SERVERS)[:3]]
    orders = [turned(accounts, number) for number in range(3)]

    assert all(sorted(order, key=accounts.index) == accounts for order in orders)
    assert len({tuple(account.server.name for account in order) for order in orders}) == 3


@pytest.mark.parametrize("name", [name for name in SERVERS if name != "antiphon"])
def test_peers_get_the_same_models(name: str) -> None:
    """Recognizer, addresses and instructions stand in each command; the vocabulary where it is taken."""
    found = Models(
        recognizer=Path("/m/whisper"),
        turn_end=Path("/m/smart-turn.onnx"),
        language_model_url="http://l/v1",
        voice_url="http://v/v1",
        agent=read_agent(AGENT),
    )
    command = " ".join(SERVERS[name].command(found, 1234))

    assert all(part in command for part in ("/m/whisper", "http://l/v1", "http://v/v1", "1234"))
    assert found.agent.instructions in command
    assert SERVERS[name].takes_vocabulary == (found.vocabulary in command)


def test_a_missing_environment_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("settings.ENVIRONMENTS", tmp_path)

    with pytest.raises(CallerError, match="no environment of pipecat"):
        _ = SERVERS["pipecat"].python


async def listening(tmp_path: Path, program: str) -> float:
    port = free_port()
    command = [sys.executable, "-c", program, str(port)]
    async with running(command, port=port, variables={"A": "b"}, log=tmp_path / "log") as process:
        watch = Watch([process])
        assert process.rss_mib() > 1
        assert watch.report()["ticks"] >= 1
        return process.cpu_s()


def test_a_server_is_waited_for_and_ended(tmp_path: Path) -> None:
    program = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"

    assert 0 <= asyncio.run(listening(tmp_path, program)) < 30


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="ended with code 1") as caught:
        asyncio.run(listening(tmp_path, "raise SystemExit('no such thing')"))

    assert "no such thing" in str(caught.value.hint)


class Voice:
    """Says two pieces, or none of what has no letters."""

    async def speak(self, chunk: TextChunk) -> AsyncIterator[SpeechPiece]:
        if not chunk.text.isascii():
            raise EngineError("no sound")
        for value in (0.5, -0.5):
            yield SpeechPiece(pcm=np.full(3, value, np.float32), rate_hz=24_000, chunk=chunk)


async def asked(*texts: str) -> list[bytes]:
    """The sound of each text, all asked for on one connection."""
    server = await asyncio.start_server(SpeechDesk(Voice()).serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    sounds = []
    for text in texts:
        body = json.dumps({"input": text}).encode()
        writer.write(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await reader.readuntil(b"\r\n\r\n")
        sound = b""
        while size := int(await reader.readline(), 16):
            sound += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        sounds.append(sound)
    writer.close()
    server.close()
    return sounds


def test_speech_over_http() -> None:
    """Piece by piece as PCM, and again on the same line; nothing where there is nothing to say."""
    spoken = np.array([16384] * 3 + [-16384] * 3, "<i2").tobytes()

    assert [spoken, b"", spoken] == asyncio.run(asked("Hello.", "é", "Again."))
