"""What came of a turn so far -> until when the caller waits for more of it.

The wait is judged anew after each event. A turn that is answered is over when the reply is; one with a cut-in when the
real answer is, or when it stays quiet; one that nobody answers when patience ends.
Units: ns of the clock, seconds in settings. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import SECOND_NS
from antiphon.lab.exchange import TRANSCRIBED

if TYPE_CHECKING:
    from antiphon.lab.exchange import Exchange

LONGEST_REPLY_NS = 120 * SECOND_NS  # from its first sound; then the caller hangs up
STALE_NS = 3 * SECOND_NS  # a reply without an end: over, so long after its last sound
QUIET_NS = 2 * SECOND_NS  # after a cut-in: nothing more will come
FAILED_NS = SECOND_NS  # after a failed response: the server might try again


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait."""

    answer_s: float = 10.0  # from the true end
    settle_s: float = 0.3  # after the end of a reply, for what still belongs to it
    transcript_s: float = 1.0  # the same, as long as the transcript has not come
    listens_s: float | None = None  # to an answer at most, then the caller hangs up
    hears_out: bool = True  # wait until the reply has been played, for the same line says more

    def over_ns(self, exchange: Exchange, *, ends_ns: int, newest_ns: int) -> int:
        """When the turn is over if nothing more comes; `ends_ns`: of playback, `newest_ns`: of the newest event."""
        if exchange.lost:
            return newest_ns
        spoken_ns = exchange.said.spoken_ns
        answer = exchange.answer
        is_transcribed = TRANSCRIBED in exchange.came_ns
        settle_ns = round((self.settle_s if is_transcribed else self.transcript_s) * SECOND_NS)
        first_ns = answer.first_ns if answer else None
        if first_ns is None:
            return self._without_answer(exchange, max(ends_ns, spoken_ns))
        longest_ns = LONGEST_REPLY_NS if self.listens_s is None else round(self.listens_s * SECOND_NS)
        if exchange.active:
            stale_ns = max(newest_ns, ends_ns) + STALE_NS
            return min(first_ns + longest_ns, stale_ns)
        ended_ns = max((reply.ended_ns or 0 for reply in exchange.replies.values()), default=first_ns)
        return max(ended_ns, first_ns, ends_ns if self.hears_out else 0) + settle_ns

    def _without_answer(self, exchange: Exchange, quiet_from_ns: int) -> int:
        end_ns = exchange.said.spoken_ns + round(self.answer_s * SECOND_NS)
        if exchange.active:
            return end_ns
        if exchange.audible:
            return min(end_ns, quiet_from_ns + QUIET_NS)
        failed = [reply.ended_ns for reply in exchange.replies.values() if reply.status == "failed" and reply.ended_ns]
        if failed:
            return min(end_ns, max(*failed, exchange.said.spoken_ns) + FAILED_NS)
        return end_ns
