"""PortAudio's devices through sounddevice: the portable path.

PortAudio calls us on a thread of its own for every period; what it brings is copied into memory that was there before,
and an eventfd wakes the loop. Where it tells when a sample met the converter, that is its time.
Units: samples per channel, ns. Threads: the callbacks on PortAudio's, all else on the audio process's; between the two
there are two counters, each written by one side.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from antiphon.audio.card.contract import PERIODS, Ask, Fault, Form, Queued, SampleType, Took
from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antiphon.core.clock import Clock

    Callback = Callable[[Any, int, Any, Any], None]

NO_DEVICE = "plug one in, start a sound server, or name another device: antiphon talk --list"
SAMPLE_TYPES: dict[SampleType, str] = {"i2": "int16", "i4": "int32", "f4": "float32"}
MOST_DELAY_NS = SECOND_NS
STALLED_NS = 2 * SECOND_NS  # without a callback the device is gone, whatever PortAudio says


def sounddevice() -> Any:
    """The library.

    Raises:
        MachineError: it is not installed, or does not find PortAudio.
    """
    try:
        return import_module("sounddevice")
    except (ImportError, OSError) as error:
        raise MachineError(
            f"PortAudio cannot be used: {error}",
            hint="pip install 'antiphon[talk]', and on Linux apt install libportaudio2",
        ) from error


def portaudio_choices() -> Iterator[tuple[str, str, bool, bool]]:
    """Name, description, can capture, can play; raises as `sounddevice`."""
    library = sounddevice()
    systems = library.query_hostapis()
    for device in library.query_devices():
        system = systems[device["hostapi"]]["name"]
        ways = device["max_input_channels"] > 0, device["max_output_channels"] > 0
        yield device["name"], f"{system}, {device['default_samplerate']:.0f} Hz", *ways


class PortAudioCard:
    """What PortAudio lists.

    Raises:
        MachineError: as `sounddevice`.
    """

    system = "portaudio"

    def __init__(self, clock: Clock) -> None:
        self._library = sounddevice()
        self._clock = clock

    def open_capture(self, ask: Ask) -> PortAudioCapture:
        return PortAudioCapture(self._library, self._form(ask, "input"), ask, self._clock)

    def open_playback(self, ask: Ask) -> PortAudioPlayback:
        return PortAudioPlayback(self._library, self._form(ask, "output"), ask, self._clock)

    def _form(self, ask: Ask, way: Literal["input", "output"]) -> Form:
        """The first form that the device takes."""
        check = self._library.check_input_settings if way == "input" else self._library.check_output_settings
        device = ask.device or None
        errors = []
        for rate_hz in ask.rates_hz:
            for channels in (*ask.channels, *self._all_channels(device, way)):
                for sample_type, dtype in SAMPLE_TYPES.items():
                    try:
                        check(device=device, channels=channels, dtype=dtype, samplerate=rate_hz)
                    except (self._library.PortAudioError, ValueError) as error:
                        errors.append(str(error))
                        continue
                    period = ask.period_samples(rate_hz)
                    return Form(
                        rate_hz=rate_hz,
                        channels=channels,
                        sample_type=sample_type,
                        period_samples=period,
                        buffer_samples=PERIODS * period,
                    )
        name = ask.device or f"the default {way}"
        raise MachineError(f"PortAudio cannot open {name}: {errors[0] if errors else 'no such form'}", hint=NO_DEVICE)

    def _all_channels(self, device: str | None, way: str) -> tuple[int, ...]:
        """As many as it has: some devices take no other number."""
        try:
            return (int(self._library.query_devices(device, way)[f"max_{way}_channels"]),)
        except (self._library.PortAudioError, ValueError):
            return ()


class _Between:
    """An open stream, and the memory between the two threads: each counter is written by one of them."""

    def __init__(self, form: Form, clock: Clock) -> None:
        self.form = form
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.put = 0  # samples since it was opened
        self.taken = 0
        self.faults = 0
        self.called_ns = clock.now_ns()
        self._told_faults = 0
        self._memory = memoryview(bytearray(form.buffer_samples * form.block_bytes))
        self._stream: Any = None
        self._error: type[Exception] = OSError

    def open(self, library: Any, stream_type: str, ask: Ask, callback: Callback) -> None:
        """Begin.

        Raises:
            MachineError: PortAudio cannot.
        """
        self._error = library.PortAudioError
        try:
            self._stream = getattr(library, stream_type)(
                samplerate=self.form.rate_hz,
                blocksize=self.form.period_samples,
                device=ask.device or None,
                channels=self.form.channels,
                dtype=SAMPLE_TYPES[self.form.sample_type],
                latency="low",
                callback=callback,
            )
            self._stream.start()
        except (library.PortAudioError, ValueError) as error:
            os.close(self.bell)
            name = ask.device or "its default"
            raise MachineError(f"PortAudio cannot open {name}: {error}", hint=NO_DEVICE) from error

    def fault(self, now_ns: int) -> Fault:
        """Since the last time; takes note of the bell."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.bell)
        if not self._stream.active or now_ns - self.called_ns > STALLED_NS:
            return Fault.GONE
        if self.faults != self._told_faults:
            self._told_faults = self.faults
            return Fault.LOST
        return Fault.NONE

    def parts(self, start: int, samples: int) -> tuple[memoryview, memoryview]:
        """The memory of so many samples from a counter on, in two parts, of which the second may be empty."""
        block, size = self.form.block_bytes, self.form.buffer_samples
        place = start % size
        first = min(samples, size - place)
        return self._memory[place * block : (place + first) * block], self._memory[: (samples - first) * block]

    def ring(self, now_ns: int) -> None:
        """The callback is done."""
        self.called_ns = now_ns
        os.eventfd_write(self.bell, 1)

    def close(self) -> None:
        with suppress(self._error):
            self._stream.close()
        os.close(self.bell)


class PortAudioCapture:
    """A microphone."""

    def __init__(self, library: Any, form: Form, ask: Ask, clock: Clock) -> None:
        self.name, self.form = ask.device or "default", form
        self._clock = clock
        self._end_ns = 0  # of what was put last
        self._between = _Between(form, clock)
        self._between.open(library, "RawInputStream", ask, self._called)
        self.fds = ((self._between.bell, select.POLLIN),)

    def _called(self, data: Any, samples: int, moments: Any, status: Any) -> None:
        between, now_ns = self._between, self._clock.now_ns()
        room = min(samples, self.form.buffer_samples - (between.put - between.taken))
        if status.input_overflow or room < samples:
            between.faults += 1
        given = memoryview(data).cast("B")
        first, second = between.parts(between.put, room)
        first[:] = given[: len(first)]
        second[:] = given[len(first) : len(first) + len(second)]
        age_ns = 0
        if moments.inputBufferAdcTime:  # of the first sample; we want the last one's
            age_ns = round((moments.currentTime - moments.inputBufferAdcTime) * SECOND_NS) - self.form.ns(samples)
        self._end_ns = now_ns - (age_ns if 0 <= age_ns <= MOST_DELAY_NS else 0)
        between.put += room
        between.ring(now_ns)

    def due_ns(self, now_ns: int) -> int | None:  # noqa: ARG002 - the contract has it
        return None

    def wake_at(self, samples: int) -> None:
        """PortAudio wakes us for each period."""

    def read(self, into: memoryview, now_ns: int) -> Took:
        between, block = self._between, self.form.block_bytes
        fault = between.fault(now_ns)
        there = between.put - between.taken
        samples = min(there, len(into) // block)
        first, second = between.parts(between.taken, samples)
        into[: len(first)] = first
        into[len(first) : len(first) + len(second)] = second
        between.taken += samples
        return Took(samples, (self._end_ns or now_ns) - self.form.ns(there - samples), fault)

    def close(self) -> None:
        self._between.close()


class PortAudioPlayback:
    """A loudspeaker."""

    def __init__(self, library: Any, form: Form, ask: Ask, clock: Clock) -> None:
        self.name, self.form = ask.device or "default", form
        self._clock = clock
        self._between = _Between(form, clock)
        self._is_fed = False  # before the first write there is nothing to miss
        self._between.open(library, "RawOutputStream", ask, self._called)
        self.fds = ((self._between.bell, select.POLLIN),)

    def _called(self, data: Any, samples: int, _: Any, status: Any) -> None:
        between, block = self._between, self.form.block_bytes
        given = min(samples, between.put - between.taken)
        if self._is_fed and (status.output_underflow or given < samples):
            between.faults += 1
        wanted = memoryview(data).cast("B")
        first, second = between.parts(between.taken, given)
        wanted[: len(first)] = first
        wanted[len(first) : len(first) + len(second)] = second
        wanted[given * block :] = bytes((samples - given) * block)
        between.taken += given
        between.ring(self._clock.now_ns())

    def due_ns(self, now_ns: int) -> int | None:  # noqa: ARG002 - the contract has it
        return None

    def wake_at(self, samples: int) -> None:
        """PortAudio wakes us for each period."""

    def queued(self, now_ns: int) -> Queued:
        fault = self._between.fault(now_ns)
        return Queued(self._between.put - self._between.taken, fault)

    def write(self, block: memoryview) -> int:
        between, size = self._between, self.form.block_bytes
        samples = min(len(block) // size, self.form.buffer_samples - (between.put - between.taken))
        first, second = between.parts(between.put, samples)
        first[:] = block[: len(first)]
        second[:] = block[len(first) : len(first) + len(second)]
        between.put += samples
        self._is_fed = True
        return samples

    def close(self) -> None:
        self._between.close()
