"""The names that the protocol has for ways to write sound -> rate and encoding, and back.

Units: Hz. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from antiphon.audio.encoding import Encoding
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Mapping

PCM, MULAW, ALAW = "audio/pcm", "audio/pcmu", "audio/pcma"
_ENCODINGS = {PCM: Encoding.INT16, MULAW: Encoding.MULAW, ALAW: Encoding.ALAW}
_BETA = {"pcm16": PCM, "g711_ulaw": MULAW, "g711_alaw": ALAW}
PCM_HZ: Final = 24_000
G711_HZ: Final = 8_000


@dataclass(frozen=True, slots=True)
class SoundFormat:
    """How sound travels."""

    name: str
    rate_hz: int

    @property
    def encoding(self) -> Encoding:
        return _ENCODINGS[self.name]

    @property
    def ga(self) -> dict[str, object]:
        """As the protocol has it today."""
        return {"type": self.name, "rate": self.rate_hz} if self.name == PCM else {"type": self.name}

    @property
    def beta(self) -> str:
        """As the protocol had it before."""
        return next(beta for beta, name in _BETA.items() if name == self.name)


def format_named(name: str) -> SoundFormat:
    """The format of that name, old or new, at its usual rate.

    Raises:
        CallerError: there is none.
    """
    name = _BETA.get(name, name)
    if name not in _ENCODINGS:
        raise CallerError(f"the audio format is {name!r}", hint=f"use one of {', '.join(_ENCODINGS)}")
    return SoundFormat(name, PCM_HZ if name == PCM else G711_HZ)


def echoed(session: Mapping[str, object], side: str, asked: SoundFormat) -> SoundFormat:
    """What a session's echo says of its `input` or `output`; what it leaves open is as it was asked for."""
    old = session.get(f"{side}_audio_format")
    if isinstance(old, str) and old in _BETA:
        return format_named(old)
    found: object = session.get("audio")
    for name in (side, "format"):
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict) or found.get("type") not in _ENCODINGS:
        return asked
    told = format_named(str(found["type"]))
    rate_hz = found.get("rate")
    is_rate = isinstance(rate_hz, int) and rate_hz > 0 and told.name == PCM
    return SoundFormat(told.name, int(str(rate_hz))) if is_rate else told
