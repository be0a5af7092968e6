"""`p95=320,cut_ins=2,silent=0` in -> whether a run keeps to it out, requirement by requirement.

Every figure is "at most", but for `slots`, the share of slots heard, which is "at least". Counts may be given as a
share of the turns, `cut_ins=2%`. One kind alone is meant by its name before a colon: `hesitation:cut_ins=2`.
Pure. Units: ms where a latency is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.lab.statistics import shown_ms
from antiphon.lab.summary import summarise

if TYPE_CHECKING:
    from antiphon.lab.result import Run
    from antiphon.lab.summary import Summary

LATENCIES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
COUNTS = ("cut_ins", "silent", "failed", "refused", "splits", "gaps")
RATES = ("slots", "word_errors")  # shares by nature
NAMES = (*LATENCIES, *COUNTS, *RATES)
EXAMPLE = "p95=320,cut_ins=2,silent=0"
LARGEST = 1_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One figure, and what it may be."""

    name: str
    limit: float
    is_share: bool  # of the turns; a count otherwise
    kind: str = ""  # empty: all turns

    def __str__(self) -> str:
        where = f"{self.kind}:" if self.kind else ""
        return f"{where}{self.name}={100 * self.limit:g}%" if self.is_share else f"{where}{self.name}={self.limit:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How a run stands to one requirement."""

    requirement: Requirement
    is_met: bool
    seen: str  # the figure, as people read it


def parse(text: str) -> tuple[Requirement, ...]:
    """The requirements in a comma list.

    Raises:
        CallerError: a part is no requirement; the message names the field.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise CallerError("--require names nothing", hint=f"for instance --require {EXAMPLE}")
    found = tuple(_parsed(part) for part in parts)
    keys = [(item.kind, item.name) for item in found]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise CallerError(f"--require names {twice[1]} twice", hint="leave one of them out")
    return found


def _parsed(part: str) -> Requirement:
    left, equals, value = part.partition("=")
    kind, _, name = left.rpartition(":")
    kind, name, value = kind.strip(), name.strip().replace("-", "_").lower(), value.strip()
    if not equals:
        raise CallerError(f"--require: {part!r} has no value", hint=f"for instance {EXAMPLE}")
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(NAMES)}"
        raise CallerError(f"--require: there is no figure {name!r}", hint=hint)
    is_share = value.endswith("%")
    if is_share and name in LATENCIES:
        raise CallerError(f"--require: {name} is {value!r}", hint=f"a number of milliseconds, for instance {name}=320")
    limit = _number(name, value.removesuffix("%"))
    if name in RATES:
        limit = limit / 100 if is_share else limit
        if limit > 1:
            raise CallerError(f"--require: {name} is {value!r}", hint=f"a share: {name}=0.9 or {name}=90%")
        return Requirement(name=name, limit=limit, is_share=True, kind=kind)
    return Requirement(name=name, limit=limit / 100 if is_share else limit, is_share=is_share, kind=kind)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= LARGEST:
        raise CallerError(f"--require: {name} is {text!r}", hint=f"a number from 0, for instance {name}=2")
    return value


def judge(run: Run, requirements: tuple[Requirement, ...]) -> list[Finding]:
    """Each requirement's finding. A figure that no turn gave is not met.

    Raises:
        CallerError: a requirement names a kind that the run does not have.
    """
    findings = []
    kinds = sorted({turn.kind for turn in run.turns})
    for requirement in requirements:
        if requirement.kind and requirement.kind not in kinds:
            raise CallerError(
                f"--require: {requirement.kind} is no kind of this run", hint=f"it has {', '.join(kinds) or 'no turns'}"
            )
        turns = [turn for turn in run.turns if requirement.kind in ("", turn.kind)]
        findings.append(_finding(requirement, summarise(turns)))
    return findings


def _finding(requirement: Requirement, summary: Summary) -> Finding:
    name, limit = requirement.name, requirement.limit
    if name in LATENCIES:
        value = summary.percentiles_ms[LATENCIES[name]]
        is_met = value is not None and value <= limit
        return Finding(requirement=requirement, is_met=is_met, seen=shown_ms(value))
    if name in RATES:
        share = summary.slot_share if name == "slots" else summary.word_error_rate
        is_met = share is not None and (share >= limit if name == "slots" else share <= limit)
        return Finding(requirement=requirement, is_met=is_met, seen="not measured" if share is None else f"{share:.1%}")
    count = len(summary.gaps_ms) if name == "gaps" else int(getattr(summary, name))
    tried = summary.turns + summary.refused
    seen = count / max(1, tried) if requirement.is_share else count
    return Finding(requirement=requirement, is_met=tried > 0 and seen <= limit, seen=f"{count} of {tried} turns")
