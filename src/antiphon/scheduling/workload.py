"""Recorded decisions in, scripts of turns out: which jobs a turn asks for, after what, and how much each computes.

A claim (one draft, one look at the words so far) is a chain of jobs. A job is asked for
- some time after the job of its claim that had last ended by then: what lies between is kept, as time to think; or
- while its claim's reply is being written: when as much of that was written as then. A second chunk to be voiced also
  waits for the first one's end; or
- at its offset from the turn's start, if it is the first of its claim: the caller's speech asked for it.
Stretches of a job that made way are one job again. What never began, or failed, is left out.
Units: ns; work is the time that a job takes alone, on its lane's own cores. Threads: pure, but for reading files.
What it does not know: how much of a recorded time was spent waiting for a core. Record on a quiet machine, one caller.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import CallerError
from antiphon.core.stamps import Stage
from antiphon.scheduling.batching import ONE_MORE
from antiphon.scheduling.decisions import read_decisions
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.ticket import WANTED_WITHIN_NS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence
    from pathlib import Path

    from antiphon.scheduling.decisions import Decision

BUILT_IN = "assets/turns.jsonl"
MOST_ROWS = 200_000  # of a recording: some hours of one caller
# What older recordings do not say of a job, told from its stage and size.
YIELDING = frozenset({Stage.THINK, Stage.JUDGE, Stage.PREFILL})  # in steps of a token, or of a batch of a prompt
LARGEST_DECODE = 300  # a size above is one of Whisper's encoder, which counts columns, not tokens
DECODED_TOGETHER = 4  # as hear.whisper has it; encoding together gains nothing on a processor
_SHORTEST_PERIOD_NS = SECOND_NS
_USUAL_PERIOD_NS = 8 * SECOND_NS  # where one turn alone was recorded
HINT = "record one with `antiphon serve --trace-decisions FILE` while somebody talks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One job of a turn; others of the turn are named by their place in it."""

    claim: int  # place of its claim in the turn
    stage: Stage
    lane: str
    work_ns: int
    urgency: Urgency
    size: int = 0
    estimate_ns: int = 0
    after: int | None = None  # the job whose end it follows; None: it comes from outside, or follows nobody's end
    gap_ns: int = 0  # from that end; from the turn's start, if it comes from outside
    along: int | None = None  # the job during which it is asked for
    part: float = 0.0  # of that one's work, which is done by then
    due_ns: int | None = None  # its deadline after the turn's start; None: by its urgency, from when it is asked for
    is_after_sound: bool = False  # its deadline moves with the first sound: a reply that begins later ends later
    kind: Hashable = None
    most: int = 1  # of one kind that go together
    can_yield: bool = False  # it computes in steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one turn of a caller asks for."""

    slices: tuple[Slice, ...]
    sounds: Mapping[int, int]  # claim that was heard, or would have been -> the slice that made its first sound
    pause_ns: int  # when the caller stopped speaking, after the turn's start
    sound_ns: Mapping[int, int]  # when that first sound was there in the recording, after the turn's start


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What callers do."""

    turns: tuple[Turn, ...]
    period_ns: int  # from one turn of a caller to the next
    note: str = ""  # where it comes from, if its file says so

    def at_speed(self, factors: Mapping[Stage, float]) -> Workload:
        """The same on a machine where a stage takes so many times as long."""
        return replace(
            self,
            turns=tuple(
                replace(turn, slices=tuple(_at_speed(each, factors.get(each.stage, 1.0)) for each in turn.slices))
                for turn in self.turns
            ),
        )


def read_workload(path: Path | None = None) -> Workload:
    """The turns of a recording, or of the one that comes along.

    Raises:
        CallerError: the file cannot be read, or holds no turn.
    """
    if path is None:
        with resources.as_file(resources.files("antiphon").joinpath(BUILT_IN)) as built_in:
            return replace(workload_of(read_decisions(built_in), name=BUILT_IN), note=_note(built_in))
    return replace(workload_of(read_decisions(path), name=str(path)), note=_note(path))


def workload_of(decisions: Iterable[Decision], *, name: str = "the recording") -> Workload:
    """The turns of these decisions; those of nobody are left out.

    Raises:
        CallerError: there is no turn, there are too many rows, or one is none that a turn can have.
    """
    grouped: dict[tuple[int, int], list[Decision]] = {}
    for number, row in enumerate(decisions, 1):
        if number > MOST_ROWS:
            raise CallerError(
                f"{name} has more than {MOST_ROWS} decisions", hint="cut it: an hour of talking is plenty"
            )
        if row.caller and not row.failed and row.ended_ns > row.began_ns:
            turn = max(1, row.turn)  # what is done when a call begins, before anybody speaks, comes with the first turn
            grouped.setdefault((row.caller, turn), []).append(row)
    if not grouped:
        raise CallerError(f"no turn of a caller is in {name}", hint=HINT)
    grouped = _joined(grouped)
    try:
        turns = tuple(_turn(rows) for rows in grouped.values())
    except (ValueError, KeyError) as error:
        raise CallerError(f"{name} has a decision of an unknown stage or urgency", hint=HINT) from error
    return Workload(turns=turns, period_ns=_period_ns(grouped))


def _joined(grouped: Mapping[tuple[int, int], list[Decision]]) -> dict[tuple[int, int], list[Decision]]:
    """The same, with turns that nothing was said to, a cough or what is done beforehand, as parts of answered ones.

    Where nobody was answered nothing is joined.
    """
    if not any(_is_answered(rows) for rows in grouped.values()):
        return dict(grouped)
    joined: dict[tuple[int, int], list[Decision]] = {}
    open_turn: dict[int, tuple[int, int]] = {}  # of each caller, the one that takes what follows
    for key in sorted(grouped):
        caller, rows = key[0], grouped[key]
        current = open_turn.get(caller)
        if current is None or (_is_answered(rows) and _is_answered(joined[current])):
            open_turn[caller] = current = key
        joined.setdefault(current, []).extend(rows)
    return joined


def _is_answered(rows: Iterable[Decision]) -> bool:
    return any(
        row.stage == Stage.SPEAK and row.urgency in {"playback", "confirmed", "draft"} and not row.dropped
        for row in rows
    )


def _note(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        return str(json.loads(lines.readline()).get("note", ""))


def _period_ns(grouped: Mapping[tuple[int, int], Sequence[Decision]]) -> int:
    """Between turns of one caller, by the mean."""
    starts: dict[int, list[int]] = {}
    for (caller, _), rows in grouped.items():
        starts.setdefault(caller, []).append(min(row.asked_ns for row in rows))
    spans = [max(times) - min(times) for times in starts.values()]
    steps = sum(len(times) - 1 for times in starts.values())
    return max(_SHORTEST_PERIOD_NS, sum(spans) // steps) if steps else _USUAL_PERIOD_NS


@dataclass(slots=True, kw_only=True)
class _Whole:
    """A job, from its first stretch to its last."""

    rows: list[Decision]

    @property
    def first(self) -> Decision:
        return self.rows[0]

    @property
    def last(self) -> Decision:
        return self.rows[-1]

    @property
    def took_ns(self) -> int:
        return sum(row.took_ns for row in self.rows)

    def part_by(self, at_ns: int) -> float:
        """How much of it was done at a moment."""
        done_ns = sum(max(0, min(at_ns, row.ended_ns) - row.began_ns) for row in self.rows)
        return done_ns / self.took_ns


def _turn(rows: Sequence[Decision]) -> Turn:
    start_ns = min(row.asked_ns for row in rows)
    wholes = _wholes(sorted(rows, key=lambda row: (row.asked_ns, row.number)))
    places = {claim: place for place, claim in enumerate(dict.fromkeys(whole.first.claim for whole in wholes))}
    sounds: dict[int, int] = {}
    for index, whole in enumerate(wholes):
        if whole.first.stage == Stage.SPEAK and Urgency[whole.first.urgency.upper()] <= Urgency.DRAFT:
            sounds.setdefault(places[whole.first.claim], index)
    sound_ns = {claim: wholes[index].last.ended_ns - start_ns for claim, index in sounds.items()}
    slices = tuple(_slice(wholes, index, places, start_ns, sound_ns) for index in range(len(wholes)))
    heard = [whole.first.asked_ns - start_ns for whole in wholes if places[whole.first.claim] in sounds]
    return Turn(slices=slices, sounds=sounds, pause_ns=min(heard, default=0), sound_ns=sound_ns)


def _wholes(rows: Iterable[Decision]) -> list[_Whole]:
    wholes: list[_Whole] = []
    unfinished: dict[tuple[int, str, str], _Whole] = {}
    for row in rows:
        key = (row.claim, row.stage, row.lane)
        whole = unfinished.pop(key, None)
        if whole is None:
            whole = _Whole(rows=[row])
            wholes.append(whole)
        else:
            whole.rows.append(row)
        if row.made_way and not row.dropped:
            unfinished[key] = whole
    return wholes


def _slice(
    wholes: Sequence[_Whole], index: int, places: Mapping[int, int], start_ns: int, sound_ns: Mapping[int, int]
) -> Slice:
    whole = wholes[index]
    row, claim = whole.first, places[whole.first.claim]
    asked_ns, stage, urgency = row.asked_ns, Stage(row.stage), Urgency[row.urgency.upper()]
    mates = [place for place in range(index) if wholes[place].first.claim == row.claim]
    ended = [place for place in mates if wholes[place].last.ended_ns <= asked_ns]
    writing = [
        place
        for place in mates
        if wholes[place].first.stage == Stage.THINK and stage != Stage.THINK and place not in ended
    ]
    after: int | None = max(ended, key=lambda place: wholes[place].last.ended_ns, default=None)
    gap_ns = asked_ns - (start_ns if after is None else wholes[after].last.ended_ns)
    along, part = None, 0.0
    if writing:
        along, gap_ns = writing[-1], 0
        part = wholes[along].part_by(asked_ns)
        after = max((place for place in ended if wholes[place].first.stage == row.stage), default=None)
    is_by_urgency = row.deadline_ns - asked_ns == WANTED_WITHIN_NS[urgency]
    kind, most = _batch(row, [wholes[place].first for place in mates])
    return Slice(
        claim=claim,
        stage=stage,
        lane=row.lane,
        work_ns=max(1, round(whole.took_ns / (1 + ONE_MORE * row.company))),
        urgency=urgency,
        size=row.size,
        estimate_ns=row.estimate_ns,
        after=after,
        gap_ns=gap_ns,
        along=along,
        part=part,
        due_ns=None if is_by_urgency else row.deadline_ns - start_ns,
        is_after_sound=claim in sound_ns and asked_ns - start_ns >= sound_ns[claim],
        kind=kind,
        most=most,
        can_yield=stage in YIELDING if row.can_yield is None else row.can_yield,
    )


def _batch(row: Decision, mates: Sequence[Decision]) -> tuple[Hashable, int]:
    """What a job may share a call with, and how many may; `mates` are those of its claim that came before."""
    if row.most is not None:
        return (row.kind or None), row.most
    if row.stage != Stage.RECOGNISE or not 0 < row.size <= LARGEST_DECODE:
        return None, 1
    encoded = next((mate.size for mate in reversed(mates) if mate.stage == row.stage), 0)
    return ("decode", encoded), DECODED_TOGETHER


def _at_speed(each: Slice, factor: float) -> Slice:
    return replace(each, work_ns=max(1, round(each.work_ns * factor)), estimate_ns=round(each.estimate_ns * factor))
