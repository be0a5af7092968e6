"""Both sides of a conversation on one timeline."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
import soundfile

from antiphon.audio.recording import Recording, write_stereo
from antiphon.core.clock import samples_to_ns
from antiphon.core.errors import CallerError, MachineError
from antiphon.core.flow import AudioFrame

pytestmark = pytest.mark.unit

T0 = 123_000_000_000


def frames(level, seconds, *, rate_hz=24000, at_s=0.0, pos=0, jitter_ns=0):
    size = rate_hz // 50
    for k in range(round(seconds * 50)):
        captured_ns = T0 + round(at_s * 1e9) + samples_to_ns(k * size, rate_hz) + (jitter_ns if k % 2 else 0)
        yield AudioFrame(np.full(size, level, np.float32), rate_hz, pos + k * size, captured_ns)


def fill(recording, side, stream):
    for frame in stream:
        recording.add(side, frame)


def test_the_gap_can_be_heard():
    """The caller speaks for 1 s, the reply begins 0.3 s later: so it does in the file."""
    recording = Recording(24000)
    fill(recording, "caller", frames(0.5, 1.0))
    fill(recording, "reply", frames(-0.25, 0.5, at_s=1.3, pos=7))
    left, right = recording.stereo()

    assert 43200 == len(left) == len(right)
    assert [16384] * 24000 + [0] * 19200 == left.tolist()
    assert [0] * 31200 + [-8192] * 12000 == right.tolist()


def test_other_rates_are_brought_to_the_recordings():
    """A caller at 16 kHz and a reply at 48 kHz keep their length and place."""
    recording = Recording(24000)
    fill(recording, "caller", frames(0.5, 1.0, rate_hz=16000))
    fill(recording, "reply", frames(0.5, 1.0, rate_hz=48000, at_s=0.5))
    left, right = recording.stereo()

    assert 36000 == len(left)
    assert (24000, 12000) == (np.flatnonzero(np.abs(left) > 8000)[-1] + 1, np.flatnonzero(np.abs(right) > 8000)[0])


def test_jitter_of_a_timer_leaves_no_seams():
    """Frames whose times wobble by 5 ms lie end to end."""
    recording = Recording(24000)
    fill(recording, "caller", frames(0.5, 1.0, jitter_ns=5_000_000))

    assert {16384} == set(recording.stereo()[0].tolist())


def test_a_second_reply_lies_at_its_own_time():
    """Positions that go on, or begin again, do not matter: the time does."""
    for pos in (0, 2400, 99):
        recording = Recording(24000)
        fill(recording, "reply", frames(0.5, 0.1))
        fill(recording, "reply", frames(0.5, 0.1, at_s=1.0, pos=pos))

        assert [*range(2400), *range(24000, 26400)] == np.flatnonzero(recording.stereo()[1]).tolist()


def test_drift_is_corrected_before_it_is_heard():
    """A clock that runs 1 % fast for 10 s: no frame lies further than 20 ms and a bit from its time."""
    recording = Recording(24000)
    for k in range(500):
        pcm = np.zeros(480, np.float32)
        pcm[0] = 0.5
        recording.add("caller", AudioFrame(pcm, 24000, 480 * k, T0 + 20_200_000 * k))
    clicks = np.flatnonzero(recording.stereo()[0])

    assert np.abs(clicks - np.arange(500) * 484.8).max() < 500


def test_memory_is_bounded_and_what_lies_outside_is_counted():
    """Beyond the longest time, and before the first frame."""
    recording = Recording(24000, seconds_max=1)
    fill(recording, "caller", frames(0.5, 1.5))
    fill(recording, "reply", frames(0.5, 0.2, at_s=-0.1))
    recording.add("reply", AudioFrame(np.ones(5, np.float32), 24000, 0, T0 + 10**15))

    left, right = recording.stereo()
    assert 24000 == len(left)
    assert 2400 == np.count_nonzero(right)
    assert 12000 + 2400 + 5 == recording.dropped_samples


def test_saved_and_read_back(tmp_path):
    """16 bits, two channels, and nothing else left in the folder."""
    recording = Recording(24000)
    fill(recording, "caller", frames(0.5, 0.1))
    fill(recording, "reply", frames(np.nan, 0.1))
    recording.save(tmp_path / "conversation.wav")
    pcm, rate_hz = soundfile.read(tmp_path / "conversation.wav", dtype="int16")

    assert (24000, [[16384, 0]] * 2400) == (rate_hz, pcm.tolist())
    assert "PCM_16" == soundfile.info(tmp_path / "conversation.wav").subtype
    assert ["conversation.wav"] == [path.name for path in tmp_path.iterdir()]


def test_an_empty_recording_is_a_file_without_samples(tmp_path):
    """No error at the end of a conversation that never began."""
    Recording().save(tmp_path / "empty.wav")

    assert 0 == soundfile.info(tmp_path / "empty.wav").frames


def test_the_shorter_side_is_filled_up(tmp_path):
    """Left 2 samples, right 3, one of them beyond full scale."""
    write_stereo(tmp_path / "a.wav", np.array([0.5, -0.5], np.float32), np.array([0, 2, -2], np.float32), 8000)

    pcm, rate_hz = soundfile.read(tmp_path / "a.wav", dtype="int16")
    assert (8000, [[16384, 0], [-16384, 32767], [0, -32768]]) == (rate_hz, pcm.tolist())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """The file appears whole or not at all; a full disk is the machine's fault."""
    path = tmp_path / "a.wav"
    path.write_bytes(b"old")

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(MachineError, match="no space"):
        write_stereo(path, np.zeros(5, np.float32), np.zeros(5, np.float32), 8000)
    assert [("a.wav", b"old")] == [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()]


@pytest.mark.parametrize("path", ["missing/a.wav", "."])
def test_a_place_that_cannot_be_written_to(tmp_path, path):
    """A folder that does not exist, and one that is in the way."""
    with pytest.raises(CallerError, match="cannot be written") as caught:
        write_stereo(tmp_path / path, np.zeros(5, np.float32), np.zeros(5, np.float32), 8000)

    assert "folder" in caught.value.hint


def test_impossible_recordings_are_refused():
    """No length, more than a WAV can hold, no rate."""
    for settings in ({"seconds_max": 0}, {"seconds_max": 10**6}, {"rate_hz": 1}):
        with pytest.raises(CallerError):
            Recording(**settings)
