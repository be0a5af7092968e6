"""What detectors thought -> their figures by kind of turn: a table, turn-end.json, and a picture where it can be drawn.

Figures of a kind have policies of their own, chosen on its pauses. A kind without pauses inside turns has none; of it
the waits under the policy that is best over all kinds are told. Threads: writing blocks on the disk.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from antiphon.lab import charts
from antiphon.lab.statistics import percentile, wilson
from antiphon.lab.store import write_files
from antiphon.lab.turn_end import (
    CUT_OFF_BUDGETS,
    DELAYS_S,
    LONGEST_HOLD_S,
    SHORTEST_HOLD_S,
    THRESHOLDS,
    TIMEOUTS_S,
    Judged,
    trade,
    waits_s,
)
from antiphon.lab.turn_end_calibration import MOMENTS_S, calibration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from antiphon.lab.turn_end import Point, Trade
    from antiphon.lab.turn_end_calibration import Calibration

SCHEMA = "antiphon.turn_end/1"
FILE_NAME, PICTURE_NAME = "turn-end.json", "turn-end.png"
ALL = "all"
TABLE_BUDGETS_S = (0.2, 0.3, 0.5)
COMPARABLE = (
    "Definitions as LiveKit's eot-bench has them; its published figures rest on other recordings, so only figures on "
    "the same corpus are comparable."
)
CHOSEN = "Policies are chosen on the very pauses that they are judged by, as eot-bench does; expect worse on others."


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One detector on the turns of one kind, or on all."""

    detector: str
    kind: str
    turns: int
    trade: Trade
    calibrations: tuple[Calibration, ...]
    shared_mean_s: float | None  # waited at ends under the policy that is fastest over all kinds at 5 % cut-offs
    shared_p95_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Every detector on every kind."""

    corpus: str
    step_s: float
    up_to_s: float
    groups: Mapping[str, tuple[Group, ...]]  # by kind, ALL first; each in the detectors' order
    judged: Mapping[str, tuple[Judged, ...]]  # by detector
    notes: tuple[str, ...] = field(default=())

    def of(self, kind: str) -> tuple[Group, ...]:
        return self.groups[kind]

    @property
    def all_groups(self) -> list[Group]:
        return [group for groups in self.groups.values() for group in groups]


def evaluate(
    judged: Mapping[str, Sequence[Judged]], *, corpus: str, step_s: float, up_to_s: float, notes: Sequence[str] = ()
) -> Evaluation:
    """The figures; every detector must have seen the same pauses."""
    kinds = sorted({pause.kind for pauses in judged.values() for pause in pauses})
    wanted = [ALL, *kinds] if len(kinds) > 1 else kinds
    trades = {detector: trade(pauses, step_s=step_s) for detector, pauses in judged.items()}
    groups = {}
    for kind in wanted:
        groups[kind] = tuple(
            _group(detector, kind, [pause for pause in pauses if kind in (ALL, pause.kind)], trades[detector], step_s)
            for detector, pauses in judged.items()
        )
    kept = {detector: tuple(pauses) for detector, pauses in judged.items()}
    return Evaluation(
        corpus=corpus, step_s=step_s, up_to_s=up_to_s, groups=groups, judged=kept, notes=(*notes, COMPARABLE, CHOSEN)
    )


def _group(detector: str, kind: str, pauses: Sequence[Judged], overall: Trade, step_s: float) -> Group:
    shared: list[float] = []
    best = dict(overall.fastest).get(CUT_OFF_BUDGETS[0])
    if best is not None:
        shared = waits_s(pauses, best.policy, step_s=step_s)
    found = (calibration(pauses, at_s, step_s=step_s) for at_s in MOMENTS_S)
    return Group(
        detector=detector,
        kind=kind,
        turns=len({pause.clip for pause in pauses}),
        trade=trade(pauses, step_s=step_s),
        calibrations=tuple(each for each in found if each is not None),
        shared_mean_s=sum(shared) / len(shared) if shared else None,
        shared_p95_s=percentile(shared, 95),
    )


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """All of it, for programs; shares with their 95 % intervals."""
    return {
        "schema": SCHEMA,
        "corpus": evaluation.corpus,
        "step_s": evaluation.step_s,
        "up_to_s": evaluation.up_to_s,
        "definitions": {
            "pauses_s": [SHORTEST_HOLD_S, LONGEST_HOLD_S],
            "thresholds": [THRESHOLDS[0], THRESHOLDS[-1], len(THRESHOLDS)],
            "delays_s": DELAYS_S,
            "timeouts_s": TIMEOUTS_S,
        },
        "notes": evaluation.notes,
        "groups": [_group_as_json(group) for group in evaluation.all_groups],
        "pauses": {detector: [_pause_as_json(each) for each in kept] for detector, kept in evaluation.judged.items()},
    }


def _group_as_json(group: Group) -> dict[str, Any]:
    found = group.trade
    return {
        "detector": group.detector,
        "kind": group.kind,
        "turns": group.turns,
        "pauses": found.holds,
        "ends": found.ends,
        "fewest_cut_offs_within_mean": [_point_as_json(*each) for each in found.within_mean],
        "fewest_cut_offs_within_p95": [_point_as_json(*each) for each in found.within_p95],
        "shortest_mean_at_cut_offs": [_point_as_json(*each) for each in found.fastest],
        "shortest_p95_at_cut_offs": [_point_as_json(*each) for each in found.surest],
        "mean_s_under_the_policy_of_all": group.shared_mean_s,
        "p95_s_under_the_policy_of_all": group.shared_p95_s,
        "calibration": [asdict(each) for each in group.calibrations],
        "frontier": found.frontier,
    }


def _point_as_json(budget: float, point: Point | None) -> dict[str, Any]:
    if point is None:
        return {"budget": budget, "reached": False}
    ends = wilson(point.cut_offs, point.holds)
    turns = wilson(point.turns_cut, point.ends)
    return {
        "budget": budget,
        "reached": True,
        **asdict(point),
        "cut_off_share": point.cut_off_share,
        "cut_off_interval": [ends.low, ends.high],
        "turns_cut_interval": [turns.low, turns.high],
    }


def _pause_as_json(pause: Judged) -> dict[str, Any]:
    return {
        "clip": pause.clip,
        "kind": pause.kind,
        "start_s": pause.start_s,
        "duration_s": None if pause.is_end else round(pause.duration_s, 3),
        "scores": pause.scores,
    }


def write_evaluation(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Write turn-end.json, and turn-end.png where matplotlib is there and there is something to draw.

    Raises:
        MachineError: a file cannot be written.
    """
    written = {FILE_NAME: (json.dumps(as_json(evaluation), indent=1, allow_nan=False) + "\n").encode()}
    if charts.can_draw():
        from antiphon.lab.turn_end_charts import picture  # noqa: PLC0415 - of an extra

        if png := picture(evaluation):
            written[PICTURE_NAME] = png
    return write_files(written, folder)


def show(evaluation: Evaluation, console: Console) -> None:
    """The table: a block for each kind."""
    from rich.table import Table  # noqa: PLC0415 - slow to import
    from rich.text import Text  # noqa: PLC0415

    for kind, groups in evaluation.groups.items():
        first = groups[0]
        title = f"{evaluation.corpus}, {kind}: {first.trade.ends} ends, {first.trade.holds} pauses inside turns"
        console.print(Text(title, "bold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("", no_wrap=True)
        for heading in headings():
            table.add_column(heading, justify="right", no_wrap=True)
        for group in groups:
            table.add_row(Text(group.detector), *cells(group))
        console.print(table)
        console.print()
    console.print(Text("cut off: % of pauses, at the best policy whose mean wait is at most so long;", "dim"))
    console.print(Text("wait: ms at the best policy that cuts off at most 5 % of pauses, mean and P95;", "dim"))
    console.print(Text(f"ECE and Brier: {_moment()} after pauses began, pauses and ends weighing half each", "dim"))
    for note in evaluation.notes:
        console.print(Text(note, "dim"), soft_wrap=True)


def headings() -> list[str]:
    """Of the table's columns behind the name."""
    budgets = [f"cut off {1000 * budget:.0f} ms" for budget in TABLE_BUDGETS_S]
    return [*budgets, "wait mean", "wait P95", "ECE", "Brier"]


def cells(group: Group) -> list[str]:
    """One row; "-" where no policy gets there, "(n)" for waits under the policy that is best over all kinds."""
    within, fastest = dict(group.trade.within_mean), dict(group.trade.fastest).get(CUT_OFF_BUDGETS[0])
    surest = dict(group.trade.surest).get(CUT_OFF_BUDGETS[0])
    shares = [_share(within.get(budget)) for budget in TABLE_BUDGETS_S]
    mean = _ms(fastest.mean_s) if fastest else _borrowed(group, group.shared_mean_s)
    p95 = _ms(surest.p95_s) if surest else _borrowed(group, group.shared_p95_s)
    known = next((each for each in group.calibrations if each.at_s == MOMENTS_S[1]), None)
    calibrated = [f"{known.ece:.3f}", f"{known.brier:.3f}"] if known else ["-", "-"]
    return [*shares, mean, p95, *calibrated]


def _share(point: Point | None) -> str:
    return f"{100 * point.cut_off_share:.1f}" if point else "-"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f}"


def _borrowed(group: Group, seconds: float | None) -> str:
    return "-" if seconds is None or group.trade.holds else f"({_ms(seconds)})"


def _moment() -> str:
    return f"{1000 * MOMENTS_S[1]:.0f} ms"
