"""The audio process as the conversation's process sees it: frames and notes come, the reply's frames go.

Whatever the card is, frames come mono, at the rate of the first one and with positions that rise: a device that came
back at another rate is resampled, one that was away has left a gap. If the audio process dies or falls silent it is
started anew; after three times in a minute it is given up, and `tell` hears of it.
Units: samples, ns. Threads: the event loop. Linux alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Self

from antiphon.audio.card.contract import Form
from antiphon.audio.card.frames import PAYLOAD_BYTES, Ears, Mouth
from antiphon.audio.card.mover import MoverThread, Process
from antiphon.audio.card.notes import Note, read_note
from antiphon.core.clock import SECOND_NS, MonotonicClock
from antiphon.core.errors import MachineError
from antiphon.exchange.layout import Kind, RingShape
from antiphon.exchange.ring import Ring

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from antiphon.audio.card.contract import SampleType
    from antiphon.audio.card.process import Order
    from antiphon.core.flow import AudioFrame

CAPTURE_SLOTS, PLAYBACK_SLOTS = 256, 64  # over a second each
FIRST_WORD_S = 15.0  # for a card to be opened: a Bluetooth headset takes some
SILENT_S = 10.0  # without a pulse: it hangs inside a driver; a busy machine takes seconds to start it
MOST_RESTARTS, RESTARTS_NS = 3, 60 * SECOND_NS
WAYS = 2


class SoundLink:
    """Use it as an async context manager: inside, sound flows.

    `hear` gets each captured frame, `tell` each note; both are called on the event loop and must not block. The frame's
    pcm is its own.
    """

    def __init__(self, order: Order, *, hear: Callable[[AudioFrame], None], tell: Callable[[Note], None]) -> None:
        self.order = order
        self.dropped_frames = 0  # of the reply, while there was no loudspeaker or no room
        self.restarts = 0
        self._hear, self._tell = hear, tell
        self._clock = MonotonicClock()
        self._settled = asyncio.Event()  # both ways are open, or known not to be
        self._absent: dict[str, Note] = {}
        self._opened: set[str] = set()
        self._started_ns: deque[int] = deque(maxlen=MOST_RESTARTS + 1)
        self._watched: list[int] = []
        self._ears = Ears()
        self._mouth = Mouth()
        self._is_closing = False
        self._mover: Process | MoverThread

    async def __aenter__(self) -> Self:
        """Start, and wait until the card is open.

        Raises:
            MachineError: there is no card to be had, or no process; with a remedy.
        """
        self._capture = Ring.make(RingShape(slots=CAPTURE_SLOTS, payload_bytes=PAYLOAD_BYTES), peer="writes")
        self._playback = Ring.make(RingShape(slots=PLAYBACK_SLOTS, payload_bytes=PAYLOAD_BYTES), peer="reads")
        self._mover = Process(self.order) if self.order.sound.own_process else MoverThread(self.order)
        try:
            self._start()
            await self._wait_for_card()
        except BaseException:
            await self._close()
            raise
        return self

    async def _wait_for_card(self) -> None:
        try:
            await asyncio.wait_for(self._settled.wait(), FIRST_WORD_S)
        except TimeoutError:
            raise MachineError("the sound card does not answer", hint="name another: antiphon talk --list") from None
        if self._absent:
            raise _error(self._absent)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def play(self, frame: AudioFrame) -> None:
        """The reply's next sound; dropped and counted while there is no loudspeaker, or no room."""
        for data, stamp in self._mouth.packed(frame):
            if not self._playback.writer.write(data, stamp):
                self.dropped_frames += 1
        if self._mouth.form is None:
            self.dropped_frames += 1

    def finish(self) -> None:
        """The reply is over: what the resampler holds back is its end."""
        for data, stamp in self._mouth.rest():
            self._playback.writer.write(data, stamp)

    # Inside.

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._started_ns.append(self._clock.now_ns())
        self._last_word_ns = self._clock.now_ns()
        self._mover.start(self._capture, self._playback)
        self._watched = [self._capture.reader.fileno(), self._capture.reader.line_fileno()]
        loop.add_reader(self._watched[0], self._on_bell)
        loop.add_reader(self._watched[1], self._on_hang_up)
        self._watch = loop.call_later(1.0, self._look_after)

    def _on_bell(self) -> None:
        reader = self._capture.reader
        reader.hush()
        while (message := reader.take()) is not None:
            if message.stamp.kind == Kind.SOUND:
                frames = self._ears.frames(message)
            else:
                frames = ()
                self._note(read_note(message.payload))
            reader.release()
            for frame in frames:
                self._hear(frame)

    def _note(self, note: Note) -> None:
        self._last_word_ns = self._clock.now_ns()
        if note.what == "opened":
            self._opened.add(note.side)
            self._absent.pop(note.side, None)
            if note.side == "out":
                self._mouth.move_to(_form(note))
        elif note.what == "absent":
            self._absent[note.side] = note
        elif note.what == "gone" and note.side == "out":
            self._mouth.form = None
        if len(self._opened | set(self._absent)) == WAYS:
            self._settled.set()
        self._tell(note)

    def _look_after(self) -> None:
        """Once a second: a process that hangs says nothing, but holds its end of the line."""
        self._watch = asyncio.get_running_loop().call_later(1.0, self._look_after)
        if self._clock.now_ns() - self._last_word_ns > SILENT_S * SECOND_NS and self._settled.is_set():
            self._mover.kill()

    def _on_hang_up(self) -> None:
        """The audio process is gone."""
        self._on_bell()  # its last words
        self._unwatch()
        said = self._mover.ended()
        now_ns = self._clock.now_ns()
        recent = [start for start in self._started_ns if now_ns - start < RESTARTS_NS]
        if self._is_closing or (self._absent and not self._settled.is_set()):
            self._settled.set()
            return
        if len(recent) > MOST_RESTARTS:
            text = f"the audio process ended {len(recent)} times within a minute{': ' if said else ''}{said}"
            self._absent["in"] = Note(what="failed", side="in", text=text, hint="try another: antiphon talk --list")
            self._settled.set()
            self._tell(self._absent["in"])
            return
        self.restarts += 1
        self._mouth.form = None
        self._tell(Note(what="gone", text=f"the audio process ended and is started anew{': ' if said else ''}{said}"))
        self._ears.begin_anew()
        self._start()

    def _unwatch(self) -> None:
        loop = asyncio.get_running_loop()
        self._watch.cancel()
        for fd in self._watched:
            loop.remove_reader(fd)
        self._watched = []

    async def _close(self) -> None:
        self._is_closing = True
        if self._watched:
            self._unwatch()
        self._mover.ask_to_end()
        self._capture.close()
        self._playback.close()
        await asyncio.to_thread(self._mover.ended)


def _form(note: Note) -> Form:
    sample_type: SampleType = "i4" if note.hint == "i4" else "f4" if note.hint == "f4" else "i2"
    numbers = note.numbers
    return Form(
        rate_hz=numbers["rate_hz"],
        channels=numbers["channels"],
        sample_type=sample_type,
        period_samples=numbers["period"],
        buffer_samples=numbers["buffer"],
    )


def _error(absent: dict[str, Note]) -> MachineError:
    names = {"in": "microphone", "out": "loudspeaker"}
    texts = dict.fromkeys(note.text for note in absent.values())
    what = " and no ".join(names[side] for side in sorted(absent) if side in names)
    hints = dict.fromkeys(note.hint for note in absent.values() if note.hint)
    return MachineError(f"no {what} can be used: {'; '.join(texts)}", hint="; ".join(hints))
