"""Several runs in -> the trade between latency and cut-ins out: which of them no other beats, and one number for all.

A server can buy latency with cut-ins, so a run is a point: its share of cut-ins and its P95. The lower left hull is
made of the points that no mixture of two others beats in both; to its right it goes on level, since more cut-ins never
make it slower; to its left nothing is known. The area under it between 1 and 20 % of cut-ins, the smaller the better,
compares servers that were measured at different settings. Units: ms; shares from 0 to 1; areas in ms times per cent.
Pure. It does not know which settings made a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isinf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FROM_SHARE = 0.01
TO_SHARE = 0.20


@dataclass(frozen=True, slots=True)
class Point:
    """One run."""

    cut_in_share: float
    p95_ms: float
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """The lower left hull, from left to right, and the area under it."""

    hull: tuple[Point, ...]
    area: float | None  # ms times per cent, from 1 to 20 % of cut-ins; None where no run reaches down to 1 %
    mean_p95_ms: float | None  # the same as a latency: the area over its width


def frontier(points: Iterable[Point]) -> Frontier:
    """The frontier of these runs; runs whose P95 is infinite take no part."""
    hull = lower_left_hull(points)
    area = area_under(hull)
    width = 100 * (TO_SHARE - FROM_SHARE)
    return Frontier(hull=hull, area=area, mean_p95_ms=None if area is None else area / width)


def lower_left_hull(points: Iterable[Point]) -> tuple[Point, ...]:
    """The convex hull's part that faces few cut-ins and low latency: shares rise along it, latencies fall."""
    unbeaten: list[Point] = []
    for point in sorted(points, key=lambda point: (point.cut_in_share, point.p95_ms)):
        if isinf(point.p95_ms) or (unbeaten and point.p95_ms >= unbeaten[-1].p95_ms):
            continue
        unbeaten.append(point)
    hull: list[Point] = []
    for point in unbeaten:
        while len(hull) > 1 and not _bends_left(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return tuple(hull)


def _bends_left(first: Point, second: Point, third: Point) -> bool:
    """Whether `second` lies below the line from `first` to `third`."""
    across = (second.cut_in_share - first.cut_in_share) * (third.p95_ms - first.p95_ms)
    return across - (second.p95_ms - first.p95_ms) * (third.cut_in_share - first.cut_in_share) > 0


def area_under(hull: Sequence[Point]) -> float | None:
    """The area from FROM_SHARE to TO_SHARE; None if the hull begins further right."""
    if not hull or hull[0].cut_in_share > FROM_SHARE:
        return None
    corners = [point.cut_in_share for point in hull if FROM_SHARE < point.cut_in_share < TO_SHARE]
    edges = [FROM_SHARE, *corners, TO_SHARE]
    return sum(100 * (right - left) * (height(hull, left) + height(hull, right)) / 2 for left, right in pairwise(edges))


def height(hull: Sequence[Point], share: float) -> float:
    """The hull's latency at a share that lies at or right of its left end."""
    for left, right in pairwise(hull):
        if left.cut_in_share <= share <= right.cut_in_share:
            part = (share - left.cut_in_share) / (right.cut_in_share - left.cut_in_share)
            return left.p95_ms + part * (right.p95_ms - left.p95_ms)
    return hull[-1].p95_ms
