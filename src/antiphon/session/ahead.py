"""Work that is done while the caller still speaks: their words are looked at, and read ahead.

At most one of each is under way. A look that is asked for meanwhile follows; a reading is left out, for the next words
bring another. Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.core.stamps import Stage
from antiphon.dialogue.stimuli import TranscriptGrew
from antiphon.scheduling.job import Claim, Urgency, claimed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Sequence
    from contextlib import AbstractContextManager

    from antiphon.core.flow import Message
    from antiphon.session.record import TurnRecord
    from antiphon.session.workshop import Workshop


class Ahead:
    """Of one conversation."""

    def __init__(
        self,
        shop: Workshop,
        *,
        start: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        where_it_ended: Callable[[], int],
    ) -> None:
        self._shop = shop
        self._start = start
        self._where_it_ended = where_it_ended
        self._look: asyncio.Task[None] | None = None
        self._look_again = False
        self._reading: asyncio.Task[None] | None = None
        self._turn: TurnRecord | None = None  # that is listened to

    def listen(self, record: TurnRecord) -> None:
        """Another turn begins."""
        self._turn = record

    def look(self, turn: int) -> None:
        """Find out what the turn says so far; the answer comes as TranscriptGrew."""
        if self._turn is None or self._turn.turn != turn:
            return
        self._look_again = True
        if self._look is None or self._look.done():
            with self._claimed():
                self._look = self._start(self._look_at_words())

    def stop_looking(self) -> None:
        """The look under way ends at its next border; a final transcription waits no longer than that."""
        self._look_again = False
        if self._look is not None:
            self._look.cancel()

    def read(self, messages: Sequence[Message]) -> None:
        """Let the language model read ahead."""
        if self._reading is None or self._reading.done():
            with self._claimed():
                self._reading = self._start(self._read(messages))

    def _claimed(self) -> AbstractContextManager[Claim]:
        turn = self._turn.turn if self._turn else 0
        return claimed(Claim(caller=self._shop.caller, turn=turn, urgency=Urgency.AHEAD))

    def close(self) -> None:
        self.stop_looking()
        if self._reading is not None:
            self._reading.cancel()

    async def _look_at_words(self) -> None:
        shop = self._shop
        while self._look_again and self._turn is not None:
            self._look_again = False
            record = self._turn
            try:
                with record.span(Stage.RECOGNISE, shop.recognition.name):
                    transcript = await shop.recognition.look(self._where_it_ended())
            except AntiphonError as error:
                shop.report(Stage.RECOGNISE, error)
                continue
            shop.tell(TranscriptGrew(at_ns=shop.clock.now_ns(), turn=record.turn, transcript=transcript))

    async def _read(self, messages: Sequence[Message]) -> None:
        shop, record, start_ns = self._shop, self._turn, self._shop.clock.now_ns()
        try:
            await shop.thinking.prefill(messages, tools=shop.tools(shop.settings.usual))
        except AntiphonError as error:
            shop.report(Stage.PREFILL, error)
        if record is not None:
            record.add(Stage.PREFILL, start_ns, shop.clock.now_ns(), model=shop.engines.language_model.name)
