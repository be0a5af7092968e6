"""A run -> the sections of its report, each a piece of the page. Pure. It does not know pictures or files."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from antiphon.lab import validity
from antiphon.lab.page import Cell, Markup, definitions, element, number, section, table
from antiphon.lab.result import Outcome
from antiphon.lab.statistics import percentile, shown_ms
from antiphon.lab.summary import (
    ENOUGH_FOR_P95,
    by_callers,
    by_kind,
    by_scenario,
    capacity,
    latency_ms,
    summarise,
)
from antiphon.lab.waterfall import chosen, waterfall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.lab.frontier import Frontier
    from antiphon.lab.result import Run, Turn
    from antiphon.lab.statistics import Interval
    from antiphon.lab.summary import CapacityLimits, Summary

MOST_ROWS = 5000  # of the table of turns; a browser gets slow beyond
OUTCOMES = {
    Outcome.ANSWERED: "answered",
    Outcome.CUT_IN: "cut in",
    Outcome.SILENT: "no reply",
    Outcome.FAILED: "failed",
    Outcome.REFUSED: "refused",
}
UNITS = (
    "Latencies in ms. n: turns with a latency, those without a reply as infinite. 95 %: between which values "
    "the truth lies. Slots: how much of the order was in the transcript."
)
TERMS = {
    "Voice-to-voice (v2v)": "from the caller's last speech sample to the first audible sample of the reply, including "
    "the decision that the turn is over and how late the turn began. Silence at the reply's head counts.",
    "Cut-in": "audible reply before the caller's true end of turn, also if it is taken back. P95 without cut-ins says "
    "nothing: either can be bought with the other.",
    "No reply": "counts as an infinite latency in every percentile.",
    "Percentile": "nearest rank: a value that occurred. Intervals are bootstraps over clips, of cut-ins Wilson's, "
    "all at 95 %.",
    "Gap": "a silence inside a reply because its next sound came late.",
}
GROUP_HEADINGS = ("n", "P50", "P95", "cut-ins", "cut-ins, 95 %", "P95, 95 %", "P90", "P99", "max", "no reply", "slots")


def head(run: Run) -> Markup:
    """Who was measured, when and on what."""
    facts = [run.machine.get("cpu"), _cores(run), run.machine.get("system"), run.machine.get("taken")]
    under = " · ".join(str(fact) for fact in facts if fact)
    callers = sorted({turn.callers for turn in run.turns})
    many = f", {callers[0]} to {callers[-1]} callers at once" if len(callers) > 1 else ""
    if len(callers) == 1:
        many = f", {callers[0]} caller{'s' if callers[0] != 1 else ''} at once"
    lead = f"Voice-to-voice latency from outside, as a caller hears it. Scenario: {run.scenario}{many}."
    return Markup(element("h1", run.name) + element("p", lead) + element("p", under, kind="under"))


def _cores(run: Run) -> str:
    cores = run.machine.get("cores")
    return f"{cores} cores" if cores else ""


def banner(run: Run) -> Markup:
    """Whether the run can be believed."""
    kind = "void" if validity.is_void(run) else ""
    if not kind and run.load.get("steal") is None:
        kind = "unknown"
    ruler = validity.ruler_sentence(run)
    notes = [
        element("p", f"{note[:1].upper()}{note[1:]}.".replace("..", "."), kind="note") for note in run.notes if note
    ]
    verdict = element("p", validity.sentence(run)), element("p", ruler) if ruler else ""
    return Markup("".join([element("div", *verdict, kind=f"banner {kind}".strip()), *notes]))


def headline(run: Run) -> Markup:
    """P50, P95 and their kin with cut-ins beside them."""
    summary = summarise(run.turns)
    if not summary.turns:
        refused = f" The server refused all {summary.refused}." if summary.refused else ""
        return element("p", f"No turn was taken.{refused}")
    tiles = [
        _tile("P50", shown_ms(summary.p50_ms), _ms_interval(summary.p50_interval)),
        _tile("P90", shown_ms(summary.percentiles_ms[90])),
        _tile("P95", shown_ms(summary.p95_ms), _ms_interval(summary.p95_interval), kind="main"),
        _tile("cut-ins", f"{summary.cut_in_share:.1%}", _cut_ins(summary), kind="main"),
        _tile("P99", shown_ms(summary.percentiles_ms[99])),
        _tile("maximum", shown_ms(summary.max_ms)),
    ]
    few = f" Of so few turns P95 is nearly the slowest: at least {ENOUGH_FOR_P95} are needed."
    levels = len({turn.callers for turn in run.turns})
    mixed = " All numbers of callers together: the table below takes them apart." if levels > 1 else ""
    basis = (
        f"n = {summary.measured}: turns with a latency, of {summary.turns}: {summary.answered} answered, "
        f"{summary.cut_ins} with a cut-in (left out of the latencies), {summary.silent} without a reply and "
        f"{summary.failed} failed (both count as infinite){_refused(summary)}."
        f"{few if summary.measured < ENOUGH_FOR_P95 else ''}{mixed}"
    )
    return Markup(element("div", *tiles, kind="figures") + element("p", basis, kind="note"))


def _tile(what: str, shown: str, interval: str = "", *, kind: str = "") -> Markup:
    below = element("span", interval, kind="interval") if interval else ""
    return element("div", element("span", what, kind="what"), element("b", shown), below, kind=kind)


def _refused(summary: Summary) -> str:
    return f"; {summary.refused} more were refused" if summary.refused else ""


def _ms_interval(interval: Interval | None) -> str:
    if interval is None or interval.low == inf:
        return ""
    high = "never" if interval.high == inf else f"{interval.high:.0f}"
    return f"{interval.low:.0f} to {high}"


def _share_interval(interval: Interval) -> str:
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"


def _cut_ins(summary: Summary) -> str:
    return f"{summary.cut_ins} of {summary.turns}; {_share_interval(summary.cut_in_interval)}"


def capacity_line(run: Run, limits: CapacityLimits | None = None) -> Markup:
    """How many callers it held, if several numbers of them were tried."""
    levels = by_callers(run)
    if len(levels) < 2:
        return Markup("")
    found = capacity(levels, limits)
    most = max(found.tried)
    limits = found.limits
    rule = f"P95 at most {limits.p95_ms:.0f} ms, every turn answered, cut-ins not above {limits.cut_in_share:.0%}"
    ended = f"The next level broke it: {found.ended_by}." if found.ended_by else f"More than {most} were not tried."
    counted = f"{found.callers} caller{'s' if found.callers != 1 else ''}"
    line = element("p", element("b", f"Capacity: {counted} at once"), f" ({rule}). {ended}")
    rows = [_group_row(summary) for summary in levels.values()]
    return section("Callers against latency", line, table(("callers", *GROUP_HEADINGS), rows))


def groups(run: Run) -> Markup:
    """Kind by kind, and scenario by scenario if there are several."""
    parts = [table(("kind", *GROUP_HEADINGS), [_group_row(summary) for summary in by_kind(run)])]
    scenarios = by_scenario(run)
    if len(scenarios) > 1:
        parts.append(element("h3", "By scenario"))
        parts.append(table(("scenario", *GROUP_HEADINGS), [_group_row(summary) for summary in scenarios]))
    parts.append(element("p", UNITS, kind="note"))
    return section("By kind", *parts) if run.turns else Markup("")


def run_table(runs: Sequence[Run]) -> Markup:
    """A line for each run."""
    rows = []
    for run in runs:
        name = f"{run.name} (void)" if validity.is_void(run) else run.name
        rows.append(_group_row(summarise(run.turns, label=name)))
    return table(("run", *GROUP_HEADINGS), rows)


def hull_words(hull: Frontier | None) -> Markup:
    """Which runs no other beats, and the area under them."""
    if hull is None or not hull.hull:
        return Markup("")
    names = ", ".join(f"{point.name} ({100 * point.cut_in_share:.1f} %, {point.p95_ms:.0f} ms)" for point in hull.hull)
    if hull.area is None:
        area = "No run cuts in on 1 % of turns or fewer, so there is no area from 1 to 20 % to give."
    else:
        mean = f"a P95 of {hull.mean_p95_ms:.0f} ms on average"
        area = f"Between 1 and 20 % of cut-ins the area under them is {hull.area:.0f} ms %, {mean}."
    return Markup(element("p", f"No other run, nor a mixture of two, beats: {names}.") + element("p", area))


def _group_row(summary: Summary) -> list[Cell]:
    slots = summary.slot_share
    return [
        Cell(summary.label, is_said=True),
        number(str(summary.measured)),
        _ms(summary.p50_ms),
        _ms(summary.p95_ms),
        number(f"{summary.cut_ins} of {summary.turns}"),
        number(_share_interval(summary.cut_in_interval) if summary.turns else ""),
        number(_ms_interval(summary.p95_interval)),
        *(_ms(summary.percentiles_ms[percent]) for percent in (90, 99, 100)),
        number(str(summary.lost)),
        number("" if slots is None else f"{slots:.1%}"),
    ]


def _ms(value: float | None, *, digits: int = 0) -> Cell:
    """A latency without its unit, which tables have in their heading or beside it."""
    if value is None:
        return number("", None)
    return number("never" if value == inf else f"{value:.{digits}f}", value)


def waterfalls(run: Run) -> Markup:
    """Where the latency of some turns went."""
    found = [waterfall(turn, heading=f"{why}:") for why, turn in chosen(run.turns) if turn.stages_ms or turn.events_ms]
    if not found:
        return Markup("")
    told = any(turn.stages_ms for turn in run.turns)
    server = (
        "Bars are the server's own stages, each from the stamp before it to its own."
        if told
        else "This server does not tell its own stages."
    )
    lead = f"{server} Marks are what came over the wire. All in ms after the caller's last speech sample."
    return section("Where the time went", element("p", lead, kind="note"), element("div", *found, kind="waterfalls"))


def more(run: Run) -> Markup:
    """What else was measured: what was heard, gaps, interruptions, lateness."""
    summary = summarise(run.turns)
    facts: dict[str, object] = {}
    if summary.slot_share is not None:
        facts["slots heard in the transcript"] = f"{summary.slots_heard} of {summary.slots} ({summary.slot_share:.1%})"
    if summary.word_error_rate is not None:
        facts["word error rate"] = f"{summary.word_error_rate:.1%} of {summary.words} words"
    if summary.turns:
        facts["utterances that got more than one answer"] = str(sum(turn.splits > 0 for turn in run.turns))
    if summary.gaps_a_minute is not None:
        longest = f", the longest {summary.gaps_ms[0]:.0f} ms" if summary.gaps_ms else ""
        facts["gaps inside replies"] = (
            f"{len(summary.gaps_ms)} ({summary.gaps_a_minute:.2f} a minute of reply{longest})"
        )
    for what, values in (
        ("stopped after an interruption", summary.stops_ms),
        ("kept of an interrupted reply, off by", summary.truncation_errors_ms),
    ):
        if values:
            middle, late = percentile(values, 50), percentile(values, 95)
            facts[what] = f"P50 {shown_ms(middle)}, P95 {shown_ms(late)} (n = {len(values)})"
    if summary.late_p95_ms is not None:
        facts["turns began behind their schedule, P95"] = f"{summary.late_p95_ms:.1f} ms, counted as latency"
    return section("What else was measured", definitions(facts)) if facts else Markup("")


def circumstances(run: Run) -> Markup:
    """Machine, load, ruler, settings, and what the server says of itself."""
    parts: list[object] = []
    for heading, values in (
        ("Machine", run.machine),
        ("Load", run.load),
        ("The ruler's own error", run.ruler),
        ("Settings", run.settings),
        ("The server, as it says", run.server),
    ):
        parts += [element("h3", heading), definitions(dict(values))]
    return section("Circumstances", *parts)


def every_turn(run: Run) -> Markup:
    """All turns in a table."""
    if not run.turns:
        return Markup("")
    headings = (
        "#", "began, s", "clip", "kind", "caller", "outcome", "v2v, ms", "cut in by, ms", "late, ms", "gaps", "slots",
        "heard", "answered", "error",
    )  # fmt: skip
    rows = [_turn_row(place, turn) for place, turn in enumerate(run.turns[:MOST_ROWS], start=1)]
    left_out = len(run.turns) - len(rows)
    note = (
        f"The first {MOST_ROWS}; {left_out} more stand in result.json." if left_out else "A click on a heading sorts."
    )
    body = Markup(table(headings, rows, is_sortable=True).replace('class="scroll"', 'class="scroll tall"', 1))
    return section(f"Every turn ({len(run.turns)})", element("p", note, kind="note"), body)


def _turn_row(place: int, turn: Turn) -> list[Cell]:
    return [
        number(str(place), place),
        _ms(turn.started_s, digits=1),
        Cell(turn.clip),
        Cell(turn.kind),
        number(str(turn.caller), turn.caller),
        Cell(OUTCOMES[turn.outcome]),
        _ms(latency_ms(turn), digits=1),
        _ms(turn.cut_in_ms),
        _ms(turn.late_ms, digits=1),
        number(str(len(turn.gaps_ms)), len(turn.gaps_ms)),
        Cell(f"{turn.slots_heard}/{len(turn.slots)}" if turn.slots else "", turn.slots_heard, is_number=True),
        Cell(turn.transcript, is_said=True),
        Cell(turn.reply, is_said=True),
        Cell(turn.error, is_said=bool(turn.error)),
    ]


def definitions_of_terms() -> Markup:
    """How to read it all."""
    return section(
        "How to read this", *(element("p", element("b", term), f": {words}") for term, words in TERMS.items())
    )
