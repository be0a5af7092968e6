"""Orders about replies in; work on them, and events about what is heard of them, out.

Holds every draft from the caller's pause until it is dropped or its last sound has left.
Threads: the event loop. What it does not know: why something is ordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.stamps import Mark
from antiphon.dialogue import stimuli
from antiphon.session import events
from antiphon.session.draft import DraftWork
from antiphon.session.record import TurnRecord
from antiphon.speak.player import ReplyEnded, SoundBegan

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Sequence

    from antiphon.core.flow import AudioFrame, Message, Pcm, ToolCall
    from antiphon.session.draft import Workshop
    from antiphon.session.tool_runs import ToolRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """What the replies need of the session."""

    start: Callable[[Coroutine[object, object, None]], asyncio.Task[None]]
    emit: Callable[[events.Event], None]


class Replies:
    """Of one conversation."""

    def __init__(self, shop: Workshop, tools: ToolRuns, owner: Owner) -> None:
        self._shop = shop
        self._tools = tools
        self._owner = owner
        self._drafts: dict[int, DraftWork] = {}
        self._work: dict[int, list[asyncio.Task[None]]] = {}

    @property
    def under_way(self) -> int:
        """How many drafts and replies there are."""
        return len(self._drafts)

    def record(self, number: int) -> TurnRecord:
        """The stamps of a draft."""
        return self._drafts[number].record

    # Orders.

    def hear(self, number: int, record: TurnRecord, until_samples: int) -> None:
        """A draft begins: find out what was said."""
        draft = self._drafts[number] = DraftWork(number, self._shop, record)
        self._work[number] = [self._owner.start(draft.hear(until_samples))]

    def judge_voice(self, number: int, pcm: Pcm) -> None:
        self._begin(number, self._drafts[number].judge_voice(pcm))

    def write(self, number: int, messages: Sequence[Message], *, may_use_tools: bool) -> None:
        self._begin(number, self._drafts[number].write(messages, may_use_tools=may_use_tools))

    def say(self, number: int, text: str, *, is_whole: bool, turn: int) -> None:
        """Voice a given text; a whole one is a reply of its own."""
        if is_whole:
            self._drafts[number] = DraftWork(number, self._shop, TurnRecord(turn, self._shop.clock))
        self._begin(number, self._drafts[number].say(text, is_whole=is_whole))

    def run_tool(self, number: int, call: ToolCall) -> None:
        self._tools.run(self._drafts[number], call)

    def play(self, number: int, turn: int, now_ns: int) -> None:
        """Let it be heard, as the answer to that turn: noise may have brought the answer to an earlier one."""
        draft = self._drafts[number]
        draft.record.turn = turn
        draft.record.mark(Mark.CONFIRMED, now_ns)
        draft.confirmed.set()
        self._tools.confirmed(number)

    def duck(self, number: int, now_ns: int, *, soft: bool) -> None:
        self._shop.player.duck(number, soft=soft)
        turn = self._drafts[number].record.turn
        self._owner.emit(events.ReplyDucked(turn=turn, reply=number, at_ns=now_ns, soft=soft))

    def pause(self, number: int, now_ns: int) -> None:
        draft = self._drafts[number]
        draft.hold()
        self._shop.player.pause(number)
        self._owner.emit(events.ReplyPaused(turn=draft.record.turn, reply=number, at_ns=now_ns, resumed=False))

    def resume(self, number: int, now_ns: int) -> None:
        draft = self._drafts.get(number)
        if draft is None:  # it failed while it was held
            return
        draft.go_on()
        self._shop.player.resume(number)
        self._owner.emit(events.ReplyPaused(turn=draft.record.turn, reply=number, at_ns=now_ns, resumed=True))

    def stop(self, number: int) -> None:
        if number not in self._drafts:
            return
        self._cancel(number)
        played = self._shop.player.stop(number)
        self._end(number, played.chars if played else 0, interrupted=True)

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

    def close(self) -> None:
        for number in tuple(self._work):
            self._cancel(number)
        self._tools.close()

    # From the player.

    def sounds(self, frame: AudioFrame) -> None:
        """The next frame of the present reply is due."""
        played = self._shop.player.played()
        draft = self._drafts[played.generation]
        self._owner.emit(events.ReplyAudio(turn=draft.record.turn, reply=draft.number, frame=frame))
        self._tell_text(draft, played.chars)

    def played(self, event: SoundBegan | ReplyEnded) -> None:
        """The present reply has begun to sound, or has sounded."""
        match event:
            case SoundBegan(generation=number, at_ns=at_ns):
                draft = self._drafts[number]
                draft.record.mark(Mark.FIRST_SOUND, at_ns)
                self._owner.emit(events.ReplyStarted(turn=draft.record.turn, reply=number, at_ns=at_ns))
                self._measure(draft)
                self._shop.tell(stimuli.ReplyBegan(at_ns=at_ns, draft=number))
            case ReplyEnded(played=played):
                self._end(played.generation, played.chars, interrupted=False)

    def _end(self, number: int, said_chars: int, *, interrupted: bool) -> None:
        self._cancel(number)
        draft = self._drafts[number]
        self._tell_text(draft, said_chars)
        del self._drafts[number]
        passes = draft.text.passes(said_chars)
        heard = "".join(passes).strip()
        now_ns = self._shop.clock.now_ns()
        if Mark.FIRST_SOUND not in draft.record.timeline().marks:
            self._measure(draft)
        self._owner.emit(
            events.ReplyFinished(
                turn=draft.record.turn,
                reply=number,
                at_ns=now_ns,
                heard=heard,
                interrupted=interrupted,
                retracted=interrupted and not heard,
            )
        )
        self._shop.tell(stimuli.ReplyEnded(at_ns=now_ns, draft=number, heard=passes))

    def _measure(self, draft: DraftWork) -> None:
        timeline = draft.record.timeline()
        if Mark.SPEECH_ENDED in timeline.marks:  # else it answers nobody and there is nothing to measure
            self._owner.emit(events.TurnMeasured(timeline=timeline))

    def _tell_text(self, draft: DraftWork, said_chars: int) -> None:
        text = draft.text.between(draft.told_chars, said_chars)
        draft.told_chars = max(draft.told_chars, said_chars)
        if text:
            self._owner.emit(events.ReplyText(turn=draft.record.turn, reply=draft.number, text=text))

    def _begin(self, number: int, work: Coroutine[object, object, None]) -> None:
        self._work.setdefault(number, []).append(self._owner.start(work))

    def _cancel(self, number: int) -> None:
        for task in self._work.pop(number, []):
            task.cancel()
