"""A paced card under a virtual clock, between two rings whose other sides a test holds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from antiphon.audio.card.contract import Ask
from antiphon.audio.card.loop import Loop
from antiphon.audio.card.notes import read_note
from antiphon.audio.card.paced import PacedCard
from antiphon.audio.card.settings import SoundSettings
from antiphon.exchange.layout import Kind, RingShape
from antiphon.exchange.ring import Ring, open_reader, open_writer


class VirtualClock:
    def __init__(self) -> None:
        self.ns = 5_000_000_000

    def now_ns(self) -> int:
        return self.ns


@pytest.fixture
def clock():
    return VirtualClock()


@dataclass
class Desk:
    """What a test sees and does: sound and notes as they came, and the reply's messages."""

    clock: VirtualClock
    card: PacedCard
    loop: Loop
    capture: Ring
    playback: Ring
    sounds: list = field(default_factory=list)  # (stamp, int16 samples)
    notes: list = field(default_factory=list)

    def run(self, ms: float, *, late_ms: float = 0.0) -> None:
        """Let time pass; each wake-up comes so much late."""
        end = self.clock.ns + round(ms * 1e6)
        while True:
            due = self.loop.turn(self.clock.ns)
            self.collect()
            if due + late_ms * 1e6 > end:
                break
            self.clock.ns = max(self.clock.ns, due) + round(late_ms * 1e6)
        self.clock.ns = end

    def say(self, samples, stamp) -> None:
        assert self.playback.writer.write(np.asarray(samples, "<i2").tobytes(), stamp)

    def collect(self) -> None:
        reader = self.capture.reader
        while (message := reader.take()) is not None:
            if message.stamp.kind == Kind.SOUND:
                self.sounds.append((message.stamp, np.frombuffer(bytes(message.payload), "<i2")))
            else:
                self.notes.append(read_note(message.payload))
            reader.release()

    def told(self, what: str) -> list:
        return [note for note in self.notes if note.what == what]


@pytest.fixture
def desk(clock):
    """A card at 16 kHz, its microphone saying a ramp of a second."""
    made = []

    def make(settings: SoundSettings | None = None, **card) -> Desk:
        card = PacedCard(clock=clock, said=np.arange(16_000, dtype=np.int16), keeps=True, **card)
        capture = Ring.make(RingShape(slots=64, payload_bytes=4096), peer="writes")
        playback = Ring.make(RingShape(slots=16, payload_bytes=4096), peer="reads")
        settings = settings or SoundSettings(system="paced")
        ends = open_writer(capture.handle()), open_reader(playback.handle())
        loop = Loop([card], *ends, settings, 16_000, clock)
        made.append((loop, capture, playback))
        return Desk(clock, card, loop, capture, playback)

    yield make
    for loop, *rings in made:
        loop.close()
        for ring in rings:
            ring.close()


@pytest.fixture
def ask():
    return Ask(rates_hz=(16_000,))
