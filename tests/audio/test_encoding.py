"""Samples as bytes, both ways, at values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from antiphon.audio.encoding import Encoding, encoding_named
from antiphon.core.errors import CallerError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "data", "samples"),
    [
        ("uint8", bytes([0, 128, 192, 255]), [-1.0, 0.0, 0.5, 127 / 128]),
        ("int16", bytes.fromhex("0080 0000 0040 ff7f"), [-1.0, 0.0, 0.5, 32767 / 32768]),
        ("int24", bytes.fromhex("000080 000000 000040 ffff7f"), [-1.0, 0.0, 0.5, 8388607 / 8388608]),
        ("int32", bytes.fromhex("00000080 00000000 00000040"), [-1.0, 0.0, 0.5]),
        ("float32", bytes.fromhex("000080bf 00000000 0000003f"), [-1.0, 0.0, 0.5]),
        ("float64", bytes.fromhex("000000000000f0bf 000000000000e03f"), [-1.0, 0.5]),
        ("mulaw", bytes([0x00, 0x80, 0xFF, 0x7F]), [-32124 / 32768, 32124 / 32768, 0.0, 0.0]),
        ("alaw", bytes([0xAA, 0x2A, 0xD5, 0x55]), [32256 / 32768, -32256 / 32768, 8 / 32768, -8 / 32768]),
    ],
)
def test_known_bytes_are_known_samples(name, data, samples):
    """Full scale, zero and one half of every encoding."""
    assert samples == encoding_named(name).read(data).tolist()


@pytest.mark.parametrize("name", ["uint8", "int16", "int24", "float32", "alaw"])
def test_what_was_read_is_written_alike(name):
    """Every byte pattern that float32 can hold comes back as it was."""
    encoding = encoding_named(name)
    data = np.random.default_rng(1).integers(0, 256, 12 * 500, np.uint8).tobytes()
    if name == "float32":
        data = np.linspace(-1, 1, 999, dtype="<f4").tobytes()

    assert data == encoding.write(encoding.read(data).astype(np.float32))


def test_mulaw_comes_back_but_for_its_second_zero():
    """Mu-law has two codes for zero; the encoder uses 0xFF."""
    codes = bytes(range(256))
    written = Encoding.MULAW.write(Encoding.MULAW.read(codes).astype(np.float32))

    assert codes.replace(b"\x7f", b"\xff") == written


@pytest.mark.parametrize(
    ("sample", "mulaw", "alaw"),
    [
        (0, 0xFF, 0xD5),
        (4, 0xFE, 0xD5),  # mu-law's first decision value is 1 of 14 bits
        (16, 0xFD, 0xD4),  # A-law's first is 2 of 13 bits
        (-16, 0x7D, 0x54),
        (1000, 0xCE, 0xFA),
        (-1000, 0x4E, 0x7A),
        (32767, 0x80, 0xAA),
        (-32768, 0x00, 0x2A),
    ],
)
def test_g711_decision_values(sample, mulaw, alaw):
    """Codes by the recommendation's tables: 1000 is 0xCE in mu-law (988) and 0xFA in A-law (1008)."""
    pcm = np.array([sample / 32768], np.float32)

    assert (mulaw, alaw) == (Encoding.MULAW.write(pcm)[0], Encoding.ALAW.write(pcm)[0])


def test_full_scale_does_not_wrap_around():
    """+1.0 has no integer of its own: it becomes the largest, not the smallest."""
    pcm = np.array([1.0, -1.0], np.float32)

    assert [32767, -32768] == np.frombuffer(Encoding.INT16.write(pcm), "<i2").tolist()
    assert [2**31 - 1, -(2**31)] == np.frombuffer(Encoding.INT32.write(pcm), "<i4").tolist()
    assert bytes([255, 0]) == Encoding.UINT8.write(pcm)


@pytest.mark.parametrize(
    ("name", "near"), [("mu-law", "mulaw"), ("int-16", "int16"), ("INT16", "int16"), ("alow", "alaw"), ("f32", "f")]
)
def test_a_misspelt_format_is_refused_and_the_nearest_named(name, near):
    """Nothing is guessed, not even case."""
    with pytest.raises(CallerError) as caught:
        encoding_named(name)

    assert repr(name) in caught.value.message
    assert near in caught.value.hint


def test_a_far_off_name_gets_the_list():
    """Without a near name the hint lists what is known."""
    with pytest.raises(CallerError, match="opus") as caught:
        encoding_named("opus")

    assert "mulaw" in caught.value.hint
