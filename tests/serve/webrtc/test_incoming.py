"""Packets in any order, late or lost -> sound in order with the moments of its capture, in virtual time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.serve.webrtc.concealment import JOIN_SAMPLES, Concealer
from antiphon.serve.webrtc.incoming import Incoming
from antiphon.serve.webrtc.jitter import JitterBuffer, Missing, Packet, Sent, Step
from antiphon.serve.webrtc.remote_clock import RemoteClock, patience_ns

pytestmark = pytest.mark.unit

SLOT = 960
SLOT_NS = 20 * MILLISECOND_NS
PATIENCE_NS = 40 * MILLISECOND_NS


class Tones:
    """Decodes a packet to its first byte's level."""

    def decode(self, payload: bytes) -> np.ndarray:
        if payload == b"bad":
            raise ValueError
        return np.full(SLOT, payload[0] / 256, np.float32)


def packet(number: int, payload: bytes = b"\x40", *, first: int = 65_530, at: int = 2**32 - 2000) -> Sent:
    """A stream's packet; its numbers wrap around early."""
    return Sent((first + number) % 2**16, (at + number * SLOT) % 2**32, SLOT, payload)


def told(steps: list[Step]) -> list[str]:
    return [f"lost {step.packets}" if isinstance(step, Missing) else f"packet {step.seq - 65_530}" for step in steps]


def test_in_order_nothing_waits() -> None:
    buffer = JitterBuffer()
    for number in range(20):
        buffer.push(packet(number), number * SLOT_NS)
        assert [f"packet {number}"] == told(buffer.take(number * SLOT_NS, PATIENCE_NS))
    assert (20, 0, 0, 0) == (
        buffer.receipts.played, buffer.receipts.lost, buffer.receipts.late, buffer.receipts.waited)  # fmt: skip


def test_a_packet_that_was_overtaken_is_waited_for() -> None:
    buffer = JitterBuffer()
    for number, now_ms in ((0, 0), (2, 40)):
        buffer.push(packet(number), now_ms * MILLISECOND_NS)
    assert ["packet 0"] == told(buffer.take(40 * MILLISECOND_NS, PATIENCE_NS))
    assert 80 * MILLISECOND_NS == buffer.next_ns(PATIENCE_NS)
    buffer.push(packet(1), 60 * MILLISECOND_NS)
    assert ["packet 1", "packet 2"] == told(buffer.take(60 * MILLISECOND_NS, PATIENCE_NS))


def test_a_lost_packet_is_given_up_in_time_and_refused_later() -> None:
    buffer = JitterBuffer()
    for number in (0, 2):
        buffer.push(packet(number), number * SLOT_NS)
    assert ["packet 0", "lost 1", "packet 2"] == told(buffer.take(2 * SLOT_NS + PATIENCE_NS, PATIENCE_NS))
    assert buffer.push(packet(1), 5 * SLOT_NS) is None
    assert (1, 1) == (buffer.receipts.lost, buffer.receipts.late)


def test_silence_that_was_never_sent_is_no_loss() -> None:
    buffer = JitterBuffer()
    buffer.push(packet(0), 0)
    later = packet(1)
    buffer.push(Sent(later.seq, (later.timestamp + 10 * SLOT) % 2**32, SLOT, b"\x40"), 0)
    steps = buffer.take(0, PATIENCE_NS)
    assert ["packet 0", "lost 0", "packet 1"] == told(steps)
    assert 10 * SLOT == steps[1].samples


def test_another_stream_begins_anew() -> None:
    buffer = JitterBuffer()
    buffer.push(packet(0), 0)
    buffer.take(0, PATIENCE_NS)
    buffer.push(packet(20_000), 1)
    (step,) = buffer.take(1, PATIENCE_NS)
    assert isinstance(step, Packet)
    assert 0 == buffer.receipts.lost


def test_patience_follows_jitter_within_bounds() -> None:
    wide = [patience_ns(jitter_ms * MILLISECOND_NS) // MILLISECOND_NS for jitter_ms in (0, 35, 900)]
    assert [10, 35, 120] == wide


def test_a_lossy_line_costs_no_sound_and_no_growing_delay() -> None:
    """Of two minutes with 2 % loss and up to 40 ms jitter every sample is there, and the last is as early as any."""
    rng = random.Random(4)
    incoming = Incoming(Tones())
    coming = sorted(
        (number * SLOT_NS + rng.randrange(0, 40 * MILLISECOND_NS), number)
        for number in range(6000)
        if rng.random() >= 0.02 or number in (0, 5999)
    )
    frames, waits = [], []
    for now_ns, number in coming:
        got = incoming.arrive(packet(number), now_ns)
        frames += got
        waits += [now_ns - frame.end_ns for frame in got]
    frames += incoming.take(coming[-1][0] + 1_000 * MILLISECOND_NS)
    heard = sum(len(frame.pcm) for frame in frames)
    assert abs(heard - 6000 * 320) < 400
    assert incoming.concealed_samples == incoming.receipts.lost * SLOT
    assert 60 < incoming.receipts.lost < 400
    assert max(waits[-500:]) < 180 * MILLISECOND_NS
    positions = [frame.pos_samples for frame in frames]
    assert positions == sorted(positions)
    captured = [frame.captured_ns for frame in frames]
    assert captured == sorted(captured)


@pytest.mark.parametrize("ppm", [-150, 0, 150])
def test_capture_moments_follow_a_clock_that_drifts(ppm: int) -> None:
    """Over ten minutes a sample's moment is told to within a few milliseconds, and the drift itself to 20 ppm."""
    rng = random.Random(7)
    incoming = Incoming(Tones())
    errors = []
    for number in range(30_000):
        true_ns = round(number * SLOT_NS * (1 - ppm / 1e6))
        now_ns = true_ns + SLOT_NS + rng.randrange(0, 5 * MILLISECOND_NS)
        for frame in incoming.arrive(packet(number), now_ns):
            exact_ns = frame.pos_samples * 1e9 / HEARING_RATE_HZ * (1 - ppm / 1e6)
            errors.append(abs(frame.captured_ns - exact_ns) / MILLISECOND_NS)
    assert max(errors[2000:]) < 4
    assert abs(incoming.clock.drift_ppm + ppm) < 20


def test_the_way_is_taken_off_once_it_is_known() -> None:
    clock = RemoteClock()
    clock.see(0, 50)
    assert 50 == clock.here(0)
    clock.set_network(30)
    assert 20 == clock.here(0)


def test_a_packet_that_cannot_be_read_is_concealed() -> None:
    incoming = Incoming(Tones())
    for number, payload in enumerate((b"\x40", b"bad", b"\x40")):
        incoming.arrive(packet(number, payload), number * SLOT_NS)
    assert SLOT == incoming.concealed_samples


def test_concealment_goes_on_with_the_pitch_and_fades() -> None:
    """In place of one lost packet of a tone there is the tone, softer; after 60 ms there is nothing."""
    tone = np.sin(2 * np.pi * 200 * np.arange(10 * SLOT) / 48_000).astype(np.float32)
    concealer = Concealer()
    concealer.heard(tone[: 5 * SLOT])
    invented = concealer.conceal(SLOT)
    expected = tone[5 * SLOT : 6 * SLOT] * np.linspace(1, 2 / 3, SLOT, dtype=np.float32)
    assert float(np.abs(invented - expected).max()) < 0.05
    concealer.conceal(2 * SLOT)
    assert 0 == float(np.abs(concealer.conceal(SLOT)).max())


def test_sound_comes_back_without_a_click() -> None:
    tone = np.sin(2 * np.pi * 200 * np.arange(10 * SLOT) / 48_000).astype(np.float32)
    concealer = Concealer()
    concealer.heard(tone[: 5 * SLOT])
    invented = concealer.conceal(SLOT)
    back = concealer.heard(tone[6 * SLOT : 7 * SLOT])
    assert float(np.abs(np.diff(np.concatenate([invented[-10:], back[:JOIN_SAMPLES]]))).max()) < 0.05
    assert np.array_equal(back[JOIN_SAMPLES:], tone[6 * SLOT + JOIN_SAMPLES : 7 * SLOT])
