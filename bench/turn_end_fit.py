"""Fits the turn-end posterior that ships with the package, and shows how far it can be trusted.

Data: every clip of the corpus is cut so much (--silence-ms) behind each place where the server's own voice detector
takes the voice for gone: its end (label 1), and every pause inside the turn that lasts long enough to be spoken into
(label 0), spliced or natural. Each cut is heard by the real engines as a live call would be: transcript, sentence-end
mass of the language model, prosody. Classes are weighted to a prior of one half. One logistic regression per set of
evidence (L2, C = 1).
Out of fold: 10 folds by clip. What would falsify it: out-of-fold ECE above 0.1, or fewer ends kept at 5 % false than by
prosody alone.

Caveats: most of the pauses were spliced into fluent speech, the speakers are shared between folds, and the domain is
one (orders in a coffee shop).

Usage: python bench/turn_end_fit.py [--quick MODEL --silence-ms 32] [--half 0] [--write]     needs the extra `fit`
--write replaces the fit that ships for what hears a pause first
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from antiphon.agent import read_agent
from antiphon.audio.files import read
from antiphon.config import Config
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame
from antiphon.dialogue.history import prompt
from antiphon.dialogue.turn_end import KINDS, Evidence
from antiphon.hear.ear import Ear
from antiphon.hear.segmenter import VoiceStopped
from antiphon.lab.machine import fingerprint
from antiphon.runtime import Runtime
from halves import half_of

if TYPE_CHECKING:
    from antiphon.agent import Agent
    from antiphon.hear.voice_detector import VoiceDetector

ROOT = Path(__file__).parents[1]
SHORTEST_PAUSE_MS = 200  # until the voice is noticed to be back; nothing is said into a shorter one
SILENCE_MS = 100  # when a pause is noticed; later cuts differ little. A quick recognizer hears the first 32 ms of it
FALSE_RATES = (0.02, 0.05, 0.10, 0.20)
BINS = 10
FIELDS = {"ears": "ears", "mass": "end_mass", "prosody": "prosody"}  # a kind's part: the field of Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One place to judge, and the truth about it."""

    clip: str
    kind: str
    at_s: float
    pause_ms: float | None  # how long it lasts; None: it is the end
    evidence: Evidence

    @property
    def is_end(self) -> bool:
        return self.pause_ms is None


def stops(detector: VoiceDetector, pcm: np.ndarray, end_s: float) -> list[tuple[float, float | None]]:
    """Where a voice detector takes the voice for gone, in s, and for how long, in ms; the last time is the end."""
    ear, step = Ear(detector), detector.frame_samples
    found: list[tuple[float, float | None]] = []
    for pos in range(0, len(pcm) - step, step):
        for fact in ear.hear(AudioFrame(pcm[pos : pos + step], HEARING_RATE_HZ, pos, 0)):
            if isinstance(fact, VoiceStopped):
                found.append((fact.end_samples / HEARING_RATE_HZ, None))
            elif found and fact.detected_samples < end_s * HEARING_RATE_HZ:
                at_s = found[-1][0]
                found[-1] = at_s, 1000 * (fact.detected_samples / HEARING_RATE_HZ - at_s)
            elif found:  # after the end: somebody else
                return found
    return found


async def gather(corpus: Path, agent: Agent, config: Config, *, half: int | None, silence_ms: int) -> list[Cut]:
    runtime = await Runtime.load(config)
    cuts = []
    try:
        clips = [json.loads(line) for line in (corpus / "manifest.jsonl").read_text().splitlines()]
        clips = [clip for clip in clips if half is None or half_of(clip["file"]) == half]
        for place, clip in enumerate(clips):
            pcm, rate_hz = read(corpus / clip["file"])
            assert rate_hz == HEARING_RATE_HZ
            pauses = 0
            for at_s, pause_ms in stops(runtime.engines.voice_detector, pcm, clip["speech_end_s"]):
                if pause_ms is not None and pause_ms < SHORTEST_PAUSE_MS:
                    continue  # the caller has gone on before there was anything to judge
                evidence = await judge(runtime, agent, pcm, clip["speech_start_s"], at_s, silence_ms)
                evidence, pauses = replace(evidence, pauses=pauses), pauses + 1
                if not evidence.text:  # nothing was heard yet: no draft, so nothing to judge
                    continue
                cuts.append(Cut(clip=clip["file"], kind=clip["kind"], at_s=at_s, pause_ms=pause_ms, evidence=evidence))
            if sys.stdout.isatty():
                print(f"\r{place + 1}/{len(clips)} clips", end="", flush=True)
    finally:
        runtime.close()
    print()
    return cuts


async def judge(
    runtime: Runtime, agent: Agent, pcm: np.ndarray, start_s: float, at_s: float, silence_ms: int
) -> Evidence:
    """What a call would know so much after `at_s`."""
    engines = runtime.engines
    end = round((at_s + silence_ms / 1000) * HEARING_RATE_HZ)
    recognition = (engines.quick_recognizer or engines.recognizer).open(agent.vocabulary)
    recognition.begin(max(0, round((start_s - 0.3) * HEARING_RATE_HZ)))
    for pos in range(0, end, 320):
        recognition.feed(AudioFrame(pcm[pos : min(pos + 320, end)], HEARING_RATE_HZ, pos, 0))
    transcript = await recognition.transcribe(end, final=True)
    recognition.close()
    if not transcript.text:
        return Evidence(text="")
    thinking = engines.language_model.open()
    mass = await thinking.sentence_end_mass(prompt(agent.instructions, (), transcript.text))
    thinking.close()
    assert engines.prosody is not None
    prosody = await engines.prosody.probability(pcm[max(0, end - engines.prosody.window_samples) : end])
    return Evidence.of(transcript, end_mass=mass, prosody=prosody)


def fit_kind(cuts: list[Cut], kind: str) -> tuple[dict[str, object], dict[str, object], np.ndarray]:
    """The regression on all cuts, what it is worth out of fold, and its out-of-fold posteriors."""
    absent = [field for name, field in FIELDS.items() if name not in kind]
    features = [replace(cut.evidence, **dict.fromkeys(absent)).features() for cut in cuts]
    names = list(features[0])
    inputs = np.array([[feature[name] for name in names] for feature in features])
    truth = np.array([cut.is_end for cut in cuts])
    groups = np.array([cut.clip for cut in cuts])
    posterior = np.zeros(len(cuts))
    for train, held in GroupKFold(10).split(inputs, truth, groups):
        posterior[held] = regression().fit(inputs[train], truth[train]).predict_proba(inputs[held])[:, 1]
    whole = regression().fit(inputs, truth)
    fit = {
        "bias": round(float(whole.intercept_[0]), 4),
        "weights": {name: round(float(weight), 4) for name, weight in zip(names, whole.coef_[0], strict=True)},
    }
    return fit, quality(truth, posterior), posterior


def regression() -> LogisticRegression:
    return LogisticRegression(C=1.0, class_weight="balanced")


def quality(truth: np.ndarray, posterior: np.ndarray) -> dict[str, object]:
    """Ends kept at given false rates, and how far the posterior is off (weighted to a prior of one half)."""
    weights = np.where(truth, 0.5 / truth.sum(), 0.5 / (~truth).sum())
    bins = reliability(truth, posterior, weights)
    kept = {}
    for rate in FALSE_RATES:
        threshold = np.quantile(posterior[~truth], 1 - rate, method="higher")
        kept[f"{rate:.0%}"] = round(float((posterior[truth] > threshold).mean()), 3)
    return {
        "ends_kept_at_false_rate": kept,
        "brier": round(float((weights * (posterior - truth) ** 2).sum()), 4),
        "ece": round(sum(each["weight"] * abs(each["posterior"] - each["share_of_ends"]) for each in bins), 4),
        "reliability": bins,
    }


def reliability(truth: np.ndarray, posterior: np.ndarray, weights: np.ndarray) -> list[dict[str, float]]:
    bins = []
    place = np.minimum((posterior * BINS).astype(int), BINS - 1)
    for number in range(BINS):
        inside = place == number
        if not inside.any():
            continue
        weight = weights[inside].sum()
        bins.append(
            {
                "posterior": round(float((weights[inside] * posterior[inside]).sum() / weight), 4),
                "share_of_ends": round(float((weights[inside] * truth[inside]).sum() / weight), 4),
                "weight": round(float(weight), 4),
                "cuts": int(inside.sum()),
            }
        )
    return bins


def plot(report: dict[str, dict[str, object]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, grid = plt.subplots(2, len(report) // 2, figsize=(13, 7), sharex=True, sharey=True, layout="constrained")
    for axis, (kind, values) in zip(grid.flat, report.items(), strict=True):
        bins = values["reliability"]
        axis.plot([0, 1], [0, 1], color="#999999", linewidth=1)
        axis.scatter(
            [each["posterior"] for each in bins],
            [each["share_of_ends"] for each in bins],
            s=[20 + 600 * each["weight"] for each in bins],
            color="#0072b2",
            alpha=0.7,
        )
        axis.set(title=f"{kind}\nECE {values['ece']:.3f}", xlim=(-0.02, 1.02), ylim=(-0.05, 1.05))
    figure.supxlabel("posterior")
    figure.supylabel("share of ends, out of fold")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus" / "barista")
    parser.add_argument("--agent", type=Path, default=ROOT / "examples" / "barista.py")
    parser.add_argument("--quick", default=Config().models.quick_recognizer, help="what hears a pause first")
    parser.add_argument("--silence-ms", type=int, default=SILENCE_MS, help="how much of the pause is heard")
    parser.add_argument("--half", type=int, choices=(0, 1), help="of the clips alone, by a hash of their names")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "turn_end_fit.json")
    parser.add_argument("--write", action="store_true", help="replace the fit that ships with the package")
    arguments = parser.parse_args()
    models = replace(Config().models, quick_recognizer=arguments.quick)
    config = replace(Config(), models=models)
    agent = read_agent(arguments.agent)
    cuts = asyncio.run(gather(arguments.corpus, agent, config, half=arguments.half, silence_ms=arguments.silence_ms))
    fits, report = {}, {}
    for kind in KINDS:
        fits[kind], report[kind], _ = fit_kind(cuts, kind)
        print(f"{kind:24} {json.dumps({k: v for k, v in report[kind].items() if k != 'reliability'})}")
    result = {
        "schema": "antiphon.turn_end_fit/1",
        "machine": fingerprint(),
        "silence_ms": arguments.silence_ms,
        "heard_by": arguments.quick or models.recognizer,
        "half": arguments.half,
        "ends": sum(cut.is_end for cut in cuts),
        "pauses": sum(not cut.is_end for cut in cuts),
        "out_of_fold": report,
        "fits": fits,
        "cuts": [{**asdict(cut), "is_end": cut.is_end, "evidence": cut.evidence.features()} for cut in cuts],
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    if not arguments.quick:
        plot(report, ROOT / "docs" / "turn-end-reliability.png")
    if arguments.write:
        shipped = ROOT / "src" / "antiphon" / "assets" / "turn_end" / f"{arguments.quick or models.recognizer}.json"
        shipped.write_text(json.dumps({"made_by": "bench/turn_end_fit.py", "fits": fits}, indent=2) + "\n")


if __name__ == "__main__":
    main()
