"""The audio formats that the protocol knows, by name and rate.

`audio/pcm` is 16-bit little-endian mono at 24 kHz; 16 and 8 kHz are an extension. `audio/pcmu` and `audio/pcma` are
G.711 at 8 kHz, a byte a sample.
Units: Hz, bytes. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.audio.encoding import Encoding
from antiphon.serve.realtime.errors import NOT_SUPPORTED, RefusedError

if TYPE_CHECKING:
    from antiphon.serve.realtime.fields import Fields

PCM_RATES_HZ = (24_000, 16_000, 8_000)
G711_HZ = 8_000
NAMES = {"audio/pcm": Encoding.INT16, "audio/pcmu": Encoding.MULAW, "audio/pcma": Encoding.ALAW}

FORMER = {"input_audio_format": "audio.input.format", "output_audio_format": "audio.output.format"}


@dataclass(frozen=True, slots=True)
class WireFormat:
    """How sound travels."""

    name: str
    rate_hz: int

    @property
    def encoding(self) -> Encoding:
        return NAMES[self.name]

    @property
    def wire(self) -> dict[str, object]:
        """As the session's fields have it."""
        return {"type": self.name, "rate": self.rate_hz} if self.name == "audio/pcm" else {"type": self.name}


PCM_24K = WireFormat("audio/pcm", 24_000)


def read_format(fields: Fields, now: WireFormat) -> WireFormat:
    """The format that a client asks for, where `now` is the one at present.

    Raises:
        RefusedError: there is no such format.
    """
    name = fields.choice("type", *NAMES) or now.name
    if name != "audio/pcm":
        fields.whole("rate", G711_HZ, G711_HZ)
        return WireFormat(name, G711_HZ)
    rate_hz = fields.whole("rate", 1, 768_000)
    if rate_hz is None:
        rate_hz = now.rate_hz if now.name == name else PCM_24K.rate_hz
    if rate_hz not in PCM_RATES_HZ:
        rates = ", ".join(map(str, PCM_RATES_HZ))
        raise RefusedError(f"{fields.at('rate')} is {rate_hz}", param=fields.at("rate"), hint=f"use one of {rates}")
    return WireFormat(name, rate_hz)


def refuse_former(fields: Fields) -> None:
    """Raises RefusedError if a format is asked for by a name of the protocol before GA.

    As an unknown field it would be ignored, and who asks for G.711 would take PCM for it.
    """
    for name, now in FORMER.items():
        if fields.has(name) and not fields.is_null(name):
            path = fields.at(name)
            raise RefusedError(
                f"{path} is no field of this protocol", code=NOT_SUPPORTED, param=path, hint=f"use {now}"
            )
