"""result.json and a folder of logs -> each turn together with its conversation, on one clock.

The two are joined by the session's name: the server tells it in session.created, the result keeps it, and the log's
file name ends with it. Inside a conversation a turn's place is known to the sample: the result keeps where in the
caller's stream the clip began and its last speech sample lay, and the log's silences are positions in the same stream.
So the true end of a turn falls on the log's clock without comparing clocks; the nearest silence gives the offset.

Units: seconds of the stream in the result, samples at HEARING_RATE_HZ and ns of the log's clock here.
Threads: reading blocks on the disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import SECOND_NS, samples_to_ns
from antiphon.core.errors import CallerError
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.dialogue.log import read_log
from antiphon.dialogue.stimuli import InputEnded, InputStalled, TurnCommitted, VoiceStopped
from antiphon.lab.result import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from antiphon.dialogue.log import Log
    from antiphon.lab.result import Run, Turn

SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When a turn was said, in ns of the log's clock."""

    began_ns: int  # its clip's first sample
    spoken_ns: int  # its last speech sample: the true end
    until_ns: int | None  # the next turn's first sample; None: it was the last one of its line


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A turn, and the conversation that it was a part of."""

    turn: Turn
    span: Span
    talk: int  # which of `Joined.logs`


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A run with its conversations."""

    told: tuple[Told, ...]
    logs: tuple[Log, ...]
    left_out: dict[str, int]  # why, and how many turns


def join(run: Run, folder: Path) -> Joined:
    """Find each turn's conversation among the logs in `folder`.

    Raises:
        CallerError: there is no such folder, a log cannot be read, or no turn has one.
    """
    if not folder.is_dir():
        raise CallerError(f"there is no folder {folder}", hint="`antiphon bench --record` makes one beside the result")
    files = {path.stem.partition("-")[2]: path for path in folder.glob(f"*{SUFFIX}")}
    by_session: dict[str, list[Turn]] = {}
    for turn in run.turns:
        by_session.setdefault(turn.session, []).append(turn)
    told: list[Told] = []
    logs: list[Log] = []
    left_out: dict[str, int] = {}
    for session, turns in by_session.items():
        path = files.get(session) if session else None
        if path is None:
            _count(left_out, "no log", len(turns))
            continue
        log = read_log(path, cut_off=True)
        joined, missing = join_one(turns, log, talk=len(logs))
        logs.append(log)
        told += joined
        for why, count in missing.items():
            _count(left_out, why, count)
    if not told:
        raise CallerError(
            f"none of the {len(run.turns)} turns has a conversation in {folder}",
            hint="measure with `antiphon bench --record`, and name that run's folder",
        )
    return Joined(told=tuple(told), logs=tuple(logs), left_out=left_out)


def join_one(turns: Sequence[Turn], log: Log, *, talk: int) -> tuple[list[Told], dict[str, int]]:
    """The turns of one line; those that cannot be placed are counted by why."""
    placed = sorted(
        (turn for turn in turns if turn.stream_end_s is not None and turn.stream_start_s is not None),
        key=lambda turn: turn.stream_start_s or 0.0,
    )
    missing: dict[str, int] = {}
    _count(missing, "never said", len(turns) - len(placed))
    told: list[Told] = []
    for place, turn in enumerate(placed):
        if turn.outcome in (Outcome.FAILED, Outcome.REFUSED):
            _count(missing, str(turn.outcome), 1)
            continue
        following = placed[place + 1].stream_start_s if place + 1 < len(placed) else None
        began_ns, spoken_ns = moment(log, turn.stream_start_s or 0.0), moment(log, turn.stream_end_s or 0.0)
        if began_ns is None or spoken_ns is None:
            _count(missing, "nothing was heard of it", 1)
            continue
        until_ns = None if following is None else moment(log, following)
        told.append(Told(turn=turn, span=Span(began_ns=began_ns, spoken_ns=spoken_ns, until_ns=until_ns), talk=talk))
    return told, missing


def moment(log: Log, stream_s: float) -> int | None:
    """When a place of the caller's stream was captured, on the log's clock; None if the log holds no silence."""
    wanted_ns = round(stream_s * SECOND_NS)
    known = [
        (samples_to_ns(silence.end_samples, HEARING_RATE_HZ), silence.ended_ns)
        for silence in (step.stimulus for step in log.steps)
        if isinstance(silence, VoiceStopped | InputStalled | InputEnded | TurnCommitted)
    ]
    if not known:
        return None
    place_ns, captured_ns = min(known, key=lambda found: abs(found[0] - wanted_ns))
    return captured_ns + wanted_ns - place_ns


def _count(counts: dict[str, int], why: str, count: int) -> None:
    if count:
        counts[why] = counts.get(why, 0) + count
