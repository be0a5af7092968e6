"""The work on one reply, from the caller's pause to its last sound: transcribe, judge, write, voice.

Until `confirmed` is set nothing of it is heard: the first chunk is voiced and held. What becomes known goes to the
dialogue as stimuli, through `tell`; what fails is told, never raised.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.core.stamps import Mark, Stage
from antiphon.dialogue.stimuli import DraftFailed, DraftTranscribed, DraftVoiced, EndMassMeasured, ProsodyJudged
from antiphon.think.chunker import Chunker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.core.clock import Clock
    from antiphon.core.flow import Message, Pcm, TextChunk
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.hear.recognizer import Recognition
    from antiphon.session.engines import Engines
    from antiphon.session.record import TurnRecord
    from antiphon.speak.player import Player
    from antiphon.think.chunker import ChunkerSettings
    from antiphon.think.language_model import Thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What all drafts of a conversation work with."""

    engines: Engines
    recognition: Recognition
    thinking: Thinking
    player: Player
    clock: Clock
    chunker: ChunkerSettings
    max_tokens: int
    tell: Callable[[Stimulus], None]
    report: Callable[[Stage, AntiphonError], None]


class DraftWork:
    """One reply in the making."""

    def __init__(self, number: int, shop: Workshop, record: TurnRecord) -> None:
        self.number = number
        self.record = record
        self.confirmed = asyncio.Event()
        self.text = ""  # all that the model wrote so far
        self.told_chars = 0  # how much of it was told to the owner
        self._left_out: list[tuple[int, int]] = []  # chars that could not be voiced
        self._shop = shop
        self._voiced = False
        self._writing_since_ns = 0

    async def hear(self, until_samples: int) -> None:
        """Find the words that the pause ends."""
        shop = self._shop
        try:
            with self.record.span(Stage.RECOGNISE, shop.engines.recognizer.name):
                transcript = await shop.recognition.transcribe(until_samples, final=True)
        except AntiphonError as error:
            self._fail(Stage.RECOGNISE, error)
            return
        self.record.mark(Mark.TRANSCRIBED)
        shop.tell(DraftTranscribed(at_ns=shop.clock.now_ns(), draft=self.number, transcript=transcript))

    async def judge_voice(self, pcm: Pcm) -> None:
        """Ask how finished the voice sounds; without an answer the other evidence decides."""
        shop = self._shop
        judge = shop.engines.prosody
        if judge is None:
            return
        try:
            with self.record.span(Stage.PROSODY, judge.name):
                probability = await judge.probability(pcm)
        except AntiphonError as error:
            shop.report(Stage.PROSODY, error)
            return
        shop.tell(ProsodyJudged(at_ns=shop.clock.now_ns(), draft=self.number, probability=probability))

    async def write(self, messages: Sequence[Message]) -> None:
        """Ask the model whether the words end a sentence, then write and voice the reply."""
        shop = self._shop
        try:
            await self._measure_end(messages)
            await self._write(messages)
        except AntiphonError as error:
            if not self._voiced:
                self._fail(Stage.THINK, error)
                return
            shop.report(Stage.THINK, error)  # half a reply was made, and half a reply is said
        if self._voiced:
            shop.player.finish(self.number)
        else:
            shop.tell(DraftFailed(at_ns=shop.clock.now_ns(), draft=self.number))

    async def _measure_end(self, messages: Sequence[Message]) -> None:
        shop = self._shop
        try:
            with self.record.span(Stage.JUDGE, shop.engines.language_model.name):
                mass = await shop.thinking.sentence_end_mass(messages)
        except AntiphonError as error:  # the other evidence decides, and a reply may still come
            shop.report(Stage.JUDGE, error)
            return
        if mass is not None:
            shop.tell(EndMassMeasured(at_ns=shop.clock.now_ns(), draft=self.number, mass=mass))

    async def _write(self, messages: Sequence[Message]) -> None:
        shop = self._shop
        chunker = Chunker(shop.chunker)
        self._writing_since_ns = shop.clock.now_ns()
        async with aclosing(shop.thinking.write(messages, max_tokens=shop.max_tokens)) as pieces:
            async for piece in pieces:
                assert isinstance(piece, str)
                self.record.mark(Mark.FIRST_TOKEN)
                self.text += piece
                for chunk in chunker.feed(piece):
                    await self._voice(chunk)
        for chunk in chunker.finish():
            await self._voice(chunk)

    async def _voice(self, chunk: TextChunk) -> None:
        """Synthesise one chunk; one that fails is left out, the rest of the reply is still said."""
        shop = self._shop
        start_ns = shop.clock.now_ns()
        said_chars = chunk.start_chars
        if chunk.index == 0:  # the model writes on while this is voiced; only the way to here can make a reply late
            self.record.mark(Mark.CHUNK_READY, start_ns)
            self.record.add(Stage.THINK, self._writing_since_ns, start_ns, model=shop.engines.language_model.name)
        try:
            async with aclosing(shop.engines.synthesizer.speak(chunk)) as pieces:
                async for piece in pieces:
                    self.record.add(Stage.SPEAK, start_ns, shop.clock.now_ns(), model=shop.engines.synthesizer.name)
                    if not self._voiced:
                        self._voiced = True
                        self.record.mark(Mark.VOICED)
                        shop.tell(DraftVoiced(at_ns=shop.clock.now_ns(), draft=self.number))
                    await self.confirmed.wait()
                    if not await shop.player.push(self.number, piece):
                        return
                    said_chars = piece.chunk.end_chars
                    start_ns = shop.clock.now_ns()
        except AntiphonError as error:
            self._left_out.append((said_chars, chunk.end_chars))
            shop.report(Stage.SPEAK, error)

    def said(self, start_chars: int, end_chars: int) -> str:
        """That part of the text, without what could not be voiced."""
        kept, at = "", start_chars
        for gap_start, gap_end in self._left_out:
            kept += self.text[at : max(at, min(gap_start, end_chars))]
            at = max(at, min(gap_end, end_chars))
        return kept + self.text[at:end_chars]

    def _fail(self, stage: Stage, error: AntiphonError) -> None:
        self._shop.report(stage, error)
        self._shop.tell(DraftFailed(at_ns=self._shop.clock.now_ns(), draft=self.number))
