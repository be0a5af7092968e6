"""Whole runs, over real sockets and in real time, with the scripted server at the other end."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile
from tests.lab.fake_server import Answer, Script, on_socket, silence, tone

from antiphon.core.clock import MonotonicClock
from antiphon.core.errors import CallerError, PeerError
from antiphon.lab import loop
from antiphon.lab.measure import measure
from antiphon.lab.own_server import own_server
from antiphon.lab.plan import BenchPlan, Line
from antiphon.lab.result import Outcome, Run, Turn
from antiphon.lab.ruler import try_ruler
from antiphon.lab.schedule import Habits

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.e2e

QUICK = Habits(ruler_turns=0, pause_s=0.0)
BUSY_MS = 400.0  # what a loaded machine may add


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three bursts."""
    lines = []
    for name in ("a", "b", "c"):
        pcm = np.concatenate([silence(100, 16_000), tone(205, 16_000), silence(200, 16_000)])
        soundfile.write(tmp_path / f"{name}.wav", pcm, 16_000)
        lines.append({"file": f"{name}.wav", "speech_start_s": 0.1, "speech_end_s": 0.305, "text": "one latte"})
    (tmp_path / "manifest.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return tmp_path


def run_with(script: Script, corpus: Path, *, habits: Habits = QUICK, **plan: Any) -> tuple[Run, list[Turn]]:
    seen: list[Turn] = []

    async def take(turn: Turn) -> None:
        seen.append(turn)

    async def main() -> Run:
        async with on_socket(script) as url:
            return await measure(BenchPlan(url=url, corpus=corpus, **plan), on_turn=take, habits=habits)

    return loop.run(main()), seen


def test_a_run_holds_all_turns_and_what_they_were_measured_on(corpus: Path) -> None:
    """Each is told when it is over; the whole can be written as JSON."""
    run, seen = run_with(Script(), corpus, turns=3)
    assert tuple(seen) == run.turns
    assert ["a.wav", "b.wav", "c.wav"] == sorted(turn.clip for turn in run.turns)
    for turn in run.turns:
        assert (Outcome.ANSWERED, 0, 2) == (turn.outcome, turn.word_errors, turn.words)
        assert turn.v2v_ms is not None
        assert 300 <= turn.v2v_ms <= 320 + BUSY_MS
    assert {"model", "type", "audio"} == set(run.server)
    assert {"cpu", "cores", "versions"} <= set(run.machine)
    assert {"microphone_p99_ms", "run_cpu_share"} <= set(run.ruler)
    assert "key" not in json.dumps(run.settings).replace("has_key", "")


def test_a_line_that_is_slow_makes_replies_late(corpus: Path) -> None:
    """By its delay there and back."""
    run, _ = run_with(Script(), corpus, turns=1, line=Line(delay_ms=80))
    (turn,) = run.turns
    assert turn.v2v_ms is not None
    assert 460 <= turn.v2v_ms <= 480 + BUSY_MS


def test_a_soak_ends_when_its_time_is_over(corpus: Path) -> None:
    """At the end of a turn."""
    run, _ = run_with(Script(answers=(Answer(sound_ms=(100,)),)), corpus, scenario="soak", soak_minutes=0.1)
    assert 2 <= len(run.turns)
    assert run.turns[-1].started_s < 7.0


def test_warm_up_turns_are_thrown_away(corpus: Path) -> None:
    """The server has answered them, and nobody is told."""
    script = Script()
    run, seen = run_with(script, corpus, turns=1, habits=replace(QUICK, warm_up=1))
    assert (1, 1, 2) == (len(run.turns), len(seen), script.taken)


def test_a_server_that_is_not_there_ends_the_run(corpus: Path) -> None:
    """With one error, not a run full of failures."""

    async def take(_turn: Turn) -> None:
        raise AssertionError

    with pytest.raises(PeerError, match="cannot be reached"):
        loop.run(measure(BenchPlan(url="ws://127.0.0.1:1", corpus=corpus), on_turn=take, habits=QUICK))


def test_what_the_receiver_of_turns_raises_comes_back(corpus: Path) -> None:
    """As it is, and not as a group."""

    async def main() -> Run:
        async with on_socket(Script()) as url:
            return await measure(BenchPlan(url=url, corpus=corpus, turns=1), on_turn=full, habits=QUICK)

    async def full(_turn: Turn) -> None:
        raise CallerError("the disk is full")

    with pytest.raises(CallerError, match="the disk is full"):
        loop.run(main())


def test_the_ruler_measures_itself() -> None:
    """Its figures are those of a run; what they are depends on what else this machine does."""
    figures = loop.run(try_ruler(3, clock=MonotonicClock()))
    assert {"p50_ms", "p99_ms", "max_ms", "cpu_share"} == set(figures)
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["max_ms"]


def test_a_server_of_our_own_that_does_not_start_says_why() -> None:
    """By its own last words."""

    async def main() -> None:
        async with own_server(["--no-such-flag"]):
            raise AssertionError

    with pytest.raises(PeerError, match="ended with code 2") as caught:
        loop.run(main())
    assert "no-such-flag" in caught.value.hint


def test_a_server_of_our_own_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """When the block is over; here a stand-in that says it is ready."""
    script = tmp_path / "python"
    script.write_text(STAND_IN.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setattr("antiphon.lab.own_server.sys.executable", str(script))

    async def main() -> tuple[str, int | None, str]:
        async with own_server(["agent.py"]) as server:
            url = server.url
        return url, server.exit_code, " ".join(server.log)

    url, code, log = loop.run(main())
    assert url.endswith("/v1/realtime")
    assert (0, True) == (code, "serve agent.py --host 127.0.0.1 --port 0" in log)


STAND_IN = """#!{python}
import http.server, signal, sys
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *words): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Health)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print(*sys.argv, file=sys.stderr, flush=True)
print("Ready: ws://127.0.0.1:%d/v1/realtime  models: x" % server.server_port, flush=True)
server.serve_forever()
"""
