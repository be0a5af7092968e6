"""Stimuli in, the dialogue's commands carried out: recognition, replies, timers, and events about them.

It decides nothing. Threads: the event loop; engines compute on their lanes.
What it does not know: where events go, and who feeds the sound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.act.toolbelt import Toolbelt
from antiphon.core.stamps import Mark, Stage
from antiphon.dialogue import commands as do
from antiphon.dialogue import stimuli
from antiphon.dialogue.hearing import opening, read_ahead
from antiphon.dialogue.history import prompt
from antiphon.dialogue.state import Dialogue, Phase
from antiphon.dialogue.transitions import step
from antiphon.session import events
from antiphon.session.ahead import Ahead
from antiphon.session.end_watch import EndWatch
from antiphon.session.listening import Listening, Outlets
from antiphon.session.record import TurnRecord
from antiphon.session.replies import Replies
from antiphon.session.second_pass import SecondPass
from antiphon.session.timers import Timers
from antiphon.session.tool_runs import ToolRuns
from antiphon.session.two_pass import TwoPassRecognition
from antiphon.session.workshop import Workshop
from antiphon.speak.player import Player
from antiphon.speak.playout import Playout

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from antiphon.core.clock import Clock
    from antiphon.core.errors import AntiphonError
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.session.engines import Engines
    from antiphon.session.seat import Seat
    from antiphon.session.settings import SessionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the session gives its conduct."""

    clock: Clock
    seat: Seat
    watch: Callable[[Stimulus, tuple[Command, ...]], None] | None
    start: Callable[[Coroutine[object, object, None]], asyncio.Task[None]]
    emit: Callable[[events.Event], None]
    fail: Callable[[Exception], None]
    end: Callable[[], None]  # the dialogue is over


class Conduct:
    """Of one conversation."""

    def __init__(self, engines: Engines, settings: SessionSettings, around: Surroundings) -> None:
        self._engines = engines
        self._around = around
        self._is_closed = False
        self.state = Dialogue(
            settings=settings.turn,
            turn_end=settings.turn_end,
            instructions=settings.instructions,
            tools=settings.tool_rules,
            interruptible=settings.interruptible,
            answers=settings.answers,
            usual=settings.usual,
        )
        self._timers = Timers(around.clock, self.happens, around.fail)
        self._begun: tuple[int, int] = (0, 0)  # the turn that is listened to, and where it begins
        self._open_turn = 0  # that the owner knows of
        self._confirmed_turn = 0
        self._end_watch = EndWatch()
        self._heard = TurnRecord(0, around.clock)  # of the turn that is listened to
        self._recognition = TwoPassRecognition(engines, settings.vocabulary)
        self._thinking = engines.language_model.open()
        self.listening = Listening(
            engines,
            self._recognition,
            clock=around.clock,
            settings=settings,
            outlets=Outlets(
                tell=self.happens,
                report=self._report,
                hears=around.seat.hears,
                falters=self._falters,
                goes_on=self._goes_on,
            ),
        )
        self._player = Player(
            Playout(rate_hz=engines.synthesizer.rate_hz),
            clock=around.clock,
            sink=lambda frame: self._replies.sounds(frame),  # noqa: PLW0108 - they are made below
            listener=lambda event: self._replies.played(event),  # noqa: PLW0108
        )
        self._second_pass: SecondPass | None = None
        if self._recognition.has_second_pass:
            self._second_pass = SecondPass(
                clock=around.clock,
                caller=around.seat.caller,
                name=self._recognition.second_name,
                start=around.start,
                tell=self.happens,
                report=self._report,
            )
        belt = Toolbelt(settings.tools)
        self._tools = ToolRuns(belt, clock=around.clock, start=around.start, tell=self.happens, emit=around.emit)
        self.shop = Workshop(
            engines=engines,
            recognition=self._recognition,
            second_pass=self._second_pass,
            thinking=self._thinking,
            player=self._player,
            clock=around.clock,
            caller=around.seat.caller,
            settings=settings,
            own_tools=belt.specs,
            tell=self.happens,
            report=self._report,
        )
        self._ahead = Ahead(
            self.shop,
            start=around.start,
            where_it_ended=lambda: self.listening.where_it_ended()[0],
            prompt=lambda words: read_ahead(self.state, words),
            to_open=lambda words: opening(self.state, words) if read_ahead(self.state, words) else (),
        )
        self._replies = Replies(self.shop, self._tools, start=around.start, emit=around.emit)
        self._playing: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Play from here on; turns that the owner ends begin now.

        The language model reads the instructions and gets to know the tools, so that the first turn need not wait.
        """
        self._playing = self._around.start(self._player.run())
        if self.state.settings.read_ahead:
            self._ahead.read(prompt(self.state.instructions, (), "Hello."))
        if self.shop.settings.by_hand:
            self.reconfigure(self.shop.settings)

    def reconfigure(self, settings: SessionSettings) -> None:
        """Hold the conversation by other settings from here on; they differ in nothing that is FIXED."""
        self.shop.settings = settings
        self._ahead.forget_opening()
        self._recognition.expect(settings.vocabulary)
        self.listening.adjust(settings)
        self.happens(
            stimuli.Reconfigured(
                at_ns=self._around.clock.now_ns(),
                settings=settings.turn,
                turn_end=None if settings.turn_end == self.state.turn_end else settings.turn_end,
                instructions=settings.instructions,
                tools=settings.tool_rules,
                interruptible=settings.interruptible,
                by_hand=settings.by_hand,
                answers=settings.answers,
                usual=settings.usual,
                end_samples=self.listening.where_it_ended()[0],
            )
        )

    @property
    def under_way(self) -> tuple[int, int]:
        """How many drafts and replies there are, and how many tasks work on them."""
        return self._replies.under_way

    def happens(self, stimulus: Stimulus) -> None:
        """Let the dialogue know, and do what it says."""
        if self._is_closed:  # a tool that was not to be broken off may come back later
            return
        before = self.state
        self.state, commands = step(before, stimulus)
        if self._around.watch is not None:
            self._around.watch(stimulus, commands)
        self._tell(stimulus)
        judged = self._end_watch.judged(before, self.state, commands, stimulus.at_ns)
        if judged is not None:
            self._around.emit(judged)
        for command in commands:
            self._carry_out(command, stimulus.at_ns)

    def close(self) -> None:
        """Stop whatever is under way."""
        self._is_closed = True
        self._timers.close()
        self.listening.close()
        self._replies.close()
        if self._second_pass is not None:
            self._second_pass.close()
        self._ahead.close()
        if self._playing is not None:
            self._playing.cancel()
        self._recognition.close()
        self._thinking.close()

    def _carry_out(self, command: Command, now_ns: int) -> None:  # noqa: C901, PLR0912 - one case per command
        match command:
            case do.Listen(turn=turn, from_samples=start):
                self._listen(turn, start)
            case do.OpenTurn(turn=turn):
                self._open(turn, now_ns)
            case do.Transcribe(turn=turn):
                self._ahead.look(turn)
            case do.Prefill(messages=messages, opening=opening):
                self._ahead.read(messages, opening)
            case do.StartDraft():
                self._start_draft(command, now_ns)
            case do.JudgeVoice(draft=number):
                self._replies.judge_voice(number, self.listening.last_seconds())
            case do.WriteReply():
                self._replies.write(command, self._confirmed_turn, self._ahead.opening(self._begun[0]))
            case do.SayText(draft=number, text=text, is_whole=is_whole):
                self._replies.say(number, text, is_whole=is_whole, turn=self._confirmed_turn)
            case do.FinishReply(draft=number):
                self._replies.finish(number)
            case do.RunTool(draft=number, call=call):
                self._replies.run_tool(number, call, now_ns)
            case do.DropDraft(draft=number):
                self._replies.drop(number)
            case do.ConfirmTurn():
                self._confirm(command, now_ns)
            case do.WriteOn():
                self._replies.write_on(command)
            case do.CorrectTurn(turn=turn, text=text):
                self._around.emit(events.TurnCorrected(turn=turn, at_ns=now_ns, text=text))
            case do.AbandonTurn(turn=turn):
                self._abandon(turn, now_ns)
            case do.PlayDraft(draft=number, options=options):
                self._replies.play(number, self._confirmed_turn, now_ns, options)
            case do.StopReply(draft=number):
                self._replies.stop(number)
            case do.DuckReply(draft=number, soft=soft):
                self._replies.duck(number, now_ns, soft=soft)
            case do.PauseReply(draft=number):
                self._replies.pause(number, now_ns)
            case do.ResumeReply(draft=number):
                self._replies.resume(number, now_ns)
            case do.SetTimer():
                self._timers.set(command)
            case do.CancelTimer(timer=timer):
                self._timers.cancel(timer)
            case do.Idle():
                self._around.emit(events.IdleTooLong(at_ns=now_ns))
            case do.EndSession():
                self._around.emit(events.SessionEnded(at_ns=now_ns))
                self._around.end()

    def _listen(self, turn: int, start_samples: int) -> None:
        start_samples = min(start_samples, self.listening.where_it_ended()[0])
        self._recognition.begin(start_samples)
        self._tools.new_turn()
        self._begun = turn, start_samples
        self._heard = TurnRecord(turn, self._around.clock)
        self._ahead.listen(self._heard)

    def _open(self, turn: int, now_ns: int) -> None:
        if turn == self._open_turn:
            return
        self._open_turn = turn
        begun, start_samples = self._begun
        assert begun == turn, f"turn {turn} is opened while turn {begun} is listened to"
        self._around.emit(events.TurnStarted(turn=turn, at_ns=now_ns, start_samples=start_samples))

    def _falters(self, pos_samples: int) -> None:
        """A turn may just have ended; a voice over our reply is judged in other ways."""
        state = self.state
        if state.settings.foresee and state.phase is Phase.HEARING and not state.by_hand:
            self._ahead.foresee(pos_samples, self.listening.last_seconds if state.settings.waits_by_opinion else None)

    def _goes_on(self) -> None:
        """It has not ended."""
        if self.state.phase is Phase.HEARING:
            self._ahead.goes_on()

    def _abandon(self, turn: int, now_ns: int) -> None:
        self._recognition.end()
        if turn == self._open_turn:
            self._open_turn = 0
            self._around.emit(events.TurnAbandoned(turn=turn, at_ns=now_ns))

    def _start_draft(self, command: do.StartDraft, now_ns: int) -> None:
        self._ahead.stop_looking()
        draft = self.state.draft
        assert draft is not None
        record = TurnRecord(command.turn, self._around.clock).joined(self._heard)
        record.end_samples = min(draft.end_samples, self.listening.where_it_ended()[0])
        record.mark(Mark.SPEECH_ENDED, draft.ended_ns)
        record.mark(Mark.PAUSE_NOTICED, now_ns)
        record.add(Stage.VAD, draft.ended_ns, now_ns, model=self._engines.voice_detector.name)
        until, foreseen = command.until_samples, None
        if until is None:
            until = self.listening.where_it_ended()[0]
            foreseen = self._ahead.foreseen(command.turn, draft.end_samples)
        self._replies.hear(command.draft, record, until, foreseen)

    def _confirm(self, command: do.ConfirmTurn, now_ns: int) -> None:
        self._confirmed_turn = command.turn
        if self._second_pass is not None:
            self._second_pass.keep(command.draft)
        self._recognition.end()
        record = self._replies.record(command.draft)
        record.mark(Mark.CONFIRMED, now_ns)
        ended_ns = record.timeline().marks[Mark.SPEECH_ENDED]
        self._around.emit(
            events.TurnConfirmed(
                turn=command.turn,
                at_ns=now_ns,
                text=command.text,
                posterior=command.posterior,
                evidence=command.evidence,
                silence_ns=now_ns - ended_ns,
                end_samples=record.end_samples,
                forced=command.forced,
                provisional=command.provisional,
            )
        )
        if self.state.phase is not Phase.SPEAKING and self.state.answers:  # there will be no reply
            self._around.emit(events.TurnMeasured(timeline=record.timeline()))

    def _tell(self, stimulus: Stimulus) -> None:
        match stimulus:
            case stimuli.TranscriptGrew(turn=turn, transcript=transcript, at_ns=at_ns) if turn == self._open_turn:
                self._around.emit(events.WordsHeard(turn=turn, at_ns=at_ns, transcript=transcript))
            case stimuli.DraftFailed(draft=number):
                self._replies.fail(number)

    def _report(self, stage: Stage, error: AntiphonError) -> None:
        self._around.emit(events.StageFailed(stage=stage, error=error))
