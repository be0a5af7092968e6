"""The audio process's loop on a paced card: sound comes whole and stamped, words wait for nothing, faults are told."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest

from antiphon.audio.card.settings import SoundSettings
from antiphon.exchange.layout import Kind, Stamp

pytestmark = [pytest.mark.unit, pytest.mark.skipif(sys.platform != "linux", reason="rings need Linux")]

FIXED = SoundSettings(system="paced", adapt=False)
RATE = 16_000


def speech(samples, due_ns, rate_hz=RATE):
    return np.full(samples, 1000, "<i2"), Stamp(Kind.SOUND, due_ns, 0, 3, (samples, 1, rate_hz))


def heard(desk):
    return np.frombuffer(b"".join(desk.card.heard), "<i2")


def test_what_is_captured_lies_end_to_end_with_its_time(desk):
    """Every sample once, in order, stamped with the moment it met the microphone."""
    table = desk(FIXED)
    opened_ns = table.clock.ns
    table.run(400)

    positions = [stamp.pos_samples for stamp, _ in table.sounds]
    lengths = [len(pcm) for _, pcm in table.sounds]
    assert positions == [sum(lengths[:k]) for k in range(len(lengths))]
    assert np.array_equal(np.concatenate([pcm for _, pcm in table.sounds]), np.arange(sum(lengths)))
    assert sum(lengths) >= RATE * 0.39
    for stamp, _ in table.sounds:
        assert abs(stamp.captured_ns - opened_ns - stamp.pos_samples * 62_500) < 200_000


def test_a_period_is_5_ms_and_each_is_waited_for(desk):
    table = desk(FIXED)
    table.run(400)

    assert {85} == {len(pcm) for _, pcm in table.sounds}  # 256 samples at 48 kHz


def test_who_comes_too_late_loses_sound_and_the_positions_say_how_much(desk):
    """A stall of 200 ms: an xrun, a note, and a gap as long as what is missing."""
    table = desk(FIXED)
    table.run(100)
    table.clock.ns += 200_000_000
    table.run(100)

    assert 1 == table.told("lost")[0].numbers["count"]
    ends = [(stamp.pos_samples, len(pcm), stamp.captured_ns) for stamp, pcm in table.sounds]
    gaps = [
        (after[0] - before[0] - before[1], after[2] - before[2])
        for before, after in pairwise(ends)
        if after[0] != before[0] + before[1]
    ]
    assert 1 == len(gaps)
    assert 2700 < gaps[0][0] < 3500  # about 200 ms
    assert abs(gaps[0][1] - (gaps[0][0] + 85) * 62_500) < 1_000_000  # and time agrees


def test_a_full_ring_refuses_and_goes_on_in_time(desk):
    """Nobody reads for two seconds: what did not fit is a gap."""
    table = desk(FIXED)
    table.collect, keep = (lambda: None), table.collect
    table.run(2000)
    table.collect = keep
    table.collect()
    table.run(100)

    before, after = table.sounds[-8], table.sounds[-1]
    assert table.capture.reader is not None
    positions = [stamp.pos_samples for stamp, _ in table.sounds]
    assert positions == sorted(positions)
    assert max(b - a for a, b in pairwise(positions)) > 10_000
    assert after[0].captured_ns > before[0].captured_ns


def test_the_loudspeaker_never_stops_and_says_what_came(desk):
    """Silence before, the words whole, silence after, and no xrun."""
    table = desk(FIXED)
    table.run(100)
    for k in range(5):
        table.say(*speech(320, table.clock.ns))
        table.run(20)
        assert k >= 0
    table.run(200)

    said = heard(table)
    assert 5 * 320 == np.count_nonzero(said)
    first, last = np.flatnonzero(said)[[0, -1]]
    assert last - first + 1 == 5 * 320  # without a gap
    assert not table.told("lost")


def test_a_word_is_announced_with_the_moment_it_is_heard(desk):
    """The cushion is before it: about 20 ms after it was due."""
    table = desk(FIXED)
    table.run(100)
    due_ns = table.clock.ns
    table.say(*speech(320, due_ns))
    table.run(50)

    (note,) = table.told("sounding")
    assert due_ns == note.numbers["due_ns"]
    assert 20e6 <= note.numbers["heard_ns"] - due_ns < 27e6


def test_a_frame_that_comes_late_by_less_than_the_cushion_makes_no_gap(desk):
    table = desk(FIXED)
    table.run(100)
    for late_ms in (0, 12, 0, 12):
        table.run(late_ms)
        table.say(*speech(320, table.clock.ns))
        table.run(20 - late_ms)
    table.run(100)

    said = np.flatnonzero(heard(table))
    assert said[-1] - said[0] + 1 == 4 * 320


def test_what_is_in_another_device_s_form_is_passed_over(desk):
    """It was written before the device came back as another."""
    table = desk(FIXED)
    table.run(50)
    table.say(*speech(320, table.clock.ns, rate_hz=48_000))
    table.run(1100)

    assert not np.count_nonzero(heard(table))
    assert 1 == table.told("pulse")[-1].numbers["misfits"]


def test_an_unplugged_card_is_told_and_comes_back(desk):
    """Both ways; the microphone's positions have a gap as long as it was away."""
    table = desk(FIXED)
    table.run(100)
    before = sum(len(pcm) for _, pcm in table.sounds)
    table.card.is_plugged = False
    table.run(3000)
    assert ["in", "out"] == sorted(note.side for note in table.told("gone"))
    assert 2 == len(table.told("absent"))  # each once, however often it was tried
    table.card.is_plugged = True
    table.run(2500)

    assert 4 == len(table.told("opened"))
    back = next(stamp for stamp, _ in table.sounds if stamp.pos_samples > before + 1000)
    first = table.sounds[0][0]
    assert abs(back.captured_ns - first.captured_ns - back.pos_samples * 62_500) < 8_000_000


def test_a_card_that_is_gone_when_its_period_is_to_grow_is_told_as_gone(desk):
    """A server that ends loses sound first, and cannot be opened with the longer period that is meant to help."""
    table = desk(SoundSettings(system="paced"))
    table.run(1500)  # what is lost in its first second says nothing
    table.card.loses_when_unplugged = True
    table.card.is_plugged = False
    table.run(100)

    assert {"in", "out"} == {note.side for note in table.told("gone")}
    assert not table.told("tuned")


def test_an_absent_card_is_told_with_a_remedy(desk):
    table = desk(FIXED, is_plugged=False)
    table.run(100)

    assert "plug it in" == table.told("absent")[0].hint


@pytest.mark.parametrize(("rates", "channels", "sample_type"), [((48_000,), 2, "i4"), ((44_100,), 6, "f4")])
def test_a_card_that_refuses_16_khz_mono_is_taken_as_it_is(desk, rates, channels, sample_type):
    """Its form is told, and stands in each stamp."""
    table = desk(FIXED, rates_hz=rates, channels=channels, sample_type=sample_type)
    table.run(100)

    assert rates[0] == table.told("opened")[0].numbers["rate_hz"]
    assert (channels, rates[0]) == table.sounds[0][0].sizes[1:]


def test_with_wakes_that_come_late_the_period_grows_and_sound_is_whole_again(desk):
    """Wake-ups 25 ms late lose sound at first, and none once the buffer has room for them."""
    table = desk(SoundSettings(system="paced"))
    table.run(3000, late_ms=25)
    lost = len(table.told("lost"))
    assert lost > 0
    table.run(10_000, late_ms=25)

    assert lost == len(table.told("lost"))
    assert max(note.numbers["period"] for note in table.told("tuned")) > 256


def test_a_pulse_comes_each_second(desk):
    table = desk(FIXED)
    table.run(5500)

    assert 5 <= len(table.told("pulse")) <= 7
