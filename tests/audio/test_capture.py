"""A device that stumbles costs sound, never alignment or time."""

from __future__ import annotations

import numpy as np
import pytest

from antiphon.audio.capture import PeriodReader
from antiphon.core.errors import CallerError

pytestmark = pytest.mark.unit

PERIOD = 320  # 20 ms at 16 kHz
RAMP = np.arange(-8000, 8000, dtype="<i2")


class Device:
    """Plays a script of (ns that pass, what the read gives)."""

    def __init__(self, clock, script):
        self.clock, self.script = clock, iter(script)

    def read(self):
        passed_ns, given = next(self.script)
        self.clock.ns += passed_ns
        return given


def good(k, *, ns=20_000_000, length=PERIOD):
    return ns, (length, RAMP[k * PERIOD : k * PERIOD + length].tobytes())


def captured(clock, script, **settings):
    reader = PeriodReader(Device(clock, script).read, rate_hz=16000, clock=clock, **settings)
    return reader, [reader.read() for _ in script]


def ramp_of(frames):
    return np.rint(np.concatenate([frame.pcm for frame in frames if frame]) * 32768).astype(int).tolist()


def test_good_periods_lie_end_to_end(clock):
    """Positions, times and samples."""
    opened_ns = clock.ns
    reader, frames = captured(clock, [good(k) for k in range(5)])

    assert [0, 320, 640, 960, 1280] == [frame.pos_samples for frame in frames]
    assert [opened_ns + 20_000_000 * k for k in range(5)] == [frame.captured_ns for frame in frames]
    assert RAMP[:1600].tolist() == ramp_of(frames)
    assert (0, 0, 0, 0) == (reader.overruns, reader.lost_samples, reader.malformed, reader.failures)


def test_an_overrun_with_junk_leaves_the_ramp_aligned(clock):
    """Three periods, (-32, 113 bytes of junk), three more: the junk is gone, one overrun, the stream goes on."""
    script = [good(0), good(1), good(2), (0, (-32, b"\xaa" * 113)), good(3), good(4), good(5)]
    reader, frames = captured(clock, script)

    assert frames[3] is None
    assert RAMP[: 6 * PERIOD].tolist() == ramp_of(frames)
    assert (1, 0) == (reader.overruns, reader.lost_samples)
    assert 5 * PERIOD == frames[-1].pos_samples


def test_lost_time_is_a_jump_in_position(clock):
    """A stall of 500 ms in which the device overran: 8000 samples are missing, and time and position agree."""
    script = [good(0), good(1), (500_000_000, (-32, b"junk!")), good(2), good(3)]
    reader, frames = captured(clock, script)
    heard = [frame for frame in frames if frame]

    assert [0, 320, 640 + 8000, 960 + 8000] == [frame.pos_samples for frame in heard]
    assert [0, 320, 8640, 8960] == [(frame.captured_ns - heard[0].captured_ns) * 16 // 1_000_000 for frame in heard]
    assert (1, 8000) == (reader.overruns, reader.lost_samples)


def test_overruns_in_a_row_count_each_but_lose_once(clock):
    """The time is worked out when sound comes again."""
    script = [good(0), (30_000_000, (-32, b"")), (30_000_000, (-86, b"x")), good(1)]
    reader, frames = captured(clock, script)

    assert (2, 960) == (reader.overruns, reader.lost_samples)
    assert 320 + 960 == frames[-1].pos_samples


def test_a_late_reader_without_loss_shifts_nothing(clock):
    """Our thread was held up, the device's buffer was not: the frames keep the times they were captured at."""
    opened_ns = clock.ns
    script = [good(0), good(1, ns=70_000_000), good(2, ns=0), good(3, ns=0), good(4, ns=10_000_000)]
    reader, frames = captured(clock, script)

    assert [0, 320, 640, 960, 1280] == [frame.pos_samples for frame in frames]
    late_ns = [frame.captured_ns - opened_ns - 20_000_000 * k for k, frame in enumerate(frames)]
    assert all(0 <= late <= 40_000 for late in late_ns)
    assert 0 == reader.lost_samples


def test_a_slow_crystal_is_followed(clock):
    """A card that needs 20.004 ms for its 20 ms (200 ppm): after 2000 periods the times are still right."""
    opened_ns = clock.ns
    reader, frames = captured(clock, [(20_004_000, (PERIOD, bytes(2 * PERIOD)))] * 2000)

    assert abs(frames[-1].captured_ns - opened_ns - 1999 * 20_004_000) < 20_000
    assert 2000 * PERIOD == reader._timeline.pos_samples


@pytest.mark.parametrize(
    ("given", "samples", "lost", "malformed"),
    [
        ((320, RAMP[:320].tobytes() + b"\x55"), 320, 0, 1),  # one byte too many
        ((320, RAMP[:400].tobytes()), 320, 0, 1),  # more than it says
        ((320, RAMP[:320].tobytes()[:-1]), 319, 1, 1),  # odd
        ((320, RAMP[:100].tobytes()), 100, 220, 1),  # fewer than it says
        ((100, RAMP[:100].tobytes()), 100, 0, 0),  # an honest short period
        ((320, b""), 0, 320, 1),
    ],
)
def test_a_malformed_period_costs_only_itself(clock, given, samples, lost, malformed):
    """What follows lies where it belongs, aligned."""
    length = given[0]
    reader, frames = captured(clock, [(20_000_000, given), good(3)])

    assert (lost, malformed) == (reader.lost_samples, reader.malformed)
    assert [*RAMP[:samples].tolist(), *RAMP[960:1280].tolist()] == ramp_of(frames)
    assert length == frames[1].pos_samples


def test_no_data_and_errors_give_no_frame(clock):
    """0 and EAGAIN lose nothing; another error may have lost sound, and counts as a failure."""
    script = [good(0), (0, (0, b"junk")), (0, (-11, b"")), good(1), (100_000_000, (-19, b"")), good(2)]
    reader, frames = captured(clock, script)

    assert [True, False, False, True, False, True] == [frame is not None for frame in frames]
    assert (0, 1, 1600) == (reader.overruns, reader.failures, reader.lost_samples)
    assert 640 + 1600 == frames[-1].pos_samples


def test_an_overrun_before_any_sound_loses_nothing(clock):
    """The stream begins with its first sound."""
    reader, frames = captured(clock, [(0, (-32, b"j")), good(0)])

    assert (1, 0, 0) == (reader.overruns, reader.lost_samples, frames[1].pos_samples)


def test_a_clock_that_stands_still_is_survived(clock):
    """Nothing is lost backward."""
    _, frames = captured(clock, [good(0, ns=0), (0, (-32, b"")), good(1, ns=0), good(2, ns=0)])

    assert [0, 320, 640] == [frame.pos_samples for frame in frames if frame]


def test_stereo_periods_are_mixed_down(clock):
    """Two channels of floats, one of them NaN."""
    data = np.array([[0.5, np.nan], [-1.0, 0.5]], "<f4").tobytes()
    reader, frames = captured(clock, [(125_000, (2, data))], encoding="float32", channels=2)

    assert [0.25, -0.25] == frames[0].pcm.tolist()
    assert 1 == reader.nonfinite_samples


def test_positions_pass_two_to_the_31st(clock):
    """After 37 hours the stream goes on."""
    reader = PeriodReader(Device(clock, [good(0), good(1)]).read, rate_hz=16000, clock=clock)
    reader._timeline.pos_samples = 2**31 - 160

    assert [2**31 - 160, 2**31 + 160] == [reader.read().pos_samples, reader.read().pos_samples]


def test_impossible_settings_are_refused(clock):
    """At once, not at the first period."""
    with pytest.raises(CallerError, match="int-16"):
        PeriodReader(lambda: (0, b""), rate_hz=16000, clock=clock, encoding="int-16")
    with pytest.raises(CallerError, match="-1"):
        PeriodReader(lambda: (0, b""), rate_hz=-1, clock=clock)
