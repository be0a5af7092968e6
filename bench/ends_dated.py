"""A corpus in; where the voice detector takes the voice for gone, against the annotated end of speech, out.

    python bench/ends_dated.py CORPUS --out results/ends_dated.json

An end that the detector has more than SOFT_MS before the annotation is `soft`. For both kinds: the detector's
probability of a voice 32 to 192 ms behind its own end, and how far the sound lies above the clip's quietest tenth.
What would prove that the detector could date soft ends better: probabilities or levels behind them that stand apart
from those behind the others. Fractions of dB or per cent do not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from antiphon.audio.files import read
from antiphon.config import Config
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.lab.machine import fingerprint
from antiphon.runtime import Runtime
from turn_end_fit import stops

if TYPE_CHECKING:
    from antiphon.hear.voice_detector import VoiceDetector

SOFT_MS = -100.0
FRAMES = 6  # looked at behind an end
SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


def ends(detector: VoiceDetector, corpus: Path) -> list[dict[str, Any]]:
    """For each clip its detected end, ms after the annotated one, and what lies behind it."""
    found, step = [], detector.frame_samples
    for line in (corpus / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        clip = json.loads(line)
        pcm, _ = read(corpus / clip["file"])
        end_s = stops(detector, pcm, clip["speech_end_s"])[-1][0]
        voice = detector.open()
        frames = [pcm[pos : pos + step] for pos in range(0, len(pcm) - step + 1, step)]
        probabilities = [voice.probability(frame) for frame in frames]
        levels_db = [10 * float(np.log10(np.mean(np.square(frame)) + 1e-10)) for frame in frames]
        first = round(end_s * HEARING_RATE_HZ / step)
        behind = slice(first + 1, first + 1 + FRAMES)
        floor_db = float(np.quantile(levels_db, 0.1))
        found.append(
            {
                "clip": clip["file"],
                "kind": clip["kind"],
                "behind_ms": round(1000 * (end_s - clip["speech_end_s"]), 1),
                "probability": round(float(np.mean(probabilities[behind])), 4),
                "above_floor_db": round(float(np.mean(levels_db[behind])) - floor_db, 2),
            }
        )
    return found


def summary(some: list[dict[str, Any]]) -> dict[str, Any]:
    """Quantiles of what was found, by SHARES."""
    return {"n": len(some)} | {
        name: {str(share): round(float(np.quantile([each[name] for each in some], share)), 3) for share in SHARES}
        for name in ("behind_ms", "probability", "above_floor_db")
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    async with await Runtime.load(Config()) as runtime:
        found = ends(runtime.engines.voice_detector, asked.corpus)
    soft = [each for each in found if each["behind_ms"] < SOFT_MS]
    rest = [each for each in found if each["behind_ms"] >= SOFT_MS]
    told = {"all": summary(found), "soft": summary(soft), "rest": summary(rest)}
    report = {"schema": "antiphon.ends_dated/1", "machine": fingerprint(), **told, "clips": found}
    asked.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    asyncio.run(main())
