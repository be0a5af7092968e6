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

from antiphon.core.clock import Clock, MonotonicClock
from antiphon.core.errors import AntiphonError, CallerError
from antiphon.core.stamps import Mark, Stage
from antiphon.dialogue import commands as do
from antiphon.dialogue import stimuli
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.state import Dialogue, Phase
from antiphon.dialogue.transitions import step
from antiphon.session import events
from antiphon.session.draft import DraftWork, Workshop
from antiphon.session.listening import Listening
from antiphon.session.record import TurnRecord
from antiphon.session.timers import Timers
from antiphon.speak.player import Player, SoundBegan
from antiphon.speak.player import ReplyEnded as PlayerEnded
from antiphon.speak.playout import Playout
from antiphon.think.chunker import ChunkerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from antiphon.core.flow import AudioFrame
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.dialogue.turn_end import TurnEndModel
    from antiphon.session.engines import Engines

MOST_EVENTS = 6000  # two minutes of unread sound; a reader that far behind is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What is particular to one conversation."""

    turn_end: TurnEndModel
    instructions: str = ""
    vocabulary: tuple[str, ...] = ()
    turn: TurnSettings = field(default_factory=TurnSettings)
    chunker: ChunkerSettings = field(default_factory=ChunkerSettings)
    max_tokens: int = 96  # of one reply


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
        self._state = Dialogue(settings=settings.turn, turn_end=settings.turn_end, instructions=settings.instructions)
        self._events: deque[events.Event] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._hung_up = False
        self._entered = False
        self._tasks: asyncio.TaskGroup = asyncio.TaskGroup()
        self._work: dict[int, list[asyncio.Task[None]]] = {}  # by draft
        self._hop: asyncio.Task[None] | None = None
        self._prefill: asyncio.Task[None] | None = None
        self._playing: asyncio.Task[None] | None = None
        self._timers = Timers(self._clock, self._happens, self._fail)
        self._drafts: dict[int, DraftWork] = {}
        self._confirmed_turn = 0
        self._records: dict[int, TurnRecord] = {}  # of the turn that is being heard
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
            sink=self._sounds,
            listener=self._played,
        )
        self._shop = Workshop(
            engines=engines,
            recognition=self._recognition,
            thinking=self._thinking,
            player=self._player,
            clock=self._clock,
            chunker=settings.chunker,
            max_tokens=settings.max_tokens,
            tell=self._happens,
            report=self._report,
        )

    # For the owner.

    async def __aenter__(self) -> Self:
        if self._ended:
            raise CallerError("this session is over", hint="open a new one")
        self._on_open()
        self._entered = True
        await self._tasks.__aenter__()
        self._playing = self._start(self._player.run())
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
        """Who said what so far: (role, text), ours as far as it was heard."""
        return tuple((message.role, message.text) for message in self._state.history)

    # From stimuli to commands.

    def _happens(self, stimulus: Stimulus) -> None:
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
                self._records = {turn: TurnRecord(turn, self._clock)}
                self._emit(events.TurnStarted(turn=turn, at_ns=now_ns, start_samples=start))
            case do.Transcribe(turn=turn):
                if self._hop is None or self._hop.done():
                    self._hop = self._start(self._look_at_words(turn))
            case do.Prefill(messages=messages):
                if self._prefill is None or self._prefill.done():
                    self._prefill = self._start(self._read_ahead(messages))
            case do.StartDraft():
                self._start_draft(command, now_ns)
            case do.JudgeVoice(draft=number):
                self._work[number].append(self._start(self._drafts[number].judge_voice(self._listening.last_seconds())))
            case do.WriteReply(draft=number, messages=messages):
                self._work[number].append(self._start(self._drafts[number].write(messages)))
            case do.DropDraft(draft=number):
                self._drop(number)
            case do.ConfirmTurn():
                self._confirm(command, now_ns)
            case do.AbandonTurn(turn=turn):
                self._recognition.end()
                self._emit(events.TurnAbandoned(turn=turn, at_ns=now_ns))
            case do.PlayDraft(draft=number):
                draft = self._drafts[number]
                draft.record.turn = self._confirmed_turn  # noise may have brought the answer to an earlier turn
                draft.record.mark(Mark.CONFIRMED, now_ns)
                draft.confirmed.set()
            case do.StopReply(draft=number):
                self._cancel(number)
                played = self._player.stop(number)
                self._reply_ends(number, played.chars if played else 0, interrupted=True)
            case do.SetTimer():
                self._timers.set(command)
            case do.CancelTimer(timer=timer):
                self._timers.cancel(timer)
            case do.EndSession():
                self._emit(events.SessionEnded(at_ns=now_ns))
                self._close()

    def _start_draft(self, command: do.StartDraft, now_ns: int) -> None:
        if self._hop is not None:
            self._hop.cancel()  # it stops at the next border; the final pass waits no longer than that
        draft = self._state.draft
        assert draft is not None
        record = TurnRecord(command.turn, self._clock).joined(self._records[command.turn])
        record.mark(Mark.SPEECH_ENDED, draft.ended_ns)
        record.mark(Mark.PAUSE_NOTICED, now_ns)
        record.add(Stage.VAD, draft.ended_ns, now_ns, model=self._engines.voice_detector.name)
        work = DraftWork(command.draft, self._shop, record)
        self._drafts[command.draft] = work
        self._work[command.draft] = [self._start(work.hear(self._listening.where_it_ended()[0]))]

    def _confirm(self, command: do.ConfirmTurn, now_ns: int) -> None:
        self._confirmed_turn = command.turn
        self._recognition.end()
        record = self._drafts[command.draft].record
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

    def _drop(self, number: int) -> None:
        self._cancel(number)
        self._drafts.pop(number, None)

    def _cancel(self, number: int) -> None:
        for task in self._work.pop(number, []):
            task.cancel()

    async def _look_at_words(self, turn: int) -> None:
        until_samples, _ = self._listening.where_it_ended()
        record = self._records[turn]
        try:
            with record.span(Stage.RECOGNISE, self._engines.recognizer.name):
                transcript = await self._recognition.transcribe(until_samples, final=False)
        except AntiphonError as error:
            self._report(Stage.RECOGNISE, error)
            return
        self._happens(stimuli.TranscriptGrew(at_ns=self._clock.now_ns(), turn=turn, transcript=transcript))

    async def _read_ahead(self, messages: tuple[object, ...]) -> None:
        record = self._records.get(self._state.turn)
        start_ns = self._clock.now_ns()
        try:
            await self._thinking.prefill(messages)  # type: ignore[arg-type]
        except AntiphonError as error:
            self._report(Stage.PREFILL, error)
        if record is not None:
            record.add(Stage.PREFILL, start_ns, self._clock.now_ns(), model=self._engines.language_model.name)

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        return self._tasks.create_task(work)

    # From the player.

    def _sounds(self, frame: AudioFrame) -> None:
        played = self._player.played()
        draft = self._drafts[played.generation]
        self._emit(events.ReplyAudio(turn=draft.record.turn, frame=frame))
        self._tell_text(draft, played.chars)

    def _played(self, event: SoundBegan | PlayerEnded) -> None:
        match event:
            case SoundBegan(generation=number, at_ns=at_ns):
                record = self._drafts[number].record
                record.mark(Mark.FIRST_SOUND, at_ns)
                self._emit(events.ReplyStarted(turn=record.turn, at_ns=at_ns))
                self._emit(events.TurnMeasured(timeline=record.timeline()))
            case PlayerEnded(played=played):
                number = played.generation
                self._reply_ends(number, played.chars, interrupted=False)

    def _reply_ends(self, number: int, chars: int, *, interrupted: bool) -> None:
        self._cancel(number)
        draft = self._drafts[number]
        self._tell_text(draft, chars)
        del self._drafts[number]
        heard = draft.said(0, chars)
        now_ns = self._clock.now_ns()
        turn, timeline = draft.record.turn, draft.record.timeline()
        if Mark.FIRST_SOUND not in timeline.marks:
            self._emit(events.TurnMeasured(timeline=timeline))
        self._emit(events.ReplyFinished(turn=turn, at_ns=now_ns, heard=heard.strip(), interrupted=interrupted))
        self._happens(stimuli.ReplyEnded(at_ns=now_ns, draft=number, heard=heard))

    def _tell_text(self, draft: DraftWork, chars: int) -> None:
        text = draft.said(draft.told_chars, chars)
        draft.told_chars = max(draft.told_chars, chars)
        if text:
            self._emit(events.ReplyText(turn=draft.record.turn, text=text))

    # Events.

    def _tell(self, stimulus: Stimulus) -> None:
        match stimulus:
            case stimuli.TranscriptGrew(turn=turn, transcript=transcript, at_ns=at_ns) if turn == self._state.turn:
                self._emit(events.WordsHeard(turn=turn, at_ns=at_ns, transcript=transcript))
            case stimuli.DraftFailed(draft=number) if number in self._drafts:
                draft = self._drafts[number]
                if draft.confirmed.is_set():
                    self._emit(events.TurnMeasured(timeline=draft.record.timeline()))
                    self._drop(number)

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
        for number in tuple(self._work):
            self._cancel(number)
        for task in (self._hop, self._prefill):
            if task is not None:
                task.cancel()
        if self._playing is not None:
            self._playing.cancel()
        self._recognition.close()
        self._thinking.close()
        if self._entered:
            self._on_close()
        self._news.set()
