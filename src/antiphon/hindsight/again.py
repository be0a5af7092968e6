"""A turn that was measured live and other settings -> the turn as it would have been measured.

The dialogue is run again over the recorded conversation (dialogue/rerun.py): a reply begins to sound at
max(turn confirmed, first chunk voiced), each as late after its cause as it was live. Between that moment inside the
server and the first sample that the caller heard lies a lag, of the line and of the quiet that a reply begins with; it
is known from the live turn and does not depend on settings. So

    v2v = live v2v + (the reply's beginning now - its beginning then)

A reply that is heard before the turn's true end cuts in. A turn whose live reply was never heard has the median lag
of the others. Where the replay never answers because the words of a pause are not in the log, nobody knows: the turn
is left out and counted, not taken for a silent one.

Units: ns of the log's clock, ms in turns. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median_low
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.dialogue import commands as do
from antiphon.dialogue import stimuli
from antiphon.dialogue.rerun import as_recorded, rerun
from antiphon.lab.result import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antiphon.dialogue.log import Log
    from antiphon.dialogue.rerun import Happened
    from antiphon.dialogue.settings import TurnSettings
    from antiphon.dialogue.turn_end import TurnEndModel
    from antiphon.hindsight.join import Joined, Span, Told
    from antiphon.lab.result import Turn

MOST_LAG_NS = SECOND_NS  # a reply that was heard so long after it began was another one
SLACK_NS = 5 * MILLISECOND_NS  # by which a moment on the log's clock may be off


@dataclass(frozen=True, slots=True)
class Sounding:
    """From when to when a reply sounded, inside the server."""

    began_ns: int
    ended_ns: int | None  # None: for longer than the conversation is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How turns are taken: settings, and how evidence becomes a posterior."""

    settings: TurnSettings
    turn_end: TurnEndModel | None = None  # None: as recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """A run as it would have been."""

    turns: tuple[Turn, ...]
    unknown: int  # left out: their words are not in the log
    without_voice: int  # times that the tone of voice was asked for, and is not in the log


def again(joined: Joined, policies: Sequence[Policy], lags_ns: Sequence[int]) -> Outcomes:
    """All turns by other policies, one for each of the logs; the lags are those of `lags_of`."""
    turns: list[Turn] = []
    unknown = without_voice = 0
    by_talk: dict[int, list[tuple[Told, int]]] = {}
    for told, lag_ns in zip(joined.told, lags_ns, strict=True):
        by_talk.setdefault(told.talk, []).append((told, lag_ns))
    for talk, members in by_talk.items():
        run = rerun(_started(joined.logs[talk], policies[talk]), policies[talk].settings)
        without_voice += run.without_voice
        soundings = soundings_of(run.happened)
        for told, lag_ns in members:
            turn = measured(told.turn, told.span, soundings, lag_ns)
            if turn.outcome is Outcome.SILENT and run.without_words:
                unknown += 1
            else:
                turns.append(turn)
    return Outcomes(turns=tuple(turns), unknown=unknown, without_voice=without_voice)


def _started(log: Log, policy: Policy) -> Log:
    """The log, as if it had begun with the policy's way to judge."""
    if policy.turn_end is None:
        return log
    return replace(log, start=replace(log.start, turn_end=policy.turn_end))


def lags_of(joined: Joined) -> tuple[list[int], list[bool]]:
    """For each turn what lay live between a reply's beginning in the server and its first sample at the caller.

    And whether it is the turn's own; the others have the median.
    """
    soundings = [soundings_of(as_recorded(log)) for log in joined.logs]
    found = [lag_of(told.turn, told.span, soundings[told.talk]) for told in joined.told]
    known = [lag for lag in found if lag is not None]
    middle = median_low(known) if known else 0
    return [middle if lag is None else lag for lag in found], [lag is not None for lag in found]


def lag_of(turn: Turn, span: Span, soundings: Iterable[Sounding]) -> int | None:
    """Of one turn; None if its reply was not heard live, or is not in the log."""
    if turn.v2v_ms is None:
        return None
    heard_ns = span.spoken_ns + round((turn.v2v_ms - turn.late_ms) * MILLISECOND_NS)
    began = [one.began_ns for one in soundings if one.began_ns <= heard_ns + SLACK_NS]
    lag_ns = heard_ns - max(began, default=heard_ns - 2 * MOST_LAG_NS)
    return lag_ns if lag_ns <= MOST_LAG_NS else None


def soundings_of(happened: Iterable[Happened]) -> list[Sounding]:
    """When replies sounded: a reply that is paused, stopped or dropped is silent from then on."""
    found: list[Sounding] = []
    began: dict[int, int] = {}
    for each in happened:
        at_ns = each.stimulus.at_ns
        if isinstance(each.stimulus, stimuli.ReplyEnded) and each.stimulus.draft in began:
            found.append(Sounding(began.pop(each.stimulus.draft), at_ns))
        if isinstance(each.stimulus, stimuli.ReplyBegan):
            began[each.stimulus.draft] = at_ns
        for command in each.commands:
            if isinstance(command, do.StopReply | do.PauseReply | do.DropDraft) and command.draft in began:
                found.append(Sounding(began.pop(command.draft), at_ns))
            elif isinstance(command, do.ResumeReply):
                began[command.draft] = at_ns
    found += [Sounding(at_ns, None) for at_ns in began.values()]
    return sorted(found, key=lambda one: one.began_ns)


def measured(turn: Turn, span: Span, soundings: Iterable[Sounding], lag_ns: int) -> Turn:
    """The turn with its outcome, latency and cut-in as the caller would have had them."""
    heard = [
        one.began_ns + lag_ns
        for one in soundings
        if one.ended_ns is None or one.ended_ns > one.began_ns + lag_ns  # else it fell silent before it was heard
    ]
    inside = [at_ns for at_ns in heard if at_ns >= span.began_ns and (span.until_ns is None or at_ns < span.until_ns)]
    first_ns = min(inside, default=None)
    if first_ns is None:
        return replace(turn, outcome=Outcome.SILENT, v2v_ms=None, cut_in_ms=None)
    if first_ns < span.spoken_ns:
        cut_in_ms = (span.spoken_ns - first_ns) / MILLISECOND_NS
        return replace(turn, outcome=Outcome.CUT_IN, v2v_ms=None, cut_in_ms=cut_in_ms)
    v2v_ms = (first_ns - span.spoken_ns) / MILLISECOND_NS + turn.late_ms
    return replace(turn, outcome=Outcome.ANSWERED, v2v_ms=v2v_ms, cut_in_ms=None)
