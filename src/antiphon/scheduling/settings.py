"""By which rules work is ordered; every threshold can be changed while the server runs (SIGHUP reads them anew)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from antiphon.core.errors import CallerError, check_range


class Order(StrEnum):
    """Who goes first among those that wait."""

    FIFO = "fifo"  # who came first
    STATIC = "static"  # the more urgent, then who came first
    EDF = "edf"  # whose deadline is nearest
    LAXITY = "laxity"  # the more urgent, then whose group is below its share, then who can wait least


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingSettings:
    """Thresholds of the policy.

    Raises:
        CallerError: a value is out of its range; the message names the field.
    """

    enabled: Annotated[bool, "without, every engine takes the cores as they come"] = True
    order: Annotated[Order, "who goes first: laxity, or one of those that it is compared with"] = Order.LAXITY
    yielding: Annotated[bool, "writing stops at a token when something more urgent waits, and goes on after it"] = True
    batching: Annotated[bool, "callers that wait for the same step of the recognizer take it together"] = True
    overtaking: Annotated[
        bool, "an urgent job begins beside lesser ones on the cores that the system takes from them"
    ] = True
    shares: Annotated[bool, "between equals, hearing or speaking waits when it had more than its share"] = True
    admission: Annotated[bool, "a caller whom the cores have no time for is turned away"] = True
    ample_ms: Annotated[int, "who can wait longer than this is not urgent, whatever they are"] = 1000
    patience_ms: Annotated[int, "whoever has waited this long is one step more urgent, twice this long two"] = 2000
    margin_ms: Annotated[int, "writing gives way only to who can wait this much less"] = 20
    hear_share: Annotated[float, "of the cores, for hearing and reading, while both they and speaking want them"] = 0.6
    most_hear_share: Annotated[float, "while somebody begins to speak"] = 0.85
    most_speak_share: Annotated[float, "for writing and speaking, while replies come late"] = 0.55
    share_window_ms: Annotated[int, "over which shares are kept"] = 500
    voiced_frames: Annotated[int, "frames with a voice in a row: somebody begins to speak"] = 3
    energy_ratio: Annotated[float, "of a frame to the voice's usual level, or the voice detector's certainty"] = 0.7
    decode_lag_ms: Annotated[int, "behind its time: a reply comes late"] = 80
    least_tokens_per_s: Annotated[float, "that a reply is written at: below, it comes late"] = 12.0
    trace: Annotated[str, "a file that gets a line for each job: how long it waited, for whom, and why"] = ""
    busy_limit: Annotated[float, "of the cores: beyond, no further caller is admitted"] = 0.85
    wait_limit_ms: Annotated[int, "that an admitted caller may make a reply's work wait, at P95"] = 250

    def __post_init__(self) -> None:
        check_range("ample_ms", self.ample_ms, 0, 60_000)
        check_range("patience_ms", self.patience_ms, 1, 600_000)
        check_range("margin_ms", self.margin_ms, 0, 10_000)
        check_range("hear_share", self.hear_share, 0.05, 0.95)
        check_range("most_hear_share", self.most_hear_share, 0.05, 0.95)
        check_range("most_speak_share", self.most_speak_share, 0.05, 0.95)
        check_range("share_window_ms", self.share_window_ms, 10, 60_000)
        check_range("voiced_frames", self.voiced_frames, 1, 100)
        check_range("energy_ratio", self.energy_ratio, 0, 1)
        check_range("decode_lag_ms", self.decode_lag_ms, 1, 60_000)
        check_range("least_tokens_per_s", self.least_tokens_per_s, 0, 1000)
        check_range("busy_limit", self.busy_limit, 0.05, 1)
        check_range("wait_limit_ms", self.wait_limit_ms, 1, 60_000)
        if self.most_hear_share < self.hear_share:
            raise CallerError(
                f"most_hear_share {self.most_hear_share} is below hear_share {self.hear_share}",
                hint="choose hear_share <= most_hear_share",
            )
        if self.most_speak_share < 1 - self.hear_share:
            raise CallerError(
                f"most_speak_share {self.most_speak_share} is below what hear_share {self.hear_share} leaves",
                hint="choose 1 - hear_share <= most_speak_share",
            )
