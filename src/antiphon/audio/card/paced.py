"""A card that is none: what a clock says has been captured and heard, for tests, benchmarks and machines without one.

Its microphone says a clip over and over, or is silent; its loudspeaker remembers the last seconds, if asked to. It
loses sound as a card does when nobody comes in time, and can be unplugged. Units and threads: as contract.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.card.contract import PERIODS, Fault, Form, Queued, SampleType, Took
from antiphon.core.clock import ns_to_samples, samples_to_ns
from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from antiphon.audio.card.contract import Ask
    from antiphon.core.clock import Clock


@dataclass(slots=True, kw_only=True)
class PacedCard:
    """What can be opened; tests change it while it is open."""

    clock: Clock
    said: npt.NDArray[np.int16] = field(default_factory=lambda: np.zeros(16_000, np.int16))  # (samples,) by the mike
    rates_hz: Sequence[int] = ()  # that it can; empty: any
    channels: int = 0  # that it has, no others; 0: any
    sample_type: SampleType = "i2"
    keeps: bool = False  # what was played, in `heard`
    is_plugged: bool = True
    loses_when_unplugged: bool = False  # as a plugin does whose server has ended: only opening it tells that it is gone
    heard: list[bytes] = field(default_factory=list)
    opened: int = 0
    since_ns: int = 0  # when its microphone was opened first
    system: str = "paced"

    def form(self, ask: Ask) -> Form:
        """What it offers for a wish.

        Raises:
            MachineError: it is not plugged in.
        """
        if not self.is_plugged:
            raise MachineError("the paced card is not plugged in", hint="plug it in")
        self.opened += 1
        wished = [rate for rate in ask.rates_hz if not self.rates_hz or rate in self.rates_hz]
        rate_hz = wished[0] if wished else self.rates_hz[0]
        period = ask.period_samples(rate_hz)
        return Form(
            rate_hz=rate_hz,
            channels=self.channels or ask.channels[0],
            sample_type=self.sample_type,
            period_samples=period,
            buffer_samples=PERIODS * period,
        )

    def open_capture(self, ask: Ask) -> PacedCapture:
        return PacedCapture(self, self.form(ask))

    def open_playback(self, ask: Ask) -> PacedPlayback:
        return PacedPlayback(self, self.form(ask))


class PacedCapture:
    """The microphone."""

    name = "paced microphone"
    fds: tuple[tuple[int, int], ...] = ()

    def __init__(self, card: PacedCard, form: Form) -> None:
        self.form = form
        self._card = card
        self._start_ns = card.clock.now_ns()
        self._taken = 0  # since then
        self._wake_samples = form.period_samples
        said = np.repeat(card.said[:, None], form.channels, axis=1)
        scaled = {"i2": said, "i4": said.astype("<i4") << 16, "f4": said.astype("<f4") / 32_768}[form.sample_type]
        self._bytes = np.ascontiguousarray(scaled).data.cast("B")
        card.since_ns = card.since_ns or self._start_ns
        said_ns = self._start_ns - card.since_ns  # one that is opened again has gone on saying
        self._place = ns_to_samples(said_ns, form.rate_hz) % len(card.said)  # in the clip, in samples

    def due_ns(self, now_ns: int) -> int | None:  # noqa: ARG002 - the contract has it
        return self._start_ns + samples_to_ns(self._taken + self._wake_samples, self.form.rate_hz)

    def wake_at(self, samples: int) -> None:
        self._wake_samples = samples

    def read(self, into: memoryview, now_ns: int) -> Took:
        if not self._card.is_plugged:
            self._start_ns, self._taken = now_ns, 0
            return Took(0, now_ns, Fault.LOST if self._card.loses_when_unplugged else Fault.GONE)
        there = max(0, now_ns - self._start_ns) * self.form.rate_hz // 1_000_000_000 - self._taken
        if there > self.form.buffer_samples:  # nobody came in time: what was captured is overwritten
            self._start_ns, self._taken = now_ns, 0
            self._place = (self._place + there) % len(self._card.said)
            return Took(0, now_ns, Fault.LOST)
        given = min(there, len(into) // self.form.block_bytes)
        self._copy(into, given)
        self._taken += given
        return Took(given, self._start_ns + samples_to_ns(self._taken, self.form.rate_hz))

    def _copy(self, into: memoryview, samples: int) -> None:
        block, done = self.form.block_bytes, 0
        while done < samples:
            run = min(samples - done, len(self._card.said) - self._place)
            into[done * block : (done + run) * block] = self._bytes[self._place * block : (self._place + run) * block]
            self._place = (self._place + run) % len(self._card.said)
            done += run

    def close(self) -> None:
        """It is nobody's any more."""


class PacedPlayback:
    """The loudspeaker."""

    name = "paced loudspeaker"
    fds: tuple[tuple[int, int], ...] = ()

    def __init__(self, card: PacedCard, form: Form) -> None:
        self.form = form
        self._card = card
        self._start_ns: int | None = None
        self._written = 0  # since then
        self._wake_samples = form.period_samples

    def due_ns(self, now_ns: int) -> int | None:
        if self._start_ns is None:
            return now_ns
        wanted = self._written - (self.form.buffer_samples - self._wake_samples)
        return self._start_ns + samples_to_ns(max(wanted, 0), self.form.rate_hz)

    def wake_at(self, samples: int) -> None:
        self._wake_samples = samples

    def queued(self, now_ns: int) -> Queued:
        if not self._card.is_plugged:
            self._start_ns, self._written = now_ns, self.form.buffer_samples  # it takes what is written, unheard
            return Queued(0, Fault.LOST if self._card.loses_when_unplugged else Fault.GONE)
        if self._start_ns is None:
            return Queued(0)
        left = self._written - ns_to_samples(max(0, now_ns - self._start_ns), self.form.rate_hz)
        if left < 0:  # it had nothing to say: it stops, and the next write sets it going again
            self._start_ns, self._written = None, 0
            return Queued(0, Fault.LOST)
        return Queued(left)

    def write(self, block: memoryview) -> int:
        now_ns = self._card.clock.now_ns()
        if self._start_ns is None:
            self._start_ns = now_ns
        room = self.form.buffer_samples - self.queued(now_ns).samples
        taken = min(room, len(block) // self.form.block_bytes)
        if self._card.keeps:
            self._card.heard.append(bytes(block[: taken * self.form.block_bytes]))
        self._written += taken
        return taken

    def close(self) -> None:
        """It is nobody's any more."""
