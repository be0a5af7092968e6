"""Deltas of a reply as they arrive -> when each of its samples is heard, and what was heard when it was stopped.

A delta is played when it has arrived and what came before it has been played; where nothing is left to play, the
listener hears silence until the next delta is there. That is a client without a jitter buffer: it hears everything as
early as it can be heard. So a reply whose sound begins with 300 ms of silence is heard 300 ms later.
Units: samples at the reply's rate, ns of the clock. Pure: time comes in. It does not know turns.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from antiphon.audio.pcm import PcmDecoder
from antiphon.core.clock import MILLISECOND_NS, ns_to_samples, samples_to_ns
from antiphon.lab.audible import AudibleRuns

if TYPE_CHECKING:
    from antiphon.lab.sound_format import SoundFormat

LEAST_GAP_NS: Final = 5 * MILLISECOND_NS  # what is shorter nobody hears
MOST_SEGMENTS = 10_000  # of one item; later gaps are then not told apart


@dataclass(frozen=True, slots=True)
class Gap:
    """The listener waited inside an item."""

    at_samples: int
    waited_ns: int


class ItemSound:
    """The sound of one item of a reply."""

    def __init__(self, item: str, wire_format: SoundFormat) -> None:
        self.item = item
        self.rate_hz = wire_format.rate_hz
        self.samples = 0  # that arrived and were not too late
        self.cut_samples: int | None = None  # what lies behind was not heard
        self._decoder = PcmDecoder(wire_format.encoding)
        self._runs = AudibleRuns(wire_format.rate_hz)
        self._starts: list[int] = []  # sample with which a segment begins
        self._times: list[int] = []  # when that is played
        self._gaps: list[Gap] = []

    def push(self, data: bytes, from_ns: int) -> int:
        """More of it, to be played from then on; when it will have been played."""
        pcm = self._decoder.push(data)
        if not len(pcm):
            return from_ns
        joins_ns = self.time_of(self.samples) if self._starts else None
        if joins_ns is None or (from_ns > joins_ns and len(self._starts) < MOST_SEGMENTS):
            self._starts.append(self.samples)
            self._times.append(from_ns)
            if joins_ns is not None:
                self._gaps.append(Gap(self.samples, from_ns - joins_ns))
        self._runs.push(pcm)
        self.samples += len(pcm)
        return self.time_of(self.samples)

    def finish(self) -> None:
        """No more will come."""
        self._runs.finish()

    def time_of(self, sample: int) -> int:
        """When a sample is played."""
        place = max(0, bisect_right(self._starts, sample) - 1)
        return self._times[place] + samples_to_ns(sample - self._starts[place], self.rate_hz)

    def heard_by(self, ns: int) -> int:
        """How many samples have been played by then."""
        place = bisect_right(self._times, ns) - 1
        if place < 0:
            return 0
        heard = self._starts[place] + ns_to_samples(ns - self._times[place], self.rate_hz)
        end = self._starts[place + 1] if place + 1 < len(self._starts) else self.samples
        return min(heard, end)

    def cut(self, ns: int) -> None:
        """Nothing of it is heard from now on."""
        if self.cut_samples is None:
            self.cut_samples = self.heard_by(ns)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Audible runs as far as they were not cut, in samples."""
        return self._runs.spans(self.cut_samples)

    @property
    def first_ns(self) -> int | None:
        """When its first audible sample is heard; None: nothing of it is."""
        spans = self.spans
        return self.time_of(spans[0][0]) if spans else None

    @property
    def last_ns(self) -> int | None:
        """When its last audible sample has been heard."""
        spans = self.spans
        return self.time_of(spans[-1][1] - 1) + samples_to_ns(1, self.rate_hz) if spans else None

    @property
    def audible_ns(self) -> int:
        """From its first audible sample to its last, waits left out."""
        spans = self.spans
        return samples_to_ns(spans[-1][1] - spans[0][0], self.rate_hz) if spans else 0

    def gaps_ns(self, until_ns: int | None = None) -> tuple[int, ...]:
        """The waits that a listener notices: inside its audible part, not too short, and over by then."""
        spans = self.spans
        if not spans:
            return ()
        inside = (gap for gap in self._gaps if spans[0][0] < gap.at_samples < spans[-1][1])
        heard = (gap for gap in inside if until_ns is None or self.time_of(gap.at_samples) <= until_ns)
        return tuple(gap.waited_ns for gap in heard if gap.waited_ns >= LEAST_GAP_NS)


@dataclass(slots=True)
class Loudspeaker:
    """Of one caller: everything in the order in which it arrives."""

    ends_ns: int = 0  # when all that has arrived will have been played
    _playing: list[ItemSound] = field(default_factory=list)  # not played to the end

    def push(self, sound: ItemSound, data: bytes, at_ns: int) -> None:
        """More of an item has arrived; of one that was stopped it is not played."""
        if sound.cut_samples is not None:
            return
        self.ends_ns = max(self.ends_ns, sound.push(data, max(at_ns, self.ends_ns)))
        self._playing = [one for one in self._playing if one is not sound and one.time_of(one.samples) > at_ns]
        if sound.samples:
            self._playing.append(sound)

    def is_playing(self, at_ns: int) -> bool:
        return self.ends_ns > at_ns

    def stop(self, at_ns: int) -> ItemSound | None:
        """Be silent at once; the item that was being played, if any. What waited behind it is never heard."""
        playing = [one for one in self._playing if one.time_of(one.samples) > at_ns]
        self._playing = []
        self.ends_ns = min(self.ends_ns, at_ns)
        for one in playing:
            one.cut(at_ns)
        return next((one for one in playing if one.cut_samples), None)
