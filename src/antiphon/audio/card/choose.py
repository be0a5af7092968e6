"""The sound settings -> the cards to try, the first that will do; and what can be chosen.

Threads: the audio process's, or before it starts. Libraries are loaded here and nowhere else.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from antiphon.audio.card.paced import PacedCard
from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from antiphon.audio.card.alsa import AlsaCard
    from antiphon.audio.card.contract import Card
    from antiphon.audio.card.settings import SoundSettings
    from antiphon.core.clock import Clock

PACED_HZ = 16_000


class Choice(NamedTuple):
    """A device that can be named."""

    system: str
    name: str
    text: str
    can_capture: bool
    can_play: bool


def cards(settings: SoundSettings, clock: Clock) -> list[Card]:
    """What is to be tried, in order.

    Raises:
        MachineError: no system of those asked for has its library here; with what to install.
        CallerError: the clip of a paced microphone cannot be read.
    """
    if settings.system == "paced":
        return [PacedCard(clock=clock, said=_clip(settings.input), rates_hz=(PACED_HZ, 24_000, 48_000))]
    found: list[Card] = []
    problems: list[MachineError] = []
    for system in ("alsa", "portaudio") if settings.system == "auto" else (settings.system,):
        try:
            found.append(_alsa() if system == "alsa" else _portaudio(clock))
        except MachineError as error:
            problems.append(error)
    if not found:
        raise MachineError("; ".join(each.message for each in problems), hint="; or ".join(e.hint for e in problems))
    return found


def choices() -> list[Choice]:
    """Every device of every system that is here."""
    from antiphon.audio.card.portaudio import portaudio_choices  # noqa: PLC0415 - loads PortAudio

    found: list[Choice] = []
    with suppress(MachineError):
        found += [Choice("alsa", *each) for each in _alsa().choices()]
    with suppress(MachineError):
        found += [Choice("portaudio", *each) for each in portaudio_choices()]
    return found


def _alsa() -> AlsaCard:
    from antiphon.audio.card.alsa import AlsaCard  # noqa: PLC0415 - loads libasound

    return AlsaCard()


def _portaudio(clock: Clock) -> Card:
    from antiphon.audio.card.portaudio import PortAudioCard  # noqa: PLC0415 - loads PortAudio

    return PortAudioCard(clock)


def _clip(path: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    if not path:
        return np.zeros(PACED_HZ, np.int16)
    from antiphon.audio.encoding import to_int16  # noqa: PLC0415
    from antiphon.audio.files import read  # noqa: PLC0415
    from antiphon.audio.resample import resample  # noqa: PLC0415

    pcm, rate_hz = read(path)
    return to_int16(pcm if rate_hz == PACED_HZ else resample(pcm, rate_hz, PACED_HZ))
