"""Threads that want cores in, what each call gets of them out: a call of several threads is as fast as its slowest one.

A thread stays on its core while others are busy, so two threads of one call beside one of another's are not three
thirds of two cores: one of the two shares its core, and the other waits for it at every barrier. Threads are placed the
heavier first, each on the core that has least, those of one call on different ones. Then all get on in proportion to
their weight until a core is full: who computes there stays at that, the others go on.
Units: parts of a core. Threads: pure.
What it does not know: caches, memory bandwidth, and what moving a thread costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# What is left of a call's pace if one of its threads has no core for itself: the thread that was waited for has to be
# woken on the others' cores, at hundreds of barriers a token. Writing with two threads beside each of four engines got
# on at 1.10, 1.04, 0.82 and 0.80 of what cores alone make of it (results/beside.json).
APART = 0.94
# And if all other cores compute for others: they share the caches and the way to memory. Of one thread, as above:
# 0.95, 0.97, 0.94 and 0.98.
CROWDED = 0.96


@dataclass(frozen=True, slots=True)
class Want:
    """Of all calls of one lane together."""

    calls: int
    threads: int  # of each
    weight: float


def paces(
    cores: float, wants: Sequence[Want], *, apart: float = APART, crowded: float = CROWDED
) -> tuple[tuple[float, ...], float]:
    """What each call of these gets on with, against being alone (1: a core for each of its threads); and cores busy."""
    shares = _shares(cores, wants)
    busy = sum(share * want.calls * want.threads for share, want in zip(shares, wants, strict=True))
    found = []
    for share, want in zip(shares, wants, strict=True):
        pace = share
        if want.threads > 1 and share < 1.0 - _NEXT_TO_NONE:
            pace *= apart
        elsewhere = cores - want.threads
        if want.calls and elsewhere > 0:
            others = min(elsewhere, max(0.0, busy - share * want.threads))
            pace *= 1.0 - (1.0 - crowded) * others / elsewhere
        found.append(pace)
    return tuple(found), busy


def _shares(cores: float, wants: Sequence[Want]) -> list[float]:
    """Of a core for each thread of each call."""
    places = max(1, ceil(cores))
    room = [cores / places] * places
    counts = _placed(places, wants)
    found = [0.0] * len(wants)
    rising = {place for place, want in enumerate(wants) if want.calls}
    while rising:
        step = min((1.0 - found[each]) / wants[each].weight for each in rising)
        for core in range(places):
            pull = sum(wants[each].weight * counts[each][core] for each in rising)
            if pull:
                step = min(step, max(0.0, room[core]) / pull)
        for each in rising:
            gained = step * wants[each].weight
            found[each] += gained
            for core, threads in enumerate(counts[each]):
                room[core] -= gained * threads
        full = {core for core in range(places) if room[core] <= _NEXT_TO_NONE}
        still = {
            each
            for each in rising
            if found[each] < 1.0 - _NEXT_TO_NONE and not any(counts[each][core] for core in full)
        }
        if still == rising:
            break
        rising = still
    return found


_NEXT_TO_NONE = 1e-9


def _placed(places: int, wants: Sequence[Want]) -> list[list[int]]:
    """For each lane its threads on each core."""
    load = [0.0] * places
    counts = [[0] * places for _ in wants]
    for each in sorted(range(len(wants)), key=lambda place: -wants[place].weight):
        want = wants[each]
        for _ in range(want.calls):
            in_order = sorted(range(places), key=load.__getitem__)
            for number in range(want.threads):
                core = in_order[number % places]
                counts[each][core] += 1
                load[core] += want.weight
    return counts
