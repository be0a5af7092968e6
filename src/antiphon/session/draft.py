"""The work on one reply, from the caller's pause to its last sound: transcribe, judge, write, voice.

Until `confirmed` is set nothing of it is heard: the first chunk is voiced and held. Between `hold` and `go_on` no work
is done. What becomes known goes to the dialogue as stimuli, through `tell`; what fails is told, never raised.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import AntiphonError
from antiphon.core.flow import Message, ToolCall, Usage
from antiphon.core.stamps import Mark, Stage
from antiphon.dialogue.stimuli import (
    DraftFailed,
    DraftTranscribed,
    DraftVoiced,
    EndMassMeasured,
    ProsodyJudged,
    ToolCalled,
    ToolsWanted,
)
from antiphon.scheduling.job import Claim, Urgency
from antiphon.scheduling.ticket import WANTED_WITHIN_NS
from antiphon.session import opinions
from antiphon.session.opening import HeadStart
from antiphon.session.reply_text import ReplyText
from antiphon.session.written_pass import WrittenPass
from antiphon.think.chunker import Chunker
from antiphon.think.language_model import AUTO, KnowsLimit
from antiphon.think.reasoning import ReasoningFilter
from antiphon.think.spoken_form import SpokenForm

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Sequence

    from antiphon.core.flow import Pcm, TextChunk, ToolSpec
    from antiphon.dialogue.commands import WriteOn, WriteReply
    from antiphon.session.ahead import Foreseen
    from antiphon.session.audience import Audience
    from antiphon.session.opening import Opening
    from antiphon.session.record import TurnRecord
    from antiphon.session.workshop import Workshop
    from antiphon.think.language_model import Written


class DraftWork:
    """One reply in the making."""

    def __init__(self, number: int, shop: Workshop, record: TurnRecord, audience: Audience) -> None:
        self.number = number
        self.is_text = False  # it is only written
        self._audience = audience
        self.record = record
        now_ns = shop.clock.now_ns()
        self.claim = Claim(
            caller=shop.caller,
            turn=record.turn,
            urgency=Urgency.DRAFT,
            deadline_ns=now_ns + WANTED_WITHIN_NS[Urgency.DRAFT],
        )
        self.confirmed = asyncio.Event()
        self.text = ReplyText()
        self.told_chars = 0  # how much of what is said was told to the owner
        self.usage: Usage | None = Usage()
        self.reached_limit = False  # the model had more to say
        self.is_paced = True  # its sound comes when it is to be heard; as the settings were when it became a reply
        self.sent_samples = 0  # of its sound, where it does not wait for its time
        self._shop = shop
        self._going = asyncio.Event()
        self._going.set()
        self._turn = asyncio.Lock()  # one text after the other: a preamble may still be voiced when the tool returns
        self._passes = 0
        self._chunks = 0
        self._voiced = False
        self._writing_since_ns = 0
        self._sure: asyncio.Future[Sequence[Message]] | None = None  # what to answer, by a careful ear
        self._foreseen: Foreseen | None = None
        self._head_start = HeadStart()
        self._verdicts_due = 0  # on whether the turn is over, for which the caller waits

    def confirm(self) -> None:
        """The pause has lasted: the caller waits for it."""
        self.claim.urgency = Urgency.CONFIRMED
        self.confirmed.set()
        self._hear_again()

    def hold(self) -> None:
        """Do no further work, for the time being."""
        self._going.clear()

    def go_on(self) -> None:
        """Work on."""
        self._going.set()

    async def hear(self, until_samples: int, foreseen: Foreseen | None = None) -> None:
        """Find the words that the pause ends; those that were heard in its first moment are those, once they come."""
        shop, self._foreseen = self._shop, foreseen
        carefully = shop.recognition.second_pass(until_samples)
        try:
            with self.record.span(Stage.RECOGNISE, shop.recognition.name):
                if foreseen is not None:
                    until_samples = await foreseen.known()
                transcript = await shop.recognition.hear(until_samples)
        except AntiphonError as error:
            self._fail(Stage.RECOGNISE, error)
            return
        self.record.mark(Mark.TRANSCRIBED)
        if shop.second_pass is not None:
            self._sure = asyncio.get_running_loop().create_future()
            shop.second_pass.begin(self.number, self.record, transcript, carefully)
        shop.tell(
            DraftTranscribed(
                at_ns=shop.clock.now_ns(),
                draft=self.number,
                transcript=transcript,
                provisional=shop.second_pass is not None,
                end_mass=foreseen.end_mass if foreseen and foreseen.words == transcript.text.strip() else None,
                prosody=foreseen.prosody if foreseen else None,
            )
        )

    def judge_voice(self, pcm: Pcm) -> Coroutine[object, object, None]:
        """Ask how finished the voice sounds; without an answer the other evidence decides."""
        self._verdicts_due += 1
        return self._judge_voice(pcm)

    async def _judge_voice(self, pcm: Pcm) -> None:
        shop = self._shop
        try:
            probability = await opinions.tone(shop, self.record, pcm)
            if probability is not None:
                shop.tell(ProsodyJudged(at_ns=shop.clock.now_ns(), draft=self.number, probability=probability))
        finally:
            self._verdicts_due -= 1
            self._hear_again()

    async def write(self, command: WriteReply, opening: Opening | None = None) -> None:
        """Write and voice the reply, or as far as to a tool; ask the model whether the words end a sentence, if that is
        in doubt. It begins as it was begun to these very words already, or like `opening`, whose sound is there."""
        shop, options = self._shop, command.options
        if self._foreseen is not None:
            opening = await self._foreseen.begun(command.messages) or opening
        if opening is not None and options.instructions is None:
            self._head_start.take(opening, most_tokens=options.max_tokens or shop.settings.max_tokens)
        if self._sure is not None and not (shop.second_pass and shop.second_pass.is_to_come(self.number)):
            self._sure = None  # these words are the careful ear's already
        tools = shop.tools(command.options) if command.may_use_tools else ()
        self.is_text = command.options.is_text
        is_asking = False
        try:
            if not command.measures_end:
                is_asking = await self._write(command, tools)
            elif self._head_start.at_once(command.messages) is None:
                await self._measure_end(command.messages, tools)
                is_asking = await self._write(command, tools)
            else:  # the model has nothing to do for the beginning, which is held until it is known
                measuring = self._measure_end(command.messages, tools)
                _, is_asking = await asyncio.gather(measuring, self._write(command, tools))
        except AntiphonError as error:
            if not self._voiced:
                self._fail(Stage.THINK, error)
                return
            shop.report(Stage.THINK, error)  # half a reply was made, and half a reply is said
        if is_asking:
            shop.tell(ToolsWanted(at_ns=shop.clock.now_ns(), draft=self.number))
        elif self._voiced:
            self.finish()
        else:
            shop.tell(DraftFailed(at_ns=shop.clock.now_ns(), draft=self.number))

    def write_on(self, command: WriteOn) -> None:
        """A careful ear has heard this: what is written from here on answers it."""
        if self._sure is not None and not self._sure.done():
            self._sure.set_result(command.messages)

    def finish(self) -> None:
        """No more will come."""
        if self.is_text:
            self._audience.complete(self)
        else:
            self._shop.player.finish(self.number)

    async def say(self, text: str, *, is_whole: bool) -> None:
        """Voice a text that no model wrote, as the whole reply or as one more pass of it."""
        async with self._turn:
            work = self._begin(is_pass=is_whole)
            await self._take(work, text)
            await self._finish(work, is_last=is_whole)
        if is_whole and self._voiced:
            self.finish()
        elif is_whole:
            self._shop.tell(DraftFailed(at_ns=self._shop.clock.now_ns(), draft=self.number))

    async def _measure_end(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        self._verdicts_due += 1
        try:
            shop = self._shop
            mass = await opinions.end_mass(shop, self.record, messages, tools)
            if mass is not None:
                shop.tell(EndMassMeasured(at_ns=shop.clock.now_ns(), draft=self.number, mass=mass))
        finally:
            self._verdicts_due -= 1
            self._hear_again()

    async def _write(self, command: WriteReply, tools: Sequence[ToolSpec]) -> bool:
        """Write one pass; True if the model asks for tools."""
        shop, options = self._shop, command.options
        async with self._turn:
            messages: Sequence[Message] = command.messages
            is_unsure = self._is_unsure
            if is_unsure and not self._can_be_corrected(tools):
                messages, is_unsure = await self._sure_messages(), False
            work = self._begin(is_pass=True, is_unsure=is_unsure)
            self._writing_since_ns = shop.clock.now_ns()
            self.reached_limit = False
            most = options.max_tokens or shop.settings.max_tokens
            begun = self._head_start.at_once(messages) if self._passes == 1 and not (tools or self.is_text) else None
            if begun is not None:
                self.record.mark(Mark.FIRST_TOKEN)
                work.raw, work.leapt = begun.raw, begun.tokens
                await self._take(work, work.reasoning.feed(begun.raw))
            else:
                writing = shop.thinking.write(
                    messages,
                    max_tokens=most,
                    tools=tools,
                    tool_choice=options.tool_choice
                    if tools and self._passes == 1
                    else AUTO,  # forced again it never ends
                )
                await self._take_down(work, writing)
            leapt, work.leapt = work.leapt, 0
            if leapt and self.usage is not None:
                self.usage += Usage(output_tokens=leapt)
            if work.held or leapt:
                for chunk in work.held:
                    await self._voice(work.placed(chunk, is_last=False))
                if work.is_unsure:
                    messages = await self._sure_messages()
                work.is_unsure = False
                rest = max(1, most - work.pieces - leapt)
                await self._take_down(work, shop.thinking.write(messages, max_tokens=rest, begins_with=work.raw))
            self.reached_limit = isinstance(shop.thinking, KnowsLimit) and shop.thinking.reached_limit
            if not work.calls:
                await self._take(work, work.reasoning.finish())
            await self._finish(work, is_last=not work.calls)
            return bool(work.calls)

    async def _take_down(self, work: WrittenPass, writing: AsyncGenerator[Written, None]) -> None:
        """What the model writes, to its end, or as far as to the first chunk if that is all that is wanted for now."""
        before = self.usage
        async with aclosing(writing) as pieces:
            async for piece in pieces:
                self.record.mark(Mark.FIRST_TOKEN)
                self._count(before)
                if isinstance(piece, ToolCall):
                    self._call(work, piece)
                elif not work.calls:  # text behind a call belongs to what comes after its result
                    piece += self._leap(work, piece)  # noqa: PLW2901 - the model's piece, and what stands for more
                    work.raw += piece
                    work.pieces += 1
                    await self._take(work, work.reasoning.feed(piece))
                if work.leapt or (work.is_unsure and work.held):
                    break
        self._count(before)  # servers count behind the last word

    def _leap(self, work: WrittenPass, piece: str) -> str:
        """What the opening says behind this piece, once the model has begun alike."""
        if self._passes > 1 or self.is_text:
            return ""
        rest, tokens = self._head_start.behind(work.raw + piece)
        if rest:
            work.leapt = tokens - work.pieces - 1
        return rest

    @property
    def _is_unsure(self) -> bool:
        return self._sure is not None and not self._sure.done()

    def _can_be_corrected(self, tools: Sequence[ToolSpec]) -> bool:
        """Whether the reply may be begun on words that may change: not where they choose a tool, or are shown."""
        shop = self._shop
        return not (tools or self.is_text or shop.settings.starts_thinking) and shop.engines.language_model.can_go_on

    async def _sure_messages(self) -> Sequence[Message]:
        """What to answer, once the careful ear has spoken."""
        assert self._sure is not None
        assert self._shop.second_pass is not None
        self._shop.second_pass.release(self.number)
        return await asyncio.shield(self._sure)

    def _count(self, before: Usage | None) -> None:
        took = self._shop.thinking.usage
        self.usage = before + took if before is not None and took is not None else None

    def _call(self, work: WrittenPass, call: ToolCall) -> None:
        said = "" if work.calls else work.written
        work.calls.append(call)
        self._shop.tell(ToolCalled(at_ns=self._shop.clock.now_ns(), draft=self.number, call=call, said=said))

    def _begin(self, *, is_pass: bool, is_unsure: bool = False) -> WrittenPass:
        shop = self._shop
        if self._passes or not is_pass:
            self.text.begin(is_pass=is_pass)
        self._passes += is_pass
        settings = shop.settings
        return WrittenPass(
            reasoning=ReasoningFilter(starts_inside=settings.starts_thinking),
            spoken=SpokenForm(replace(settings.spoken_form, enabled=False) if self.is_text else settings.spoken_form),
            chunker=Chunker(settings.chunker),
            start_said=self.text.said_chars,
            start_index=self._chunks,
            is_unsure=is_unsure,
        )

    async def _take(self, work: WrittenPass, written: str) -> None:
        self.text.write(written)
        work.written += written
        said = self.text.say(work.spoken.feed(written))
        if self.is_text:
            await self._show()
            return
        chunks = work.chunker.feed(said)
        if work.is_unsure:
            work.held += chunks
            return
        for chunk in chunks:
            await self._voice(work.placed(chunk, is_last=False))

    async def _finish(self, work: WrittenPass, *, is_last: bool) -> None:
        said = self.text.say(work.spoken.finish())
        if self.is_text:
            await self._show()
            return
        chunks = [*work.chunker.feed(said), *work.chunker.finish()]
        for chunk in chunks:
            await self._voice(work.placed(chunk, is_last=is_last and chunk is chunks[-1]))

    async def _show(self) -> None:
        """Let what is written so far be read."""
        if not self.text.said_chars:
            return
        if not self._voiced:
            self._voiced = True
            self._shop.tell(DraftVoiced(at_ns=self._shop.clock.now_ns(), draft=self.number))
        await self.confirmed.wait()
        await self._going.wait()
        self._audience.written(self)

    async def _voice(self, chunk: TextChunk) -> None:
        """Synthesise one chunk; one that fails is left out, the rest of the reply is still said."""
        await self._going.wait()
        shop = self._shop
        start_ns = shop.clock.now_ns()
        said_chars = chunk.start_chars
        self._chunks += 1
        if chunk.index == 0:  # the model writes on while this is voiced; only the way to here can make a reply late
            self.record.mark(Mark.CHUNK_READY, start_ns)
            if self._writing_since_ns:
                self.record.add(Stage.THINK, self._writing_since_ns, start_ns, model=shop.engines.language_model.name)
        try:
            async with aclosing(self._head_start.sound(chunk) or shop.engines.synthesizer.speak(chunk)) as pieces:
                async for piece in pieces:
                    self.record.add(Stage.SPEAK, start_ns, shop.clock.now_ns(), model=shop.engines.synthesizer.name)
                    self._sounds_longer(len(piece.pcm) * SECOND_NS // piece.rate_hz)
                    if not self._voiced:
                        self._voiced = True
                        self.record.mark(Mark.VOICED)
                        shop.tell(DraftVoiced(at_ns=shop.clock.now_ns(), draft=self.number))
                        self._hear_again()
                    await self.confirmed.wait()
                    await self._going.wait()
                    if not await shop.player.push(self.number, piece):
                        return
                    self._audience.voiced(self, piece)
                    said_chars = piece.chunk.end_chars
                    start_ns = shop.clock.now_ns()
        except AntiphonError as error:
            self.text.leave_out(said_chars, chunk.end_chars)
            shop.report(Stage.SPEAK, error)

    def _hear_again(self) -> None:
        """Let the careful ear have the cores once nothing that the caller waits for needs them: sound, or a verdict."""
        is_free = self._voiced and (self.confirmed.is_set() or not self._verdicts_due)
        if is_free and self._shop.second_pass is not None:
            self._shop.second_pass.release(self.number)

    def _sounds_longer(self, more_ns: int) -> None:
        """What is made now is wanted when the sound that is there has been heard."""
        now_ns = self._shop.clock.now_ns()
        self.claim.deadline_ns = max(self.claim.deadline_ns or 0, now_ns) + more_ns

    def _fail(self, stage: Stage, error: AntiphonError) -> None:
        self._shop.report(stage, error)
        self._shop.tell(DraftFailed(at_ns=self._shop.clock.now_ns(), draft=self.number))
