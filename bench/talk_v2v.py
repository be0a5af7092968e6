"""Voice to voice of `antiphon talk` through a PipeWire of its own, from outside, beside a caller's over WebSocket.

Two of the package's clips are played into a virtual microphone, one every PERIOD_S. One recorder takes the microphone
and what the loudspeaker is given, in the same cycles of the graph, so that the distance from the clip's last speech
sample to the reply's first audible one is what a listener would find. `antiphon bench` says the same clips to a server
of the same agent over WebSocket on the loopback. The two take turns, in blocks. What talk itself shows is beside it: it
takes the end of speech from the voice detector. It would be wrong if the graph delayed the two recorded ways unequally.

    PYTHONPATH=. python bench/talk_v2v.py --rounds 4 --turns 6 --out results/talk_v2v.json     # three minutes a round
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile
from tests.sound.server import Server, missing, pipewire

from antiphon.audio.level import audible_span
from antiphon.audio.resample import resample
from antiphon.lab.machine import Load, fingerprint

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "src" / "antiphon" / "assets"
AGENT = ROOT / "examples" / "barista.py"
CLIPS = ("order.flac", "short_order.flac")
PERIOD_S = 15.0
RATE_HZ = 48_000
START_S = 90


def corpus(folder: Path) -> list[dict[str, object]]:
    """The clips as `antiphon bench` wants them; their entries."""
    entries = [each for each in json.loads((ASSETS / "clips.json").read_text())["clips"] if each["file"] in CLIPS]
    for entry in entries:
        (folder / entry["file"]).write_bytes((ASSETS / entry["file"]).read_bytes())
    lines = [json.dumps({"text": "", **entry}) for entry in entries]
    (folder / "manifest.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return entries


def script(entries: list[dict[str, object]], turns: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """All that is said, and each turn's first and last speech sample."""
    size, spans = round(PERIOD_S * RATE_HZ), []
    sound = np.zeros(turns * size, np.float32)
    for turn in range(turns):
        entry = entries[turn % len(entries)]
        pcm, rate_hz = soundfile.read(ASSETS / str(entry["file"]), dtype="float32")
        pcm = resample(pcm, rate_hz, RATE_HZ)
        sound[turn * size : turn * size + len(pcm)] = pcm
        ends = (float(str(entry["speech_start_s"])), float(str(entry["speech_end_s"])))
        spans.append((turn * size + round(ends[0] * RATE_HZ), turn * size + round(ends[1] * RATE_HZ)))
    return sound, spans


def record(server: Server, file: Path) -> subprocess.Popen:
    """The microphone on the left, the loudspeaker on the right."""
    recorder = server.start(
        "pw-cat", "--record", "--target", "0", "--rate", str(RATE_HZ), "--channels", "2",
        "--properties", "{ node.name = both }", str(file),
    )  # fmt: skip
    server.connect("microphone:capture_", "both:input_FL")
    server.connect("loudspeaker:monitor_FL", "both:input_FR")
    return recorder


def talk(entries: list[dict[str, object]], turns: int, folder: Path) -> dict[str, object]:
    """One conversation; latencies in ms from outside, and what talk wrote."""
    sound, spans = script(entries, turns)
    said, heard, told, log = (folder / name for name in ("said.wav", "heard.wav", "talk.json", "talk.txt"))
    soundfile.write(said, sound, RATE_HZ)
    with tempfile.TemporaryDirectory(prefix="pw.") as place, pipewire(Path(place)) as server:
        command = [sys.executable, "-m", "antiphon", "talk", "--system", "alsa", "--agent", str(AGENT)]
        command += ["--turns", str(turns + 9), "--seconds", str(turns * PERIOD_S + 8), "--json", str(told)]
        with log.open("w") as lines:
            running = subprocess.Popen(command, env=server.environment, stdout=lines, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + START_S
            while "Say something" not in log.read_text():
                if running.poll() is not None or time.monotonic() > until:
                    sys.exit(log.read_text())
                time.sleep(0.1)
            recorder = record(server, heard)
            player = server.say(said)
            running.wait(turns * PERIOD_S + 60)
            for each in (player, recorder):
                each.terminate()
                each.wait(10)
        finally:
            if running.poll() is None:
                running.kill()
                running.wait(10)
    return {"v2v_ms": outside(heard, sound, spans), "talk": json.loads(told.read_text())}


def outside(file: Path, sound: np.ndarray, spans: list[tuple[int, int]]) -> list[float | None]:
    """From each turn's last speech sample to the reply's first audible one; None: no reply, negative: cut in."""
    both, _ = soundfile.read(file, dtype="float32", always_2d=True)
    size = 1 << (len(both) + len(sound)).bit_length()
    lag = np.fft.irfft(np.fft.rfft(both[:, 0], size) * np.conj(np.fft.rfft(sound, size)), size)
    offset = int(np.argmax(lag[: len(both)]))
    found: list[float | None] = []
    for start, end in spans:
        until = offset + start + round((PERIOD_S - 1) * RATE_HZ)
        first, last = audible_span(both[offset + start : until, 1], RATE_HZ)
        found.append(1000 * (first + start - end) / RATE_HZ if last else None)
    return found


def websocket(folder: Path, turns: int, seed: int) -> list[float | None]:
    out = folder / f"bench{seed}"
    command = [sys.executable, "-m", "antiphon", "bench", "--corpus", str(folder), "--scenario", "multi-turn"]
    command += ["--turns", str(turns), "--turns-per-line", str(turns), "--agent", str(AGENT), "--seed", str(seed)]
    command += ["--ruler-turns", "0", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    file = out / "result.json"
    if not file.exists():
        sys.exit(done.stdout + done.stderr)
    return [turn["v2v_ms"] for turn in json.loads(file.read_text())["turns"]]


def summary(values: list[float | None]) -> dict[str, float | int | None]:
    """Only what was answered after the end; the rest is counted."""
    good = [value for value in values if value is not None and value >= 0]
    at = np.percentile(good, [50, 95]) if good else (None, None)
    return {
        "turns": len(values),
        "answered": len(good),
        "p50_ms": None if at[0] is None else round(float(at[0]), 1),
        "p95_ms": None if at[1] is None else round(float(at[1]), 1),
        "cut_ins_or_silent": len(values) - len(good),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--turns", type=int, default=4, help="of each way and round")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if missing():
        sys.exit(f"not installed: {missing()}")
    meter = Load()
    talked: list[float | None] = []
    shown: list[float] = []
    called: list[float | None] = []
    own: list[dict[str, object]] = []
    for number in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            entries = corpus(folder)
            result = talk(entries, arguments.turns, folder)
            told = dict(result["talk"])  # type: ignore[call-overload]
            talked += result["v2v_ms"]  # type: ignore[operator]
            shown += [turn["v2v_ms"] for turn in told["turns"]]
            own.append({key: told[key] for key in ("policy", "xruns", "capture_to_session_ms", "worst_wake_up_ms")})
            called += websocket(folder, arguments.turns, number)
    rows = {
        "talk, from outside": summary(talked),
        "talk, as it shows it": summary(list(shown)),
        "websocket, from outside": summary(called),
    }
    print(json.dumps(rows, indent=1))
    result = {
        "schema": "antiphon.talk_v2v/1",
        "machine": fingerprint(),
        "command": " ".join(["python", *sys.argv]),
        "steal": meter.report()["steal"],
        "period_s": PERIOD_S,
        "rows": rows,
        "values_ms": {"talk": talked, "shown": shown, "websocket": called},
        "talk": own,
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
