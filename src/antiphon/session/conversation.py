"""A caller's frames in; events, the reply's sound among them, out.

What its owner does becomes stimuli; `conduct.py` lets the dialogue know and does what it says. Nothing is decided here.
Threads: everything happens on one event loop; engines compute on their lanes.
What it does not know: where the sound comes from and where it goes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Self

from antiphon.core.clock import Clock, MonotonicClock
from antiphon.core.errors import CallerError
from antiphon.dialogue import stimuli
from antiphon.dialogue.options import AS_USUAL, ReplyOptions
from antiphon.dialogue.state import Phase
from antiphon.session.conduct import Conduct, Surroundings
from antiphon.session.seat import OwnSeat
from antiphon.session.settings import SessionSettings, check_change

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from antiphon.core.flow import AudioFrame, Message, ToolCall
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.state import Dialogue
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.session import events
    from antiphon.session.engines import Engines
    from antiphon.session.seat import Seat

__all__ = ["Session", "SessionSettings"]

MOST_EVENTS = 6000  # two minutes of unread sound; a reader that far behind is gone
MOST_TO_SAY = 8  # texts of the owner's that wait


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
        seat: Seat | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock or MonotonicClock()
        self._seat = seat or OwnSeat()
        self._events: deque[events.Event] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._hung_up = False
        self._entered = False
        self._tasks: asyncio.TaskGroup = asyncio.TaskGroup()
        around = Surroundings(
            clock=self._clock,
            seat=self._seat,
            watch=watch,
            start=self._start,
            emit=self._emit,
            fail=self._fail,
            end=self._close,
        )
        self._conduct = Conduct(engines, settings, around)

    # For the owner.

    async def __aenter__(self) -> Self:
        if self._ended:
            raise CallerError("this session is over", hint="open a new one")
        self._seat.take()
        self._entered = True
        await self._tasks.__aenter__()
        self._conduct.begin()
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
        self._conduct.listening.feed(frame, self._tasks)

    def hang_up(self) -> None:
        """No sound will come any more; a turn in progress is still answered, then the session ends. Once is enough."""
        if self._hung_up or self._ended:
            return
        self._hung_up = True
        self._conduct.listening.end()

    def say(self, text: str, *, interruptible: bool = True) -> None:
        """Have this said as soon as nobody speaks: now, or when the caller or the present reply has ended.

        Raises:
            CallerError: there is nothing to say, or too much waits already.
        """
        if not any(map(str.isalnum, text)):
            raise CallerError("the text to say holds no letter or digit", hint="give it some words")
        if len(self._conduct.state.to_say) >= MOST_TO_SAY:
            raise CallerError(f"{MOST_TO_SAY} texts wait to be said already", hint="wait until one has been")
        self._happens(stimuli.SayRequested(at_ns=self._clock.now_ns(), text=text, interruptible=interruptible))

    def let_interrupt(self, interruptible: bool) -> None:
        """Let the caller interrupt the present reply and later ones, or not: what they say is then answered after."""
        self._happens(stimuli.InterruptibleSet(at_ns=self._clock.now_ns(), interruptible=interruptible))

    def configure(self, settings: SessionSettings) -> None:
        """Hold the conversation by other settings from here on; what is under way goes on as it was begun.

        Raises:
            CallerError: our own tools or the greeting are others; the message names the field.
        """
        check_change(self._settings, settings)
        if not self._ended:
            self._settings = settings
            self._conduct.reconfigure(settings)

    def commit(self) -> None:
        """The caller's turn is over, says the owner."""
        end_samples, ended_ns = self._conduct.listening.where_it_ended()
        now_ns = self._clock.now_ns()
        self._happens(stimuli.TurnCommitted(at_ns=now_ns, end_samples=end_samples, ended_ns=ended_ns))

    def clear(self) -> None:
        """Forget what was heard since the last turn."""
        end_samples, _ = self._conduct.listening.where_it_ended()
        self._happens(stimuli.InputCleared(at_ns=self._clock.now_ns(), end_samples=end_samples))

    def reply(self, options: ReplyOptions = AS_USUAL) -> None:
        """Answer the conversation as it stands, or the turn in progress once it is over; nothing while a reply sounds.

        `is_replying` tells whether one does.
        """
        self._happens(stimuli.ReplyRequested(at_ns=self._clock.now_ns(), options=options))

    def cancel_reply(self) -> None:
        """Stop the present reply, if there is one."""
        self._happens(stimuli.ReplyCancelled(at_ns=self._clock.now_ns()))

    def add_item(self, message: Message, *, after: str | None = None) -> None:
        """Put something into the history, behind an item; "" is the beginning, None the end."""
        self._happens(stimuli.ItemAdded(at_ns=self._clock.now_ns(), message=message, after=after))

    def delete_item(self, item: str) -> None:
        """Take an item out of the history; a call takes its output along."""
        self._happens(stimuli.ItemDeleted(at_ns=self._clock.now_ns(), item=item))

    def truncate_item(self, item: str, text: str) -> None:
        """Only this much of one of our items was heard."""
        self._happens(stimuli.ItemTruncated(at_ns=self._clock.now_ns(), item=item, text=text))

    def return_tool(self, call: ToolCall, output: str) -> None:
        """This came of one of the owner's tools."""
        self._happens(stimuli.ToolReturned(at_ns=self._clock.now_ns(), call=call, text=output))

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
    def settings(self) -> SessionSettings:
        """By which the conversation is held now."""
        return self._settings

    @property
    def is_replying(self) -> bool:
        """Whether a reply sounds, is about to, or is held for a voice that may mean nothing."""
        state = self._conduct.state
        return state.phase is Phase.SPEAKING or state.held is not None

    @property
    def dialogue(self) -> Dialogue:
        """The dialogue's state, which a log of its stimuli begins with."""
        return self._conduct.state

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history as the language model reads it, each with the item that the owner knows it by."""
        return self._conduct.state.history

    @property
    def history(self) -> tuple[tuple[str, str], ...]:
        """Who said what so far: (role, text), ours as far as it was heard.

        A tool's call is the assistant's and reads `name(arguments)`; what came of it is the tool's.
        """
        return tuple((message.role, _in_words(message)) for message in self._conduct.state.history)

    # Inside.

    def _happens(self, stimulus: Stimulus) -> None:
        if not self._ended:
            self._conduct.happens(stimulus)

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        return self._tasks.create_task(work)

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
        self._conduct.close()
        if self._entered:
            self._seat.leave()
        self._news.set()


def _in_words(message: Message) -> str:
    if message.role == "assistant" and message.call:
        return f"{message.call.name}({message.call.arguments})"
    return message.text
