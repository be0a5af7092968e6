"""A caller's frames in; events, the reply's sound among them, out.

The shell around the dialogue: it turns sound and results into stimuli, and commands into work. It decides nothing.
Threads: everything happens on one event loop; engines compute on their lanes.
What it does not know: where the sound comes from and where it goes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from antiphon.act.toolbelt import Toolbelt
from antiphon.core.clock import Clock, MonotonicClock
from antiphon.core.errors import AntiphonError, CallerError
from antiphon.core.stamps import Mark, Stage
from antiphon.dialogue import commands as do
from antiphon.dialogue import stimuli
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.state import Dialogue, Phase, ToolRule
from antiphon.dialogue.transitions import step
from antiphon.session import events
from antiphon.session.ahead import Ahead
from antiphon.session.draft import Workshop
from antiphon.session.listening import Listening
from antiphon.session.record import TurnRecord
from antiphon.session.replies import Owner, Replies
from antiphon.session.timers import Timers
from antiphon.session.tool_runs import ToolRuns
from antiphon.speak.player import Player
from antiphon.speak.playout import Playout
from antiphon.think.chunker import ChunkerSettings
from antiphon.think.spoken_form import SpokenFormSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from antiphon.act.tool import Tool
    from antiphon.core.flow import AudioFrame, Message
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.dialogue.turn_end import TurnEndModel
    from antiphon.session.engines import Engines

MOST_EVENTS = 6000  # two minutes of unread sound; a reader that far behind is gone
MOST_TO_SAY = 8  # texts of the owner's that wait


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What is particular to one conversation."""

    turn_end: TurnEndModel
    instructions: str = ""
    vocabulary: tuple[str, ...] = ()
    turn: TurnSettings = field(default_factory=TurnSettings)
    chunker: ChunkerSettings = field(default_factory=ChunkerSettings)
    spoken_form: SpokenFormSettings = field(default_factory=SpokenFormSettings)
    max_tokens: int = 96  # of one reply
    tools: tuple[Tool, ...] = ()
    greeting: str = ""  # said as soon as the conversation begins
    interruptible: bool = True  # what replies are, the greeting among them
    starts_thinking: bool = False  # the language model's replies begin inside a thought


class Session:
    """A conversation in progress; use it as an async context manager, feed it, and iterate over its events.

    Leaving the context ends the conversation wherever it stands; `hang_up` lets it finish what it is saying.
    """

    def __init__(
        self,
        engines: Engines,
        settings: SessionSettings,
        *,
        clock: Clock | None = None,
        watch: Callable[[Stimulus, tuple[Command, ...]], None] | None = None,
        on_open: Callable[[], None] = lambda: None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._engines = engines
        self._settings = settings
        self._clock = clock or MonotonicClock()
        self._watch = watch
        self._on_open = on_open  # may refuse
        self._on_close = on_close  # once, if it was opened
        belt = Toolbelt(settings.tools)
        self._state = Dialogue(
            settings=settings.turn,
            turn_end=settings.turn_end,
            instructions=settings.instructions,
            tools=tuple(
                ToolRule(name=tool.spec.name, in_draft=not tool.side_effects, preamble=tool.preamble)
                for tool in settings.tools
            ),
            interruptible=settings.interruptible,
        )
        self._events: deque[events.Event] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._hung_up = False
        self._entered = False
        self._tasks: asyncio.TaskGroup = asyncio.TaskGroup()
        self._playing: asyncio.Task[None] | None = None
        self._timers = Timers(self._clock, self._happens, self._fail)
        self._begun: tuple[int, int] = (0, 0)  # the turn that is listened to, and where it begins
        self._open_turn = 0  # that the owner knows of
        self._confirmed_turn = 0
        self._heard = TurnRecord(0, self._clock)  # of the turn that is listened to
        self._recognition = engines.recognizer.open(settings.vocabulary)
        self._thinking = engines.language_model.open()
        self._listening = Listening(
            engines,
            self._recognition,
            clock=self._clock,
            stalled_ms=settings.turn.stalled_ms,
            tell=self._happens,
            report=self._report,
        )
        self._player = Player(
            Playout(rate_hz=engines.synthesizer.rate_hz),
            clock=self._clock,
            sink=lambda frame: self._replies.sounds(frame),  # noqa: PLW0108 - they are made below
            listener=lambda event: self._replies.played(event),  # noqa: PLW0108
        )
        self._tools = ToolRuns(belt, clock=self._clock, start=self._start, tell=self._happens, emit=self._emit)
        shop = Workshop(
            engines=engines,
            recognition=self._recognition,
            thinking=self._thinking,
            player=self._player,
            clock=self._clock,
            chunker=settings.chunker,
            spoken_form=settings.spoken_form,
            starts_thinking=settings.starts_thinking,
            max_tokens=settings.max_tokens,
            tools=belt.specs,
            tell=self._happens,
            report=self._report,
        )
        self._ahead = Ahead(shop, start=self._start, where_it_ended=lambda: self._listening.where_it_ended()[0])
        self._replies = Replies(shop, self._tools, Owner(start=self._start, emit=self._emit))

    # For the owner.

    async def __aenter__(self) -> Self:
        if self._ended:
            raise CallerError("this session is over", hint="open a new one")
        self._on_open()
        self._entered = True
        await self._tasks.__aenter__()
        self._playing = self._start(self._player.run())
        if self._settings.greeting.strip():
            self.say(self._settings.greeting, interruptible=self._settings.interruptible)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        try:
            await self._tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            # One error is what the owner can catch by its type; the owner's own goes on as it was raised.
            if len(group.exceptions) > 1:
                raise
            if group.exceptions[0] is not error:
                raise group.exceptions[0] from None

    def feed(self, frame: AudioFrame) -> None:
        """The caller's next sound: mono, any rate, but the same throughout; after `hang_up` it is ignored.

        Raises:
            CallerError: the frame is not mono, out of order, or its rate differs from the first one's.
        """
        if self._hung_up or self._ended:
            return
        self._listening.feed(frame, self._tasks)

    def hang_up(self) -> None:
        """No sound will come any more; a turn in progress is still answered, then the session ends. Once is enough."""
        if self._hung_up or self._ended:
            return
        self._hung_up = True
        self._listening.end()

    def say(self, text: str, *, interruptible: bool = True) -> None:
        """Have this said as soon as nobody speaks: now, or when the caller or the present reply has ended.

        Raises:
            CallerError: there is nothing to say, or too much waits already.
        """
        if not any(map(str.isalnum, text)):
            raise CallerError("the text to say holds no letter or digit", hint="give it some words")
        if len(self._state.to_say) >= MOST_TO_SAY:
            raise CallerError(f"{MOST_TO_SAY} texts wait to be said already", hint="wait until one has been")
        if not self._ended:
            now_ns = self._clock.now_ns()
            self._happens(stimuli.SayRequested(at_ns=now_ns, text=text, interruptible=interruptible))

    def let_interrupt(self, interruptible: bool) -> None:
        """Let the caller interrupt the present reply and later ones, or not: what they say is then answered after."""
        if not self._ended:
            self._happens(stimuli.InterruptibleSet(at_ns=self._clock.now_ns(), interruptible=interruptible))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> events.Event:
        while not self._events:
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._events.popleft()

    @property
    def history(self) -> tuple[tuple[str, str], ...]:
        """Who said what so far: (role, text), ours as far as it was heard.

        A tool's call is the assistant's and reads `name(arguments)`; what came of it is the tool's.
        """
        return tuple((message.role, _in_words(message)) for message in self._state.history)

    # From stimuli to commands.

    def _happens(self, stimulus: Stimulus) -> None:
        if self._ended:  # a tool that was not to be broken off may come back later
            return
        self._state, commands = step(self._state, stimulus)
        if self._watch is not None:
            self._watch(stimulus, commands)
        self._tell(stimulus)
        for command in commands:
            self._carry_out(command, stimulus.at_ns)

    # From commands to work.

    def _carry_out(self, command: Command, now_ns: int) -> None:  # noqa: C901, PLR0912 - one case per command
        match command:
            case do.Listen(turn=turn, from_samples=start):
                start = min(start, self._listening.where_it_ended()[0])
                self._recognition.begin(start)
                self._tools.new_turn()
                self._begun = turn, start
                self._heard = TurnRecord(turn, self._clock)
                self._ahead.listen(self._heard)
            case do.OpenTurn(turn=turn):
                self._open(turn, now_ns)
            case do.Transcribe(turn=turn):
                self._ahead.look(turn)
            case do.Prefill(messages=messages):
                self._ahead.read(messages)
            case do.StartDraft():
                self._start_draft(command, now_ns)
            case do.JudgeVoice(draft=number):
                self._replies.judge_voice(number, self._listening.last_seconds())
            case do.WriteReply(draft=number, messages=messages, may_use_tools=may_use_tools):
                self._replies.write(number, messages, may_use_tools=may_use_tools)
            case do.SayText(draft=number, text=text, is_whole=is_whole):
                self._replies.say(number, text, is_whole=is_whole, turn=self._confirmed_turn)
            case do.RunTool(draft=number, call=call):
                self._replies.run_tool(number, call)
            case do.DropDraft(draft=number):
                self._replies.drop(number)
            case do.ConfirmTurn():
                self._confirm(command, now_ns)
            case do.AbandonTurn(turn=turn):
                self._recognition.end()
                if turn == self._open_turn:
                    self._emit(events.TurnAbandoned(turn=turn, at_ns=now_ns))
            case do.PlayDraft(draft=number):
                self._replies.play(number, self._confirmed_turn, now_ns)
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
            case do.EndSession():
                self._emit(events.SessionEnded(at_ns=now_ns))
                self._close()

    def _open(self, turn: int, now_ns: int) -> None:
        if turn == self._open_turn:
            return
        self._open_turn = turn
        begun, start_samples = self._begun
        assert begun == turn, f"turn {turn} is opened while turn {begun} is listened to"
        self._emit(events.TurnStarted(turn=turn, at_ns=now_ns, start_samples=start_samples))

    def _start_draft(self, command: do.StartDraft, now_ns: int) -> None:
        self._ahead.stop_looking()
        draft = self._state.draft
        assert draft is not None
        record = TurnRecord(command.turn, self._clock).joined(self._heard)
        record.mark(Mark.SPEECH_ENDED, draft.ended_ns)
        record.mark(Mark.PAUSE_NOTICED, now_ns)
        record.add(Stage.VAD, draft.ended_ns, now_ns, model=self._engines.voice_detector.name)
        self._replies.hear(command.draft, record, self._listening.where_it_ended()[0])

    def _confirm(self, command: do.ConfirmTurn, now_ns: int) -> None:
        self._confirmed_turn = command.turn
        self._recognition.end()
        record = self._replies.record(command.draft)
        record.mark(Mark.CONFIRMED, now_ns)
        ended_ns = record.timeline().marks[Mark.SPEECH_ENDED]
        self._emit(
            events.TurnConfirmed(
                turn=command.turn,
                at_ns=now_ns,
                text=command.text,
                posterior=command.posterior,
                evidence=command.evidence,
                silence_ns=now_ns - ended_ns,
                forced=command.forced,
            )
        )
        if self._state.phase is not Phase.SPEAKING:  # the draft had failed: there will be no reply
            self._emit(events.TurnMeasured(timeline=record.timeline()))

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        return self._tasks.create_task(work)

    # Events.

    def _tell(self, stimulus: Stimulus) -> None:
        match stimulus:
            case stimuli.TranscriptGrew(turn=turn, transcript=transcript, at_ns=at_ns) if turn == self._open_turn:
                self._emit(events.WordsHeard(turn=turn, at_ns=at_ns, transcript=transcript))
            case stimuli.DraftFailed(draft=number):
                self._replies.fail(number)

    def _report(self, stage: Stage, error: AntiphonError) -> None:
        self._emit(events.StageFailed(stage=stage, error=error))

    def _fail(self, error: Exception) -> None:
        """End the session with an error that came up where nobody could catch it."""

        async def surface() -> None:
            raise error

        self._start(surface())

    def _emit(self, event: events.Event) -> None:
        if self._ended:  # SessionEnded was the last
            return
        if len(self._events) >= MOST_EVENTS:
            raise CallerError(
                f"{MOST_EVENTS} events of this session were not read", hint="iterate over the session while you feed it"
            )
        self._events.append(event)
        self._news.set()

    def _close(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._timers.close()
        self._listening.close()
        self._replies.close()
        self._ahead.close()
        if self._playing is not None:
            self._playing.cancel()
        self._recognition.close()
        self._thinking.close()
        if self._entered:
            self._on_close()
        self._news.set()


def _in_words(message: Message) -> str:
    if message.role == "assistant" and message.call:
        return f"{message.call.name}({message.call.arguments})"
    return message.text
