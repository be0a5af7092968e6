"""A run's turns in -> the figures that people quote out: percentiles together with cut-ins, by whatever one asks.

What counts: a turn that was answered has its latency; a silent or failed one is infinite; one with a cut-in is counted
as that and left out of the latencies; one that the server refused for being full is counted and otherwise left out.
Units: ms; shares from 0 to 1. It does not know how anything is shown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeVar

from antiphon.core.errors import check_range
from antiphon.lab.result import Outcome
from antiphon.lab.statistics import Interval, Sample, percentile, percentile_interval, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from antiphon.lab.result import Run, Turn

Key = TypeVar("Key")

PERCENTS = (50, 90, 95, 99, 100)  # 100 is the maximum
ENOUGH_FOR_P95 = 20  # of fewer turns, the 95th percentile is the slowest one
WITH_PAUSES = "hesitation"  # the kind whose pauses lie inside the turn; the others' turns are complete at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Some turns in figures; percentiles and intervals are None where nothing was measured."""

    label: str
    turns: int  # that the server took on
    answered: int
    cut_ins: int
    silent: int
    failed: int
    refused: int  # beside `turns`
    percentiles_ms: Mapping[int, float | None]  # by percent
    p50_interval: Interval | None
    p95_interval: Interval | None
    cut_in_interval: Interval  # of the share
    splits: int
    slots: int
    slots_heard: int
    words: int
    word_errors: int
    late_p95_ms: float | None  # behind the schedule when the turn began
    gaps_ms: tuple[float, ...]  # in order of length, the longest first
    replies_s: float  # of audible sound in all replies together
    stops_ms: tuple[float, ...]  # of barge-ins
    truncation_errors_ms: tuple[float, ...]  # of barge-ins, without sign

    @property
    def measured(self) -> int:
        """On how many turns the percentiles rest."""
        return self.answered + self.silent + self.failed

    @property
    def cut_in_share(self) -> float:
        return self.cut_ins / self.turns if self.turns else 0.0

    @property
    def p50_ms(self) -> float | None:
        return self.percentiles_ms[50]

    @property
    def p95_ms(self) -> float | None:
        return self.percentiles_ms[95]

    @property
    def max_ms(self) -> float | None:
        return self.percentiles_ms[100]

    @property
    def lost(self) -> int:
        """Turns that no one answered, for whatever reason."""
        return self.silent + self.failed + self.refused

    @property
    def slot_share(self) -> float | None:
        return self.slots_heard / self.slots if self.slots else None

    @property
    def word_error_rate(self) -> float | None:
        return self.word_errors / self.words if self.words else None

    @property
    def gaps_a_minute(self) -> float | None:
        """Of reply."""
        return 60 * len(self.gaps_ms) / self.replies_s if self.replies_s else None


def latencies(turns: Iterable[Turn]) -> Sample:
    """The latencies that percentiles are made of, infinities included."""
    counted = [(turn, latency) for turn in turns if (latency := latency_ms(turn)) is not None]
    return Sample(
        values=tuple(latency for _, latency in counted), clips=tuple(f"{turn.kind}/{turn.clip}" for turn, _ in counted)
    )


def latency_ms(turn: Turn) -> float | None:
    """A turn's latency in percentiles; None where it has no part in them."""
    match turn.outcome:
        case Outcome.ANSWERED:
            return inf if turn.v2v_ms is None else turn.v2v_ms
        case Outcome.SILENT | Outcome.FAILED:
            return inf
        case Outcome.CUT_IN | Outcome.REFUSED:
            return None


def summarise(turns: Sequence[Turn], *, label: str = "all") -> Summary:
    """The figures of these turns."""
    outcomes = Counter(turn.outcome for turn in turns)
    taken = [turn for turn in turns if turn.outcome is not Outcome.REFUSED]
    sample = latencies(turns)
    gaps = sorted((gap for turn in taken for gap in turn.gaps_ms), reverse=True)
    return Summary(
        label=label,
        turns=len(taken),
        answered=outcomes[Outcome.ANSWERED],
        cut_ins=outcomes[Outcome.CUT_IN],
        silent=outcomes[Outcome.SILENT],
        failed=outcomes[Outcome.FAILED],
        refused=outcomes[Outcome.REFUSED],
        percentiles_ms={percent: percentile(sample.values, percent) for percent in PERCENTS},
        p50_interval=percentile_interval(sample, 50),
        p95_interval=percentile_interval(sample, 95),
        cut_in_interval=wilson(outcomes[Outcome.CUT_IN], len(taken)),
        splits=sum(turn.splits for turn in taken),
        slots=sum(len(turn.slots) for turn in taken),
        slots_heard=sum(turn.slots_heard for turn in taken),
        words=sum(turn.words or 0 for turn in taken if turn.word_errors is not None),
        word_errors=sum(turn.word_errors or 0 for turn in taken),
        late_p95_ms=percentile([turn.late_ms for turn in taken], 95),
        gaps_ms=tuple(gaps),
        replies_s=sum(turn.reply_ms or 0.0 for turn in taken) / 1000,
        stops_ms=tuple(turn.stop_ms for turn in taken if turn.stop_ms is not None),
        truncation_errors_ms=tuple(
            abs(turn.truncation_error_ms) for turn in taken if turn.truncation_error_ms is not None
        ),
    )


def by_kind(run: Run) -> list[Summary]:
    """A summary of each kind, and of the complete turns together where some kinds are and one is not."""
    kinds = _groups(run.turns, lambda turn: turn.kind)
    summaries = [summarise(turns, label=kind) for kind, turns in sorted(kinds.items())]
    complete = sorted(set(kinds) - {WITH_PAUSES})
    if WITH_PAUSES in kinds and len(complete) > 1:
        turns = [turn for turn in run.turns if turn.kind != WITH_PAUSES]
        summaries.append(summarise(turns, label=f"complete turns ({' + '.join(complete)})"))
    return summaries


def by_scenario(run: Run) -> list[Summary]:
    """A summary of each scenario, in the order in which they began."""
    scenarios = _groups(run.turns, lambda turn: turn.scenario)
    return [summarise(turns, label=scenario) for scenario, turns in scenarios.items()]


def by_callers(run: Run) -> dict[int, Summary]:
    """A summary for each number of callers at once, the smallest first."""
    levels = _groups(run.turns, lambda turn: turn.callers)
    return {callers: summarise(turns, label=_counted(callers)) for callers, turns in sorted(levels.items())}


def _counted(callers: int) -> str:
    return "1 caller" if callers == 1 else f"{callers} callers"


def _groups(turns: Iterable[Turn], key: Callable[[Turn], Key]) -> dict[Key, list[Turn]]:
    groups: dict[Key, list[Turn]] = {}
    for turn in turns:
        groups.setdefault(key(turn), []).append(turn)
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLimits:
    """What a server must keep to while it holds so many callers.

    Raises:
        CallerError: a value is out of its range.
    """

    p95_ms: float = 1000.0
    cut_in_share: float = 0.05  # that Wilson's interval must not lie above: one of eight turns proves nothing
    lost: int = 0  # silent, failed or refused turns

    def __post_init__(self) -> None:
        check_range("p95", self.p95_ms, 1, 60_000)
        check_range("cut_ins", self.cut_in_share, 0, 1)
        check_range("lost", self.lost, 0, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How many callers a server held, of those that were tried."""

    callers: int  # 0: not even the smallest level
    tried: tuple[int, ...]
    ended_by: str  # what the next level broke; empty if all were held
    limits: CapacityLimits


def capacity(levels: Mapping[int, Summary], limits: CapacityLimits | None = None) -> Capacity:
    """The largest level that keeps to the limits, as do all below it."""
    limits = limits or CapacityLimits()
    held, ended_by = 0, ""
    for callers, summary in sorted(levels.items()):
        ended_by = _broken(summary, limits)
        if ended_by:
            break
        held = callers
    return Capacity(callers=held, tried=tuple(sorted(levels)), ended_by=ended_by, limits=limits)


def _broken(summary: Summary, limits: CapacityLimits) -> str:
    """Which limit a level broke, in words; empty if none."""
    if summary.lost > limits.lost:
        return f"{summary.lost} turns without an answer at {summary.label}"
    if summary.p95_ms is None:
        return f"no turn was measured at {summary.label}"
    if summary.p95_ms > limits.p95_ms:
        return f"P95 of {summary.p95_ms:.0f} ms at {summary.label}"
    if summary.cut_in_interval.low > limits.cut_in_share:
        return f"{summary.cut_ins} cut-ins in {summary.turns} turns at {summary.label}"
    return ""
