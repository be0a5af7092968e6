"""Two runs in -> what one is worth against the other out, in figures and in words.

A's percentiles stand as multiples of B's with a bootstrap interval (`statistics.ratio`), its cut-ins as a difference
with Newcombe's. Where an interval holds the value that means "no difference", the verdict is "noise", whatever the
figures look like. What differs between the runs besides the servers is said first: machines, clips, scenarios, load.
Units: ms; shares from 0 to 1. Pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from math import isinf
from typing import TYPE_CHECKING, Any

from antiphon.lab.statistics import Interval, Ratio, difference, ratio, shown_ms
from antiphon.lab.summary import ENOUGH_FOR_P95, Summary, latencies, summarise
from antiphon.lab.validity import is_void

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antiphon.lab.result import Run, Turn

COMPARED = (50, 90, 95)
ALL = "all"
MACHINE = ("cpu", "cores", "system", "memory_bytes", "gpu")  # versions and commit differ on purpose
SETTINGS = ("callers", "seed", "patience_s", "line")  # that bend a latency without being the server's


class Verdict(StrEnum):
    """What the interval allows to say of A."""

    FASTER = "faster"
    SLOWER = "slower"
    NOISE = "noise"
    UNKNOWN = "unknown"  # one of the two measured nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Some turns of A against those of B."""

    label: str  # all, or a kind
    a: Summary
    b: Summary
    ratios: Mapping[int, Ratio | None]  # by percent
    cut_in_difference: Interval  # of A's share less B's

    def verdict(self, percent: int) -> Verdict:
        ratio_of = self.ratios[percent]
        if ratio_of is None:
            return Verdict.UNKNOWN
        if ratio_of.is_noise:
            return Verdict.NOISE
        return Verdict.FASTER if ratio_of.interval.high < 1 else Verdict.SLOWER


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that can be said of two runs."""

    a: str
    b: str
    warnings: tuple[str, ...]
    comparisons: tuple[Comparison, ...]  # all turns first, then by kind


def compare(a: Run, b: Run) -> Report:
    """A against B, over all turns and by the kinds that both have."""
    of_a, of_b = _names(a, b)
    comparisons = [_compared(ALL, a.turns, b.turns)]
    kinds = sorted({turn.kind for turn in a.turns} & {turn.kind for turn in b.turns})
    if len(kinds) > 1 or {turn.kind for turn in a.turns} != {turn.kind for turn in b.turns}:
        comparisons += [_compared(kind, _of_kind(a, kind), _of_kind(b, kind)) for kind in kinds]
    return Report(a=of_a, b=of_b, warnings=tuple(warnings(a, b)), comparisons=tuple(comparisons))


def _of_kind(run: Run, kind: str) -> list[Turn]:
    return [turn for turn in run.turns if turn.kind == kind]


def _names(a: Run, b: Run) -> tuple[str, str]:
    return (a.name, b.name) if a.name != b.name else (f"{a.name} (A)", f"{b.name} (B)")


def _compared(label: str, a: Sequence[Turn], b: Sequence[Turn]) -> Comparison:
    of_a, of_b = summarise(a, label=label), summarise(b, label=label)
    return Comparison(
        label=label,
        a=of_a,
        b=of_b,
        ratios={percent: ratio(latencies(a), latencies(b), percent) for percent in COMPARED},
        cut_in_difference=difference(of_a.cut_ins, of_a.turns, of_b.cut_ins, of_b.turns),
    )


def words(report: Report) -> list[str]:
    """The comparison in sentences, what to beware of first."""
    lines = [f"Beware: {warning}." for warning in report.warnings]
    for comparison in report.comparisons:
        where = "" if comparison.label == ALL else f"{comparison.label}: "
        lines += [where + latency_words(report, comparison, percent) for percent in (50, 95)]
        lines.append(where + cut_in_words(report, comparison))
    return lines


def latency_words(report: Report, comparison: Comparison, percent: int) -> str:
    """One percentile's sentence."""
    of_a, of_b = comparison.a.percentiles_ms[percent], comparison.b.percentiles_ms[percent]
    found = comparison.ratios[percent]
    if found is None:
        missing = report.a if of_a is None else report.b
        return f"P{percent} cannot be compared: {missing} has no turn with a latency."
    how = f"{found.clips} clips in pairs" if found.is_paired else "unpaired"
    count = f"n={comparison.a.measured} and {comparison.b.measured}, {how}"
    figures = f"{shown_ms(of_a)} against {shown_ms(of_b)}"
    verdict = comparison.verdict(percent)
    if isinf(found.value):
        return f"{report.a}'s P{percent} is infinite, {report.b}'s is not ({figures}; {count}){_noise(verdict)}"
    interval = f"{_times(found.interval.low)}-{_times(found.interval.high)}"
    few = _few(comparison) if percent == 95 else ""
    sentence = f"{report.a}'s P{percent} is {found.value:.2f} of {report.b}'s ({interval}, {count}; {figures})"
    return f"{sentence}{_noise(verdict)}{few}"


def cut_in_words(report: Report, comparison: Comparison) -> str:
    """The cut-ins' sentence."""
    a, b, interval = comparison.a, comparison.b, comparison.cut_in_difference
    ends = f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"
    points = f"{100 * (a.cut_in_share - b.cut_in_share):+.1f} points ({ends})"
    verdict = Verdict.NOISE if interval.holds(0.0) else Verdict.FASTER
    counts = f"{report.a} cuts in on {a.cut_ins} of {a.turns} turns, {report.b} on {b.cut_ins} of {b.turns}"
    return f"{counts}: {points}{_noise(verdict)}"


def _noise(verdict: Verdict) -> str:
    return ": noise." if verdict is Verdict.NOISE else "."


def _times(value: float) -> str:
    return "infinite" if isinf(value) else f"{value:.2f}"


def _few(comparison: Comparison) -> str:
    fewest = min(comparison.a.measured, comparison.b.measured)
    return f" Of {fewest} turns P95 is nearly the slowest." if fewest < ENOUGH_FOR_P95 else ""


def warnings(a: Run, b: Run) -> list[str]:
    """What makes the runs hard to compare, each as half a sentence."""
    found = [f"{name} is void by its load" for name, run in zip(_names(a, b), (a, b), strict=True) if is_void(run)]
    for field in MACHINE:
        mine, theirs = a.machine.get(field), b.machine.get(field)
        if mine is not None and theirs is not None and mine != theirs:
            found.append(f"the machines differ: {field} is {mine} and {theirs}")
    if _clips(a) != _clips(b):
        common = len(_clips(a) & _clips(b))
        found.append(f"the clips differ: {len(_clips(a))} and {len(_clips(b))}, of which both have {common}")
    if a.scenario != b.scenario:
        found.append(f"the scenarios differ: {a.scenario} and {b.scenario}")
    for field in SETTINGS:
        mine, theirs = a.settings.get(field), b.settings.get(field)
        if mine is not None and theirs is not None and mine != theirs:
            found.append(f"the settings differ: {field} is {_shown(mine)} and {_shown(theirs)}")
    if _mix(a) != _mix(b) and _clips(a) == _clips(b):
        found.append(f"the kinds weigh differently: {_shown(_mix(a))} and {_shown(_mix(b))}")
    return found


def _clips(run: Run) -> frozenset[str]:
    return frozenset(f"{turn.kind}/{turn.clip}" for turn in run.turns)


def _mix(run: Run) -> dict[str, int]:
    return dict(sorted(Counter(turn.kind for turn in run.turns).items()))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return str(value)


def as_json(report: Report) -> dict[str, Any]:
    """For programs; an infinity is null."""
    return {
        "a": report.a,
        "b": report.b,
        "warnings": list(report.warnings),
        "comparisons": [_comparison_json(comparison) for comparison in report.comparisons],
        "words": words(report),
    }


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "label": comparison.label,
        "turns": [comparison.a.turns, comparison.b.turns],
        "measured": [comparison.a.measured, comparison.b.measured],
        "cut_ins": [comparison.a.cut_ins, comparison.b.cut_ins],
        "cut_in_difference": [comparison.cut_in_difference.low, comparison.cut_in_difference.high],
        "percentiles": {
            str(percent): {
                "ms": [
                    _finite(comparison.a.percentiles_ms[percent]),
                    _finite(comparison.b.percentiles_ms[percent]),
                ],
                "ratio": None if found is None else _finite(found.value),
                "interval": None if found is None else [_finite(found.interval.low), _finite(found.interval.high)],
                "is_paired": None if found is None else found.is_paired,
                "verdict": str(comparison.verdict(percent)),
            }
            for percent, found in comparison.ratios.items()
        },
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or isinf(value) else value
