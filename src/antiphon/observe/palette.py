"""The colours that every renderer of a waterfall uses, and words that the renderers share.

Okabe and Ito's set, which stays distinct with any of the common colour-vision deficiencies; each of these six
has at least 2:1 contrast to white and to black, so one set serves paper and dark terminals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.observe.waterfall import Colour

if TYPE_CHECKING:
    from collections.abc import Mapping

PALETTE: Mapping[Colour, str] = {
    Colour.NOTICE: "#E69F00",
    Colour.HEAR: "#56B4E9",
    Colour.JUDGE: "#D55E00",
    Colour.THINK: "#CC79A7",
    Colour.SPEAK: "#009E73",
    Colour.PLAY: "#0072B2",
}

MEANINGS: Mapping[Colour, str] = {
    Colour.NOTICE: "noticing",
    Colour.HEAR: "hearing",
    Colour.JUDGE: "judging the end",
    Colour.THINK: "thinking",
    Colour.SPEAK: "voicing",
    Colour.PLAY: "playing",
}

NICE_STEPS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000)


def ticks_ms(start_ms: float, end_ms: float, *, most: int) -> list[int]:
    """Round moments from `start_ms` to `end_ms`, at most `most` of them, 0 among them if it lies between."""
    span = end_ms - start_ms
    steps = [*NICE_STEPS_MS, *(120_000 << doubling for doubling in range(40))]
    step = next((step for step in steps if span / step < most), steps[-1])
    first = -int(-start_ms // step) if start_ms >= 0 else -int(-start_ms / step)
    return [tick * step for tick in range(first, int(end_ms // step) + 1)]
