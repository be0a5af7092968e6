"""One conversation's events and the dialogue's commands in -> metrics and log lines out.

It is told of everything and decides nothing. A turn is counted when its outcome is known, and then its latency and
stages are filed under that outcome; drafts that were dropped show in commands alone, for events never mention them.
What it never writes: words, sound, keys. Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.dialogue import commands as do
from antiphon.session import events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.stamps import TurnTimeline
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.serve.log_lines import SessionLog
    from antiphon.serve.metrics import Metrics
    from antiphon.session.events import Event


class Observer:
    """Of one conversation."""

    def __init__(self, metrics: Metrics, log: SessionLog) -> None:
        self._metrics = metrics
        self._log = log
        self._drafts: set[int] = set()  # under way and unheard; the dialogue has one at a time, or two
        self._open: TurnTimeline | None = None  # measured, its outcome still to come
        self._finished: tuple[int, str] = (0, "")  # the latest reply's turn and outcome

    def commands(self, _stimulus: Stimulus, commands: Sequence[Command]) -> None:
        """What the dialogue ordered; this is a session's `watch`."""
        for command in commands:
            match command:
                case do.StartDraft(draft=number):
                    self._drafts.add(number)
                case do.PlayDraft(draft=number):
                    self._draft(number, "kept")
                case do.DropDraft(draft=number):
                    self._draft(number, "dropped")
                case do.StopReply():
                    self._metrics.drafts.labels("stopped").inc()
                case _:
                    pass

    def event(self, event: Event) -> None:
        """What happened."""
        match event:
            case events.TurnStarted(turn=turn):
                self._log.debug("turn.started", turn=turn)
            case events.TurnConfirmed(turn=turn, silence_ns=silence_ns, forced=forced):
                self._log.info("turn.confirmed", turn=turn, silence_ms=_ms(silence_ns), forced=forced)
            case events.TurnAbandoned(turn=turn):
                self._metrics.turns.labels("abandoned").inc()
                self._log.debug("turn.abandoned", turn=turn)
            case events.TurnMeasured(timeline=timeline):
                self._measured(timeline)
            case events.ReplyStarted(turn=turn, reply=reply):
                self._log.info("reply.started", turn=turn, reply=reply)
            case events.ReplyFinished():
                self._reply_finished(event)
            case events.ToolUsed(name=name, failed=failed, started_ns=started_ns, at_ns=at_ns):
                self._metrics.tools.labels("failed" if failed else "done").inc()
                self._log.info("tool.used", tool=name, failed=failed, duration_ms=_ms(at_ns - started_ns))
            case events.StageFailed(stage=stage, error=error):
                self._metrics.stage_failures.labels(str(stage)).inc()
                self._log.warning("stage.failed", stage=str(stage), error=error.message)
            case _:
                pass

    def end(self) -> None:
        """The conversation is over: whatever has no outcome yet gets this one."""
        self._file("left")
        for number in tuple(self._drafts):
            self._draft(number, "dropped")

    def _draft(self, number: int, fate: str) -> None:
        if number in self._drafts:
            self._drafts.discard(number)
            self._metrics.drafts.labels(fate).inc()

    def _measured(self, timeline: TurnTimeline) -> None:
        self._file("superseded")
        self._open = timeline
        turn, outcome = self._finished
        if timeline.turn == turn:
            self._file(outcome)
        elif timeline.voice_to_voice_ns is None:
            self._file("unanswered")

    def _reply_finished(self, event: events.ReplyFinished) -> None:
        outcome = _outcome(event)
        if event.retracted:
            self._metrics.drafts.labels("retracted").inc()
        if self._open is not None and self._open.turn == event.turn:
            self._file(outcome)
        else:
            self._finished = event.turn, outcome
        self._log.info("reply.finished", turn=event.turn, reply=event.reply, outcome=outcome)

    def _file(self, outcome: str) -> None:
        """Put the open timeline, if there is one, under its outcome."""
        timeline, self._open = self._open, None
        if timeline is None:
            return
        self._metrics.turns.labels(outcome).inc()
        latency_ns = timeline.voice_to_voice_ns
        if latency_ns is not None and latency_ns < 0:  # no figure is better than one that cannot be
            self._metrics.impossible.inc()
            latency_ns = None
        if latency_ns is not None:
            self._metrics.voice_to_voice.labels(outcome).observe(latency_ns / SECOND_NS)
        for span in timeline.spans:
            seconds = max(0, span.end_ns - span.start_ns) / SECOND_NS
            self._metrics.stages.labels(str(span.stage), outcome).observe(seconds)
        latency_ms = None if latency_ns is None else _ms(latency_ns)
        self._metrics.recent.add(outcome, latency_ms)
        self._log.info("turn.measured", turn=timeline.turn, outcome=outcome, voice_to_voice_ms=latency_ms)


def _outcome(event: events.ReplyFinished) -> str:
    if event.failed:
        return "failed"
    if event.retracted:
        return "retracted"
    return "interrupted" if event.interrupted else "heard"


def _ms(ns: int) -> float:
    return round(ns / MILLISECOND_NS, 1)
