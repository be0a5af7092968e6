"""libasound through ctypes: the functions that alsa.py calls, with their types. No compiled code of ours.

A call releases Python's lock. The library writes what it thinks to stderr; here it is silenced, errors are returned.
Threads: any.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_long, c_short, c_uint, c_ulong, c_void_p
from typing import TYPE_CHECKING

from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPTURE, PLAYBACK = 1, 0
NONBLOCK = 1
MMAP_INTERLEAVED = 0
FORMATS = {"i2": 2, "i4": 10, "f4": 14}  # S16_LE, S32_LE, FLOAT_LE
STAMPS_ON, STAMPS_MONOTONIC = 1, 1
OPEN, SETUP, PREPARED, RUNNING, XRUN, DRAINING, PAUSED, SUSPENDED, DISCONNECTED = range(9)


class Area(ctypes.Structure):
    """snd_pcm_channel_area_t: bits."""

    _fields_ = (("address", c_void_p), ("first", c_uint), ("step", c_uint))


class Moment(ctypes.Structure):
    """struct timespec."""

    _fields_ = (("seconds", c_long), ("nanoseconds", c_long))


class PollFd(ctypes.Structure):
    """struct pollfd."""

    _fields_ = (("fd", c_int), ("events", c_short), ("revents", c_short))


PCM = c_void_p
ERROR_HANDLER = ctypes.CFUNCTYPE(None)
# snd_ is before each; what returns no int is told apart below
SIGNATURES: dict[str, tuple[object, ...]] = {
    "pcm_open": (POINTER(PCM), c_char_p, c_int, c_int),
    "pcm_close": (PCM,),
    "pcm_prepare": (PCM,),
    "pcm_start": (PCM,),
    "pcm_resume": (PCM,),
    "pcm_drop": (PCM,),
    "pcm_state": (PCM,),
    "pcm_avail_update": (PCM,),
    "pcm_avail": (PCM,),
    "pcm_delay": (PCM, POINTER(c_long)),
    "pcm_htimestamp": (PCM, POINTER(c_ulong), POINTER(Moment)),
    "pcm_mmap_begin": (PCM, POINTER(POINTER(Area)), POINTER(c_ulong), POINTER(c_ulong)),
    "pcm_mmap_commit": (PCM, c_ulong, c_ulong),
    "pcm_poll_descriptors_count": (PCM,),
    "pcm_poll_descriptors": (PCM, POINTER(PollFd), c_uint),
    "pcm_poll_descriptors_revents": (PCM, POINTER(PollFd), c_uint, POINTER(ctypes.c_ushort)),
    "pcm_hw_params_malloc": (POINTER(c_void_p),),
    "pcm_hw_params_free": (c_void_p,),
    "pcm_hw_params_any": (PCM, c_void_p),
    "pcm_hw_params": (PCM, c_void_p),
    "pcm_hw_params_set_access": (PCM, c_void_p, c_int),
    "pcm_hw_params_set_format": (PCM, c_void_p, c_int),
    "pcm_hw_params_set_channels": (PCM, c_void_p, c_uint),
    "pcm_hw_params_set_channels_near": (PCM, c_void_p, POINTER(c_uint)),
    "pcm_hw_params_set_rate": (PCM, c_void_p, c_uint, c_int),
    "pcm_hw_params_set_rate_near": (PCM, c_void_p, POINTER(c_uint), POINTER(c_int)),
    "pcm_hw_params_set_period_size_near": (PCM, c_void_p, POINTER(c_ulong), POINTER(c_int)),
    "pcm_hw_params_set_buffer_size_near": (PCM, c_void_p, POINTER(c_ulong)),
    "pcm_hw_params_get_period_size": (c_void_p, POINTER(c_ulong), POINTER(c_int)),
    "pcm_hw_params_get_buffer_size": (c_void_p, POINTER(c_ulong)),
    "pcm_hw_params_can_disable_period_wakeup": (c_void_p,),
    "pcm_hw_params_set_period_wakeup": (PCM, c_void_p, c_uint),
    "pcm_sw_params_malloc": (POINTER(c_void_p),),
    "pcm_sw_params_free": (c_void_p,),
    "pcm_sw_params_current": (PCM, c_void_p),
    "pcm_sw_params": (PCM, c_void_p),
    "pcm_sw_params_get_boundary": (c_void_p, POINTER(c_ulong)),
    "pcm_sw_params_set_avail_min": (PCM, c_void_p, c_ulong),
    "pcm_sw_params_set_start_threshold": (PCM, c_void_p, c_ulong),
    "pcm_sw_params_set_tstamp_mode": (PCM, c_void_p, c_int),
    "pcm_sw_params_set_tstamp_type": (PCM, c_void_p, c_int),
    "device_name_hint": (c_int, c_char_p, POINTER(POINTER(c_void_p))),
    "device_name_get_hint": (c_void_p, c_char_p),
    "device_name_free_hint": (POINTER(c_void_p),),
    "strerror": (c_int,),
}
RESULTS = {
    "pcm_avail_update": c_long,
    "pcm_avail": c_long,
    "pcm_mmap_commit": c_long,
    "pcm_hw_params_free": None,
    "pcm_sw_params_free": None,
    "device_name_get_hint": c_void_p,
    "strerror": c_char_p,
}


class AlsaLibrary:
    """The library.

    Raises:
        MachineError: it is not here.
    """

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libasound.so.2")
        except OSError as error:
            raise MachineError(
                "ALSA's library, libasound.so.2, is not here",
                hint="install it: apt install libasound2, and pipewire-alsa or libasound2-plugins for a sound server",
            ) from error
        for name, types in SIGNATURES.items():
            function = getattr(self._library, f"snd_{name}")
            function.argtypes = types
            function.restype = RESULTS.get(name, c_int)
        self._silence = ERROR_HANDLER(lambda: None)  # called with words that we do not read
        self._library.snd_lib_error_set_handler(self._silence)
        self._free = ctypes.CDLL(None).free
        self._free.argtypes = (c_void_p,)

    def call(self, name: str, *arguments: object) -> int:
        """A function's result, negative if it failed."""
        return int(getattr(self._library, f"snd_{name}")(*arguments))

    def function(self, name: str) -> ctypes._NamedFuncPointer:
        """One to be called often: found once."""
        found: ctypes._NamedFuncPointer = getattr(self._library, f"snd_{name}")
        return found

    def text(self, error: int) -> str:
        """What a result means."""
        return bytes(self._library.snd_strerror(error)).decode(errors="replace")

    def devices(self) -> Iterator[tuple[str, str, bool, bool]]:
        """Name, description, can capture, can play."""
        hints = POINTER(c_void_p)()
        if self.call("device_name_hint", -1, b"pcm", byref(hints)) < 0:
            return
        place = 0
        while hints[place]:
            name, text, ways = (self._hint(hints[place], key) for key in (b"NAME", b"DESC", b"IOID"))
            if name and name != "null":
                yield name, " ".join(text.split()), ways in {"", "Input"}, ways in {"", "Output"}
            place += 1
        self.call("device_name_free_hint", hints)

    def _hint(self, hint: int | None, key: bytes) -> str:
        address = self._library.snd_device_name_get_hint(hint, key)
        if not address:
            return ""
        text = ctypes.string_at(address).decode(errors="replace")
        self._free(address)
        return text
