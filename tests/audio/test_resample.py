"""Chunk by chunk is the same as in one go, and every sample keeps its place and time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.audio.resample import FrameResampler, Resampler, resample
from antiphon.core.clock import samples_to_ns
from antiphon.core.errors import CallerError
from antiphon.core.flow import AudioFrame

pytestmark = pytest.mark.unit

RATES = [(48000, 16000), (24000, 8000), (24000, 48000), (8000, 16000), (44100, 16000), (22050, 24000), (96000, 16000)]


def chunked(pcm, from_hz, to_hz, sizes):
    resampler, at, out = Resampler(from_hz, to_hz), 0, []
    for size in sizes:
        out.append(resampler.push(pcm[at : at + size]))
        at += size
    return np.concatenate([*out, resampler.push(pcm[at:]), resampler.flush()])


def peak_dbfs(pcm):
    return 20 * np.log10(np.max(np.abs(pcm)) + 1e-12)


@pytest.mark.parametrize(("from_hz", "to_hz"), [(48000, 16000), (24000, 8000)])
def test_a_sine_in_chunks_of_10_ms_has_no_seams(from_hz, to_hz, sine, line_dbfs):
    """Against the ideal sine, against one-shot resampling by another quality, and at the lines of the chunk rate."""
    pcm = sine(300, from_hz, 2.0)
    out = chunked(pcm, from_hz, to_hz, [from_hz // 100] * 200)
    inside = slice(to_hz // 10, -to_hz // 10)

    assert 2 * to_hz == len(out)
    assert peak_dbfs((out - sine(300, to_hz, 2.0))[inside]) < -100
    assert peak_dbfs(out - soxr.resample(pcm, from_hz, to_hz, quality="VHQ")) < -40
    assert all(line_dbfs(out[inside], to_hz, hz) < -90 for hz in range(100, to_hz // 2, 100) if hz != 300)


@settings(max_examples=40, deadline=None)
@given(rates=st.sampled_from(RATES), sizes=st.lists(st.integers(0, 3000), max_size=12), seed=st.integers(0, 9))
def test_any_cut_gives_the_same_samples(rates, sizes, seed):
    """Bit for bit what one push gives."""
    pcm = np.random.default_rng(seed).uniform(-1, 1, 9000).astype(np.float32)

    assert chunked(pcm, *rates, []).tobytes() == chunked(pcm, *rates, sizes).tobytes()


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
def test_a_click_keeps_its_place(from_hz, to_hz):
    """An impulse 0.5 s in lies 0.5 s in afterwards: the filter's delay is accounted for."""
    pcm = np.zeros(from_hz, np.float32)
    pcm[from_hz // 2] = 1
    out = chunked(pcm, from_hz, to_hz, [from_hz // 50] * 50)

    assert to_hz // 2 == int(np.argmax(np.abs(out)))


def test_what_should_vanish_does():
    """A tone above the new half rate is gone, not folded back."""
    tone = np.sin(2 * np.pi * 9000 * np.arange(48000) / 48000).astype(np.float32)

    assert peak_dbfs(resample(tone, 48000, 16000)[1600:-1600]) < -80
    assert peak_dbfs(chunked(tone, 48000, 16000, [960] * 50)[1600:-1600]) < -80


def test_equal_rates_change_nothing():
    """Not even the array."""
    resampler, pcm = Resampler(16000, 16000), np.ones(5, np.float32)

    assert pcm is resampler.push(pcm)
    assert (0, 0) == (resampler.held_samples, len(resampler.flush()))


def test_the_live_quality_waits_no_longer_than_measured():
    """48 to 16 kHz in frames of 20 ms: at most 20 ms held, 11.2 on average."""
    resampler = Resampler(48000, 16000)
    held = []
    for _ in range(200):
        resampler.push(np.zeros(960, np.float32))
        held.append(resampler.held_samples)

    assert max(held[20:]) <= 960
    assert np.mean(held[20:]) < 0.012 * 48000


def test_a_flushed_resampler_begins_anew():
    """Nothing of the stream before is left in it."""
    resampler, pcm = Resampler(48000, 16000), np.random.default_rng(2).uniform(-1, 1, 4800).astype(np.float32)
    first = np.concatenate([resampler.push(pcm), resampler.flush()])

    assert first.tobytes() == np.concatenate([resampler.push(pcm), resampler.flush()]).tobytes()


@pytest.mark.parametrize("samples", [0, 1, 2])
def test_next_to_nothing_resamples(samples):
    """No sample, or one, is no error."""
    assert 3 * samples == len(resample(np.ones(samples, np.float32), 16000, 48000))


@pytest.mark.parametrize("rate_hz", [0, -16000, 999, 768001])
def test_rates_that_no_sound_has_are_refused(rate_hz):
    """On either side."""
    for rates in ((rate_hz, 16000), (16000, rate_hz)):
        with pytest.raises(CallerError, match=str(rate_hz)):
            Resampler(*rates)


def frames_of(pcm, rate_hz, sizes, *, pos=0, ns=7_000_000_000):
    at = 0
    for size in [*sizes, len(pcm) - sum(sizes)]:
        yield AudioFrame(pcm[at : at + size], rate_hz, pos + at, ns + samples_to_ns(at, rate_hz))
        at += size


def through(resampler, frames):
    return [out for frame in frames for out in resampler.push(frame)] + list(resampler.flush())


@settings(max_examples=40, deadline=None)
@given(
    rates=st.sampled_from(RATES),
    sizes=st.lists(st.integers(1, 1500), max_size=12),
    pos=st.sampled_from([0, 1, 479, 2**31 - 16000, 2**31 - 1, 2**40, 2**53 + 1]),
)
def test_positions_have_no_gaps_and_times_are_the_samples_own(rates, sizes, pos):
    """From any position, any cut: end to end, within half a sample of the scaled place, the time to the nanosecond."""
    from_hz, to_hz = rates
    pcm = np.zeros(18000, np.float32)
    out = through(FrameResampler(from_hz, to_hz), frames_of(pcm, from_hz, sizes, pos=pos))

    assert (2 * pos * to_hz + from_hz) // (2 * from_hz) == out[0].pos_samples
    assert [frame.end_samples for frame in out[:-1]] == [frame.pos_samples for frame in out[1:]]
    assert abs(out[-1].end_samples - out[0].pos_samples - 18000 * to_hz / from_hz) <= 1
    for frame in out:
        since = frame.pos_samples - out[0].pos_samples
        assert abs(7_000_000_000 + samples_to_ns(since, to_hz) - frame.captured_ns) <= 2
        assert to_hz == frame.rate_hz


def test_time_follows_the_capture_clock():
    """A microphone whose second lasts 1.01 s: the output's times stretch alike."""
    resampler = FrameResampler(48000, 16000)
    frames = [AudioFrame(np.zeros(480, np.float32), 48000, 480 * k, 10_100_000 * k) for k in range(100)]
    out = through(resampler, frames)

    for frame in out:
        assert abs(frame.pos_samples / 16000 * 1.01e9 - frame.captured_ns) < 110_000  # within one input frame's error


def test_a_gap_stays_a_gap():
    """Lost sound ends the run: all of it comes out, and the next run lies where its samples were."""
    resampler = FrameResampler(48000, 16000)
    first = AudioFrame(np.ones(4800, np.float32), 48000, 0, 0)
    second = AudioFrame(np.ones(4800, np.float32), 48000, 9600, 200_000_000)
    out = through(resampler, [first, second])

    covered = [(frame.pos_samples, frame.end_samples) for frame in out]
    assert (0, 1600) == (covered[0][0], max(end for start, end in covered if start < 1600))
    assert (3200, 4800) == (min(start for start, end in covered if start >= 1600), covered[-1][1])
    assert [0, 200_000_000] == [frame.captured_ns for frame in out if frame.pos_samples in (0, 3200)]


def test_many_gaps_do_not_add_up():
    """Positions are scaled from the stream's beginning each time, so that rounding does not accumulate."""
    resampler = FrameResampler(44100, 16000)
    frames = [AudioFrame(np.zeros(100, np.float32), 44100, 101 * k, k) for k in range(1000)]
    out = through(resampler, frames)

    assert abs((101 * 999 + 100) * 16000 / 44100 - out[-1].end_samples) <= 1.5
    assert all(a.end_samples <= b.pos_samples for a, b in itertools.pairwise(out))


def test_equal_rates_pass_frames_on():
    """Same samples, position and time."""
    frame = AudioFrame(np.ones(320, np.float32), 16000, 2**40, 123)

    assert [(2**40, 123, 320)] == [
        (out.pos_samples, out.captured_ns, len(out.pcm)) for out in FrameResampler(16000, 16000).push(frame)
    ]


def test_frames_that_do_not_belong_are_refused():
    """Another rate, or a position that was already heard; the stream goes on afterwards."""
    resampler = FrameResampler(48000, 16000)
    resampler.push(AudioFrame(np.zeros(480, np.float32), 48000, 0, 0))

    with pytest.raises(CallerError, match="44100"):
        resampler.push(AudioFrame(np.zeros(441, np.float32), 44100, 480, 0))
    with pytest.raises(CallerError, match="240"):
        resampler.push(AudioFrame(np.zeros(480, np.float32), 48000, 240, 0))
    assert resampler.held_ns == 10_000_000
    resampler.push(AudioFrame(np.zeros(480, np.float32), 48000, 480, 10_000_000))
    assert 320 == sum(len(frame.pcm) for frame in resampler.flush())
