"""`antiphon talk` through PipeWire: a question goes into its microphone, the answer comes out of its loudspeaker."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import soundfile
from tests.sound.server import missing, pipewire

from antiphon.audio.level import audible_span

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.sound,
    pytest.mark.timeout(170),
    pytest.mark.skipif(bool(missing()), reason=f"not installed: {missing()}; scripts/sound tells how"),
]

CLIP = Path(__file__).parents[2] / "src" / "antiphon" / "assets" / "short_order.flac"


@pytest.fixture
def server():
    with tempfile.TemporaryDirectory(prefix="pw.") as folder, pipewire(Path(folder)) as running:
        yield running


@pytest.mark.parametrize("system", ["alsa", "portaudio"])
def test_a_question_into_the_microphone_is_answered_by_the_loudspeaker(server, tmp_path, system):
    """Its words are heard, the reply is measured as heard, and its sound really reaches the loudspeaker."""
    if system == "portaudio":
        pytest.importorskip("sounddevice", exc_type=(ImportError, OSError))
    result, heard = tmp_path / "talk.json", tmp_path / "heard.wav"
    log = tmp_path / "talk.txt"
    command = [
        sys.executable, "-m", "antiphon", "talk", "--system", system, "--turns", "1", "--seconds", "60",
        "--json", str(result), "--out", str(tmp_path / "talk.wav"),
    ]  # fmt: skip
    with log.open("w") as lines:
        talk = subprocess.Popen(command, env=server.environment, stdout=lines, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + 60
        while "Say something" not in log.read_text():
            assert talk.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        recorder = server.record(heard)
        player = server.say(CLIP)
        assert 0 == talk.wait(90), log.read_text()
        player.wait(20)
        recorder.terminate()
        recorder.wait(10)
    finally:
        if talk.poll() is None:
            talk.kill()
            talk.wait(10)
    told = json.loads(result.read_text())
    turn = told["turns"][-1]
    assert len(turn["text"].split()) >= 3
    assert turn["reply"]
    assert 0 < turn["loudspeaker_ms"] < 200
    assert turn["session_ms"] < turn["v2v_ms"] < 20_000
    assert 0 == told["restarts"]
    assert 500 < told["capture_to_session_ms"]["count"]
    assert {"in", "out"} == set(told["devices"])
    assert told["policy"]
    pcm, rate_hz = soundfile.read(heard, dtype="float32", always_2d=True)
    first, end = audible_span(pcm.mean(axis=1), rate_hz)
    assert (end - first) / rate_hz > 0.3


def test_a_session_without_sound_is_refused_with_a_remedy():
    """No server, no card: once, before any model is loaded."""
    done = subprocess.run(
        [sys.executable, "-m", "antiphon", "talk", "--system", "alsa", "--input", "no-such-device"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 2 == done.returncode
    assert "no-such-device" in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr
