"""When samples are heard that arrive early, late, or not in time to be heard at all."""

from __future__ import annotations

import pytest
from tests.lab.fake_server import silence, tone

from antiphon.audio.pcm import encode
from antiphon.core.clock import MILLISECOND_NS
from antiphon.lab.loudspeaker import ItemSound, Loudspeaker
from antiphon.lab.sound_format import SoundFormat

pytestmark = pytest.mark.unit

PLAIN = SoundFormat("audio/pcm", 24_000)


def ms(value: float) -> int:
    return round(value * MILLISECOND_NS)


def sound(length_ms: float) -> bytes:
    return encode(tone(length_ms, 24_000), "int16")


def test_what_arrives_early_waits_for_its_turn() -> None:
    """The second delta is heard when the first was, whenever it came."""
    speaker, item = Loudspeaker(), ItemSound("a", PLAIN)
    speaker.push(item, encode(silence(100, 24_000), "int16"), ms(0))
    speaker.push(item, sound(100), ms(1))
    assert (ms(100), ms(200), ms(200)) == (item.first_ns, item.last_ns, speaker.ends_ns)


def test_items_are_heard_one_after_the_other() -> None:
    """Across responses too."""
    speaker, first, second = Loudspeaker(), ItemSound("a", PLAIN), ItemSound("b", PLAIN)
    speaker.push(first, sound(100), ms(0))
    speaker.push(second, sound(100), ms(10))
    assert (ms(0), ms(100)) == (first.first_ns, second.first_ns)


def test_what_arrives_late_leaves_a_gap() -> None:
    """Later sound is heard later by as much; what is too short to notice is none."""
    speaker, item = Loudspeaker(), ItemSound("a", PLAIN)
    for at_ms in (0, 130, 200, 334):
        speaker.push(item, sound(100), ms(at_ms))
    assert ((ms(30),), ms(434)) == (item.gaps_ns(), item.last_ns)
    assert ((), (ms(30),)) == (item.gaps_ns(ms(129)), item.gaps_ns(ms(130)))


def test_a_gap_in_silence_is_not_heard() -> None:
    """Before the first audible sample and after the last nobody waits."""
    speaker, item = Loudspeaker(), ItemSound("a", PLAIN)
    quiet = encode(silence(50, 24_000), "int16")
    for data, at_ms in ((quiet, 0), (quiet, 80), (sound(50), 130), (quiet, 300)):
        speaker.push(item, data, ms(at_ms))
    assert () == item.gaps_ns()


def test_a_stop_cuts_at_the_sample_that_was_being_played() -> None:
    """What waited behind it was not heard, and what comes later is not played."""
    speaker, item, waiting = Loudspeaker(), ItemSound("a", PLAIN), ItemSound("b", PLAIN)
    speaker.push(item, sound(100), ms(0))
    speaker.push(waiting, sound(100), ms(0))
    assert item is speaker.stop(ms(40))
    speaker.push(item, sound(100), ms(50))
    assert (960, ms(40), ms(40)) == (item.cut_samples, item.last_ns, speaker.ends_ns)
    assert (0, None) == (waiting.cut_samples, waiting.first_ns)
    assert not speaker.is_playing(ms(50))


def test_a_stop_in_a_gap_cuts_what_had_been_heard() -> None:
    """Time that was waited is no sound."""
    speaker, item = Loudspeaker(), ItemSound("a", PLAIN)
    speaker.push(item, sound(100), ms(0))
    speaker.push(item, sound(100), ms(150))
    assert item is speaker.stop(ms(160))
    assert 110 * 24 == item.cut_samples


def test_nothing_is_stopped_when_nothing_plays() -> None:
    """All had been heard."""
    speaker, item = Loudspeaker(), ItemSound("a", PLAIN)
    speaker.push(item, sound(100), ms(0))
    assert speaker.stop(ms(101)) is None
    assert item.cut_samples is None


def test_samples_may_be_cut_in_two() -> None:
    """A delta that ends inside a sample is completed by the next."""
    speaker, item = Loudspeaker(), ItemSound("a", PLAIN)
    data = sound(100)
    speaker.push(item, data[:33], ms(0))
    speaker.push(item, data[33:], ms(0))
    assert (2400, ms(100)) == (item.samples, item.last_ns)
