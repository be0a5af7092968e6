"""Events in, lines on the terminal out: a conversation as it happens, in words and milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.observe.terminal import show
from antiphon.observe.waterfall import layout
from antiphon.session.events import (
    ReplyDucked,
    ReplyFinished,
    ReplyPaused,
    ReplyStarted,
    StageFailed,
    ToolUsed,
    TurnConfirmed,
    TurnCorrected,
    TurnMeasured,
    TurnStarted,
    WordsHeard,
)

if TYPE_CHECKING:
    from rich.console import Console

    from antiphon.core.flow import Transcript
    from antiphon.core.stamps import TurnTimeline
    from antiphon.session.events import Event


class Narrator:
    """Prints a line for whatever a listener would want to know; times count from the first event."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._origin_ns: int | None = None
        self._timelines: list[TurnTimeline] = []
        self._heard: dict[int, str] = {}

    def tell(self, event: Event) -> None:  # noqa: C901, PLR0912 - one case per event
        """Print what happened, if it is worth a line."""
        match event:
            case TurnStarted(at_ns=at_ns):
                self._line(at_ns, "caller", Text("begins to speak", "dim"))
            case WordsHeard(at_ns=at_ns, transcript=transcript):
                self._line(at_ns, "hearing", words(transcript))
            case TurnConfirmed():
                self._heard[event.turn] = event.text
                self._line(event.at_ns, "heard", Text(event.text, "bold"))
                self._line(event.at_ns, "turn end", Text(why(event), "yellow"))
            case TurnCorrected(at_ns=at_ns, turn=turn, text=text):
                if text != self._heard.get(turn):
                    self._line(at_ns, "heard", Text.assemble(("after all: ", "dim"), (text, "bold")))
            case ReplyStarted(at_ns=at_ns):
                self._line(at_ns, "reply", Text("first sound", "green"))
            case ReplyFinished(at_ns=at_ns, heard=heard, interrupted=interrupted):
                if heard:
                    self._line(at_ns, "said", Text(heard, "bold green"))
                if interrupted:
                    self._line(at_ns, "caller", Text("took the turn back", "dim"))
            case ReplyDucked(at_ns=at_ns, soft=True):
                self._line(at_ns, "reply", Text("softer: a voice over it", "dim"))
            case ReplyPaused(at_ns=at_ns, resumed=resumed):
                what = "goes on: nothing was said" if resumed else "waits: somebody speaks"
                self._line(at_ns, "reply", Text(what, "dim"))
            case ToolUsed():
                took_ms = (event.at_ns - event.started_ns) / MILLISECOND_NS
                used = f"{event.name}({event.arguments}) -> {event.output}  [{took_ms:.0f} ms]"
                self._line(event.at_ns, "tool", Text(used, "red" if event.failed else "magenta"))
            case TurnMeasured(timeline=timeline):
                self._timelines.append(timeline)
            case StageFailed(stage=stage, error=error):
                self._console.print(Text(f"           {stage} failed: {error.message}", "red"))
            case _:
                pass

    def conclude(self) -> None:
        """Show where each turn's time went."""
        for timeline in self._timelines:
            self._console.print()
            show(layout(timeline), self._console)

    def _line(self, at_ns: int, who: str, what: Text) -> None:
        if self._origin_ns is None:
            self._origin_ns = at_ns
        stamp = f"{(at_ns - self._origin_ns) / SECOND_NS:7.2f} s "
        self._console.print(Text.assemble((stamp, "dim"), (f"{who:>9}  ", "cyan"), what), soft_wrap=True)


def words(transcript: Transcript) -> Text:
    """The words so far; those that may still change are dimmed."""
    stable = transcript.text[: transcript.stable_chars]
    return Text.assemble(stable, (transcript.text[transcript.stable_chars :], "dim italic"))


def why(event: TurnConfirmed) -> str:
    """The decision in one line: after how much silence, how sure, by which evidence."""
    silence_ms = event.silence_ns / MILLISECOND_NS
    if event.forced:
        return f"after {silence_ms:.0f} ms of silence, not judged: the turn could not go on"
    evidence = [f"words end {event.text[-1:]!r}"]
    if event.evidence.ears is not None:
        evidence.append(f"recognizer {event.evidence.ears:.2f}")
    if event.evidence.end_mass is not None:
        evidence.append(f"sentence-end mass {event.evidence.end_mass:.2f}")
    if event.evidence.prosody is not None:
        evidence.append(f"voice {event.evidence.prosody:.2f}")
    return f"after {silence_ms:.0f} ms of silence, {event.posterior:.0%} sure ({', '.join(evidence)})"
