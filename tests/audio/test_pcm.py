"""Bytes cut anywhere are the same sound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.audio.encoding import Encoding
from antiphon.audio.pcm import PcmDecoder, downmix, encode, sanitise
from antiphon.audio.resample import Resampler
from antiphon.core.errors import CallerError

pytestmark = pytest.mark.unit


def decoded(pieces, encoding, channels=1):
    decoder = PcmDecoder(encoding, channels=channels)
    return np.concatenate([decoder.push(piece) for piece in pieces]), decoder


def cut(data, sizes):
    pieces, at = [], 0
    while at < len(data):
        for size in sizes:
            pieces.append(data[at : at + size])
            at += size
    return pieces


def test_a_ramp_in_odd_pieces_stays_a_ramp():
    """Pieces of 1, 3, 5, 4095, 2 and 1 bytes, repeated, change nothing."""
    ramp = np.arange(-12000, 12000, dtype="<i2")
    pcm, decoder = decoded(cut(ramp.tobytes(), [1, 3, 5, 4095, 2, 1]), "int16")

    assert ramp.tobytes() == encode(pcm, "int16")
    assert 0 == decoder.finish()


@given(
    encoding=st.sampled_from(list(Encoding)),
    channels=st.integers(1, 6),
    data=st.binary(max_size=400),
    sizes=st.lists(st.integers(0, 37), min_size=1, max_size=20).filter(any),
)
def test_any_cut_gives_the_same_samples(encoding, channels, data, sizes):
    """Whatever the encoding, the channels and the cut; the count of faults and of dangling bytes too."""
    whole, once = decoded([data], encoding, channels)
    pieces, many = decoded([b"", *cut(data, sizes)], encoding, channels)

    assert whole.tobytes() == pieces.tobytes()
    assert len(data) % once.block_bytes == once.finish() == many.finish()
    assert (once.nonfinite_samples, once.clipped_samples) == (many.nonfinite_samples, many.clipped_samples)
    assert np.isfinite(whole).all()
    assert (np.abs(whole) <= 1).all()


def test_a_dangling_byte_waits_and_is_dropped_only_at_the_end():
    """It belongs to the next sample until there is none; then it is reported, and a new stream begins clean."""
    decoder = PcmDecoder("int16")

    assert [0.0] == decoder.push(b"\x00\x00\x00").tolist()
    assert [0.5] == decoder.push(b"\x40").tolist()
    assert [] == decoder.push(b"\x01").tolist()
    assert (1, 1) == (decoder.finish(), decoder.dropped_bytes)
    assert [0.5] == decoder.push(b"\x00\x40").tolist()
    assert 3 == decoder.samples


def test_faulty_floats_are_counted_and_go_no_further():
    """NaN and Inf become 0, the rest is clipped; a fault in one channel leaves the other alone."""
    decoder = PcmDecoder("float32", channels=2)
    data = np.array([np.nan, 0.5, np.inf, -np.inf, 3.0, -3.0, -1.5, -1.0], "<f4").tobytes()

    assert [0.25, 0.0, 0.0, -1.0] == decoder.push(data).tolist()
    assert (3, 3) == (decoder.nonfinite_samples, decoder.clipped_samples)


def test_a_clean_block_is_not_copied():
    """Sanitising costs two scans, no copy, where there is nothing to mend."""
    pcm = np.linspace(-1, 1, 9, dtype=np.float32)

    assert sanitise(pcm)[0] is pcm


def test_equal_rates_do_not_skip_the_downmix(sine, line_dbfs):
    """2 s of 440 Hz left and 880 Hz right at 48 kHz give 2 s with both at half level and nothing an octave below."""
    stereo = np.column_stack([sine(440, 48000, 2.0), sine(880, 48000, 2.0)])
    decoder, resampler = PcmDecoder("int16", channels=2), Resampler(48000, 48000)
    pieces = cut(encode(stereo.ravel(), "int16"), [1919, 1, 1920])
    mono = np.concatenate([resampler.push(decoder.push(piece)) for piece in pieces] + [resampler.flush()])

    assert 96000 == len(mono)
    assert pytest.approx(-12.04, abs=0.1) == line_dbfs(mono, 48000, 440)
    assert pytest.approx(-12.04, abs=0.1) == line_dbfs(mono, 48000, 880)
    assert line_dbfs(mono, 48000, 220) < -80


def test_downmix_is_the_mean():
    """Six channels with one voice: a sixth of its level."""
    assert [0.5, -0.125] == pytest.approx(downmix(np.array([[3.0, 0, 0, 0, 0, 0], [0, 0, -0.75, 0, 0, 0]])).tolist())


def test_encode_mends_what_it_is_given():
    """NaN does not become an integer by accident."""
    pcm = np.array([np.nan, 2.0, -np.inf], np.float32)

    assert [0, 32767, 0] == np.frombuffer(encode(pcm, "int16"), "<i2").tolist()


def test_counters_pass_two_to_the_31st():
    """A counter that starts just below 2**31 counts on."""
    decoder = PcmDecoder("int16")
    decoder.samples = 2**31 - 1
    decoder.push(bytes(8))

    assert 2**31 + 3 == decoder.samples


@pytest.mark.parametrize("channels", [0, -1, 1025])
def test_impossible_channels_are_refused(channels):
    """The number is named."""
    with pytest.raises(CallerError, match=str(channels)):
        PcmDecoder("int16", channels=channels)
