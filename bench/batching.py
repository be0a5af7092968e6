"""Does it pay to give Whisper the sound of several callers in one call?

The encoder and the decoder, each for 2, 4 and 8 callers together and for as many one after the other, in turns, so
that a busy neighbour slows both alike. Then whole transcripts of callers who ask at the same moment, with shared
decodings and without, whether every transcript stays what it is alone, and how often callers could share.

Regime: the model's calls alone, two threads, nothing else of ours at work; sound of the corpus. Times are wall time,
and processor time of all threads (`cpu`), which a busy machine changes less. Caveat: `load` says how busy it was.
One after the other, callers wait (n + 1) / 2 calls on average, so sharing pays for all where `ratio` is below
(n + 1) / 2n, and for the last one below 1.
What would falsify shared decodings: a transcript that differs, or a ratio of 1 and more.

Usage: python bench/batching.py [--rounds N] [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from contextlib import contextmanager
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from antiphon.agent import read_agent
from antiphon.audio.files import read
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame
from antiphon.hear.mel import COLUMNS_PER_SECOND, log_mel
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.hear.whisper_recognition import LEAST_COLUMNS, PADDING_COLUMNS
from antiphon.lab.machine import Load, fingerprint
from antiphon.models.store import Store
from antiphon.scheduling.lanes import ThreadLane
from corpus_turns import percentile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from antiphon.core.flow import Pcm, Transcript

ROOT = Path(__file__).parents[1]
RUN_UP_SAMPLES = 4800  # what voice detection adds in front
SILENCE_SAMPLES = 1600
FRAME_SAMPLES = 320
LOOK_SAMPLES = HEARING_RATE_HZ
LONGEST_COLUMNS = 26 * COLUMNS_PER_SECOND  # a window of 24 s with its padding
CLIPS = 20


class Times:
    """Wall and processor milliseconds of one way to do something."""

    def __init__(self) -> None:
        self.wall_ms: list[float] = []
        self.cpu_ms: list[float] = []

    @contextmanager
    def taking(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall_ms.append((time.perf_counter() - wall) * 1000)
        self.cpu_ms.append((time.process_time() - cpu) * 1000)

    def summary(self) -> dict[str, float]:
        """Without the first one, which is cold."""
        wall, cpu = self.wall_ms[1:], self.cpu_ms[1:]
        return {
            "wall_p50": round(statistics.median(wall), 1),
            "wall_min": round(min(wall), 1),
            "wall_p95": round(percentile(wall, 0.95), 1),
            "cpu_p50": round(statistics.median(cpu), 1),
        }


async def compared(
    recognizer: WhisperRecognizer, calls: Sequence[Callable[[], Awaitable[object]]], rounds: int
) -> dict:
    """All calls at once, shared and then each on its own, in turns; `ratio` is the median of the rounds' own ratios."""
    usual = recognizer.encode_most, recognizer.decode_most
    shared, single = Times(), Times()
    for index in range(rounds + 1):
        for times, most in ((shared, len(calls)), (single, 1))[:: 1 if index % 2 else -1]:
            recognizer.encode_most = recognizer.decode_most = most
            with times.taking():
                await asyncio.gather(*(call() for call in calls))
    recognizer.encode_most, recognizer.decode_most = usual
    return {
        "together_ms": shared.summary(),
        "one_after_another_ms": single.summary(),
        "ratio": ratio(shared.wall_ms, single.wall_ms),
        "ratio_cpu": ratio(shared.cpu_ms, single.cpu_ms),
    }


def ratio(first: Sequence[float], second: Sequence[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(first[1:], second[1:], strict=True)), 3)


async def encoding(recognizer: WhisperRecognizer, sounds: Sequence[Pcm], rounds: int) -> dict[str, object]:
    """By columns and callers; and what half a second more of them costs, as rounding up to whole ones would."""
    results: dict[str, object] = {}
    for columns, counts in ((LEAST_COLUMNS, (2, 4)), (1400, (2, 4)), (2000, (2,))):
        calls = [partial(recognizer.encode, log_mel(pcm, columns)) for pcm in sounds]
        for count in counts:
            results[f"{columns} columns, {count} callers"] = await compared(recognizer, calls[:count], rounds)
        usual, longer = Times(), Times()
        logs = log_mel(sounds[0], columns + COLUMNS_PER_SECOND // 2)
        for _ in range(2 * rounds + 1):
            for times, some in ((usual, logs[:columns]), (longer, logs)):
                with times.taking():
                    await recognizer.encode(some)
        results[f"{columns} columns, one caller"] = usual.summary()
        results[f"{columns + 50} columns over {columns}"] = {
            "ratio": ratio(longer.wall_ms, usual.wall_ms),
            "ratio_cpu": ratio(longer.cpu_ms, usual.cpu_ms),
        }
    return results


async def decoding(
    recognizer: WhisperRecognizer, sounds: Sequence[Pcm], vocabulary: Sequence[str], rounds: int
) -> dict[str, object]:
    """By callers, with a vocabulary to read first and without; and the longest call there may be."""
    results: dict[str, object] = {}
    hints = recognizer.tokens.hints(vocabulary, limit_tokens=recognizer.settings.vocabulary_tokens)
    encoded = [await recognizer.encode(log_mel(pcm, LEAST_COLUMNS)) for pcm in sounds[:8]]
    for name, before in (("plain", []), ("vocabulary", hints)):
        calls = [
            partial(recognizer.decode, each, before=before, prefix=(), sound_s=len(pcm) / HEARING_RATE_HZ)
            for each, pcm in zip(encoded, sounds[:8], strict=True)
        ]
        one = Times()
        for _ in range(rounds + 1):
            with one.taking():
                await calls[0]()
        results[f"{name}, one caller"] = one.summary()
        for count in (2, 4, 8):
            results[f"{name}, {count} callers"] = await compared(recognizer, calls[:count], rounds)
    long = np.concatenate(sounds)[: 24 * HEARING_RATE_HZ]
    full = [await recognizer.encode(log_mel(np.roll(long, place * 9000), LONGEST_COLUMNS)) for place in range(4)]
    calls = [partial(recognizer.decode, each, before=(), prefix=(), sound_s=24.0) for each in full]
    results["24 s of speech, 4 callers"] = await compared(recognizer, calls, 2)
    return results


async def joining(recognizer: WhisperRecognizer, sounds: Sequence[Pcm]) -> dict[str, float]:
    """What it takes to make one array of four callers' encodings."""
    rows = [await recognizer.encode(log_mel(pcm, LEAST_COLUMNS)) for pcm in sounds[:4]]
    join = Times()
    for _ in range(100):
        with join.taking():
            np.concatenate(rows)
    return {"join_4_p50_ms": round(statistics.median(join.wall_ms), 3)}


async def transcript(recognizer: WhisperRecognizer, pcm: Pcm, vocabulary: Sequence[str]) -> tuple[Transcript, float]:
    """Of a turn of just this sound, and how long it took to come."""
    heard = recognizer.open(vocabulary)
    heard.begin(0)
    for pos in range(0, len(pcm), FRAME_SAMPLES):
        heard.feed(AudioFrame(pcm[pos : pos + FRAME_SAMPLES], HEARING_RATE_HZ, pos, 0))
    await asyncio.sleep(0)  # everybody has fed before the first one asks
    started = time.perf_counter()
    found = await heard.transcribe(len(pcm), final=True)
    return found, (time.perf_counter() - started) * 1000


async def whole(
    recognizer: WhisperRecognizer, sounds: Sequence[Pcm], vocabulary: Sequence[str], rounds: int
) -> dict[str, object]:
    """Callers who ask at once: how long they wait with shared decodings and without."""
    results: dict[str, object] = {}
    most = recognizer.decode_most
    for count in (2, 4):
        waits: dict[str, tuple[list[float], list[float]]] = {"shared": ([], []), "apart": ([], [])}
        for index in range(rounds):
            for name in ("shared", "apart")[:: 1 if index % 2 else -1]:
                recognizer.decode_most = most if name == "shared" else 1
                some = [sounds[(index + place) % len(sounds)] for place in range(count)]
                took = [
                    each for _, each in await asyncio.gather(*(transcript(recognizer, p, vocabulary) for p in some))
                ]
                waits[name][0].append(statistics.mean(took))
                waits[name][1].append(max(took))
        recognizer.decode_most = most
        results[f"{count} callers"] = {
            f"{name}_{which}_p50_ms": round(statistics.median(values), 1)
            for name, both in waits.items()
            for which, values in zip(("mean", "last"), both, strict=True)
        }
    return results


async def differences(recognizer: WhisperRecognizer, sounds: Sequence[Pcm], vocabulary: Sequence[str]) -> int:
    """How many transcripts, the probability of an end included, are others when all ask at once."""
    alone = [(await transcript(recognizer, pcm, vocabulary))[0] for pcm in sounds]
    together = await asyncio.gather(*(transcript(recognizer, pcm, vocabulary) for pcm in sounds))
    return sum(each != found for each, (found, _) in zip(alone, together, strict=True))


def sharing(lengths: Sequence[int]) -> dict[str, float]:
    """The part of all pairs of windows (samples) with as many columns: exactly, and rounded up to whole seconds."""
    needed = [max(LEAST_COLUMNS, -(-samples // 160) + PADDING_COLUMNS) for samples in lengths]
    even = [columns + columns % 2 for columns in needed]
    seconds = [-(-columns // COLUMNS_PER_SECOND) for columns in needed]
    return {
        name: round(statistics.mean(a == b for a, b in combinations(columns, 2)), 4)
        for name, columns in (("exact", even), ("whole_seconds", seconds))
    }


def windows(clips: Sequence[dict[str, Any]]) -> list[int]:
    """The windows of every look and final transcript of the corpus, in samples."""
    found = []
    for clip in clips:
        spoken = round((clip["speech_end_s"] - clip["speech_start_s"]) * HEARING_RATE_HZ) + RUN_UP_SAMPLES
        found += [*range(LOOK_SAMPLES, spoken, LOOK_SAMPLES), spoken + SILENCE_SAMPLES]
    return found


async def measure(corpus: Path, rounds: int) -> dict[str, object]:
    lane = ThreadLane("recognizer")
    recognizer = WhisperRecognizer.load(Store().locate("whisper-tiny.en"), lane=lane, threads=2)
    await recognizer.warm_up()
    vocabulary = read_agent(ROOT / "examples" / "barista.py").vocabulary
    clips = [json.loads(line) for line in (corpus / "manifest.jsonl").read_text().splitlines()]
    sounds = []
    for clip in [clip for clip in clips if clip["kind"] == "clean"][:CLIPS]:
        begin = max(0, round(clip["speech_start_s"] * HEARING_RATE_HZ) - RUN_UP_SAMPLES)
        end = round(clip["speech_end_s"] * HEARING_RATE_HZ) + SILENCE_SAMPLES
        sounds.append(read(corpus / clip["file"])[0][begin:end])
    long_turns = [round(length) for length in np.linspace(8, 24, 400) * HEARING_RATE_HZ]
    load = Load()
    results: dict[str, object] = {}
    results["decode"] = await decoding(recognizer, sounds, vocabulary, rounds)
    results["encode"] = await encoding(recognizer, sounds, rounds)
    results["join"] = await joining(recognizer, sounds)
    results["transcripts"] = await whole(recognizer, sounds, vocabulary, rounds)
    results["transcripts_that_differ"] = {
        "of": len(sounds),
        "plain": await differences(recognizer, sounds, ()),
        "vocabulary": await differences(recognizer, sounds, vocabulary),
    }
    results["pairs_that_may_share"] = {
        "corpus, looked at once a second": sharing(windows(clips)),
        "turns of 8 to 24 s": sharing(long_turns),
    }
    lane.close()
    return {
        "schema": "antiphon.batching/1",
        "machine": fingerprint(),
        "load": load.report(),
        "model": recognizer.name,
        "compute_type": recognizer.compute_type,
        "rounds": rounds,
        "most_together": {"encode": recognizer.encode_most, "decode": recognizer.decode_most},
        "results": results,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "batching.json")
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments.corpus, arguments.rounds))
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({key: value for key, value in result.items() if key != "machine"}, indent=1))


if __name__ == "__main__":
    main()
