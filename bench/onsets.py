"""How many beginnings of speech the voice detector notices, and when, while every core is busy: by policy.

Words out of the clips that come with the package are said into paced cards over and over, WORD_S long and PAUSE_S
apart, over noise 60 dB below full scale. Each card has an audio process of its own, under the policy; the detector runs
in the conversation's process, which has none. Only words that the detector notices at once when nothing is lost are
said (`choose`). An onset is detected if a voice is found to begin, in the sound, within FOUND_S of it; the moment at
which that is known is counted too. Policies take turns in blocks, with twice as many busy processes as cores beside
them, or none. It would be wrong if what the card lost were pauses alone: xruns are counted.

    python bench/onsets.py --rounds 6 --block-s 60 --out results/onsets.json       # 20 min: 1400 of each policy
    python bench/onsets.py --rounds 1 --block-s 5                                  # whether it works
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile

from antiphon.audio.card.link import SoundLink
from antiphon.audio.card.process import Order
from antiphon.audio.card.settings import SoundSettings
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame
from antiphon.hardware.audio_plan import plan_audio
from antiphon.hardware.probe_rights import probe_rights
from antiphon.hear.ear import Ear
from antiphon.hear.segmenter import VoiceStarted
from antiphon.hear.silero import SileroDetector
from antiphon.lab.machine import Load, fingerprint
from antiphon.models.store import Store

POLICIES = ("normal", "fifo", "deadline")
LOADS = ("loaded",)
ASSETS = Path(__file__).parents[1] / "src" / "antiphon" / "assets"
CLIPS = ("order", "short_order", "hesitant_order")
WORD_S, PAUSE_S, FOUND_S = 0.3, 0.4, 0.25
NOISE = 0.001  # amplitude: 60 dB below full scale
WORDS = 12  # different ones
SHIFTS = (0, 111, 222, 333, 444)  # samples against the detector's frames: each word is tried at all of them
KNOWN_S = 0.3  # an onset that is known later than this is counted as late
WARM_S = 2.0  # of each block: a card is being opened, the detector is new


def found(ear: Ear, frame: AudioFrame) -> list[int]:
    """Where voices were found to begin with this frame: the end of what decided it, in samples."""
    return [fact.detected_samples for fact in ear.hear(frame) if isinstance(fact, VoiceStarted)]


def choose(detector: SileroDetector) -> list[np.ndarray]:
    """Words that are noticed within FOUND_S of their beginning wherever they lie among the detector's frames."""
    size, rng, words = round(WORD_S * HEARING_RATE_HZ), np.random.default_rng(5), []
    for name in CLIPS:
        pcm, _ = soundfile.read(ASSETS / f"{name}.flac", dtype="float32")
        for start in range(0, len(pcm) - size, size // 2):
            word = pcm[start : start + size]
            words.append(word * (0.5 / max(float(np.abs(word).max()), 0.05)))
    chosen = []
    for word in words:
        noticed = 0
        for shift in SHIFTS:
            lead = HEARING_RATE_HZ + shift
            sound = rng.normal(0, NOISE, lead + 2 * size).astype(np.float32)
            sound[lead : lead + size] += word
            ends = found(Ear(detector), AudioFrame(sound, HEARING_RATE_HZ, 0, 0))
            noticed += len(ends) == 1 and 0 < ends[0] - lead < FOUND_S * HEARING_RATE_HZ
        if noticed == len(SHIFTS):
            chosen.append(word)
    step = max(1, len(chosen) // WORDS)
    return chosen[::step][:WORDS]


def said(words: list[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """What the microphone says over and over, and where its words begin, in samples."""
    each = round((WORD_S + PAUSE_S) * HEARING_RATE_HZ)
    sound = np.random.default_rng(7).normal(0, NOISE, each * len(words)).astype(np.float32)
    starts = [k * each for k in range(len(words))]
    for start, word in zip(starts, words, strict=True):
        sound[start : start + len(word)] += word
    return sound, starts


class Listener:
    """One card's sound, and what the detector makes of it; times are the card's."""

    def __init__(self, detector: SileroDetector) -> None:
        self._ear = Ear(detector)
        self.began_ns = 0  # when the clip began
        self.last_ns = 0
        self.found: list[tuple[int, int]] = []  # where in time it lay, when it was known

    def hear(self, frame: AudioFrame) -> None:
        self.began_ns = self.began_ns or frame.captured_ns
        self.last_ns = frame.end_ns
        for end in found(self._ear, frame):
            at_ns = frame.captured_ns + (end - frame.pos_samples) * 1_000_000_000 // frame.rate_hz
            self.found.append((at_ns, time.monotonic_ns()))

    def judged(self, starts: list[int], length: int) -> tuple[int, list[float]]:
        """How many words were said, and when each that was detected was known, in s after it began."""
        count, known = 0, []
        for turn in range(10**6):
            for start in starts:
                onset_ns = self.began_ns + (turn * length + start) * 1_000_000_000 // HEARING_RATE_HZ
                if onset_ns > self.last_ns - 1_000_000_000:
                    return count, known
                if onset_ns < self.began_ns + WARM_S * 1e9:
                    continue
                count += 1
                match = next(((at, now) for at, now in self.found if 0 < at - onset_ns < FOUND_S * 1e9), None)
                if match is not None:
                    known.append((match[1] - onset_ns) / 1e9)
        raise AssertionError("endless")


async def listen(
    detector: SileroDetector, policy: str, clip: Path, cards: int, seconds: float
) -> tuple[list[Listener], int, str]:
    """Hear so many cards for so long; how often they lost sound, and what the first was granted."""
    rights, _ = probe_rights()
    order = Order(
        sound=SoundSettings(system="paced", input=str(clip)), plan=plan_audio(rights, policy), voice_hz=24_000
    )  # type: ignore[arg-type]
    listeners, notes = [Listener(detector) for _ in range(cards)], []
    links = [SoundLink(order, hear=each.hear, tell=notes.append) for each in listeners]
    await asyncio.gather(*(link.__aenter__() for link in links))
    await asyncio.sleep(seconds)
    await asyncio.gather(*(link.__aexit__(None, None, None) for link in links))
    lost = sum(note.what == "lost" and note.side == "in" for note in notes)
    return listeners, lost, next(note.text for note in notes if note.what == "ready")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--block-s", type=float, default=5.0)
    parser.add_argument(
        "--cards", type=int, default=3, help="at once; a deadline's budget has room for three on two cores"
    )
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--loads", default=",".join(LOADS), help="of idle and loaded")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    detector = SileroDetector.load(Store().file("silero-v6"))
    sound, starts = said(choose(detector))
    if not starts:
        sys.exit("the detector notices no word of the clips")
    tallies: dict[tuple[str, str], dict[str, object]] = {}
    known: dict[tuple[str, str], list[float]] = {}
    steals = []
    with tempfile.TemporaryDirectory() as folder:
        clip = Path(folder) / "words.wav"
        soundfile.write(clip, sound, HEARING_RATE_HZ)
        for _ in range(arguments.rounds):
            for load in arguments.loads.split(","):
                for policy in arguments.policies.split(","):
                    meter = Load()
                    hogs = 2 * (os.cpu_count() or 1) if load == "loaded" else 0
                    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(hogs)]
                    try:
                        result = asyncio.run(listen(detector, policy, clip, arguments.cards, arguments.block_s))
                    finally:
                        for each in busy:
                            each.kill()
                            each.wait()
                    listeners, lost, granted = result
                    tally = tallies.setdefault((load, policy), {"onsets": 0, "xruns": 0, "granted": granted})
                    for listener in listeners:
                        count, after_s = listener.judged(starts, len(sound))
                        tally["onsets"] = int(str(tally["onsets"])) + count
                        known.setdefault((load, policy), []).extend(after_s)
                    tally["xruns"] = int(str(tally["xruns"])) + lost
                    steals.append(float(meter.report()["steal"] or 0))
    rows = []
    for (load, policy), tally in tallies.items():
        after = np.array(known[load, policy])
        onsets = int(str(tally["onsets"]))
        at = np.percentile(after, [50, 99]) * 1000 if len(after) else (0.0, 0.0)
        rows.append({
            "load": load, "policy": policy, **tally, "detected": len(after), "share": len(after) / max(1, onsets),
            "in_time": int(np.sum(after <= KNOWN_S)), "share_in_time": float(np.sum(after <= KNOWN_S)) / max(1, onsets),
            "known_after_p50_ms": float(at[0]), "known_after_p99_ms": float(at[1]),
        })  # fmt: skip
        print("  ".join(f"{value:.4f}" if isinstance(value, float) else str(value) for value in rows[-1].values()))
    result = {
        "schema": "antiphon.onsets/1",
        "machine": fingerprint(),
        "command": " ".join(["python", *sys.argv]),
        "words": len(starts),
        "cards": arguments.cards,
        "rounds": arguments.rounds,
        "block_s": arguments.block_s,
        "found_within_s": FOUND_S,
        "in_time_s": KNOWN_S,
        "steal_mean": sum(steals) / len(steals),
        "steal_worst": max(steals),
        "rows": rows,
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
