"""The microphone into a ring, a ring into the loudspeaker: what is done at each wake-up, and what is told of it.

Captured periods go from the card's memory into a slot of the ring, in the card's own form, stamped with their place and
time; the other process makes samples of them. What it wrote to be heard goes the other way. While it says nothing, two
periods of silence lie in the card's buffer, so that the loudspeaker never stops and a word need not wait for it to
start; a word's first frame waits until `cushion` is queued before it, so that the next may come late by as much.
Nothing of any size is allocated here, nothing is locked, nothing raised or logged.
Units: samples per channel, ns, bytes. Threads: the audio process's one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.card.contract import WIDTHS, Fault
from antiphon.audio.card.notes import Note
from antiphon.audio.timeline import Timeline
from antiphon.core.clock import ns_to_samples
from antiphon.exchange.layout import DTYPES, Kind, Stamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.audio.card.contract import Capture, Playback
    from antiphon.audio.card.tuning import Tuner
    from antiphon.exchange.ends import Message, Reader, Writer

HELD_PERIODS = 2  # of silence
PLACES = {name: DTYPES.index(np.dtype(name)) for name in WIDTHS}


class CaptureLane:
    """From an open microphone on; `move_to` another after an unplugging."""

    def __init__(self, writer: Writer, tuner: Tuner, tell: Callable[[Note], None]) -> None:
        self.xruns = 0
        self._writer = writer
        self._tuner = tuner
        self._tell = tell
        self._timeline: Timeline | None = None
        self._scratch = memoryview(bytearray(writer.shape.payload_bytes))

    def move_to(self, device: Capture) -> None:
        """Go on with this one: what was not captured in between is a gap in its positions."""
        form = device.form
        self._device, self._form = device, form
        if self._timeline is None:
            self._timeline = Timeline(form.rate_hz)
        else:
            self._timeline.move_to(form.rate_hz)
        self._block = form.block_bytes
        self._most = min(self._writer.shape.payload_bytes // self._block, form.buffer_samples)
        self._dtype = PLACES[form.sample_type]
        self._tuner.begin()
        self.wait_for(self._tuner.wake_periods)

    def wait_for(self, periods: int) -> None:
        """Wake for so many."""
        self._wake_samples = periods * self._form.period_samples
        self._device.wake_at(self._wake_samples)

    def serve(self, now_ns: int) -> bool:
        """Hand on what was captured; False if the device is gone."""
        assert self._timeline is not None, "no device yet"
        writer, most, block = self._writer, self._most, self._block
        total, fault = 0, Fault.NONE
        while True:
            slot = writer.claim()
            took = self._device.read((slot or self._scratch)[: most * block], now_ns)
            fault = took.fault if took.fault is not Fault.NONE else fault
            if took.fault is Fault.LOST:
                self._timeline.break_off()
            samples = took.samples
            if not samples:
                break
            place = self._timeline.place(samples, took.end_ns)
            if slot is None:
                writer.refuse()  # its place is passed over, so the reader sees the gap
            else:
                sizes = (samples, self._form.channels, self._form.rate_hz)
                stamp = Stamp(Kind.SOUND, place.captured_ns, place.pos_samples, self._dtype, sizes)
                writer.publish(samples * block, stamp)
            total += samples
            if samples < most:
                break
        self._tuner.note(self._form.ns(max(0, total - self._wake_samples)), lost=fault is Fault.LOST)
        if fault is Fault.LOST:
            self.xruns += 1
            self._tell(Note(what="lost", side="in", numbers={"count": self.xruns}))
        return fault is not Fault.GONE


class PlaybackLane:
    """To an open loudspeaker."""

    def __init__(self, reader: Reader, tuner: Tuner, tell: Callable[[Note], None], cushion_ns: int) -> None:
        self.xruns = 0
        self.misfits = 0  # messages in the form of another device
        self._reader = reader
        self._tuner = tuner
        self._tell = tell
        self._cushion_ns = cushion_ns
        self._message: Message | None = None
        self._offset = 0  # bytes of it that were written
        self._lead = 0  # samples of silence before the run that begins
        self._runs = False  # what is queued ends with speech

    def move_to(self, device: Playback) -> None:
        """Go on with this one."""
        form = device.form
        self._device, self._form = device, form
        self._block = form.block_bytes
        self._silence = memoryview(bytes(form.buffer_samples * self._block))
        self._sizes = (form.channels, form.rate_hz)
        self._dtype = PLACES[form.sample_type]
        self._cushion = ns_to_samples(self._cushion_ns, form.rate_hz)
        self._runs, self._lead = False, 0
        self._tuner.begin()
        self.wait_for(self._tuner.wake_periods)

    def wait_for(self, periods: int) -> None:
        """How little may be queued before it wakes: the longer its wait, the less is held."""
        period = self._form.period_samples
        self._held = max(HELD_PERIODS, 5 - periods) * period
        self._held = min(self._held, self._form.buffer_samples)
        self._device.wake_at(self._form.buffer_samples - self._held + period)

    def serve(self, now_ns: int) -> bool:
        """Write what is to be heard, or silence; False if the device is gone."""
        queued, fault = self._device.queued(now_ns)
        if fault is Fault.GONE:
            return False
        low = self._held - self._form.period_samples
        self._tuner.note(self._form.ns(max(0, low - queued)) if queued < low else 0, lost=fault is Fault.LOST)
        if fault is Fault.LOST:
            self.xruns += 1
            self._runs = False
            self._tell(Note(what="lost", side="out", numbers={"count": self.xruns}))
        queued = self._speech(queued, now_ns)
        if queued <= low:
            self._runs = False
            self._device.write(self._silence[: (self._held - queued) * self._block])
        return True

    def drop(self) -> None:
        """There is no device: what comes meanwhile is not kept for it."""
        while self._next() is not None:
            self._done()

    def _speech(self, queued: int, now_ns: int) -> int:
        """Write what has come, as far as it fits; what is queued then."""
        block = self._block
        while (message := self._next()) is not None:
            room = self._form.buffer_samples - queued
            if not self._runs:
                self._runs = True
                self._lead = max(0, self._cushion - queued)
                self._announce(message, now_ns, queued + self._lead)
            if self._lead and room:
                written = self._device.write(self._silence[: min(self._lead, room) * block])
                self._lead -= written
            elif room:
                written = self._device.write(message.payload[self._offset : self._offset + room * block])
                self._offset += written * block
                if self._offset >= len(message.payload):
                    self._done()
            else:
                written = 0
            if not written:
                break
            queued += written
        return queued

    def _next(self) -> Message | None:
        while self._message is None and (message := self._reader.take()) is not None:
            self._message, self._offset = message, 0
            if message.stamp.dtype != self._dtype or message.stamp.sizes[1:] != self._sizes:
                self.misfits += 1
                self._done()
        return self._message

    def _done(self) -> None:
        self._message = None
        self._reader.release()

    def _announce(self, message: Message, now_ns: int, before: int) -> None:
        heard_ns = now_ns + self._form.ns(before)
        numbers = {"due_ns": message.stamp.captured_ns, "heard_ns": heard_ns, "position": message.stamp.pos_samples}
        self._tell(Note(what="sounding", side="out", numbers=numbers))
