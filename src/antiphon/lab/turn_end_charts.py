"""Evaluated detectors -> turn-end.png: cut-offs against waiting, and reliability; a row for each group of pauses.

Needs matplotlib, of the extra `lab`. Drawn through its own figure, never through pyplot. Threads: any.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from antiphon.lab.charts import COLOURS, PAPER, PNG_DPI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from antiphon.lab.turn_end_report import Evaluation, Group

COLUMN_IN, ROW_IN = 4.4, 3.2
MOST_ROWS = 6  # all pauses, and as many kinds as can be told apart


def picture(evaluation: Evaluation) -> bytes | None:
    """The PNG; None where no group has both pauses and ends."""
    from matplotlib import rc_context  # noqa: PLC0415 - of an extra, and slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    names = [name for name in evaluation.groups if any(group.trade.frontier for group in evaluation.of(name))]
    names = names[:MOST_ROWS]
    if not names:
        return None
    moment_s = _moment_s(evaluation)
    with rc_context({"font.size": 9.5, "font.family": "DejaVu Sans", "text.parse_math": False}):
        figure = Figure(figsize=(2 * COLUMN_IN, ROW_IN * len(names) + 0.4), layout="constrained")
        grid = figure.subplots(len(names), 2, squeeze=False)
        for (left, right), name in zip(grid, names, strict=True):
            _prepare(left, "mean wait at ends, ms", "pauses cut off, %")
            _frontiers(left, evaluation.of(name))
            left.set_title(f"{evaluation.corpus}, {name}", fontsize=9.5, loc="left")
            _prepare(right, f"probability after {1000 * moment_s:.0f} ms", "share of ends")
            _reliability(right, evaluation.of(name), moment_s)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
        png = BytesIO()
        figure.savefig(png, format="png", dpi=PNG_DPI, facecolor="white")
    return png.getvalue()


def _moment_s(evaluation: Evaluation) -> float:
    """The moment that reliability is drawn for: the middle one that there is."""
    moments = sorted({each.at_s for group in evaluation.all_groups for each in group.calibrations})
    return moments[len(moments) // 2] if moments else 0.3


def _frontiers(axes: Axes, groups: Sequence[Group]) -> None:
    for index, group in enumerate(groups):
        means_ms = [1000 * mean_s for mean_s, _ in group.trade.frontier]
        shares = [100 * share for _, share in group.trade.frontier]
        colour = COLOURS[index % len(COLOURS)]
        axes.step(
            means_ms, shares, where="post", color=colour, label=group.detector, marker="o", markersize=2.5, alpha=0.9
        )
    axes.axhline(5, color=PAPER.rule, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.set_xlim(left=0)
    axes.set_ylim(-2, 102)


def _reliability(axes: Axes, groups: Sequence[Group], moment_s: float) -> None:
    axes.plot([0, 1], [0, 1], color=PAPER.rule, linewidth=1, zorder=0)
    for index, group in enumerate(groups):
        for each in group.calibrations:
            if each.at_s != moment_s:
                continue
            axes.scatter(
                [one.score for one in each.bins],
                [one.ends for one in each.bins],
                s=[12 + 300 * one.weight for one in each.bins],
                color=COLOURS[index % len(COLOURS)],
                alpha=0.65,
                linewidths=0,
            )
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.05, 1.05)


def _prepare(axes: Axes, x: str, y: str) -> None:
    axes.grid(visible=True, color=PAPER.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(x, color=PAPER.ink)
    axes.set_ylabel(y, color=PAPER.ink)
    axes.tick_params(color=PAPER.rule, labelcolor=PAPER.ink, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(PAPER.rule)
