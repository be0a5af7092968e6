"""The dialogue before and after a step -> the opinion on the turn's end that the step brought, if it brought a new one.

It reads what the dialogue decided by, and decides nothing. Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.dialogue.commands import ConfirmTurn
from antiphon.dialogue.state import Phase
from antiphon.dialogue.turn_end import wait_ns
from antiphon.session.events import TurnEndJudged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.state import Dialogue, Draft
    from antiphon.dialogue.turn_end import Evidence


class EndWatch:
    """Of one conversation."""

    def __init__(self) -> None:
        self._told = (0, "")  # the draft and the evidence of the latest opinion

    def judged(
        self, before: Dialogue, after: Dialogue, commands: Iterable[Command], at_ns: int
    ) -> TurnEndJudged | None:
        """An opinion for each set of evidence that a pause has had; none where nobody judges."""
        found = _in_pause(after) or _in_end(before, commands)
        if found is None or after.by_hand:
            return None
        draft, evidence = found
        if (draft.number, evidence.kind) == self._told:
            return None
        self._told = draft.number, evidence.kind
        settings, posterior = before.settings, before.turn_end.posterior(evidence)
        return TurnEndJudged(
            turn=before.turn,
            at_ns=at_ns,
            silence_ns=at_ns - draft.ended_ns,
            posterior=posterior,
            wait_ns=wait_ns(posterior, settings),
            evidence=tuple(evidence.kind.split("+")),
            pause_ms=settings.pause_ms,
            cut_in_risk=settings.cut_in_risk,
        )


def _in_pause(after: Dialogue) -> tuple[Draft, Evidence] | None:
    draft = after.draft
    if after.phase is not Phase.DRAFTING or draft is None or draft.evidence is None:
        return None
    return (draft, draft.evidence) if draft.weighed and not after.forced else None


def _in_end(before: Dialogue, commands: Iterable[Command]) -> tuple[Draft, Evidence] | None:
    """The evidence that ended the turn in the very step that brought it."""
    for command in commands:
        if isinstance(command, ConfirmTurn) and not command.forced:
            draft = before.draft
            return (draft, command.evidence) if draft is not None and draft.number == command.draft else None
    return None
