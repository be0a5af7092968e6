"""One turn's stamps -> a picture of where its latency went, as HTML that needs no script.

Two kinds of rows on one axis, which begins at the caller's last speech sample: the server's own stages, each from the
stamp before it to its own, if the server told them; and what came over the wire, as moments. Both are ms after the last
speech sample. What came long after the reply began is left out: nobody waited for it. Pure.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from antiphon.lab.page import Markup, breakable, element
from antiphon.lab.statistics import rank
from antiphon.lab.summary import latency_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from antiphon.lab.result import Turn

BEYOND = 1.12  # of the latency: how much of what came afterwards is shown
BEFORE_MS = 400.0  # what came earlier than that before the speech ended explains no wait
MOST_ROWS = 16
SLOWEST = ("Slowest", "Second slowest", "Third slowest")
NAMES: Mapping[str, str] = {  # of the server's stamps, as the stage that ends with each
    "antiphon.pause.noticed": "noticing the pause",
    "antiphon.transcribed": "hearing the last words",
    "antiphon.turn.confirmed": "making sure it is over",
    "antiphon.reply.first_token": "thinking of the first words",
    "antiphon.reply.chunk_ready": "finishing the first chunk",
    "antiphon.reply.voiced": "voicing it",
    "antiphon.reply.first_sound": "handing it over",
}


def waterfall(turn: Turn, *, heading: str) -> Markup:
    """The picture of an answered turn."""
    assert turn.v2v_ms is not None
    latest = turn.v2v_ms * BEYOND
    stages = _kept(turn.stages_ms, latest)
    events = _kept(turn.events_ms, latest)
    earliest = min([0.0, *(at for _, at in (*stages, *events))])
    axis = (earliest, max(latest, 1.0))
    rows = [
        *_stage_rows(stages, axis),
        *(_row(name, at, at, axis, kind="event") for name, at in events),
        _row("first audible sound", 0.0, turn.v2v_ms, axis, kind="whole"),
    ]
    caption = element("figcaption", element("b", heading), f" {turn.kind}, {turn.clip}: {turn.v2v_ms:.0f} ms")
    late = f"It began {turn.late_ms:.0f} ms behind its schedule, which is part of it." if turn.late_ms >= 1 else ""
    note = element("p", late, kind="note") if late else Markup("")
    return Markup(f'<figure class="waterfall">{caption}{"".join(rows)}{note}</figure>')


def _kept(moments: Mapping[str, float], latest: float) -> list[tuple[str, float]]:
    inside = [(name, at) for name, at in moments.items() if -BEFORE_MS <= at <= latest]
    return sorted(inside, key=lambda moment: moment[1])[:MOST_ROWS]


def _stage_rows(stages: Iterable[tuple[str, float]], axis: tuple[float, float]) -> list[str]:
    rows, before = [], 0.0
    for name, at in stages:
        start = min(before, at) if before else min(0.0, at)
        rows.append(_row(NAMES.get(name, name.removeprefix("antiphon.")), start, at, axis, kind="stage"))
        before = at
    return rows


def _row(name: str, start_ms: float, end_ms: float, axis: tuple[float, float], *, kind: str) -> str:
    """A line: the name, a bar in its place, and where it ends; a stage also says how long it took."""
    width = axis[1] - axis[0]
    left, right = 100 * (start_ms - axis[0]) / width, 100 * (end_ms - axis[0]) / width
    took = f"{end_ms - start_ms:.0f} ms" if kind != "event" else f"at {end_ms:.0f}"
    return (
        f'<div class="row {kind}"><span class="name">{breakable(name)}</span><span class="track">'
        f'<span class="bar" style="left:{left:.2f}%;width:{right - left:.2f}%"></span></span>'
        f'<span class="took">{took}</span></div>'
    )


def chosen(turns: Iterable[Turn]) -> list[tuple[str, Turn]]:
    """The turns worth a picture, with why: the median, the 95th percentile and the slowest, each once.

    Turns without a reply have their rank like any other, but no picture.
    """
    ranked = [(latency, turn) for turn in turns if (latency := latency_ms(turn)) is not None]
    ranked.sort(key=lambda item: item[0])
    answered = sum(latency < inf for latency, _ in ranked)
    wanted = [("Median", rank(len(ranked), 50) - 1), ("P95", rank(len(ranked), 95) - 1)]
    wanted += [(name, answered - back) for back, name in enumerate(SLOWEST, start=1)]
    picked: dict[int, str] = {}
    for name, place in wanted:
        if 0 <= place < answered:
            picked.setdefault(place, name)
    return [(name, ranked[place][1]) for place, name in picked.items()]
