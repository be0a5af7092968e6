"""Orders about replies in; work on them, and events about what is heard of them, out.

Holds every draft from the caller's pause until it is dropped or its last sound has left.
Threads: the event loop. What it does not know: why something is ordered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.flow import AudioFrame
from antiphon.core.stamps import Mark
from antiphon.dialogue import stimuli
from antiphon.scheduling.job import claimed
from antiphon.session import events
from antiphon.session.draft import DraftWork
from antiphon.session.record import TurnRecord
from antiphon.speak.player import ReplyEnded, SoundBegan

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from antiphon.core.flow import Pcm, SpeechPiece, ToolCall
    from antiphon.dialogue.commands import WriteOn, WriteReply
    from antiphon.dialogue.options import ReplyOptions
    from antiphon.session.ahead import Foreseen
    from antiphon.session.opening import Opening
    from antiphon.session.tool_runs import ToolRuns
    from antiphon.session.workshop import Workshop


UNPACED_MS = 40  # of sound in a frame that need not wait for its time


class Replies:
    """Of one conversation."""

    def __init__(
        self,
        shop: Workshop,
        tools: ToolRuns,
        *,
        start: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        emit: Callable[[events.Event], None],
    ) -> None:
        self._shop = shop
        self._tools = tools
        self._start = start
        self._emit = emit
        self._drafts: dict[int, DraftWork] = {}
        self._work: dict[int, list[asyncio.Task[None]]] = {}

    @property
    def under_way(self) -> tuple[int, int]:
        """How many drafts and replies there are, and how many of them somebody works on."""
        return len(self._drafts), len(self._work)

    def record(self, number: int) -> TurnRecord:
        """The stamps of a draft."""
        return self._drafts[number].record

    # Orders.

    def hear(self, number: int, record: TurnRecord, until_samples: int, foreseen: Foreseen | None = None) -> None:
        """A draft begins: find out what was said."""
        draft = self._drafts[number] = DraftWork(number, self._shop, record, self)
        self._begin(number, draft.hear(until_samples, foreseen))

    def judge_voice(self, number: int, pcm: Pcm) -> None:
        self._begin(number, self._drafts[number].judge_voice(pcm))

    def write(self, command: WriteReply, turn: int, opening: Opening | None) -> None:
        """Have it written; one that no turn of the caller's has begun is begun here."""
        if command.draft not in self._drafts:
            self._make(command.draft, turn)
        self._begin(command.draft, self._drafts[command.draft].write(command, opening))

    def write_on(self, command: WriteOn) -> None:
        """What it answers is known for sure."""
        draft = self._drafts.get(command.draft)
        if draft is not None:
            draft.write_on(command)

    def say(self, number: int, text: str, *, is_whole: bool, turn: int) -> None:
        """Voice a given text; a whole one is a reply of its own."""
        if is_whole:
            self._make(number, turn)
        self._begin(number, self._drafts[number].say(text, is_whole=is_whole))

    def finish(self, number: int) -> None:
        self._drafts[number].finish()

    def run_tool(self, number: int, call: ToolCall, now_ns: int) -> None:
        draft = self._drafts[number]
        if any(spec.name == call.name for spec in self._shop.settings.owner_tools):
            turn = draft.record.turn
            self._emit(events.ToolWanted(turn=turn, reply=number, call=call, at_ns=now_ns))
        else:
            self._tools.run(draft, call)

    def play(self, number: int, turn: int, now_ns: int, options: ReplyOptions) -> None:
        """Let it be heard, as the answer to that turn: noise may have brought the answer to an earlier one."""
        draft = self._drafts[number]
        draft.record.turn = turn
        self._emit(events.ReplyOpened(turn=turn, reply=number, at_ns=now_ns, options=options))
        draft.record.mark(Mark.CONFIRMED, now_ns)
        draft.is_paced = self._shop.settings.is_paced
        draft.confirm()
        self._tools.confirmed(number)

    def duck(self, number: int, now_ns: int, *, soft: bool) -> None:
        self._shop.player.duck(number, soft=soft)
        turn = self._drafts[number].record.turn
        self._emit(events.ReplyDucked(turn=turn, reply=number, at_ns=now_ns, soft=soft))

    def pause(self, number: int, now_ns: int) -> None:
        draft = self._drafts[number]
        draft.hold()
        self._shop.player.pause(number)
        self._emit(events.ReplyPaused(turn=draft.record.turn, reply=number, at_ns=now_ns, resumed=False))

    def resume(self, number: int, now_ns: int) -> None:
        draft = self._drafts.get(number)
        if draft is None:  # it failed while it was held
            return
        draft.go_on()
        self._shop.player.resume(number)
        self._emit(events.ReplyPaused(turn=draft.record.turn, reply=number, at_ns=now_ns, resumed=True))

    def stop(self, number: int) -> None:
        if number not in self._drafts:  # it failed, and the dialogue need not wait for it
            self._shop.tell(stimuli.ReplyEnded(at_ns=self._shop.clock.now_ns(), draft=number, heard=()))
            return
        self._cancel(number)
        played = self._shop.player.stop(number)
        draft = self._drafts[number]
        chars = draft.told_chars if draft.is_text else played.chars if played else 0
        self._end(number, chars, interrupted=True)

    def drop(self, number: int) -> None:
        self._cancel(number)
        self._drafts.pop(number, None)
        self._tools.dropped(number)

    def fail(self, number: int) -> None:
        """Nothing will come of it; if it was to be heard, say so."""
        draft = self._drafts.get(number)
        if draft is not None and draft.confirmed.is_set():
            self._measure(draft)
            self.drop(number)
            self._emit(
                events.ReplyFinished(
                    turn=draft.record.turn,
                    reply=number,
                    at_ns=self._shop.clock.now_ns(),
                    heard="",
                    interrupted=False,
                    usage=draft.usage,
                    failed=True,
                )
            )

    def close(self) -> None:
        for number in tuple(self._work):
            self._cancel(number)
        self._tools.close()

    # From the player.

    def sounds(self, frame: AudioFrame) -> None:
        """The next frame of the present reply is due."""
        played = self._shop.player.played()
        draft = self._drafts[played.generation]
        if not draft.is_paced:  # it went out as soon as it was there
            return
        self._emit(events.ReplyAudio(turn=draft.record.turn, reply=draft.number, frame=frame))
        self._tell_text(draft, played.chars)

    # From drafts.

    def voiced(self, draft: DraftWork, piece: SpeechPiece) -> None:
        """A piece was queued: where nothing is paced it goes out at once, and its text with it."""
        if draft.is_paced:
            return
        now_ns, step = self._shop.clock.now_ns(), piece.rate_hz * UNPACED_MS // 1000
        for start in range(0, len(piece.pcm), step):
            frame = AudioFrame(piece.pcm[start : start + step], piece.rate_hz, draft.sent_samples, now_ns)
            draft.sent_samples = frame.end_samples
            self._emit(events.ReplyAudio(turn=draft.record.turn, reply=draft.number, frame=frame))
            self._tell_text(draft, piece.chars_heard(start + step))

    def written(self, draft: DraftWork) -> None:
        if not draft.told_chars:
            self._begins(draft, self._shop.clock.now_ns())
        self._tell_text(draft, draft.text.said_chars)

    def complete(self, draft: DraftWork) -> None:
        if draft.number in self._drafts:
            self._end(draft.number, draft.text.said_chars, interrupted=False)

    def played(self, event: SoundBegan | ReplyEnded) -> None:
        """The present reply has begun to sound, or has sounded."""
        match event:
            case SoundBegan(generation=number, at_ns=at_ns):
                self._begins(self._drafts[number], at_ns)
            case ReplyEnded(played=played):
                self._end(played.generation, played.chars, interrupted=False)

    def _begins(self, draft: DraftWork, at_ns: int) -> None:
        draft.record.mark(Mark.FIRST_SOUND, at_ns)
        self._emit(events.ReplyStarted(turn=draft.record.turn, reply=draft.number, at_ns=at_ns))
        self._measure(draft)
        self._shop.tell(stimuli.ReplyBegan(at_ns=at_ns, draft=draft.number))

    def _make(self, number: int, turn: int) -> None:
        self._drafts[number] = DraftWork(number, self._shop, TurnRecord(turn, self._shop.clock), self)

    def _end(self, number: int, said_chars: int, *, interrupted: bool) -> None:
        self._cancel(number)
        draft = self._drafts[number]
        if draft.is_paced:  # else the owner has been told more than was heard
            self._tell_text(draft, said_chars)
        del self._drafts[number]
        passes = draft.text.passes(said_chars)
        heard = "".join(passes).strip()
        now_ns = self._shop.clock.now_ns()
        if Mark.FIRST_SOUND not in draft.record.timeline().marks:
            self._measure(draft)
        self._emit(
            events.ReplyFinished(
                turn=draft.record.turn,
                reply=number,
                at_ns=now_ns,
                heard=heard,
                interrupted=interrupted,
                retracted=interrupted and not heard,
                usage=draft.usage,
                reached_limit=draft.reached_limit and not interrupted,
                unheard=draft.text.unheard(said_chars) if interrupted else "",
            )
        )
        self._shop.tell(stimuli.ReplyEnded(at_ns=now_ns, draft=number, heard=passes))

    def _measure(self, draft: DraftWork) -> None:
        timeline = draft.record.timeline()
        if Mark.SPEECH_ENDED in timeline.marks:  # else it answers nobody and there is nothing to measure
            self._emit(events.TurnMeasured(timeline=timeline))

    def _tell_text(self, draft: DraftWork, said_chars: int) -> None:
        text = draft.text.between(draft.told_chars, said_chars)
        draft.told_chars = max(draft.told_chars, said_chars)
        if text:
            self._emit(events.ReplyText(turn=draft.record.turn, reply=draft.number, text=text))

    def _begin(self, number: int, work: Coroutine[object, object, None]) -> None:
        with claimed(self._drafts[number].claim):
            self._work.setdefault(number, []).append(self._start(work))

    def _cancel(self, number: int) -> None:
        if self._shop.second_pass is not None:
            self._shop.second_pass.drop(number)
        for task in self._work.pop(number, []):
            task.cancel()
