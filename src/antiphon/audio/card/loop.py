"""The audio process's one loop: sleep until something is due, serve both ways, tell what happened.

It wakes for the cards' file descriptors, for their clock, for the ring's bell when speech has come, and when the other
process is gone; nothing is polled. A card that is unplugged is closed and asked for again, ever less often, until it is
back. Units: ns. Threads: its own, one; `stop` from any.
"""

from __future__ import annotations

import os
import select
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from antiphon.audio.card.contract import AT_HZ, SHORTEST_PERIOD, Ask, Capture, Form, Playback
from antiphon.audio.card.lanes import CaptureLane, PlaybackLane
from antiphon.audio.card.notes import Note, Side
from antiphon.audio.card.timer import Timer
from antiphon.audio.card.tuning import Tuner, Tuning
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.audio.card.contract import Card, Way
    from antiphon.audio.card.settings import SoundSettings
    from antiphon.core.clock import Clock
    from antiphon.exchange.ends import Reader, Writer

Device = TypeVar("Device", Capture, Playback)

RETRY_NS = (500 * MILLISECOND_NS, 2 * SECOND_NS)  # the first, and at most
HEARING_RATES_HZ = (16_000, 48_000, 44_100, 32_000, 24_000, 8_000)
USUAL_RATES_HZ = (48_000, 44_100, 96_000, 16_000, 8_000)
MOST_WAKE_UPS = 5_000  # in a second: the card's file descriptor says that there is something to do, and there is not
PULSE_NS = SECOND_NS
LIGHTEST_PERIODS = 3  # the loudspeaker wakes for at first: two of its buffer's four lie ready


class Lane(Protocol):
    """What the loop knows of lanes.py."""

    def serve(self, now_ns: int) -> bool: ...
    def wait_for(self, periods: int) -> None: ...


@dataclass(slots=True)
class _Way:
    """One side, whether it is open or not."""

    side: Side
    tuner: Tuner
    lane: Lane
    open: Callable[[Ask], tuple[str, Way]]  # the system's name, and the device in its lane
    ask: Ask
    device: Way | None = None
    retry_at_ns: int = 0
    retry_ns: int = RETRY_NS[0]
    told: str = ""  # why it cannot be opened, told once

    @property
    def is_open(self) -> bool:
        return self.device is not None


class Loop:
    """Serves both ways between two ends of rings and what can be opened of `cards`, the first that will do."""

    def __init__(
        self,
        cards: Sequence[Card],
        writer: Writer,
        reader: Reader,
        settings: SoundSettings,
        voice_hz: int,
        clock: Clock,
    ) -> None:
        self._cards = cards
        self._writer, self._reader = writer, reader
        self._clock = clock
        self._timer = Timer()
        self._stop_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ears = CaptureLane(writer, into := self._tuner(settings, deadline=True), self.tell)
        self._mouth = PlaybackLane(
            reader, out := self._tuner(settings, deadline=False), self.tell, round(settings.cushion_ms * MILLISECOND_NS)
        )
        voice = (voice_hz, *(rate for rate in USUAL_RATES_HZ if rate != voice_hz))
        heard, said = Ask(device=settings.input, rates_hz=HEARING_RATES_HZ), Ask(device=settings.output, rates_hz=voice)
        self._ways = (
            _Way("in", into, self._ears, self._open_capture, heard),
            _Way("out", out, self._mouth, self._open_playback, said),
        )
        self._over = False
        self._poll = select.poll()
        self._lines = {writer.line_fileno(), reader.line_fileno(), self._stop_fd}
        for fd in (*self._lines, self._timer.fd, *([reader.fileno()] if settings.wake else ())):
            self._poll.register(fd, select.POLLIN)
        self._due_ns = 0
        self._pulse_at_ns = 0
        self._wake_ups = 0
        self._worst_ns = 0

    def run(self) -> None:
        """Until the other process is gone, or `stop`."""
        while not self._over:
            self._due_ns = self.turn(self._clock.now_ns())
            self._timer.set(self._due_ns)
            for fd, _ in self._poll.poll():
                if fd == self._timer.fd:
                    self._timer.hush()
                    self._worst_ns = max(self._worst_ns, self._clock.now_ns() - self._due_ns)
                elif fd in self._lines:
                    self._over = True
        for way in self._ways:
            if way.device is not None:
                self._close(way)

    def stop(self) -> None:
        """Let `run` return soon."""
        os.eventfd_write(self._stop_fd, 1)

    def turn(self, now_ns: int) -> int:
        """Do what there is to do; when there will be more that no file descriptor tells of."""
        self._wake_ups += 1
        self._reader.hush()
        if now_ns >= self._pulse_at_ns:
            self._beat(now_ns)
        due_ns = self._pulse_at_ns
        for way in self._ways:
            if way.device is None and now_ns >= way.retry_at_ns:
                self._try(way, now_ns)
            if way.device is not None and not way.lane.serve(now_ns):
                self._close(way)
                way.retry_at_ns, way.retry_ns = now_ns + RETRY_NS[0], RETRY_NS[0]
                self.tell(Note(what="gone", side=way.side))
            if way.device is None:
                due_ns = min(due_ns, way.retry_at_ns)
                continue
            changed = way.tuner.decide(now_ns)
            if changed is not None:
                self._tune(way, changed, now_ns)
            next_ns = way.device.due_ns(now_ns) if way.device is not None else way.retry_at_ns
            due_ns = due_ns if next_ns is None else min(due_ns, next_ns)
        if self._ways[1].device is None:
            self._mouth.drop()
        return due_ns

    def tell(self, note: Note) -> None:
        """Into the ring; while that is full, it is counted like sound."""
        self._writer.write(note.packed())

    def close(self) -> None:
        """Give the file descriptors back."""
        self._timer.close()
        os.close(self._stop_fd)

    def _tuner(self, settings: SoundSettings, *, deadline: bool) -> Tuner:
        deadline_ns = round(settings.deadline_ms * MILLISECOND_NS) if deadline else None
        return Tuner(deadline_ns, adapts=settings.adapt, wake_periods=1 if deadline else LIGHTEST_PERIODS)

    def _open_capture(self, ask: Ask) -> tuple[str, Way]:
        system, device = _first(self._cards, lambda card: card.open_capture(ask))
        self._ears.move_to(device)
        return system, device

    def _open_playback(self, ask: Ask) -> tuple[str, Way]:
        system, device = _first(self._cards, lambda card: card.open_playback(ask))
        self._mouth.move_to(device)
        return system, device

    def _try(self, way: _Way, now_ns: int) -> None:
        try:
            system, way.device = way.open(way.ask)
        except MachineError as error:
            way.retry_at_ns = now_ns + way.retry_ns
            way.retry_ns = min(2 * way.retry_ns, RETRY_NS[1])
            if error.message != way.told:
                way.told = error.message
                self.tell(Note(what="absent", side=way.side, text=error.message, hint=error.hint))
            return
        way.told = ""
        for fd, events in way.device.fds:
            self._poll.register(fd, events)
        self.tell(_opened(way.side, way.device.form, way.device.name, system))

    def _close(self, way: _Way) -> None:
        assert way.device is not None
        for fd, _ in way.device.fds:
            self._poll.unregister(fd)
        way.device.close()
        way.device = None

    def _tune(self, way: _Way, changed: Tuning, now_ns: int) -> None:
        assert way.device is not None
        if changed.period != way.ask.period:  # a card takes another period only when it is opened
            way.ask = replace(way.ask, period=changed.period)
            self._close(way)
            self._try(way, now_ns)
            if not way.is_open:  # what was lost, it lost by going
                self.tell(Note(what="gone", side=way.side))
                return
        else:
            way.lane.wait_for(changed.wake_periods)
        numbers = {"period": changed.period, "wake_periods": changed.wake_periods}
        self.tell(Note(what="tuned", side=way.side, numbers=numbers))

    def _beat(self, now_ns: int) -> None:
        numbers = {"wake_ups": self._wake_ups, "worst_ns": self._worst_ns, "misfits": self._mouth.misfits}
        self.tell(Note(what="pulse", numbers=numbers))
        if self._wake_ups > MOST_WAKE_UPS:
            for way in self._ways:
                if way.device is not None and way.device.fds:
                    self._close(way)
                    way.ask = replace(way.ask, by_clock=True)
                    way.retry_at_ns = now_ns
                    self.tell(Note(what="gone", side=way.side, text="it woke us without end; now the clock does"))
        self._wake_ups, self._worst_ns = 0, 0
        self._pulse_at_ns = now_ns + PULSE_NS


def _first(cards: Sequence[Card], open_on: Callable[[Card], Device]) -> tuple[str, Device]:
    """The first that can be opened, and its system; the first one's error if none can."""
    errors = []
    for card in cards:
        try:
            return card.system, open_on(card)
        except MachineError as error:
            errors.append(error)
    if not errors:
        raise MachineError("no sound system can be used", hint="install libasound2, or antiphon[talk] with PortAudio")
    messages = "; ".join(dict.fromkeys(error.message for error in errors))
    hints = "; or ".join(dict.fromkeys(error.hint for error in errors if error.hint))
    raise MachineError(messages, hint=hints)


def _opened(side: Side, form: Form, name: str, system: str) -> Note:
    numbers = {
        "rate_hz": form.rate_hz,
        "channels": form.channels,
        "period": form.period_samples,
        "buffer": form.buffer_samples,
        "shortest": SHORTEST_PERIOD * form.rate_hz // AT_HZ,
    }
    return Note(what="opened", side=side, text=f"{system}: {name}", hint=form.sample_type, numbers=numbers)
