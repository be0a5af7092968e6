"""Events, frames and notes in, a live view of a conversation by sound card out.

What was said scrolls by as `antiphon converse` prints it; below it stand the levels, who has the floor, the last turn's
latency and what the card lost. Without a terminal only the lines are printed.
Units: ns, dBFS. Threads: the event loop; drawing is rich's, a few times a second, on a thread of its own.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from antiphon.audio.level import SILENCE_DBFS, dbfs
from antiphon.audio.recording import Recording
from antiphon.cli.narrator import Narrator
from antiphon.core.clock import MILLISECOND_NS
from antiphon.session.events import (
    ReplyFinished,
    ReplyOpened,
    ReplyStarted,
    TurnAbandoned,
    TurnConfirmed,
    TurnCorrected,
    TurnStarted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from antiphon.audio.card.notes import Note
    from antiphon.core.flow import AudioFrame
    from antiphon.session.events import Event

REFRESHES = 8  # a second
BAR = 24  # characters of a level
QUIETEST_DBFS = -60.0
FALL_DB = 3.0  # a frame, so that a level can be seen


@dataclass(slots=True)
class Answered:
    """A turn whose reply has begun to sound."""

    turn: int
    text: str
    session_ns: int  # from the last speech sample to the moment at which the reply's first sound was due
    loudspeaker_ns: int  # from then until it was heard
    reply: str = ""


class TalkView:
    """What a person sees, and what is kept to be written."""

    def __init__(self, console: Console) -> None:
        self.turns: list[Answered] = []
        self.xruns = {"in": 0, "out": 0}
        self.devices: dict[str, str] = {}
        self.policy = ""
        self.wake_ups = 0
        self.worst_ns = 0
        self.recording = Recording()
        self._console = console
        self._narrator = Narrator(console)
        self._state = "listening"
        self._levels = {"in": SILENCE_DBFS, "out": SILENCE_DBFS}
        self._ended_ns: dict[int, int] = {}  # when the last speech sample of each turn was captured
        self._texts: dict[int, str] = {}
        self._loudspeaker_ns = 0  # of the run that sounds
        self._live: Live | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Draw the lines below the conversation, while inside."""
        if not self._console.is_terminal:
            yield
            return
        with Live(
            get_renderable=self.picture, console=self._console, refresh_per_second=REFRESHES, transient=True
        ) as self._live:
            yield

    def hears(self, frame: AudioFrame) -> None:
        """A captured frame."""
        self._levels["in"] = max(dbfs(frame.pcm), self._levels["in"] - FALL_DB)
        self.recording.add("caller", frame)

    def says(self, frame: AudioFrame) -> None:
        """A frame of the reply."""
        self._levels["out"] = dbfs(frame.pcm)
        self.recording.add("reply", frame)

    def tell(self, event: Event) -> None:
        """What happened in the conversation."""
        match event:
            case TurnStarted():
                self._state = "you speak"
            case TurnAbandoned():
                self._state = "listening"
            case TurnConfirmed():
                self._ended_ns[event.turn] = event.at_ns - event.silence_ns
                self._texts[event.turn] = event.text
                self._state = "thinking"
            case TurnCorrected():
                self._texts[event.turn] = event.text
            case ReplyOpened():
                self._state = "thinking"
            case ReplyStarted():
                self._state = "speaking"
                self._answer(event)
            case ReplyFinished():
                self._state = "listening"
                self._levels["out"] = SILENCE_DBFS
                for turn in self.turns:
                    if turn.turn == event.turn:
                        turn.reply, turn.text = event.heard, self._texts.get(event.turn, "")
            case _:
                pass
        self._narrator.tell(event)

    def _answer(self, event: ReplyStarted) -> None:
        ended_ns = self._ended_ns.pop(event.turn, None)
        if ended_ns is not None:  # else a greeting
            text = self._texts.get(event.turn, "")
            self.turns.append(Answered(event.turn, text, event.at_ns - ended_ns, self._loudspeaker_ns))

    def note(self, note: Note) -> None:
        """What the audio process says of itself; what a person should know is printed, each once."""
        names = {"in": "microphone", "out": "loudspeaker", "": "sound"}
        numbers = note.numbers
        match note.what:
            case "ready":
                self.policy = note.text
                self._say(note.text)
            case "opened":
                khz = numbers["rate_hz"] / 1000
                form = f"{khz:g} kHz, {numbers['channels']} ch, periods of {numbers['period'] / khz:.1f} ms"
                self.devices[note.side] = f"{note.text} ({form})"
                self._say(f"{names[note.side]}: {note.text}, {form}")
            case "gone":
                self._say(f"{names[note.side]}: gone{': ' if note.text else ''}{note.text}", "yellow")
            case "absent":
                self._say(f"{names[note.side]}: {note.text}; hint: {note.hint}", "yellow")
            case "lost":
                self.xruns[note.side] = numbers["count"]
            case "sounding":
                self._loudspeaker_ns = numbers["heard_ns"] - numbers["due_ns"]
                if self.turns and self._state == "speaking" and not self.turns[-1].reply:
                    self.turns[-1].loudspeaker_ns = self._loudspeaker_ns
            case "pulse":
                self.wake_ups = numbers["wake_ups"]
                self.worst_ns = max(self.worst_ns, numbers["worst_ns"])
            case _:
                pass

    def _say(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(text, style), soft_wrap=True)

    def picture(self) -> Text:
        """The lines below the conversation."""
        latency = ""
        if self.turns:
            last = self.turns[-1]
            total = (last.session_ns + last.loudspeaker_ns) / MILLISECOND_NS
            latency = f"last answer {total:.0f} ms after your last word"
        lost = f"xruns {self.xruns['in']} in, {self.xruns['out']} out"
        return Text.assemble(
            ("\nyou   ", "cyan"), _bar(self._levels["in"]), f"   {self._state:<10}", latency,
            ("\nreply ", "cyan"), _bar(self._levels["out"]), f"   {lost}, {self.wake_ups} wake-ups a second",
        )  # fmt: skip


def _bar(level_dbfs: float) -> Text:
    filled = round(BAR * min(1.0, max(0.0, 1 - level_dbfs / QUIETEST_DBFS)))
    return Text.assemble(("█" * filled, "green"), ("·" * (BAR - filled), "dim"))
