"""ALSA's devices, plugins and whatever stands behind them, through shared memory: mmap_begin, copy, mmap_commit.

Without `hw:` a plugin does the rest: `default` reaches PipeWire or PulseAudio where their plugin is installed. Capture
and playback are started explicitly. Playback is written to by the clock: a plugin's file descriptor may say all the
time that there is room, and we never fill it up. Capture wakes us by its file descriptor, or by the clock too where the
driver can do without an interrupt for every period.
Units: samples per channel, ns. Threads: the audio process's one. The calls do not wait: devices are opened so.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from contextlib import suppress
from ctypes import byref, c_int, c_long, c_uint, c_ulong, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.audio.card import alsa_library as lib
from antiphon.audio.card.alsa_library import AlsaLibrary, Area, Moment, PollFd
from antiphon.audio.card.contract import PERIODS, WIDTHS, Ask, Fault, Form, Queued, SampleType, Took
from antiphon.audio.card.recovery import Remedy, remedy
from antiphon.core.clock import SECOND_NS, samples_to_ns
from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT = "default"
MOST_CHANNELS = 32
STALLED_NS = 2 * SECOND_NS  # a device that neither gives nor takes for so long is gone, whatever it says
MOST_BREAKS = 20  # within STALLED_NS: a plugin whose server is gone can be prepared for ever
MOST_DELAY_NS = SECOND_NS  # of what lies between the buffer and the air; more is a driver's mistake
NO_DEVICE = (
    "plug one in, start PipeWire or PulseAudio (with pipewire-alsa or libasound2-plugins), or name another: "
    "antiphon talk --list"
)


class AlsaCard:
    """What can be opened by its name in ALSA's configuration.

    Raises:
        MachineError: the library is not here.
    """

    system = "alsa"

    def __init__(self) -> None:
        self._library = AlsaLibrary()

    def open_capture(self, ask: Ask) -> AlsaCapture:
        return AlsaCapture(_Pcm(self._library, ask, lib.CAPTURE))

    def open_playback(self, ask: Ask) -> AlsaPlayback:
        return AlsaPlayback(_Pcm(self._library, ask, lib.PLAYBACK))

    def choices(self) -> Iterator[tuple[str, str, bool, bool]]:
        """Name, description, can capture, can play."""
        return self._library.devices()


class _Pcm:
    """One opened way: what capture and playback do alike."""

    def __init__(self, library: AlsaLibrary, ask: Ask, direction: int) -> None:
        self.library = library
        self.name = ask.device or DEFAULT
        self.handle = c_void_p()
        self._call("pcm_open", byref(self.handle), self.name.encode(), direction, lib.NONBLOCK)
        try:
            self.form, no_wake_ups = self._configure(ask)
            self.uses_clock = no_wake_ups or ask.by_clock or direction == lib.PLAYBACK
            self._sw(c_ulong(self.form.period_samples))
            self._call("pcm_prepare", self.handle)  # plugins look at what is to wake us here, and not later
            self.fds = self._descriptors()
        except MachineError:
            self.close()
            raise
        self.resumes = 0
        self._broken_ns: deque[int] = deque(maxlen=MOST_BREAKS)
        self._avail = library.function("pcm_avail" if no_wake_ups else "pcm_avail_update")
        self._begin, self._commit = library.function("pcm_mmap_begin"), library.function("pcm_mmap_commit")
        self._revents = library.function("pcm_poll_descriptors_revents")
        self._areas, self._offset, self._count = ctypes.POINTER(Area)(), c_ulong(), c_ulong()
        self._views: dict[int, memoryview] = {}

    def _call(self, name: str, *arguments: object) -> int:
        result = self.library.call(name, *arguments)
        if result < 0:
            text = self.library.text(result)
            raise MachineError(f"ALSA cannot open {self.name!r}: {text}", hint=NO_DEVICE)
        return result

    def _configure(self, ask: Ask) -> tuple[Form, bool]:
        hw = c_void_p()
        self._call("pcm_hw_params_malloc", byref(hw))
        try:
            return self._chosen(ask, hw)
        finally:
            self.library.function("pcm_hw_params_free")(hw)

    def _chosen(self, ask: Ask, hw: c_void_p) -> tuple[Form, bool]:
        """The form that is nearest to the wish."""
        call, pcm = self.library.call, self.handle
        self._call("pcm_hw_params_any", pcm, hw)
        self._call("pcm_hw_params_set_access", pcm, hw, lib.MMAP_INTERLEAVED)
        types: tuple[SampleType, ...] = ("i2", "i4", "f4")
        taken = [name for name in types if call("pcm_hw_params_set_format", pcm, hw, lib.FORMATS[name]) >= 0][:1]
        if not taken:
            raise MachineError(f"{self.name!r} has no samples of 16 or 32 bits", hint="use plughw: in its name")
        channels = next((each for each in ask.channels if call("pcm_hw_params_set_channels", pcm, hw, each) >= 0), 0)
        if not channels:
            near = c_uint(ask.channels[-1])
            self._call("pcm_hw_params_set_channels_near", pcm, hw, byref(near))
            channels = near.value
        if not 1 <= channels <= MOST_CHANNELS:
            raise MachineError(f"{self.name!r} has {channels} channels", hint=f"at most {MOST_CHANNELS} can be used")
        rate_hz = next((each for each in ask.rates_hz if call("pcm_hw_params_set_rate", pcm, hw, each, 0) >= 0), 0)
        if not rate_hz:
            near, way = c_uint(ask.rates_hz[0]), c_int(0)
            self._call("pcm_hw_params_set_rate_near", pcm, hw, byref(near), byref(way))
            rate_hz = near.value
        period, size = c_ulong(ask.period_samples(rate_hz)), c_ulong(PERIODS * ask.period_samples(rate_hz))
        self._call("pcm_hw_params_set_period_size_near", pcm, hw, byref(period), None)
        self._call("pcm_hw_params_set_buffer_size_near", pcm, hw, byref(size))
        uses_clock = call("pcm_hw_params_can_disable_period_wakeup", hw) == 1
        uses_clock = uses_clock and call("pcm_hw_params_set_period_wakeup", pcm, hw, 0) >= 0
        self._call("pcm_hw_params", pcm, hw)
        self._call("pcm_hw_params_get_period_size", hw, byref(period), None)
        self._call("pcm_hw_params_get_buffer_size", hw, byref(size))
        form = Form(
            rate_hz=rate_hz,
            channels=channels,
            sample_type=taken[0],
            period_samples=min(period.value, max(1, size.value // 2)),
            buffer_samples=size.value,
        )
        return form, uses_clock

    def _sw(self, wake_samples: c_ulong) -> None:
        """How much is to be there before it wakes us; it starts when told to, and stamps its time."""
        call, pcm, sw, boundary = self._call, self.handle, c_void_p(), c_ulong()
        call("pcm_sw_params_malloc", byref(sw))
        try:
            call("pcm_sw_params_current", pcm, sw)
            call("pcm_sw_params_get_boundary", sw, byref(boundary))
            call("pcm_sw_params_set_avail_min", pcm, sw, wake_samples)
            call("pcm_sw_params_set_start_threshold", pcm, sw, boundary)
            self.library.call("pcm_sw_params_set_tstamp_mode", pcm, sw, lib.STAMPS_ON)  # without, we have a clock too
            self.library.call("pcm_sw_params_set_tstamp_type", pcm, sw, lib.STAMPS_MONOTONIC)
            call("pcm_sw_params", pcm, sw)
        finally:
            self.library.function("pcm_sw_params_free")(sw)

    def wake_at(self, samples: int) -> None:
        """A driver that will not change it while it runs goes on as before."""
        try:
            self._sw(c_ulong(max(1, min(samples, self.form.buffer_samples - 1))))
        except MachineError:
            return

    def _descriptors(self) -> tuple[tuple[int, int], ...]:
        self._bells: list[int] = []
        if self.uses_clock:
            self._polled = (PollFd * 0)()
            return ()
        count = self._call("pcm_poll_descriptors_count", self.handle)
        self._polled = (PollFd * count)()
        self._call("pcm_poll_descriptors", self.handle, self._polled, count)
        self._bells = [each.fd for each in self._polled if _is_bell(each.fd)]
        return tuple((each.fd, each.events) for each in self._polled)

    def hush(self) -> None:
        """Take note of what file descriptors said; PipeWire's plugin leaves its eventfd as it is once we have read."""
        for fd in self._bells:
            with suppress(BlockingIOError):
                os.eventfd_read(fd)
        if len(self._polled):
            told = ctypes.c_ushort()
            for each in self._polled:
                each.revents = each.events
            self._revents(self.handle, self._polled, len(self._polled), byref(told))

    def available(self) -> int:
        return int(self._avail(self.handle))

    def start(self) -> int:
        return self.library.call("pcm_start", self.handle)

    def state(self) -> int:
        return self.library.call("pcm_state", self.handle)

    def borrow(self, samples: int) -> memoryview | int:
        """The next run of the device's memory, up to so many samples long; a negative number is an error."""
        self._count.value = samples
        error = int(self._begin(self.handle, byref(self._areas), byref(self._offset), byref(self._count)))
        if error < 0:
            return error
        area, block = self._areas[0], self.form.block_bytes
        address = (area.address or 0) + area.first // 8
        if area.step != 8 * block:
            return -1
        view = self._views.get(address)
        if view is None:
            length = self.form.buffer_samples * block
            view = memoryview((ctypes.c_char * length).from_address(address)).cast("B")
            self._views = {address: view}
        start = self._offset.value * block
        return view[start : start + self._count.value * block]

    def give_back(self) -> int:
        """What was borrowed was read or filled; how many samples that were, or an error."""
        return int(self._commit(self.handle, self._offset, self._count))

    def mend(self, error: int, now_ns: int) -> Fault:
        """After a negative result: set going again what can be; what breaks off again and again is gone."""
        self._broken_ns.append(now_ns)
        if len(self._broken_ns) == MOST_BREAKS and now_ns - self._broken_ns[0] < STALLED_NS:
            return Fault.GONE
        what = remedy(error, self.resumes)
        if what is Remedy.RESUME:
            self.resumes += 1
            result = self.library.call("pcm_resume", self.handle)
            what = Remedy.WAIT if result >= 0 else remedy(result, self.resumes)
            if what in {Remedy.WAIT, Remedy.RESUME}:
                self.resumes = 0 if result >= 0 else self.resumes
                return Fault.LOST if result >= 0 else Fault.NONE
        if what is Remedy.WAIT:
            return Fault.NONE
        if what is Remedy.REOPEN:
            return Fault.GONE
        self.resumes = 0
        return Fault.LOST if self.library.call("pcm_prepare", self.handle) >= 0 else Fault.GONE

    def close(self) -> None:
        if self.handle:
            self.library.call("pcm_close", self.handle)
            self.handle = c_void_p()


def _is_bell(fd: int) -> bool:
    """Whether it is an eventfd whose reading does not wait."""
    try:
        return str(Path(f"/proc/self/fd/{fd}").readlink()) == "anon_inode:[eventfd]" and not os.get_blocking(fd)
    except OSError:
        return False


class AlsaCapture:
    """A microphone."""

    def __init__(self, pcm: _Pcm) -> None:
        self._pcm = pcm
        self.name, self.form, self.fds = pcm.name, pcm.form, pcm.fds
        self._wake_samples = pcm.form.period_samples
        self._due_ns: int | None = 0 if pcm.uses_clock else None
        self._moved_ns: int | None = None  # when it gave something last
        self._there, self._moment, self._delay = c_ulong(), Moment(), c_long()
        self._stamp = pcm.library.function("pcm_htimestamp")
        self._delayed = pcm.library.function("pcm_delay")
        error = pcm.start()  # capture through mmap does not begin by itself
        if error < 0:
            pcm.close()
            raise MachineError(f"ALSA cannot start {pcm.name!r}: {pcm.library.text(error)}", hint=NO_DEVICE)

    def due_ns(self, now_ns: int) -> int | None:  # noqa: ARG002 - the contract has it
        return self._due_ns

    def wake_at(self, samples: int) -> None:
        self._wake_samples = samples
        self._pcm.wake_at(samples)

    def read(self, into: memoryview, now_ns: int) -> Took:
        pcm, block, done = self._pcm, self.form.block_bytes, 0
        pcm.hush()
        available = pcm.available()
        if available < 0:
            return Took(0, now_ns, self._mend(available, now_ns))
        wanted = min(available, len(into) // block)
        if wanted or self._moved_ns is None:
            self._moved_ns = now_ns
        elif now_ns - self._moved_ns > STALLED_NS:
            return Took(0, now_ns, Fault.GONE)
        end_ns = self._end_ns(now_ns, available - wanted) if wanted else now_ns
        while done < wanted:
            run = pcm.borrow(wanted - done)
            if isinstance(run, int):
                return Took(done, end_ns, self._mend(run, now_ns))
            samples = len(run) // block
            if not samples:
                break
            into[done * block : (done + samples) * block] = run
            given = pcm.give_back()
            if given < 0:
                return Took(done, end_ns, self._mend(given, now_ns))
            done += samples
        if self._due_ns is not None:
            missing = max(1, self._wake_samples - (available - done))
            self._due_ns = now_ns + samples_to_ns(missing, self.form.rate_hz)
        return Took(done, end_ns)

    def _mend(self, error: int, now_ns: int) -> Fault:
        fault = self._pcm.mend(error, now_ns)
        if fault is Fault.LOST and self._pcm.state() == lib.PREPARED and self._pcm.start() < 0:
            return Fault.GONE
        return fault

    def _end_ns(self, now_ns: int, behind: int) -> int:
        """When the last sample that is read was captured: `behind` more have come since."""
        rate_hz, known_ns = self.form.rate_hz, now_ns
        if self._stamp(self._pcm.handle, byref(self._there), byref(self._moment)) >= 0:
            stamp_ns = self._moment.seconds * SECOND_NS + self._moment.nanoseconds
            if now_ns - SECOND_NS < stamp_ns <= now_ns:
                known_ns = stamp_ns
        further_ns = 0
        if self._delayed(self._pcm.handle, byref(self._delay)) >= 0:
            further = self._delay.value - self._there.value
            further_ns = min(max(0, samples_to_ns(further, rate_hz)), MOST_DELAY_NS)
        return known_ns - samples_to_ns(behind, rate_hz) - further_ns

    def close(self) -> None:
        self._pcm.close()


class AlsaPlayback:
    """A loudspeaker."""

    def __init__(self, pcm: _Pcm) -> None:
        self._pcm = pcm
        self.name, self.form, self.fds = pcm.name, pcm.form, pcm.fds
        self._wake_samples = pcm.form.period_samples
        self._due_ns = 0
        self._is_started = False
        self._available = -1  # at the last look, and when that was another than before
        self._moved_ns = 0

    def due_ns(self, now_ns: int) -> int | None:  # noqa: ARG002 - the contract has it
        return self._due_ns

    def wake_at(self, samples: int) -> None:
        self._wake_samples = samples
        self._pcm.wake_at(samples)

    def queued(self, now_ns: int) -> Queued:
        pcm = self._pcm
        pcm.hush()
        available = pcm.available()
        if available < 0:
            fault = pcm.mend(available, now_ns)
            self._is_started = self._is_started and fault is Fault.NONE
            return Queued(0, fault)
        if available != self._available or not self._is_started:
            self._available, self._moved_ns = available, now_ns
        elif now_ns - self._moved_ns > STALLED_NS:
            return Queued(0, Fault.GONE)
        left = self.form.buffer_samples - available
        least = self.form.buffer_samples - self._wake_samples
        self._due_ns = now_ns + samples_to_ns(max(1, left - least), self.form.rate_hz)
        return Queued(max(0, left))

    def write(self, block: memoryview) -> int:
        pcm, size, done = self._pcm, self.form.block_bytes, 0
        wanted = len(block) // size
        while done < wanted:
            run = pcm.borrow(wanted - done)
            if isinstance(run, int) or not len(run):
                break
            run[:] = block[done * size : done * size + len(run)]
            if pcm.give_back() < 0:
                break
            done += len(run) // size
        if done and not self._is_started:
            self._is_started = pcm.start() >= 0 or pcm.state() == lib.RUNNING
        self._due_ns += samples_to_ns(done, self.form.rate_hz)
        self._available = -1
        return done

    def close(self) -> None:
        self._pcm.close()


assert set(WIDTHS) == set(lib.FORMATS)
