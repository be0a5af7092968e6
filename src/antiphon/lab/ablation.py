"""Runs with everything and runs with one thing left out each -> what each thing is worth, in figures and in words.

Each variant is compared with the run that was taken clip by clip beside it, so a ratio is of pairs: P95 without it over
P95 with it, with the bootstrap's interval (`compare.py`). Above 1 it makes replies faster; an interval that holds 1 is
noise. Cut-ins stand beside it, for either can be bought with the other.
Units: ms; shares from 0 to 1. Pure. It does not know what the names mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from math import isinf
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from antiphon.lab.compare import ALL, Comparison, Verdict, compare
from antiphon.lab.statistics import shown_ms
from antiphon.lab.validity import is_void

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from antiphon.lab.clips import Clip
    from antiphon.lab.result import Run
    from antiphon.lab.statistics import Ratio

SCHEMA = "antiphon.ablation/1"
FILE_NAME = "ablation.json"
WITH_ALL = "everything"
PERCENTS = (50, 95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Of one thing that was left out."""

    name: str
    compared: Comparison  # A without it, B with everything
    is_void: bool  # by the load of either run


def subset(clips: Sequence[Clip], count: int) -> list[Clip]:
    """So many of the clips, by a hash of their names: the same ones in every run, whatever else the corpus gains."""
    return sorted(clips, key=lambda clip: sha256(clip.name.encode()).hexdigest())[:count]


def groups(names: Sequence[str], alive: int) -> list[tuple[str, ...]]:
    """Which variants are measured together: `alive` servers at once, one of them with everything."""
    size = alive - 1
    return [tuple(names[at : at + size]) for at in range(0, len(names), size)]


def worths(runs: Sequence[Mapping[str, Run]]) -> list[Worth]:
    """What each thing is worth; each mapping holds the runs of one group, by name, and WITH_ALL."""
    found = []
    for group in runs:
        whole = group[WITH_ALL]
        for name, run in group.items():
            if name != WITH_ALL:
                overall = next(each for each in compare(run, whole).comparisons if each.label == ALL)
                found.append(Worth(name=name, compared=overall, is_void=is_void(run) or is_void(whole)))
    return found


def words(worth: Worth) -> str:
    """One thing's worth in a sentence."""
    a, b = worth.compared.a, worth.compared.b
    shown = worth.compared.ratios[95]
    if shown is None:
        return f"{worth.name}: nothing was measured."
    verdict = {
        Verdict.NOISE: "noise",
        Verdict.SLOWER: "replies are slower without it",
        Verdict.FASTER: "replies are faster without it",
    }[worth.compared.verdict(95)]
    return (
        f"Without {worth.name} P95 is {_times(shown)} of what it is with it: {shown_ms(a.p95_ms)} against "
        f"{shown_ms(b.p95_ms)}, cut-ins {a.cut_ins} against {b.cut_ins} of {b.turns}; {verdict}."
    )


def _times(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    low, high = (f"{end:.2f}" if not isinf(end) else "inf" for end in (ratio.interval.low, ratio.interval.high))
    return f"{ratio.value:.2f} ({low}-{high})"


def show_worths(found: Sequence[Worth], console: Console) -> None:
    """A row for each, those that cost most first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("without", no_wrap=True)
    for heading in ("P50", "with", "ratio, 95 %", "P95", "with", "ratio, 95 %", "cut-ins", "with", "lost", "with"):
        table.add_column(heading, justify="right", no_wrap=True)
    for worth in sorted(found, key=lambda each: -(each.compared.ratios[95].value if each.compared.ratios[95] else 0)):
        a, b = worth.compared.a, worth.compared.b
        cells = [worth.name]
        for percent in PERCENTS:
            cells += [shown_ms(a.percentiles_ms[percent]), shown_ms(b.percentiles_ms[percent])]
            cells.append(_times(worth.compared.ratios[percent]))
        cells += [str(a.cut_ins), str(b.cut_ins), str(a.lost), str(b.lost)]
        is_noise = worth.compared.verdict(95) in (Verdict.NOISE, Verdict.UNKNOWN)
        table.add_row(*cells, style="dim" if is_noise else "")
    console.print(table)
    if any(worth.is_void for worth in found):
        console.print(Text("Some of it is void by the load of the machine; measure again on a quiet one.", "bold red"))


def as_json(found: Sequence[Worth], about: Mapping[str, object]) -> dict[str, Any]:
    """For programs; an infinity is null."""
    return {"schema": SCHEMA, **about, "mechanisms": [_worth_json(worth) for worth in found]}


def _worth_json(worth: Worth) -> dict[str, Any]:
    a, b = worth.compared.a, worth.compared.b
    interval = worth.compared.cut_in_difference
    return {
        "name": worth.name,
        "is_void": worth.is_void,
        "turns": [a.turns, b.turns],
        "cut_ins": [a.cut_ins, b.cut_ins],
        "cut_in_difference": [interval.low, interval.high],
        "lost": [a.lost, b.lost],
        "percentiles": {
            str(percent): {
                "ms": [_finite(a.percentiles_ms[percent]), _finite(b.percentiles_ms[percent])],
                "ratio": None if ratio is None else _finite(ratio.value),
                "interval": None if ratio is None else [_finite(ratio.interval.low), _finite(ratio.interval.high)],
                "is_paired": None if ratio is None else ratio.is_paired,
                "verdict": str(worth.compared.verdict(percent)),
            }
            for percent, ratio in worth.compared.ratios.items()
        },
        "words": words(worth),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or isinf(value) else value
