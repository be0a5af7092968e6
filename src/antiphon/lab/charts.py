"""Turns and summaries in -> pictures out: SVG for the page, which follows its colours, and PNG to put elsewhere.

Needs matplotlib, which the extra `lab` brings; this file alone imports it. A figure is drawn through its own object,
never through pyplot, so no display and no global state is involved. Units: ms on latency axes, per cent on shares.
Threads: any, one figure each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from math import isinf
from typing import TYPE_CHECKING

from antiphon.lab.result import Outcome
from antiphon.lab.statistics import percentile
from antiphon.lab.summary import by_callers, latencies, latency_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from antiphon.lab.frontier import Frontier, Point
    from antiphon.lab.result import Run, Turn
    from antiphon.lab.summary import Summary

INSTALL = 'pip install "antiphon[lab]"'
WIDTH_IN, HEIGHT_IN = 4.4, 3.0  # small, so that words stay readable where a phone shrinks it
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#999999")  # Okabe and Ito's, blue first
MOST_SERIES = len(COLOURS)
PNG_DPI = 200
MOST_POINTS = 4000  # of a scatter; more would make the page heavy without showing more
MOST_STEPS = 500  # of a curve


@dataclass(frozen=True, slots=True)
class Paint:
    """What words and rules are drawn in."""

    ink: str
    rule: str


PAPER = Paint("#24292f", "#d0d7de")  # of a PNG
PAGE = Paint("#010203", "#040506")  # of an SVG, where these stand for the page's own colours


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture in both forms."""

    name: str  # of the file, without its ending
    title: str
    note: str  # what it shows, for who cannot see it and for who wonders
    svg: str
    png: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A run or a kind in the plane of cut-ins and latency."""

    name: str
    summary: Summary


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def of_run(run: Run) -> list[Chart]:
    """Every picture that this run has something to show in; the trade is drawn apart, it may have several runs."""
    if not any(not isinf(value) for value in latencies(run.turns).values):
        return []
    found = [percentile_curve(run.turns), histogram(run.turns), over_time(run.turns)]
    levels = by_callers(run)
    if len(levels) > 1:
        found.append(callers(levels))
    lengths_ms = [gap for turn in run.turns for gap in turn.gaps_ms]
    return [*found, gaps(lengths_ms)] if lengths_ms else found


def percentile_curve(turns: Sequence[Turn]) -> Chart:
    """Latency over percentile, a line for each kind."""

    def draw(axes: Axes, paint: Paint) -> None:
        for colour, (kind, values) in zip(COLOURS, _values_by_kind(turns).items(), strict=False):
            finite = sorted(value for value in values if not isinf(value))
            if not finite:
                continue
            percents = [100 * step / MOST_STEPS for step in range(MOST_STEPS + 1)]
            drawn = [(at, percentile(values, at)) for at in percents]
            known = [(at, value) for at, value in drawn if value is not None and not isinf(value)]
            axes.step([at for at, _ in known], [value for _, value in known], color=colour, label=kind, where="post")
        for at in (50, 95):
            axes.axvline(at, color=paint.rule, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        axes.set_xlim(0, 100)
        axes.set_xticks([0, 25, 50, 75, 95])
        axes.set_xlabel("percentile")
        axes.set_ylabel("v2v, ms")
        _from_zero(axes)
        _legend(axes)

    note = "How slow the turn at each percentile was. A line that ends before 100 ends where turns had no reply."
    return _chart("percentiles", "Latency by percentile", note, draw)


def histogram(turns: Sequence[Turn]) -> Chart:
    """How many turns took how long."""

    def draw(axes: Axes, _paint: Paint) -> None:
        groups = {
            kind: [value for value in values if not isinf(value)] for kind, values in _values_by_kind(turns).items()
        }
        groups = {kind: values for kind, values in groups.items() if values}
        everything = [value for values in groups.values() for value in values]
        bins = max(5, min(40, round(len(everything) ** 0.5) * 2))
        axes.hist(
            list(groups.values()),
            bins=bins,
            stacked=True,
            label=list(groups),
            color=COLOURS[: len(groups)],
            rwidth=0.92,
        )
        axes.set_xlabel("v2v, ms")
        axes.set_ylabel("turns")
        _whole_numbers(axes)
        _legend(axes)

    lost = sum(isinf(value) for values in _values_by_kind(turns).values() for value in values)
    beyond = f" {lost} without a reply lie beyond the right edge." if lost else ""
    return _chart("histogram", "How many turns took how long", f"Turns with a latency, by kind.{beyond}", draw)


def over_time(turns: Sequence[Turn]) -> Chart:
    """Each turn at the time it began."""
    spread = turns[:: -(-len(turns) // MOST_POINTS)]

    def draw(axes: Axes, _paint: Paint) -> None:
        unit, length_s = _time_unit(spread)
        for colour, kind in zip(COLOURS, sorted({turn.kind for turn in spread}), strict=False):
            of_kind = [turn for turn in spread if turn.kind == kind]
            known = [(turn.started_s, value) for turn in of_kind if (value := latency_ms(turn)) is not None]
            finite = [(at, value) for at, value in known if not isinf(value)]
            axes.scatter(
                [at / length_s for at, _ in finite], [value for _, value in finite], s=9, color=colour, label=kind
            )
        cut = [turn.started_s / length_s for turn in spread if turn.outcome is Outcome.CUT_IN]
        lost = [turn.started_s / length_s for turn in spread if turn.outcome in (Outcome.SILENT, Outcome.FAILED)]
        across = axes.get_xaxis_transform()
        if cut:
            axes.scatter(cut, [0.03] * len(cut), transform=across, marker="x", s=22, color=COLOURS[4], label="cut-in")
        if lost:
            axes.scatter(
                lost, [0.97] * len(lost), transform=across, marker="v", s=22, color=COLOURS[4], label="no reply"
            )
        axes.set_xlabel(f"{unit} since the run began")
        axes.set_ylabel("v2v, ms")
        _from_zero(axes)
        _legend(axes)

    note = "Each dot is a turn. Crosses at the bottom are cut-ins, triangles at the top turns without a reply."
    return _chart("over-time", "Over the run", note, draw)


def trade(spots: Sequence[Spot], hull: Frontier | None = None) -> Chart:
    """P95 against cut-ins, with both intervals; the hull if there are several runs."""

    def draw(axes: Axes, paint: Paint) -> None:
        shown = [spot for spot in spots if spot.summary.p95_ms is not None and not isinf(spot.summary.p95_ms)]
        for index, spot in enumerate(shown):
            summary, p95 = spot.summary, spot.summary.p95_ms or 0.0
            share, ends = 100 * summary.cut_in_share, summary.cut_in_interval
            across = [[share - 100 * ends.low], [100 * ends.high - share]]
            high = summary.p95_interval.high if summary.p95_interval else p95
            low = summary.p95_interval.low if summary.p95_interval else p95
            up = [[p95 - low], [0.0 if isinf(high) else high - p95]]
            axes.errorbar(
                [share], [p95], xerr=across, yerr=up, fmt="o", markersize=5, color=COLOURS[index % MOST_SERIES],
                elinewidth=0.9, capsize=2, label=_shortened(spot.name),
            )  # fmt: skip
        if hull and len(hull.hull) > 1:
            shares = [100 * point.cut_in_share for point in hull.hull]
            axes.plot(shares, [point.p95_ms for point in hull.hull], color=paint.rule, linewidth=1.5, zorder=0)
        axes.set_xlabel("cut-ins, % of turns (95 % Wilson)")
        axes.set_ylabel("P95 v2v, ms")
        axes.set_xlim(left=-0.03 * axes.get_xlim()[1])  # so that the dot of a run without cut-ins is whole
        _from_zero(axes)
        _legend(axes)

    note = "Better is down and to the left; a server can buy one with the other. Bars are 95 % intervals."
    return _chart("latency-against-cut-ins", "Latency against cut-ins", note, draw)


def families(found: Mapping[str, tuple[Sequence[Point], Frontier]]) -> Chart:
    """P95 against cut-ins of many settings: a colour for each policy, its frontier as a line."""

    def draw(axes: Axes, _paint: Paint) -> None:
        for colour, (name, (points, hull)) in zip(COLOURS, found.items(), strict=False):
            shown = [point for point in points if not isinf(point.p95_ms)]
            shares = [100 * point.cut_in_share for point in shown]
            axes.scatter(shares, [point.p95_ms for point in shown], s=7, color=colour, alpha=0.35, linewidths=0)
            shares = [100 * point.cut_in_share for point in hull.hull]
            axes.plot(
                shares, [point.p95_ms for point in hull.hull], color=colour, marker="o", markersize=3.5, label=name
            )
        axes.set_xlabel("cut-ins, % of turns")
        axes.set_ylabel("P95 v2v, ms")
        axes.set_xlim(left=-0.03 * axes.get_xlim()[1])
        _from_zero(axes)
        _legend(axes)

    note = "Each dot is a setting; a line joins those of one policy that no other beats. Better is down and left."
    return _chart("frontier", "Latency against cut-ins, by policy", note, draw)


def callers(levels: Mapping[int, Summary]) -> Chart:
    """P50 and P95 over the number of callers."""

    def draw(axes: Axes, _paint: Paint) -> None:
        for colour, percent in zip(COLOURS, (95, 50), strict=False):
            known = [
                (count, value)
                for count, summary in levels.items()
                if (value := summary.percentiles_ms[percent]) is not None and not isinf(value)
            ]
            xs, ys = [count for count, _ in known], [value for _, value in known]
            axes.plot(xs, ys, marker="o", markersize=4, color=colour, label=f"P{percent}")
        axes.set_xscale("log", base=2)
        axes.set_xticks(list(levels), [str(level) for level in levels])
        axes.minorticks_off()
        axes.set_xlabel("callers at once")
        axes.set_ylabel("v2v, ms")
        _from_zero(axes)
        _legend(axes)

    note = "Latency as more people call at once. A line that ends early ends where turns had no reply."
    return _chart("callers", "Callers against latency", note, draw)


def gaps(lengths_ms: Sequence[float]) -> Chart:
    """How long the silences inside replies were."""

    def draw(axes: Axes, _paint: Paint) -> None:
        axes.hist(list(lengths_ms), bins=max(5, min(30, len(lengths_ms))), color=COLOURS[0], rwidth=0.92)
        axes.set_xlabel("length of the gap, ms")
        axes.set_ylabel("gaps")
        axes.set_xlim(left=0)
        _whole_numbers(axes)

    return _chart("gaps", "Gaps inside replies", "Silences because the next sound came late.", draw)


def _values_by_kind(turns: Sequence[Turn]) -> dict[str, tuple[float, ...]]:
    """The first kinds by name, as many as there are colours; those without any latency are left out."""
    kinds = sorted({turn.kind for turn in turns})
    values = {kind: latencies(turn for turn in turns if turn.kind == kind).values for kind in kinds}
    return dict([(kind, found) for kind, found in values.items() if found][:MOST_SERIES])


def _time_unit(turns: Sequence[Turn]) -> tuple[str, float]:
    longest_s = max((turn.started_s for turn in turns), default=0.0)
    return ("minutes", 60.0) if longest_s > 300 else ("seconds", 1.0)


def _shortened(name: str) -> str:
    return name if len(name) <= 44 else f"{name[:41]}..."


def _legend(axes: Axes) -> None:
    """Above the picture, where it hides nothing; none for a single unnamed line."""
    handles, labels = axes.get_legend_handles_labels()
    longest = max(map(len, labels), default=0)
    if len(handles) > 1 or (handles and axes.get_ylabel().startswith("P95")):
        columns = 3 if longest <= 11 else 2 if longest <= 20 else 1
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, frameon=False, handlelength=1.2,
            columnspacing=1.2, borderaxespad=0.2, fontsize=8.5,
        )  # fmt: skip


def _from_zero(axes: Axes) -> None:
    """A latency's axis shows how much of it there is, with some room above."""
    axes.set_ylim(0, 1.06 * axes.get_ylim()[1])


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - of an extra, and slow to import

    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _chart(name: str, title: str, note: str, draw: Callable[[Axes, Paint], None]) -> Chart:
    from matplotlib import rc_context  # noqa: PLC0415 - of an extra, and slow to import

    svg, png = BytesIO(), BytesIO()
    with (
        rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "text.parse_math": False}),
        rc_context({"font.size": 9.5, "font.family": "DejaVu Sans"}),
    ):
        _figure(draw, PAGE).savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        _figure(draw, PAPER).savefig(png, format="png", dpi=PNG_DPI, facecolor="white")
    return Chart(name=name, title=title, note=note, svg=_for_page(svg.getvalue().decode(), name), png=png.getvalue())


def _figure(draw: Callable[[Axes, Paint], None], paint: Paint) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415 - of an extra, and slow to import

    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(visible=True, color=paint.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(color=paint.rule, labelcolor=paint.ink, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(paint.rule)
    draw(axes, paint)
    axes.xaxis.label.set_color(paint.ink)
    axes.yaxis.label.set_color(paint.ink)
    legend = axes.get_legend()
    for words in legend.get_texts() if legend else ():
        words.set_color(paint.ink)
    return figure


def _for_page(svg: str, name: str) -> str:
    """The picture as a part of a page: its size free, its ids its own, its words and rules in the page's colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', svg, count=1)
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(id="|"#|url\(#)', rf"\g<1>{name}-", svg)
    svg = svg.replace("xlink:href", "href").replace("font-family: 'DejaVu Sans'", "font-family: inherit")
    for colour, of_page in ((PAGE.ink, "currentColor"), (PAGE.rule, "var(--rule)"), (COLOURS[0], "var(--blue)")):
        svg = svg.replace(colour, of_page)
    return svg
