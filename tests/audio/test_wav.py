"""Whatever a back end sends, only samples come out."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.audio.encoding import Encoding
from antiphon.audio.wav import WavHeader, WavStream
from antiphon.core.errors import PeerError

pytestmark = pytest.mark.unit

RAMP = np.arange(1, 1201, dtype="<i2").tobytes()  # 2400 bytes, none of them a header's
LIST = b"LIST" + struct.pack("<I", 1500) + b"INFOISFT" + b"\x7f" * 1492
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def fmt(tag=1, channels=1, rate_hz=24000, bits=16, extra=b""):
    block = channels * bits // 8
    return chunk(b"fmt ", struct.pack("<HHIIHH", tag, channels, rate_hz, rate_hz * block, block, bits) + extra)


def chunk(name, body, *, size=None, pad=True):
    length = len(body) if size is None else size
    return name + struct.pack("<I", length) + body + (b"\0" if pad and len(body) % 2 else b"")


def riff(*chunks, name=b"RIFF", size=None):
    body = b"WAVE" + b"".join(chunks)
    return name + struct.pack("<I", len(body) if size is None else size) + body


def played(data, sizes=(), *, raw_fallback=False):
    stream, at, out = WavStream(raw_fallback=raw_fallback), 0, b""
    for size in sizes:
        out += stream.push(data[at : at + size])
        at += size
    return out + stream.push(data[at:]) + stream.finish(), stream


def endless(size):
    return riff(fmt(), chunk(b"data", RAMP, size=size), size=size)


STREAMS = {
    "plain": (riff(fmt(), chunk(b"data", RAMP)), RAMP),
    "chunks before": (
        riff(chunk(b"JUNK", b"j" * 27), fmt(), chunk(b"fact", b"f" * 4), chunk(b"bext", b"b" * 603), LIST,
             chunk(b"data", RAMP)),
        RAMP,
    ),
    "no padding before": (riff(chunk(b"JUNK", b"j" * 27, pad=False), fmt(), chunk(b"data", RAMP)), RAMP),
    "chunks after": (riff(fmt(), chunk(b"data", RAMP), LIST, chunk(b"id3 ", b"i" * 33)), RAMP),
    "odd data, padded": (riff(fmt(), chunk(b"data", RAMP[:-1]), LIST), RAMP[:-1]),
    "odd data, not padded": (riff(fmt(), chunk(b"data", RAMP[:-1], pad=False), LIST), RAMP[:-1]),
    "length 0": (endless(0), RAMP),
    "length 0, container ends before": (riff(fmt(), chunk(b"data", RAMP, size=0), size=36), RAMP),
    "length 2**32 - 1": (endless(0xFFFFFFFF), RAMP),
    "length 2**32 less a header": (endless(0xFFFFFFFF - 36), RAMP),
    "length 2**31 - 1": (endless(0x7FFFFFFF), RAMP),
    "length of sox": (endless(0x7FFFF000), RAMP),
    "empty, but closed": (riff(fmt(), chunk(b"data", b""), LIST), b""),
    "cut short": (riff(fmt(), chunk(b"data", RAMP, size=9999)), RAMP),
    "extensible": (riff(fmt(tag=0xFFFE, extra=struct.pack("<HHIH", 22, 16, 4, 1) + GUID_TAIL), chunk(b"data", RAMP)),
                   RAMP),
    "RF64": (
        riff(chunk(b"ds64", struct.pack("<QQQI", 0, 2400, 1200, 0)), fmt(),
             chunk(b"data", RAMP, size=0xFFFFFFFF), LIST, name=b"RF64", size=0xFFFFFFFF),
        RAMP,
    ),
    "RF64 without a length": (
        riff(chunk(b"ds64", struct.pack("<QQQI", 0, 0, 0, 0)), fmt(), chunk(b"data", RAMP, size=0xFFFFFFFF),
             name=b"RF64", size=0xFFFFFFFF),
        RAMP,
    ),
    "two in a row": (riff(fmt(), chunk(b"data", RAMP), LIST) + riff(fmt(), LIST, chunk(b"data", RAMP)), 2 * RAMP),
    "two in a row, odd": (2 * riff(fmt(), chunk(b"data", RAMP[:-1], pad=False)), 2 * RAMP[:-1]),
    "three without length": (3 * endless(0xFFFFFFFF), 3 * RAMP),
    "three of length 0": (3 * riff(fmt(), chunk(b"data", RAMP, size=0), size=0), 3 * RAMP),
    "an R at the end": (riff(fmt(), chunk(b"data", RAMP + b"RIFF", size=0), size=0), RAMP + b"RIFF"),
    "a second header cut off": (endless(0) + endless(0)[:30], RAMP),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
@settings(max_examples=20, deadline=None)
@given(sizes=st.lists(st.integers(0, 90), max_size=60))
def test_only_samples_come_out_wherever_it_is_cut(name, sizes):
    """Every shape of WAV, cut anywhere, gives its samples and nothing else."""
    data, want = STREAMS[name]

    assert want == played(data, sizes)[0]


@pytest.mark.parametrize("name", STREAMS)
def test_only_samples_come_out_byte_by_byte(name):
    """One byte at a time is the hardest cut."""
    data, want = STREAMS[name]

    assert want == played(data, [1] * len(data))[0]


def test_a_list_after_a_second_of_silence_is_not_heard():
    """1.0 s of zeros, then 1.5 kB of LIST: exactly 24000 zeros."""
    out, stream = played(riff(fmt(), chunk(b"data", bytes(48000)), LIST), [1024] * 60)

    assert bytes(48000) == out
    assert len(LIST) == stream.skipped_bytes


@pytest.mark.parametrize(
    ("header", "want"),
    [
        (fmt(), (Encoding.INT16, 1, 24000)),
        (fmt(channels=2, rate_hz=48000, bits=24), (Encoding.INT24, 2, 48000)),
        (fmt(bits=8), (Encoding.UINT8, 1, 24000)),
        (fmt(tag=3, bits=32), (Encoding.FLOAT32, 1, 24000)),
        (fmt(tag=6, bits=8, rate_hz=8000), (Encoding.ALAW, 1, 8000)),
        (fmt(tag=7, bits=8, rate_hz=8000, extra=b"\0\0"), (Encoding.MULAW, 1, 8000)),
        (fmt(0xFFFE, 2, 44100, 32, struct.pack("<HHIH", 22, 32, 3, 3) + GUID_TAIL), (Encoding.FLOAT32, 2, 44100)),
    ],
)
def test_the_header_is_known_as_soon_as_the_samples_begin(header, want):
    """Before the first sample has come."""
    stream = WavStream()
    assert b"" == stream.push(riff(header)[:-1])
    assert stream.header is None
    stream.push(riff(header)[-1:] + b"data" + struct.pack("<I", 960))
    encoding, channels, rate_hz = want

    assert WavHeader(encoding=encoding, channels=channels, rate_hz=rate_hz, data_bytes=960) == stream.header


def test_samples_are_not_held_back():
    """What has come is given, but for bytes that may begin a header."""
    stream = WavStream()

    assert b"abc" == stream.push(riff(fmt(), chunk(b"data", b"", size=0), size=0) + b"abc")
    assert b"de" == stream.push(b"deRIF")
    assert b"RIFx" == stream.push(b"x")


@pytest.mark.parametrize(
    "data",
    [
        b"<html>no voice today</html>",
        b"ID3\x04" + bytes(100),
        b"RIFF" + bytes(4) + b"AVI " + bytes(50),
        b"RIFX" + bytes(40),
        riff(chunk(b"data", RAMP)),
        riff(fmt(tag=2, bits=4), chunk(b"data", RAMP)),
        riff(fmt(channels=0), chunk(b"data", RAMP)),
        riff(fmt(rate_hz=1), chunk(b"data", RAMP)),
        riff(chunk(b"fmt ", b"short"), chunk(b"data", RAMP)),
        riff(chunk(b"fmt ", bytes(16), size=0x10000001)),
        riff(b"\x00\x01\x02\x03" + bytes(50)),
        riff(fmt(), chunk(b"data", RAMP)) + riff(fmt(rate_hz=16000), chunk(b"data", RAMP)),
        riff(fmt()),
        b"RIF",
        b"",
    ],
)
def test_what_is_no_wav_is_an_error_with_a_hint(data):
    """Of the peer, before a single wrong sample."""
    with pytest.raises(PeerError) as caught:
        played(data, [5] * 30)

    assert caught.value.hint


@pytest.mark.parametrize("data", [b"", b"R", b"RIF", b"RIFF" + bytes(4) + b"AVI " + bytes(50), b"\x01" + RAMP])
def test_raw_samples_pass_through_when_asked(data):
    """All of them, even fewer than a header has."""
    out, stream = played(data, [1] * 20, raw_fallback=True)

    assert data == out
    assert stream.header is None


def test_a_wav_is_read_even_if_raw_was_allowed():
    """Raw is a fallback, not an order."""
    data, want = STREAMS["two in a row"]

    assert want == played(data, [7] * 50, raw_fallback=True)[0]


def test_memory_does_not_grow_with_what_is_skipped():
    """A huge JUNK chunk is dropped as it comes."""
    stream = WavStream()
    stream.push(riff(b"JUNK" + struct.pack("<I", 10_000_000)))
    for _ in range(100):
        stream.push(bytes(100_000))

    assert 0 == len(stream._buffer)
    assert RAMP == stream.push(fmt() + chunk(b"data", RAMP))
