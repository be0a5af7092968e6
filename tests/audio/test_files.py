"""Any file is sound or a clear error, and plays as a microphone would."""

from __future__ import annotations

import asyncio
import struct

import numpy as np
import pytest
import soundfile

from antiphon.audio.files import FileSource, Playback, read, room_tone
from antiphon.audio.level import dbfs
from antiphon.core.errors import CallerError

pytestmark = pytest.mark.unit


@pytest.fixture
def file(tmp_path):
    def write(pcm, rate_hz=16000, *, name="clip.wav", subtype="PCM_16"):
        path = tmp_path / name
        soundfile.write(path, np.asarray(pcm, np.float32), rate_hz, subtype=subtype)
        return path

    return write


@pytest.mark.parametrize(
    ("name", "subtype", "rate_hz", "channels"),
    [
        ("a.wav", "PCM_U8", 8000, 1),
        ("a.wav", "ULAW", 8000, 1),
        ("a.wav", "PCM_24", 96000, 6),
        ("a.wav", "DOUBLE", 44100, 2),
        ("a.flac", "PCM_16", 16000, 1),
        ("a.aiff", "PCM_16", 22050, 2),
        ("a.ogg", "VORBIS", 48000, 2),
        ("a.mp3", "MPEG_LAYER_III", 44100, 1),
        ("a.w64", "FLOAT", 16000, 3),
    ],
)
def test_any_width_rate_and_channels(request, name, subtype, rate_hz, channels):
    """Mono at the file's own rate; a voice on the first of n channels has a n-th of its level."""
    file, sine, line_dbfs = (request.getfixturevalue(fixture) for fixture in ("file", "sine", "line_dbfs"))
    voice = np.zeros((rate_hz, channels))
    voice[:, 0] = sine(440, rate_hz, 1.0)
    pcm, rate = read(file(voice, rate_hz, name=name, subtype=subtype))

    assert (rate_hz, np.float32, 1) == (rate, pcm.dtype, pcm.ndim)
    assert abs(len(pcm) - rate_hz) < 3000  # an MP3 has padding
    assert pytest.approx(-6.02 - 20 * np.log10(channels), abs=0.7) == line_dbfs(pcm, rate_hz, 440)


def test_one_sample_is_a_file_and_a_frame(file, clock):
    """The shortest sound there is."""
    source = FileSource.open(file([0.5]), clock=clock)
    source._sleep = clock.sleep

    assert [(1, 0)] == [(len(frame.pcm), frame.pos_samples) for frame in frames_of(source)]


def test_beyond_full_scale_is_clipped(file):
    """A float file may say 3.0; nothing behind us wants to hear it."""
    assert [1.0, -1.0, 0.5] == read(file([3.0, -7.0, 0.5], subtype="FLOAT"))[0].tolist()


def bad_files(tmp_path, file):
    good = file(np.zeros(100)).read_bytes()
    rate = bytearray(good)
    rate[24:28] = struct.pack("<I", 7)
    return {
        "missing": (tmp_path / "missing.wav", "no file"),
        "folder": (tmp_path, "folder"),
        "empty": (put(tmp_path / "empty.wav", b""), "empty"),
        "truncated": (put(tmp_path / "truncated.wav", good[:20]), "cut off"),
        "only a header": (put(tmp_path / "header.wav", good[:44]), "no samples"),
        "text": (put(tmp_path / "text.wav", b"Good morning.\n" * 20), "no audio"),
        "flac cut": (put(tmp_path / "cut.flac", b"fLaC\x00\x00"), "cut off"),
        "nan": (file([0, np.nan, 0], name="nan.wav", subtype="FLOAT"), "NaN"),
        "inf": (file([0, np.inf, 0], name="inf.wav", subtype="FLOAT"), "NaN or Inf"),
        "rate": (put(tmp_path / "rate.wav", bytes(rate)), "7 Hz"),
        "headerless": (put(tmp_path / "speech.raw", bytes(3200)), "no header"),
        "null byte": ("a\0b.wav", "no file name"),
    }


def put(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "case",
    ["missing", "folder", "empty", "truncated", "only a header", "text", "flac cut", "nan", "inf", "rate",
     "headerless", "null byte"],
)  # fmt: skip
def test_a_bad_file_is_named_with_its_remedy(tmp_path, file, case):
    """One error of ours, what is wrong, which file, and what to do."""
    path, what = bad_files(tmp_path, file)[case]
    with pytest.raises(CallerError, match=what) as caught:
        read(path)

    assert str(path)[-6:].replace("\0", "\\x00")[-3:] in caught.value.message
    assert caught.value.hint


def test_a_file_that_may_not_be_read(file, monkeypatch):
    """The right is the remedy; the tests may run as root, who has every right."""
    path = file([0.5])

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(CallerError, match="may not be read") as caught:
        read(path)
    assert "chmod" in caught.value.hint


def test_truncated_data_is_read_as_far_as_it_goes(file):
    """A WAV whose samples stop early is still speech."""
    path = file(np.full(1000, 0.25))
    path.write_bytes(path.read_bytes()[: 44 + 1001])

    assert [0.25] * 500 == read(path)[0].tolist()


def frames_of(source):
    async def collect():
        return [frame async for frame in source]

    return asyncio.run(collect())


def test_frames_come_when_a_microphone_would_give_them(clock):
    """20 ms frames, each at the end of its own time, stamped with its beginning."""
    source = FileSource(np.zeros(1000, np.float32), 16000, clock=clock, sleep=clock.sleep)
    start_ns = clock.ns

    async def collect():
        return [(f.pos_samples, len(f.pcm), f.captured_ns - start_ns, clock.ns - start_ns) async for f in source]

    assert [
        (0, 320, 0, 20_000_000),
        (320, 320, 20_000_000, 40_000_000),
        (640, 320, 40_000_000, 60_000_000),
        (960, 40, 60_000_000, 62_500_000),
    ] == asyncio.run(collect())


def test_a_stall_is_caught_up_and_never_adds_up(clock):
    """A consumer that takes 7 ms each, and once 300 ms: stamps stay ideal, and the end is on time."""
    source = FileSource(np.zeros(16000, np.float32), 16000, clock=clock, sleep=clock.sleep)
    start_ns, stamps = clock.ns, []

    async def collect():
        async for frame in source:
            stamps.append(frame.captured_ns - start_ns)
            clock.ns += 300_000_000 if frame.pos_samples == 3200 else 7_000_000

    asyncio.run(collect())
    assert [20_000_000 * k for k in range(50)] == stamps
    assert 1_007_000_000 == clock.ns - start_ns


def test_a_timer_that_wakes_early_gives_no_frame_from_the_future(clock):
    """A coarse timer's early wake-up is slept out."""

    async def coarse(seconds):
        clock.ns += min(round(seconds * 1e9), 15_000_000)

    source = FileSource(np.zeros(3200, np.float32), 16000, clock=clock, sleep=coarse)

    async def collect():
        return [clock.ns - frame.end_ns async for frame in source]

    assert [0] * 10 == asyncio.run(collect())


def test_44100_hz_frames_do_not_drift(clock):
    """882 samples are 20 ms; after an hour's worth of frames the stamp is still exact."""
    source = FileSource(np.zeros(882 * 300, np.float32), 44100, clock=clock, sleep=clock.sleep)
    frames = frames_of(source)

    assert [20_000_000 * k for k in range(300)] == [frame.captured_ns - source.start_ns for frame in frames]


def test_the_microphone_stays_open_with_the_rooms_own_tone(clock, sine):
    """A second of tone, 0.6 s of room: after the clip the room goes on at its level, without a seam."""
    room = np.random.default_rng(3).normal(0, 0.003, 9600).astype(np.float32)
    clip = np.concatenate([sine(200, 16000, 1.0), room])
    playback = Playback(tail_ms=2000)
    source = FileSource(clip, 16000, clock=clock, playback=playback, sleep=clock.sleep)
    heard = np.concatenate([frame.pcm for frame in frames_of(source)])

    assert len(clip) + 32000 == len(heard)
    assert clip.tobytes() == heard[: len(clip)].tobytes()
    assert dbfs(room) == pytest.approx(dbfs(heard[len(clip) :]), abs=0.5)
    assert heard[len(clip) - 1] == heard[len(clip)]
    assert len(clip) == source.clip_samples


@pytest.mark.parametrize(("tail", "clip_ends"), [("silence", 0.003), ("room", 0.5)])
def test_silence_where_asked_or_where_the_clip_ends_in_sound(clock, sine, tail, clip_ends):
    """Speech is never repeated as if it were the room."""
    clip = np.concatenate([sine(200, 16000, 1.0), sine(200, 16000, 0.5, peak=clip_ends)])
    playback = Playback(frame_ms=10, tail_ms=500, tail=tail)
    heard = np.concatenate(
        [frame.pcm for frame in frames_of(FileSource(clip, 16000, clock=clock, playback=playback, sleep=clock.sleep))]
    )

    assert [0.0] * 8000 == heard[len(clip) :].tolist()


def test_a_clatter_at_the_end_is_not_the_room(sine):
    """The quiet before it is."""
    room = np.full(9600, 0.003, np.float32)
    clip = np.concatenate([room, sine(200, 16000, 0.5), room[:6400], sine(900, 16000, 0.3)])

    assert room[:8000].tolist() == room_tone(clip, 16000).tolist()


@pytest.mark.parametrize("samples", [0, 1, 319])
def test_next_to_nothing_has_no_room_tone(samples):
    """Too short to tell sound from room."""
    assert 0 == len(room_tone(np.ones(samples, np.float32), 16000))


@pytest.mark.parametrize("settings", [{"frame_ms": 0}, {"tail_ms": -1}, {"tail": "tone"}])
def test_impossible_playback_is_refused(settings):
    """The field is named."""
    with pytest.raises(CallerError, match=next(iter(settings)).split("_")[0]):
        Playback(**settings)
