"""Who was chosen, who runs and who is foreseen in, the place for it out, or why it had better wait.

Replies take the whole GPU while they are alone and nobody else waits; else their part. Others take the whole GPU if
they will be done before the next reply step is due, else their part, beside it. Two things make others wait, unless
they are more urgent than the reply, late, or have waited too long: they take so much of the memory's bandwidth that no
part of the multiprocessors would keep the reply from feeling it, or the reply runs on the whole GPU and is about to
end.
Units: ns. Threads: pure; the same input gives the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.gpu.places import REPLY_LEVEL, Place
from antiphon.scheduling.job import Urgency

if TYPE_CHECKING:
    from collections.abc import Sequence

CROWDED = "writing has the memory's bandwidth"
TAKEN = "a step of writing has the whole GPU"
DUE = "a step of writing is due before it would end"
FORESEEN_FOR_NS = 5 * MILLISECOND_NS  # what was foreseen and has not come by then is not waited for
GUARD_NS = 300_000  # estimates are high quantiles, not promises; a slice that ends this close to a step is in its way
BESIDE = 1.2  # of the memory's bandwidth, for both: each would be longer by this factor, more than a step may be


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A slice as placing knows it: one that was chosen, or one that runs."""

    level: int
    urgency: int
    estimate_ns: int  # on the whole GPU; 0: not known
    bandwidth: float | None
    place: Place = Place.WHOLE
    began_ns: int = 0
    is_late: bool = False  # or has waited too long: it makes way for nobody

    @property
    def is_reply(self) -> bool:
        return self.level == REPLY_LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """Where to, or why not yet."""

    place: Place = Place.WHOLE
    reason: str = ""  # "": now
    again_ns: int | None = None  # when to ask anew even if nothing ends before; None: when something ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is known of the moment."""

    now_ns: int
    is_cut: bool  # there are parts
    others_wait: bool  # somebody besides replies wants the GPU
    next_reply_ns: int | None = None  # when the next reply step is foreseen
    next_reply_bandwidth: float | None = None

    @property
    def reply_in_ns(self) -> int | None:
        """Until the next reply step, 0 if it is due; None if none is foreseen, or it did not come."""
        if self.next_reply_ns is None or self.now_ns > self.next_reply_ns + FORESEEN_FOR_NS:
            return None
        return max(0, self.next_reply_ns - self.now_ns)


def place(chosen: Seat, running: Sequence[Seat], outlook: Outlook) -> Placing:
    """The place of one that the policy has chosen to begin beside `running`."""
    replies = [each for each in running if each.is_reply]
    if chosen.is_reply:
        return Placing(place=_for_reply(replies, len(running), outlook))
    if not chosen.is_late:
        reason = _beside_reply(chosen, replies, outlook) if replies else ""
        if reason:
            return Placing(reason=reason)
        if not replies and _would_be_in_the_way(chosen, outlook):
            return Placing(reason=DUE, again_ns=(outlook.next_reply_ns or 0) + FORESEEN_FOR_NS)
    is_whole = not outlook.is_cut or (not replies and _ends_before_reply(chosen, outlook))
    return Placing(place=Place.WHOLE if is_whole else Place.OTHERS)


def _for_reply(replies: Sequence[Seat], running: int, outlook: Outlook) -> Place:
    if not outlook.is_cut:
        return Place.WHOLE
    if outlook.others_wait or running > len(replies):
        return Place.REPLIES
    return replies[0].place if replies else Place.WHOLE  # the next on one stream begins in the moment the other ends


def _beside_reply(chosen: Seat, replies: Sequence[Seat], outlook: Outlook) -> str:
    """Why one that is no reply had better wait for a step that runs; "": it need not."""
    if chosen.urgency < min(each.urgency for each in replies):
        return ""
    if any(_crowds(chosen, each.bandwidth) for each in replies):
        return CROWDED
    return TAKEN if outlook.is_cut and any(each.place is Place.WHOLE for each in replies) else ""


def _would_be_in_the_way(chosen: Seat, outlook: Outlook) -> bool:
    """Whether a step of writing is foreseen that would have to share what it cannot share well."""
    if outlook.reply_in_ns is None or chosen.urgency <= Urgency.CONFIRMED or not chosen.estimate_ns:
        return False
    shares_badly = not outlook.is_cut or _crowds(chosen, outlook.next_reply_bandwidth)
    return shares_badly and not _ends_before_reply(chosen, outlook)


def _ends_before_reply(chosen: Seat, outlook: Outlook) -> bool:
    due_ns = outlook.reply_in_ns
    return due_ns is None or 0 < chosen.estimate_ns <= due_ns - GUARD_NS


def _crowds(chosen: Seat, other: float | None) -> bool:
    return chosen.bandwidth is not None and other is not None and chosen.bandwidth + other > BESIDE
