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

FORESEEN_FOR_NS = 20 * MILLISECOND_NS  # what was foreseen and has not come by then is not waited for
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
    if chosen.is_reply:
        return Placing(place=_for_reply(running, outlook))
    reply = next((each for each in running if each.is_reply), None)
    if not chosen.is_late:
        wait = _wait(chosen, reply, outlook)
        if wait is not None:
            return wait
    if not outlook.is_cut:
        return Placing(place=Place.WHOLE)
    if reply is not None:
        return Placing(place=Place.OTHERS)
    due_ns = outlook.reply_in_ns
    if due_ns is None or (chosen.estimate_ns and chosen.estimate_ns + GUARD_NS <= due_ns):
        return Placing(place=Place.WHOLE)
    return Placing(place=Place.OTHERS)


def _for_reply(running: Sequence[Seat], outlook: Outlook) -> Place:
    if not outlook.is_cut:
        return Place.WHOLE
    ahead_of = next((each for each in running if each.is_reply), None)
    if ahead_of is not None and not outlook.others_wait:
        return ahead_of.place  # one stream: it begins in the moment the other ends
    is_alone = not outlook.others_wait and all(each.is_reply for each in running)
    return Place.WHOLE if is_alone else Place.REPLIES


def _wait(chosen: Seat, reply: Seat | None, outlook: Outlook) -> Placing | None:
    """Why one that is no reply had better wait, if it had."""
    if reply is not None and chosen.urgency < reply.urgency:
        return None
    if reply is not None:
        if _crowds(chosen, reply.bandwidth):
            return Placing(reason="writing has the memory's bandwidth")
        is_bounded = reply.place is Place.WHOLE and reply.estimate_ns > 0
        if is_bounded and outlook.is_cut:
            return Placing(reason="a step has the whole GPU")
        return None
    due_ns = outlook.reply_in_ns
    if due_ns is None or chosen.urgency <= Urgency.CONFIRMED:
        return None
    ends_before = chosen.estimate_ns and chosen.estimate_ns + GUARD_NS <= due_ns
    if ends_before or chosen.estimate_ns == 0 or outlook.next_reply_ns is None:
        return None
    if _crowds(chosen, outlook.next_reply_bandwidth) or not outlook.is_cut:
        again_ns = outlook.next_reply_ns + FORESEEN_FOR_NS
        return Placing(reason="a step of writing is due before it would end", again_ns=again_ns)
    return None


def _crowds(chosen: Seat, other: float | None) -> bool:
    return chosen.bandwidth is not None and other is not None and chosen.bandwidth + other > BESIDE
