"""What the recognizer hears of the corpus, streamed as a live call would, faster than real time.

Each clip is looked at once a second and transcribed for good 0.1 s after its last speech sample. Counts slots heard in
that transcript (with the agent's vocabulary and without) and repetition loops in all of them: four words in a row that
came before, or one to three words three times in a row. What would falsify "no loops": one.

Usage: python bench/slots_heard.py [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path

from antiphon.agent import read_agent
from antiphon.audio.files import read
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.lab.machine import Load, fingerprint
from antiphon.models.store import Store
from antiphon.scheduling.lanes import ThreadLane
from corpus_turns import percentile
from slots import slot_is_heard, words

ROOT = Path(__file__).parents[1]
LOOK_SAMPLES = HEARING_RATE_HZ
RUN_UP_SAMPLES = 4800  # what voice detection adds in front
SILENCE_SAMPLES = 1600
FRAME_SAMPLES = 320


def loops(text: str) -> bool:
    said = words(text)
    fours = [tuple(said[start : start + 4]) for start in range(len(said) - 3)]
    return len(set(fours)) < len(fours) or any(
        said[start : start + size] == said[start + size : start + 2 * size] == said[start + 2 * size : start + 3 * size]
        for size in (1, 2, 3)
        for start in range(len(said) - 3 * size + 1)
    )


async def hear(recognizer: WhisperRecognizer, vocabulary: tuple[str, ...], corpus: Path, clip: dict) -> dict:
    pcm, _ = read(corpus / clip["file"])
    recognition = recognizer.open(vocabulary)
    begin = max(0, round(clip["speech_start_s"] * HEARING_RATE_HZ) - RUN_UP_SAMPLES)
    end = round(clip["speech_end_s"] * HEARING_RATE_HZ) + SILENCE_SAMPLES
    fed, looks, looping = 0, 0, 0

    def feed(until: int) -> None:
        nonlocal fed
        while fed < until:
            upto = min(fed + FRAME_SAMPLES, until)
            recognition.feed(AudioFrame(pcm[fed:upto], HEARING_RATE_HZ, fed, 0))
            fed = upto

    feed(begin)
    recognition.begin(begin)
    for until in range(begin + LOOK_SAMPLES, end - SILENCE_SAMPLES, LOOK_SAMPLES):
        feed(until)
        looks += 1
        looping += loops((await recognition.transcribe(until, final=False)).text)
    feed(end)
    started = time.perf_counter()
    final = await recognition.transcribe(end, final=True)
    heard = sum(slot_is_heard(value, final.text) for value in clip["slots"].values())
    return {
        "final_ms": (time.perf_counter() - started) * 1000,
        "slots": len(clip["slots"]),
        "slots_heard": heard,
        "looks": looks,
        "looping_looks": looping,
        "looping_finals": int(loops(final.text)),
    }


async def measure(corpus: Path) -> dict[str, object]:
    lane = ThreadLane("recognizer")
    recognizer = WhisperRecognizer.load(Store().locate("whisper-tiny.en"), lane=lane, threads=2)
    await recognizer.warm_up()
    agent = read_agent(ROOT / "examples" / "barista.py")
    clips = [json.loads(line) for line in (corpus / "manifest.jsonl").read_text().splitlines()]
    results: dict[str, object] = {}
    machine_load = Load()
    for name, vocabulary in (("with_vocabulary", agent.vocabulary), ("without_vocabulary", ())):
        for kind in ("clean", "hesitation", "noisy"):
            heard = [await hear(recognizer, vocabulary, corpus, clip) for clip in clips if clip["kind"] == kind]
            total: Counter[str] = Counter()
            for each in heard:
                total.update({key: value for key, value in each.items() if key != "final_ms"})
            finals = [each["final_ms"] for each in heard]
            results[f"{kind} {name}"] = {
                "clips": len(heard),
                "recall": round(total["slots_heard"] / total["slots"], 4),
                **total,
                "final_p50_ms": percentile(finals, 0.5),
                "final_p95_ms": percentile(finals, 0.95),
            }
            print(kind, name, results[f"{kind} {name}"], flush=True)
    lane.close()
    return {
        "schema": "antiphon.slots_heard/1",
        "machine": fingerprint(),
        "load": machine_load.report(),
        "results": results,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "slots_heard.json")
    arguments = parser.parse_args()
    arguments.out.write_text(json.dumps(asyncio.run(measure(arguments.corpus)), indent=1) + "\n")


if __name__ == "__main__":
    main()
