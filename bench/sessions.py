"""Opens and drops hundreds of sessions on a real server, most of them rudely, and sees whether it keeps anything.

Regime: `antiphon serve examples/barista.py` with real models as a process of its own, loopback, four sessions at once.
A session connects, changes its settings, appends a second of speech from the corpus, has it answered, and leaves at one
of five stages (after the upgrade, while it appends, during recognition, during the reply, after the reply) in one of
three ways: a TCP reset, a connection that is closed without a word, a close by the book. All fifteen take turns.

Memory, file descriptors, threads and asyncio tasks are counted each time that 50 more sessions are over and nobody is
there. Goal: after 500 sessions the server holds at most 5 % more than after 50, and not one descriptor, thread or task
more. What would falsify a run: sessions that did not reach their stage (`missed`), or that the server failed on.
Memory does not depend on who else uses the machine, so load is told and voids nothing.
With --trace the server traces Python's allocations from the first count on, which shows where it grew.

Takes about 6 minutes for 500 sessions on two cores.

Usage: python bench/sessions.py [--sessions N] [--trace] [--set KEY=VALUE] [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import socket
import struct
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from antiphon.audio.encoding import to_int16
from antiphon.audio.files import read, room_tone
from antiphon.audio.resample import resample
from antiphon.lab.machine import Load, fingerprint
from server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

ROOT = Path(__file__).parents[1]
RATE_HZ = 24_000
CHUNK_SAMPLES = RATE_HZ // 10
STAGES = ("after the upgrade", "while appending", "during recognition", "during the reply", "after the reply")
WAYS = ("reset", "cut", "close")
AT_ONCE = 4
FIRST = 50  # sessions that fill what is filled once
MOST_TRIES = 100  # of a session that finds no place, a tenth of a second apart
PATIENCE_S = 30.0  # for any one event
REPLY_TOKENS = 8  # about two seconds, for a reply is sent no faster than it is heard
COUNTED = ("fds", "threads", "tasks")  # of which there shall be no more
EMPTY_S = 10.0  # for the last session to be gone


@dataclass(slots=True)
class Point:
    """What the server held after so many sessions, with nobody there."""

    sessions: int
    seconds: float
    rss_mib: float
    peak_mib: float
    threads: int
    fds: int
    tasks: int
    objects: int


@dataclass(slots=True)
class Run:
    """What became of the sessions."""

    began: float = field(default_factory=time.monotonic)
    done: Counter[str] = field(default_factory=Counter)  # by stage and way
    missed: list[str] = field(default_factory=list)
    refused: int = 0  # tries that found no place, as a session before was still being cleared away
    points: list[Point] = field(default_factory=list)


def read_speech(corpus: Path, count: int = 20) -> list[npt.NDArray[np.int16]]:
    """A second of each of some clean clips' speech, and a second of their rooms."""
    lines = [json.loads(line) for line in (corpus / "manifest.jsonl").read_text().splitlines()]
    found = []
    for line in [line for line in lines if line["kind"] == "clean"][:count]:
        pcm, rate_hz = read(corpus / line["file"])
        start = round(line["speech_start_s"] * rate_hz)
        rest = np.resize(room_tone(pcm, rate_hz), rate_hz)
        found.append(to_int16(resample(np.concatenate([pcm[start : start + rate_hz], rest]), rate_hz, RATE_HZ)))
    return found


async def hold(url: str, number: int, speech: npt.NDArray[np.int16]) -> None:
    """One session, up to the stage that its number says, and away.

    Raises:
        TimeoutError, ConnectionClosed: it did not get there.
    """
    stage, way = number % len(STAGES), WAYS[number // len(STAGES) % len(WAYS)]
    line = await connect(url, compression=None, max_size=2**22)
    try:
        await _go_on_to(stage, line, speech)
    except BaseException:
        line.transport.abort()
        raise
    await leave(line, way)


async def _go_on_to(stage: int, line: ClientConnection, speech: npt.NDArray[np.int16]) -> None:
    await _until(line, "session.created")
    if stage == 0:
        return
    await line.send(json.dumps({"type": "session.update", "session": settings(by_hand=stage >= 3)}))
    await _until(line, "session.updated")
    for part in _parts(speech[: RATE_HZ // 2] if stage == 1 else speech):
        await line.send(json.dumps({"type": "input_audio_buffer.append", "audio": part}))
    if stage == 2:  # the voice has stopped: its words are looked for
        await _until(line, "input_audio_buffer.speech_started")
    if stage >= 3:
        await line.send(json.dumps({"type": "input_audio_buffer.commit"}))
        await line.send(json.dumps({"type": "response.create"}))
        await _until(line, "response.output_audio.delta" if stage == 3 else "response.done")


def settings(*, by_hand: bool) -> dict[str, object]:
    """A session's, as a client would set them."""
    heard = {
        "format": {"type": "audio/pcm", "rate": RATE_HZ},
        "turn_detection": None if by_hand else {"type": "semantic_vad"},
    }
    return {"type": "realtime", "max_output_tokens": REPLY_TOKENS, "audio": {"input": heard}}


async def leave(line: ClientConnection, way: str) -> None:
    """End the connection in this way."""
    if way == "close":
        await line.close()
        return
    if way == "reset" and not line.transport.is_closing():
        raw = line.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.transport.abort()
    await line.wait_closed()


async def _until(line: ClientConnection, kind: str) -> None:
    """Read up to an event of this kind."""
    async with asyncio.timeout(PATIENCE_S):
        while json.loads(await line.recv())["type"] != kind:
            pass


def _parts(pcm: npt.NDArray[np.int16]) -> Iterator[str]:
    for start in range(0, len(pcm), CHUNK_SAMPLES):
        yield base64.b64encode(pcm[start : start + CHUNK_SAMPLES].astype("<i2").tobytes()).decode()


async def hold_many(url: str, numbers: range, speech: list[npt.NDArray[np.int16]], run: Run) -> None:
    """These sessions, AT_ONCE of them at a time."""
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            name = f"{STAGES[number % len(STAGES)]}, {WAYS[number // len(STAGES) % len(WAYS)]}"
            for _ in range(MOST_TRIES):
                try:
                    await hold(url, number, speech[number % len(speech)])
                    run.done[name] += 1
                    break
                except ConnectionClosed as error:
                    if error.rcvd is None or error.rcvd.code != 1013:
                        run.missed.append(f"{number} {name}: {type(error).__name__}")
                        break
                    run.refused += 1
                    await asyncio.sleep(0.1)
                except TimeoutError:
                    run.missed.append(f"{number} {name}: no event for {PATIENCE_S:g} s")
                    break
            else:
                run.missed.append(f"{number} {name}: no place")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())


async def take_point(server: ServerProcess, sessions: int, run: Run) -> None:
    """Wait until nobody is there, and count."""
    async with asyncio.timeout(EMPTY_S):
        while (await server.metrics())["antiphon_sessions_open"]:  # noqa: ASYNC110 - nothing tells from outside
            await asyncio.sleep(0.1)
    await asyncio.sleep(2.0)  # for connections that linger, see PARTING_S
    counts = await server.ask("counts")
    facts = server.facts()
    run.points.append(
        Point(
            sessions=sessions,
            seconds=round(time.monotonic() - run.began, 1),
            rss_mib=facts.rss_mib,
            peak_mib=facts.peak_mib,
            threads=facts.threads,
            fds=facts.fds,
            tasks=int(str(counts["tasks"])),
            objects=int(str(counts["objects"])),
        )
    )
    print(asdict(run.points[-1]), file=sys.stderr, flush=True)


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    speech = read_speech(arguments.corpus)
    load, run = Load(), Run()
    sets = ("scheduling.admission=false", *arguments.set)  # whom the cores have no time for leaves nothing behind
    flags = [str(arguments.agent), *(word for one in sets for word in ("--set", one))]
    step = min(FIRST, arguments.sessions)
    grown: dict[str, object] = {}
    async with ServerProcess(flags, program=[str(Path(__file__).with_name("watched_server.py"))]) as server:
        await take_point(server, 0, run)
        for start in range(0, arguments.sessions, step):
            end = min(start + step, arguments.sessions)
            await hold_many(server.url, range(start, end), speech, run)
            await take_point(server, end, run)
            if arguments.trace and start == 0:
                await server.ask("trace")
        if arguments.trace:
            grown = await server.ask("grown")
        collected = await server.ask("collect")
        held_mib = server.facts().rss_mib
        ended = {name: value for name, value in (await server.metrics()).items() if "sessions_ended_total{" in name}
        failed = [line for line in server.log_lines() if line.get("level") == "error" or line["event"] == "unreadable"]
    first, last = run.points[1], run.points[-1]
    more = {name: getattr(last, name) - getattr(first, name) for name in (*COUNTED, "objects")}
    return {
        "schema": "antiphon.sessions/1",
        "command": " ".join(sys.argv),
        "machine": fingerprint(),
        "load": load.report(),
        "is_valid": not run.missed and not failed,
        "set": arguments.set,
        "seconds": round(time.monotonic() - run.began, 1),
        "growth": last.rss_mib / first.rss_mib - 1,
        "goal_met": last.rss_mib <= 1.05 * first.rss_mib and not any(more[name] > 0 for name in COUNTED),
        "more": more,
        "rss_after_giving_back_mib": held_mib,  # at the end, garbage collected and malloc's free memory returned
        "collected": collected,
        "done": dict(run.done),
        "missed": run.missed,
        "refused": run.refused,
        "ended": ended,
        "failed": failed,
        "grown": grown,
        "points": [asdict(point) for point in run.points],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--agent", type=Path, default=ROOT / "examples" / "barista.py")
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--trace", action="store_true", help="see where Python's own memory grows")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "sessions.json")
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments))
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key != "points"}, indent=1))


if __name__ == "__main__":
    main()
