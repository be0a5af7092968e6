"""A joined run and variants -> trials for the frontier, each the whole run as it would have been.

Threads: pure, some ms for each conversation and variant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError
from antiphon.hindsight.again import again, lags_of
from antiphon.lab.summary import summarise
from antiphon.lab.trade import Family, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.hindsight.again import Outcomes
    from antiphon.hindsight.join import Joined
    from antiphon.hindsight.policies import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A family, and what its figures leave out."""

    family: Family
    unknown: int  # turns left out, over all trials
    without_voice: int  # times that the tone of voice was asked for and is not in the log
    skipped: dict[str, int]  # combinations that are no settings: why, and how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The run with its own settings again: how well hindsight sees."""

    turns: int
    same_outcome: int
    worst_ms: float  # of latencies, where both have one
    own_lags: int  # turns whose lag is their own and not the median


class Hindsight:
    """Of one run."""

    def __init__(self, joined: Joined) -> None:
        self.joined = joined
        self._lags_ns, self._are_own = lags_of(joined)

    def outcomes(self, variant: Variant) -> Outcomes:
        """The run by another policy.

        Raises:
            CallerError: the variant is no setting.
        """
        known = {settings: variant.of(settings) for settings in {log.start.settings for log in self.joined.logs}}
        return again(self.joined, [known[log.start.settings] for log in self.joined.logs], self._lags_ns)

    def sweep(self, name: str, variants: Sequence[Variant], *, on_trial: Callable[[], None] = lambda: None) -> Swept:
        """All variants; a combination that is no setting is left out and counted.

        Raises:
            CallerError: none of them is.
        """
        trials, skipped, unknown, without_voice = [], Counter[str](), 0, 0
        refused: CallerError | None = None
        for variant in variants:
            on_trial()
            try:
                found = self.outcomes(variant)
            except CallerError as error:
                skipped[error.message] += 1
                refused = error
                continue
            unknown += found.unknown
            without_voice += found.without_voice
            trials.append(Trial(name=variant.name, settings=variant.settings, summary=summarise(found.turns)))
        if refused is not None and not trials:
            raise refused
        family = Family(name=name, trials=tuple(trials))
        return Swept(family=family, unknown=unknown, without_voice=without_voice, skipped=dict(skipped))

    def check(self, variant: Variant) -> Check:
        """Compare the replay with the recorded settings to what was measured."""
        then = {id(told.turn): told.turn for told in self.joined.told}.values()
        now = self.outcomes(variant).turns
        by_place = {(turn.session, turn.stream_start_s): turn for turn in now}
        pairs = [(turn, by_place[key]) for turn in then if (key := (turn.session, turn.stream_start_s)) in by_place]
        apart = [abs(a.v2v_ms - b.v2v_ms) for a, b in pairs if a.v2v_ms is not None and b.v2v_ms is not None]
        return Check(
            turns=len(self.joined.told),
            same_outcome=sum(a.outcome == b.outcome for a, b in pairs),
            worst_ms=max(apart, default=0.0),
            own_lags=sum(self._are_own),
        )
