"""Work that is done while the caller still speaks: their words are looked at, read ahead and replied to for a start.
Where their voice falters, the turn is heard as if it ended there, both the language model and the judge of its tone are
asked whether it does, and a reply to just these words is begun.

At most one of each is under way. A look that is asked for meanwhile follows; a reading is left out, for the next words
bring another; an opening is given up for newer words. Threads: the event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.core.stamps import Stage
from antiphon.dialogue.stimuli import TranscriptGrew
from antiphon.scheduling.job import Claim, Urgency, claimed
from antiphon.session import opinions
from antiphon.session.opening import voice_opening, write_opening

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from contextlib import AbstractContextManager

    from antiphon.core.flow import Message, Pcm
    from antiphon.session.opening import Opening
    from antiphon.session.record import TurnRecord
    from antiphon.session.workshop import Workshop


VOICE_WAIT_S = 0.05  # more than for the words, at most; the tone can still be judged in the pause


@dataclass(slots=True, kw_only=True)
class Foreseen:
    """What is made of a turn before it is known whether a pause follows."""

    turn: int
    until_samples: int
    claim: Claim
    is_look: bool  # it stands for a look or an opening that was given up for it, and will be one if the voice goes on
    goes_on: bool = False  # the voice
    work: asyncio.Task[None] | None = None  # to hear it, and to have its words judged
    voice: asyncio.Task[None] | None = None  # to have its tone judged meanwhile, where somebody can
    writing: asyncio.Task[None] | None = None  # to begin a reply to it, then
    messages: Sequence[Message] = ()  # that this answers
    opening: Opening | None = None  # what has become of it
    words: str = ""  # once they are heard
    end_mass: float | None = None  # of these words, once it is measured
    prosody: float | None = None  # of its tone, once it is judged

    async def known(self) -> int:
        """Wait for its words, and for the verdict on its tone if that takes hardly longer; how far it was heard."""
        if self.work is not None:
            await asyncio.wait([self.work])
        if self.voice is not None:
            _, late = await asyncio.wait([self.voice], timeout=VOICE_WAIT_S)
            for task in late:  # who still wants it will ask anew
                task.cancel()
        return self.until_samples

    async def begun(self, messages: Sequence[Message]) -> Opening | None:
        """Wait for the reply that was begun, if it answers these; one to anything else is given up."""
        if self.writing is None:
            return None
        if tuple(messages) != tuple(self.messages):
            self.give_up_writing()
            return None
        try:
            await asyncio.wait([self.writing])
        except asyncio.CancelledError:
            self.give_up_writing()
            raise
        return self.opening

    def give_up_writing(self) -> None:
        """No reply begins like this."""
        if self.writing is not None:
            self.writing.cancel()
        self.writing = self.opening = None

    def cancel(self) -> None:
        """Nobody wants it any more."""
        for task in (self.work, self.voice, self.writing):
            if task is not None:
                task.cancel()


class Ahead:
    """Of one conversation."""

    def __init__(
        self,
        shop: Workshop,
        *,
        start: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        where_it_ended: Callable[[], int],
        prompt: Callable[[str], Sequence[Message]],
        to_open: Callable[[str], Sequence[Message]],
    ) -> None:
        self._shop = shop
        self._start = start
        self._where_it_ended = where_it_ended
        self._prompt = prompt  # that the turn's words make
        self._opens_to = to_open  # the same where a reply may be begun before the pause is one
        self._look: asyncio.Task[None] | None = None
        self._look_again = False
        self._reading: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._to_open: Sequence[Message] = ()  # what a reply is to be begun to, once it is read
        self._opening: Opening | None = None
        self._foreseen: Foreseen | None = None
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

    def foresee(self, until_samples: int, tone: Callable[[], Pcm] | None) -> None:
        """The voice may have ended before that; if it has, its words are there by the time that this is known.

        `tone` gives the sound that the judge of its tone looks at; None: nobody wants to know.
        """
        turn = self._turn
        if turn is None or not self._shop.recognition.foresees:
            return
        is_looking = self._look is not None and not self._look.done()
        self.stop_looking()  # what it would find, and a little more, is found now
        is_opening = bool(self._to_open) or (self._writing is not None and not self._writing.done())
        self._give_up_writing()
        is_look = self._drop_foreseen() or is_looking or is_opening
        with self._claimed() as claim:
            foreseen = Foreseen(turn=turn.turn, until_samples=until_samples, claim=claim, is_look=is_look)
            foreseen.work = self._start(self._hear_ahead(turn, foreseen))
            if tone is not None and self._shop.engines.prosody is not None:  # it needs one core, and so do the words
                foreseen.voice = self._start(self._judge_voice(turn, foreseen, tone()))
        self._foreseen = foreseen

    def goes_on(self) -> None:
        """The voice, where it might have ended: what was heard as far as there counts as a look."""
        foreseen = self._foreseen
        if foreseen is None or foreseen.work is None:
            return
        foreseen.goes_on = True
        foreseen.give_up_writing()
        if foreseen.is_look and foreseen.work.done():
            self._look_at(foreseen)

    def foreseen(self, turn: int, end_samples: int) -> Foreseen | None:
        """What was foreseen of a turn whose voice has ended there; it is wanted now, like the reply itself."""
        found = self._foreseen
        if found is None or found.turn != turn or found.until_samples <= end_samples:
            return None
        found.claim.urgency = Urgency.DRAFT
        return found

    def read(self, messages: Sequence[Message], opening: Sequence[Message] = ()) -> None:
        """Let the language model read ahead, and then begin a reply to `opening`, if that is any."""
        if self._reading is not None and not self._reading.done():
            return
        self._give_up_writing()
        self._to_open = opening
        with self._claimed():
            self._reading = self._start(self._read(messages))

    def opening(self, turn: int) -> Opening | None:
        """The newest that there is for that turn. None is begun any more: the model is wanted for the reply."""
        self._give_up_writing()
        found, self._opening = self._opening, None
        return found if found is not None and found.turn == turn else None

    def forget_opening(self) -> None:
        """It would be written or voiced differently now."""
        self._give_up_writing()
        self._opening = None
        if self._foreseen is not None:
            self._foreseen.give_up_writing()

    def _give_up_writing(self) -> None:
        self._to_open = ()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _claimed(self, urgency: Urgency = Urgency.AHEAD) -> AbstractContextManager[Claim]:
        turn = self._turn.turn if self._turn else 0
        return claimed(Claim(caller=self._shop.caller, turn=turn, urgency=urgency))

    def close(self) -> None:
        self.stop_looking()
        self._give_up_writing()
        self._drop_foreseen()
        if self._reading is not None:
            self._reading.cancel()

    def _drop_foreseen(self) -> bool:
        """Whether it was to be a look, and has not become one."""
        before, self._foreseen = self._foreseen, None
        if before is None or before.work is None:
            return False
        before.cancel()
        return before.is_look and before.turn == (self._turn.turn if self._turn else 0)

    async def _hear_ahead(self, record: TurnRecord, foreseen: Foreseen) -> None:
        shop = self._shop
        try:
            with record.span(Stage.RECOGNISE, shop.recognition.name):
                foreseen.words = await shop.recognition.foresee(foreseen.until_samples)
        except AntiphonError as error:
            shop.report(Stage.RECOGNISE, error)
        if foreseen.words and not foreseen.goes_on and shop.engines.language_model.can_go_on:
            foreseen.messages = self._opens_to(foreseen.words)
            if foreseen.messages:
                foreseen.writing = self._start(self._begin(record, foreseen))
            else:
                await self._judge_ahead(record, foreseen)
        if foreseen.goes_on and foreseen.is_look:
            self._look_at(foreseen)

    def _look_at(self, foreseen: Foreseen) -> None:
        """Its words are there already."""
        foreseen.is_look = False
        if self._turn is not None and self._turn.turn == foreseen.turn:
            with self._claimed():
                self._look = self._start(self._look_once(self._turn, foreseen.until_samples))

    async def _judge_ahead(self, record: TurnRecord, foreseen: Foreseen) -> None:
        """Have the language model tell how likely the words end there; it has read them then, for the reply too."""
        shop = self._shop
        messages = self._prompt(foreseen.words)
        if messages:
            foreseen.end_mass = await opinions.end_mass(shop, record, messages, shop.tools(shop.settings.usual))

    async def _begin(self, record: TurnRecord, foreseen: Foreseen) -> None:
        shop, before = self._shop, self._opening
        if before is not None and before.turn != record.turn:
            before = None
        try:
            with record.span(Stage.OPENING, shop.engines.language_model.name):
                foreseen.opening = await write_opening(shop, record.turn, foreseen.messages, before)
        except AntiphonError as error:
            shop.report(Stage.OPENING, error)

    async def _judge_voice(self, record: TurnRecord, foreseen: Foreseen, pcm: Pcm) -> None:
        foreseen.prosody = await opinions.tone(self._shop, record, pcm)

    async def _look_at_words(self) -> None:
        while self._look_again and self._turn is not None:
            self._look_again = False
            await self._look_once(self._turn, self._where_it_ended())

    async def _look_once(self, record: TurnRecord, until_samples: int) -> None:
        shop = self._shop
        try:
            with record.span(Stage.RECOGNISE, shop.recognition.name):
                transcript = await shop.recognition.look(until_samples)
        except AntiphonError as error:
            shop.report(Stage.RECOGNISE, error)
            return
        shop.tell(TranscriptGrew(at_ns=shop.clock.now_ns(), turn=record.turn, transcript=transcript))

    async def _read(self, messages: Sequence[Message]) -> None:
        shop, record, start_ns = self._shop, self._turn, self._shop.clock.now_ns()
        try:
            await shop.thinking.prefill(messages, tools=shop.tools(shop.settings.usual))
        except AntiphonError as error:
            shop.report(Stage.PREFILL, error)
        if record is not None:
            record.add(Stage.PREFILL, start_ns, shop.clock.now_ns(), model=shop.engines.language_model.name)
            if self._to_open and shop.engines.language_model.can_go_on:
                with self._claimed(Urgency.BACKGROUND):  # hearing where the voice falters goes before it
                    self._writing = self._start(self._write(record, self._to_open))

    async def _write(self, record: TurnRecord, messages: Sequence[Message]) -> None:
        shop = self._shop
        try:
            with record.span(Stage.OPENING, shop.engines.language_model.name):
                opening = await write_opening(shop, record.turn, messages)
                if opening is not None:
                    self._opening = await voice_opening(shop, opening) or self._opening
        except AntiphonError as error:
            shop.report(Stage.OPENING, error)
