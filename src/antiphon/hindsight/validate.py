"""Some trials of a sweep -> the same settings measured live, and how far the replay was off.

A sweep costs seconds and a live run minutes, so a few points tell whether the rest can be believed. What differs
between the two is the machine: a wait that is shorter lets other work fall together, and no replay knows that.
Units: ms. It does not know how a live run is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import CallerError
from antiphon.lab.plan import BenchPlan, Eagerness, Line, SessionWishes, TurnDetection
from antiphon.lab.schedule import Habits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antiphon.lab.result import Run
    from antiphon.lab.summary import Summary
    from antiphon.lab.trade import Family, Trial

MOST_APART_MS = 20.0
MOST_CUT_INS_APART = 1
RECORD = "--record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Live less replayed, at one setting."""

    name: str
    settings: Mapping[str, object]
    replayed: Summary
    live: Summary

    @property
    def p95_ms(self) -> float | None:
        """None where one of the two has none, or it is infinite."""
        a, b = self.live.p95_ms, self.replayed.p95_ms
        return None if a is None or b is None or isinf(a) or isinf(b) else a - b

    @property
    def cut_ins(self) -> int:
        return self.live.cut_ins - self.replayed.cut_ins

    @property
    def is_near(self) -> bool:
        """Whether the replay can be believed here."""
        apart = self.p95_ms
        return apart is not None and abs(apart) <= MOST_APART_MS and abs(self.cut_ins) <= MOST_CUT_INS_APART

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "p95_ms": {"replayed": _finite(self.replayed.p95_ms), "live": _finite(self.live.p95_ms)},
            "p50_ms": {"replayed": _finite(self.replayed.p50_ms), "live": _finite(self.live.p50_ms)},
            "cut_ins": {"replayed": self.replayed.cut_ins, "live": self.live.cut_ins},
            "turns": {"replayed": self.replayed.turns, "live": self.live.turns},
            "p95_apart_ms": self.p95_ms,
            "cut_ins_apart": self.cut_ins,
            "is_near": self.is_near,
        }


def _finite(value: float | None) -> float | None:
    return None if value is None or isinf(value) else value


def chosen(family: Family, count: int) -> list[Trial]:
    """So many trials: the frontier's first, as evenly as may be; where it has too few, evenly of the others."""
    best = list(family.best)
    if len(best) >= count:
        return _spread(best, count)
    taken = set(map(id, best))
    others = [trial for trial in family.trials if id(trial) not in taken and _is_measured(trial)]
    return best + _spread(others, count - len(best))


def _is_measured(trial: Trial) -> bool:
    p95_ms = trial.summary.p95_ms
    return p95_ms is not None and not isinf(p95_ms)


def _spread(trials: Sequence[Trial], count: int) -> list[Trial]:
    if count >= len(trials):
        return list(trials)
    if count == 1:
        return [trials[len(trials) // 2]]
    return [trials[round(place * (len(trials) - 1) / (count - 1))] for place in range(count)]


def plan_again(run: Run, settings: Mapping[str, object], out: Path) -> tuple[BenchPlan, Habits]:
    """The plan that made a run, with other settings of our own server.

    Raises:
        CallerError: the run says too little, or is of a server that is not ours to set.
    """
    told = run.settings
    if told.get("url") is not None:
        raise CallerError("the run was of a server at an address", hint="only our own can be set otherwise")
    try:
        wishes = dict(told["wishes"])
        wishes["turn_detection"] = TurnDetection(wishes["turn_detection"])
        wishes["eagerness"] = Eagerness(wishes["eagerness"]) if wishes["eagerness"] else None
        plan = BenchPlan(
            own_server=(*without_record(told["own_server"]), *as_flags(settings)),
            name=run.name,
            corpus=Path(told["corpus"]) if told["corpus"] else None,
            kinds=tuple(told["kinds"]),
            callers=told["callers"],
            turns=told["turns"],
            scenario=told["scenario"],
            seed=told["seed"],
            patience_s=told["patience_s"],
            wishes=SessionWishes(**wishes),
            line=Line(**told["line"]),
            wants_stamps=told["wants_stamps"],
            out=out,
        )
        habits = Habits(**told["habits"])
    except (KeyError, TypeError, ValueError) as error:
        raise CallerError(
            f"the run's settings cannot be read: {error!r}", hint="measure again with this Antiphon"
        ) from error
    return plan, habits


def as_flags(settings: Mapping[str, object]) -> list[str]:
    """Of `antiphon serve`."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def without_record(arguments: Sequence[str]) -> list[str]:
    """The arguments of a server that records nothing."""
    kept = list(arguments)
    while RECORD in kept:
        at = kept.index(RECORD)
        del kept[at : at + 2]
    return kept
