"""The caller's side of a call: what the client appends, and the turns that are made of it.

Where the voice ends turns, a turn's item is announced when it begins and comes into the conversation when it is over.
Where the client ends them, the item is there with the commit, and its words follow. Until they are known, whatever
else the client does to the conversation waits, so that the session sees the same order as the client.
Units: samples at HEARING_RATE_HZ since the session began. Threads: the event loop.
What it does not know: responses.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import samples_to_ns
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame
from antiphon.dialogue.state import Phase
from antiphon.serve.realtime.errors import RefusedError
from antiphon.serve.realtime.input_buffer import SAMPLES_PER_MS, InputBuffer, to_ms
from antiphon.serve.realtime.items import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antiphon.serve.realtime.call_state import CallState
    from antiphon.serve.realtime.fields import Fields
    from antiphon.serve.realtime.formats import WireFormat
    from antiphon.serve.realtime.outbox import Json
    from antiphon.session import events

MOST_APPENDED_BYTES = 15 * 2**20
SLICE_MS = 200  # of sound at once, about 3 ms of voice detection
MOST_UNCOMMITTED_S = 360  # where the client ends turns; more than one append of 15 MiB at 24 kHz
LEAST_COMMITTED_MS = 100
_PADDING_SAMPLES = HEARING_RATE_HZ // 5  # kept of the sound behind the last word


@dataclass(slots=True)
class Turn:
    """One of the caller's, on its way into the conversation."""

    item: Item
    start_samples: int
    is_announced: bool = False  # by speech_started
    is_committed: bool = False  # its item is in the conversation
    told: str = ""  # of its transcript


class Caller:
    """Of one call."""

    def __init__(self, state: CallState) -> None:
        self._state = state
        self._buffer = InputBuffer(state.fields.input_format, state.clock)
        self._mark_samples = 0  # where what is not committed begins
        self._mark_appended = 0  # the same, counting what the resampler holds back
        self._turn: tuple[int, Turn] | None = None  # the session's number of the turn under way
        self._begun: Turn | None = None  # by the voice, before the client began to end turns
        self._awaited: tuple[int, Turn] | None = None  # committed by the client, words not known
        self._waiting: deque[tuple[bool, Callable[[], None]]] = deque()  # (is sound, what to do)
        self._fresh: deque[AudioFrame] = deque()  # appended, and not yet heard
        self._provisional: dict[int, tuple[Turn, int]] = {}  # over, and heard again; with where they end
        self._failure = ""  # of recognition, in the turn under way
        self._idle_from_samples = 0

    # From the client.

    def append(self, event: Fields) -> None:
        """`input_audio_buffer.append`.

        Raises:
            RefusedError: no base64, too much at once, or too much that was never committed.
        """
        data = _sound_in(event)
        if self._is_by_hand:
            after = self._uncommitted + self._buffer.duration_samples(len(data))
            if after > MOST_UNCOMMITTED_S * HEARING_RATE_HZ:
                raise RefusedError(
                    f"more than {MOST_UNCOMMITTED_S} s of sound wait to be committed",
                    code="input_audio_buffer_full",
                    param="audio",
                    hint="commit the buffer or clear it",
                )
        self._give(self._buffer.push(data), at_once=False)

    def hear(self, frame: AudioFrame) -> None:
        """Sound that came over a track, captured when the frame says.

        Raises:
            RefusedError: too much that was never committed; it is forgotten, and what comes now is kept.
        """
        self._give(self._buffer.take(frame))
        if self._is_by_hand and self._uncommitted > MOST_UNCOMMITTED_S * HEARING_RATE_HZ:
            self.clear()
            raise RefusedError(
                f"{MOST_UNCOMMITTED_S} s of sound waited to be committed, and were cleared",
                code="input_audio_buffer_full",
                hint="commit the buffer or clear it, or stop the track while nobody speaks",
            )

    def feed_a_slice(self) -> bool:
        """Let the session hear the next of what was appended; False if there is none.

        A client may append minutes at once, and voice detection takes a hundredth of that: others want their turn.
        """
        if not self._fresh:
            return False
        self._state.session.feed(self._fresh.popleft())
        return True

    def commit(self) -> None:
        """`input_audio_buffer.commit`.

        Raises:
            RefusedError: there is nothing to commit.
        """
        if not self._is_by_hand:
            if self._state.session.dialogue.phase not in {Phase.HEARING, Phase.DRAFTING}:
                raise _empty(0)
            self._state.session.commit()
            return
        if self._uncommitted < LEAST_COMMITTED_MS * SAMPLES_PER_MS:
            raise _empty(self._uncommitted)
        self._give(self._buffer.flush())
        turn = self._begun or Turn(Item(id=self._new_id(), kind="message"), self._mark_samples)
        self._begun = None
        end_samples = self._buffer.end_samples
        if turn.is_announced:
            self._put("speech_stopped", turn, {"audio_end_ms": to_ms(end_samples)})
        turn.item.status = "in_progress"
        self._enter(turn, end_samples)
        self._mark()
        self.later(lambda: self._commit(turn))

    def clear(self) -> None:
        """`input_audio_buffer.clear`: what is committed stays."""
        while self._waiting and self._waiting[-1][0]:
            self._waiting.pop()
        self._give(self._buffer.flush())
        while self._waiting and self._waiting[-1][0]:
            self._waiting.pop()
        if self._awaited is None:
            self._state.session.clear()
            self._forget_turn()
        self._mark()
        self._state.outbox.put("input_audio_buffer.cleared", {})

    def change_format(self, wire_format: WireFormat) -> None:
        """What follows is written otherwise."""
        self._give(self._buffer.change(wire_format))

    def now_by_hand(self) -> None:
        """From here on the client ends turns: one that the voice has begun as well, unless it was just ending."""
        self._mark()
        if self._turn is not None and self._state.session.dialogue.phase is not Phase.DRAFTING:
            self._begun, self._turn = self._turn[1], None
            self._mark_appended -= self._mark_samples - self._begun.start_samples
            self._mark_samples = self._begun.start_samples

    def now_by_voice(self) -> None:
        """From here on the voice ends turns; what was not committed is no part of any."""
        self._forget_turn()
        self._mark()

    def later(self, act: Callable[[], None]) -> None:
        """Do this once the turns that were committed before are known: now, if there is none."""
        self._waiting.append((False, act))
        self._go_on()

    # From the session.

    def started(self, event: events.TurnStarted) -> None:
        """A voice that ends its turn itself began to speak; a turn that the client ended is known already."""
        if self._awaited is None and not self._is_by_hand and (self._turn is None or self._turn[0] != event.turn):
            self._announce(event.turn, event.start_samples)

    def words(self, event: events.WordsHeard) -> None:
        """More of its words are sure."""
        if self._turn is not None and self._turn[0] == event.turn:
            heard = event.transcript
            self._tell_words(self._turn[1], heard.text[: heard.stable_chars])

    def confirmed(self, event: events.TurnConfirmed) -> None:
        turn = self._known(event.turn)
        if turn is None:
            turn = self._announce(event.turn, event.end_samples)
        end_samples = max(turn.start_samples, event.end_samples)
        if event.provisional:
            self._provisional[event.turn] = turn, end_samples
        self._end(turn, event.turn, end_samples, event.text)

    def corrected(self, event: events.TurnCorrected) -> None:
        """What was said is known for sure: now its transcript is complete."""
        turn, end_samples = self._provisional.pop(event.turn, (None, 0))
        if turn is not None:
            turn.item.text = event.text
            self._tell_transcript(turn, event.text, end_samples)

    def abandoned(self, event: events.TurnAbandoned) -> None:
        """It says nothing: an item whose transcript is empty, so that a client that was told of it need not wait."""
        turn = self._known(event.turn)
        if turn is not None:
            self._end(turn, event.turn, self._buffer.end_samples, "")

    def recognition_failed(self, message: str) -> None:
        """In case the turn under way comes to nothing because of it."""
        self._failure = message

    def reply_ended(self) -> None:
        """Nobody speaks from here on, until somebody does."""
        self._idle_from_samples = self._buffer.end_samples

    def idled(self) -> None:
        """Nobody has spoken for so long that it is a turn of its own, without words."""
        turn = Turn(Item(id=self._new_id(), kind="message"), self._idle_from_samples)
        self._state.outbox.put(
            "input_audio_buffer.timeout_triggered",
            {
                "item_id": turn.item.id,
                "audio_start_ms": to_ms(turn.start_samples),
                "audio_end_ms": to_ms(self._buffer.end_samples),
            },
        )
        turn.item.text = ""
        self._enter(turn, turn.start_samples)
        self._state.item_done(turn.item)
        self._idle_from_samples = self._buffer.end_samples

    # Inside.

    @property
    def _is_by_hand(self) -> bool:
        return self._state.fields.turn_taking is None

    @property
    def _uncommitted(self) -> int:
        return self._buffer.appended_samples - self._mark_appended

    def _mark(self) -> None:
        self._mark_samples = self._buffer.end_samples
        self._mark_appended = self._buffer.appended_samples

    def _give(self, frames: list[AudioFrame], *, at_once: bool = True) -> None:
        for frame in (part for whole in frames for part in _slices(whole)):
            if self._waiting or self._awaited:
                self._waiting.append((True, lambda frame=frame: self._state.session.feed(frame)))  # type: ignore[misc]
            else:
                self._fresh.append(frame)
        while at_once and self.feed_a_slice():
            pass

    def _go_on(self) -> None:
        while self._waiting and self._awaited is None:
            self._waiting.popleft()[1]()

    def _commit(self, turn: Turn) -> None:
        session = self._state.session
        is_next = session.dialogue.phase is Phase.DRAFTING  # the present one ended by the voice
        self._awaited = session.dialogue.turn + is_next, turn
        session.commit()

    def _known(self, number: int) -> Turn | None:
        """The turn that the session calls so; one that the client ended may have got another number meanwhile."""
        if self._awaited is not None and number >= self._awaited[0]:
            return self._awaited[1]
        if self._turn is not None and self._turn[0] == number:
            return self._turn[1]
        return None

    def _announce(self, number: int, start_samples: int) -> Turn:
        turn = Turn(Item(id=self._new_id(), kind="message"), start_samples, is_announced=True)
        self._turn = number, turn
        self._put("speech_started", turn, {"audio_start_ms": to_ms(start_samples)})
        return turn

    def _forget_turn(self) -> None:
        """The voice that was announced comes to nothing."""
        turn = self._begun or (self._turn[1] if self._turn else None)
        self._begun = self._turn = None
        if turn is not None:
            self._put("speech_stopped", turn, {"audio_end_ms": to_ms(self._buffer.end_samples)})

    def _end(self, turn: Turn, number: int, end_samples: int, text: str) -> None:
        """All of it is known."""
        if not turn.is_committed:
            self._put("speech_stopped", turn, {"audio_end_ms": to_ms(end_samples)})
            self._enter(turn, end_samples)
        turn.item.text, turn.item.status = text, "completed"
        turn.item.history = (f"turn-{number}",)
        if number not in self._provisional:
            self._tell_transcript(turn, text, end_samples)
        self._state.item_done(turn.item)
        self._turn_over(turn)

    def _turn_over(self, turn: Turn) -> None:
        self._failure = ""
        if self._turn is not None and self._turn[1] is turn:
            self._turn = None
        if self._awaited is not None and self._awaited[1] is turn:
            self._awaited = None
            self._go_on()

    def _enter(self, turn: Turn, end_samples: int) -> None:
        """Its item comes into the conversation."""
        state = self._state
        turn.is_committed = True
        turn.item.part = "input_audio"
        sound = self._buffer.sound(turn.start_samples, end_samples + _PADDING_SAMPLES)
        state.recordings.add(turn.item.id, sound, HEARING_RATE_HZ)
        state.heard_samples += max(0, end_samples - turn.start_samples)
        committed = {"item_id": turn.item.id, "previous_item_id": state.conversation.last()}
        state.outbox.put("input_audio_buffer.committed", committed)
        state.add_item(turn.item, is_done=False)

    def _tell_words(self, turn: Turn, text: str) -> None:
        if self._state.fields.transcription is None or not text.startswith(turn.told) or len(text) <= len(turn.told):
            return
        self._tell(turn, "delta", {"delta": text[len(turn.told) :]})
        turn.told = text

    def _tell_transcript(self, turn: Turn, text: str, end_samples: int) -> None:
        if self._state.fields.transcription is None:
            return
        if self._failure and not text:
            self._tell(turn, "failed", {"error": {"type": "server_error", "message": self._failure}})
            return
        self._tell_words(turn, text)
        seconds = max(0, end_samples - turn.start_samples) / HEARING_RATE_HZ
        usage = {"type": "duration", "seconds": seconds}
        self._tell(turn, "completed", {"transcript": text, "usage": usage})

    def _tell(self, turn: Turn, kind: str, fields: Json) -> None:
        place = {"item_id": turn.item.id, "content_index": 0}
        self._state.outbox.put(f"conversation.item.input_audio_transcription.{kind}", {**place, **fields})

    def _put(self, kind: str, turn: Turn, fields: Json) -> None:
        self._state.outbox.put(f"input_audio_buffer.{kind}", {"item_id": turn.item.id, **fields})

    def _new_id(self) -> str:
        return self._state.outbox.ids.new("item")


def _sound_in(event: Fields) -> bytes:
    text = event.text("audio", most_chars=2**62)
    if text is None:
        event.require("audio")
        return b""
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RefusedError("audio is not valid base64", code="invalid_base64", param="audio") from None
    if len(data) > MOST_APPENDED_BYTES:
        raise RefusedError(
            f"audio holds {len(data)} bytes", param="audio", hint=f"append {MOST_APPENDED_BYTES} bytes at once at most"
        )
    return data


def _empty(samples: int) -> RefusedError:
    return RefusedError(
        f"the buffer holds {samples / SAMPLES_PER_MS:.1f} ms of sound that is not committed",
        code="input_audio_buffer_commit_empty",
        hint=f"{LEAST_COMMITTED_MS} ms are needed",
    )


def _slices(frame: AudioFrame) -> Iterator[AudioFrame]:
    """The frame in parts of at most SLICE_MS."""
    size = frame.rate_hz * SLICE_MS // 1000
    for start in range(0, len(frame.pcm), size):
        part = frame.pcm[start : start + size]
        captured_ns = frame.captured_ns + samples_to_ns(start, frame.rate_hz)
        yield AudioFrame(part, frame.rate_hz, frame.pos_samples + start, captured_ns)
