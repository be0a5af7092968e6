"""The audio process: `python -m antiphon.audio.card.process CAPTURE PLAYBACK ORDER`, started by link.py alone.

CAPTURE and PLAYBACK are rings' handles, ORDER is `Order.text()`. It takes its rights, says once what it got, and serves
until the other process ends or lets go of the rings. No other Python thread runs in it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from antiphon.audio.card.choose import cards
from antiphon.audio.card.loop import Loop
from antiphon.audio.card.notes import Note, Side
from antiphon.audio.card.settings import SoundSettings
from antiphon.core.clock import MonotonicClock
from antiphon.core.errors import AntiphonError
from antiphon.exchange.ring import open_reader, open_writer, read_handle
from antiphon.hardware.audio_plan import AudioPlan
from antiphon.scheduling.realtime import settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the process is to do."""

    sound: SoundSettings
    plan: AudioPlan
    voice_hz: int

    def text(self) -> str:
        """For its command line."""
        return json.dumps(asdict(self))


def read_order(text: str) -> Order:
    """An order from the command line; it is ours, and not checked again."""
    values = json.loads(text)
    plan = AudioPlan(**{**values["plan"], "reasons": ()})
    return Order(sound=SoundSettings(**values["sound"]), plan=plan, voice_hz=values["voice_hz"])


def main(arguments: list[str]) -> int:
    """Serve; 1 if there was nothing to serve with, which was told."""
    writer = open_writer(read_handle(arguments[0]))
    reader = open_reader(read_handle(arguments[1]))
    order = read_order(arguments[2])
    clock = MonotonicClock()
    try:
        loop = Loop(cards(order.sound, clock), writer, reader, order.sound, order.voice_hz, clock)
    except AntiphonError as error:
        sides: tuple[Side, ...] = ("in", "out")
        for side in sides:
            writer.write(Note(what="absent", side=side, text=error.message, hint=error.hint).packed())
        return 1
    loop.tell(Note(what="ready", text=settle(order.plan).text()))
    loop.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
