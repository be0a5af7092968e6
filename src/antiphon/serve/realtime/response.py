"""One reply of ours as the protocol tells of it: created, its items, their parts, their deltas, done.

Every event that begins something is followed by the one that ends it, however the reply ends. Items are numbered in
the order in which they first show: the message with the first of its sound or text, a call when the model makes it.
Threads: the event loop. What it does not know: why a reply begins or ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.audio.encoding import to_int16
from antiphon.serve.realtime.items import Item
from antiphon.serve.realtime.output_audio import OutputAudio
from antiphon.serve.realtime.usage import text_usage, usage_wire

if TYPE_CHECKING:
    from antiphon.core.flow import AudioFrame, ToolCall, Usage
    from antiphon.dialogue.options import ReplyOptions
    from antiphon.serve.realtime.call_state import CallState
    from antiphon.serve.realtime.formats import WireFormat
    from antiphon.serve.realtime.outbox import Json
    from antiphon.serve.realtime.output_buffer import OutputBuffer
    from antiphon.serve.realtime.session_fields import Modality

Ending: TypeAlias = Literal["completed", "cancelled", "failed"]
Status: TypeAlias = Literal["completed", "cancelled", "failed", "incomplete"]


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a response is to be, whoever wants it."""

    id: str
    options: ReplyOptions
    modality: Modality
    voice: str
    output_format: WireFormat
    max_output_tokens: int | None
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool = True
    stage: Literal["queued", "waiting", "given", "dropped"] = "queued"  # on its way to the session
    is_cancelled: bool = False  # by the client


@dataclass(slots=True)
class Response:
    """A reply that is under way."""

    plan: Plan
    reply: int  # the session's number of it
    state: CallState
    turn: int = 0  # that it answers, by the session's number
    output: list[Item] = field(default_factory=list)
    message: Item | None = None
    reached_limit: bool = False  # the language model had more to say than it was allowed
    _read: list[str] = field(default_factory=list)  # what the language model was given, for the usage
    _heard_s: float = 0.0

    def open(self) -> None:
        session = self.state.session
        self._read = [session.settings.instructions]
        self._read += [message.call.arguments if message.call else message.text for message in session.messages]
        self._heard_s, self.state.heard_samples = self.state.heard_samples / 16_000, 0
        self.state.outbox.put("response.created", {"response": self._wire("in_progress", None, None)})

    def say(self, text: str) -> None:
        """More of its text."""
        message = self._message()
        if message.output is not None:
            message.output.say(text)
            if message.output.is_cut:
                return
        message.text = (message.text or "") + text
        kind = "output_text" if message.part == "output_text" else "output_audio_transcript"
        self._put(f"response.{kind}.delta", message, {"content_index": 0, "delta": text})

    def sound(self, frame: AudioFrame) -> None:
        """More of its sound."""
        message = self._message()
        if message.output is None:  # a reply that was to be written only
            return
        self.state.heard_voice = self.state.heard_voice or self.plan.voice
        self.state.recordings.add(message.id, to_int16(frame.pcm), frame.rate_hz)
        if self.state.track is not None:
            message.output.count(frame)
            self.state.track.play(self.plan.id, frame)
            return
        self._deltas(message, message.output.push(frame))

    def call(self, call: ToolCall) -> None:
        """The client is to run one of its tools."""
        outbox = self.state.outbox
        item = Item(
            id=outbox.ids.new("item"),
            kind="function_call",
            status="in_progress",
            call=call,
            call_id=call.id,
            history=(f"call-{call.id}",),
        )
        whole: Json = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        item.call = type(call)(call.id, call.name, "")
        self._begin(item)
        item.call = call
        self._put("response.function_call_arguments.delta", item, {"call_id": call.id, "delta": call.arguments})
        self._put("response.function_call_arguments.done", item, whole)
        item.status = "completed"
        self._end(item)

    @property
    def has_calls(self) -> bool:
        """Whether the client was asked to run a tool."""
        return any(item.kind == "function_call" for item in self.output)

    def finish(
        self, ending: Ending, *, reason: str | None = None, error: Json | None = None, measured: Usage | None = None
    ) -> None:
        """No more will come; `measured` is what the language model took, if it knows.

        One that would be complete, but for its limit, is `incomplete`.
        """
        message = self.message
        status: Status = ending
        if ending == "completed" and self.reached_limit:
            status, reason = "incomplete", "max_output_tokens"
        if message is not None:
            self._end_message(message, status)
        details: Json = {"type": status}
        if reason is not None:
            details["reason"] = reason
        if error is not None:
            details["error"] = error
        written = [item.call.arguments if item.call else item.text or "" for item in self.output]
        text = measured or text_usage(self.state.setup.count_tokens, read=self._read, written=written)
        spoken_s = message.output.seconds if message and message.output else 0.0
        usage = usage_wire(text, heard_s=self._heard_s, spoken_s=spoken_s)
        self.state.outbox.put("response.done", {"response": self._wire(status, details, usage)})
        if self.state.track is not None:
            self._end_sound(self.state.track, heard_out=status in {"completed", "incomplete"})

    def _end_sound(self, track: OutputBuffer, *, heard_out: bool) -> None:
        if self.message is None or self.message.output is None or not self.message.output.samples:
            return
        if heard_out:
            track.finish(self.plan.id)
        else:
            track.clear()

    def _message(self) -> Item:
        if self.message is not None:
            return self.message
        is_text = self.plan.modality == "text"
        item = Item(
            id=self.state.outbox.ids.new("item"),
            kind="message",
            role="assistant",
            status="in_progress",
            text="",
            history_prefix=f"reply-{self.reply}-",
            output=None if is_text else OutputAudio(self.plan.output_format),
        )
        self._begin(item)
        item.part = "output_text" if is_text else "output_audio"
        part: Json = {"type": "text", "text": ""} if is_text else {"type": "audio", "transcript": ""}
        self._put("response.content_part.added", item, {"content_index": 0, "part": part})
        self.message = item
        return item

    def _end_message(self, item: Item, status: Status) -> None:
        text = item.text or ""
        if item.output is None:
            self._put("response.output_text.done", item, {"content_index": 0, "text": text})
            part: Json = {"type": "text", "text": text}
        else:
            if status in {"completed", "incomplete"}:  # all that was made of it has sounded
                self._deltas(item, item.output.finish())
            self._put("response.output_audio.done", item, {"content_index": 0})
            self._put("response.output_audio_transcript.done", item, {"content_index": 0, "transcript": text})
            part = {"type": "audio", "transcript": text}
        self._put("response.content_part.done", item, {"content_index": 0, "part": part})
        item.status = "completed" if status == "completed" else "incomplete"
        self._end(item)

    def _deltas(self, item: Item, deltas: list[str]) -> None:
        for delta in deltas:
            self._put("response.output_audio.delta", item, {"content_index": 0, "delta": delta})

    def _begin(self, item: Item) -> None:
        self.output.append(item)
        self._put_item("response.output_item.added", item)
        self.state.add_item(item, is_done=False)

    def _end(self, item: Item) -> None:
        self.state.item_done(item)
        self._put_item("response.output_item.done", item)

    def _put(self, kind: str, item: Item, fields: Json) -> None:
        place = {"response_id": self.plan.id, "item_id": item.id, "output_index": self.output.index(item)}
        self.state.outbox.put(kind, {**place, **fields})

    def _put_item(self, kind: str, item: Item) -> None:
        place = {"response_id": self.plan.id, "output_index": self.output.index(item)}
        self.state.outbox.put(kind, {**place, "item": item.wire()})

    def _wire(self, status: str, details: Json | None, usage: Json | None) -> Json:
        plan = self.plan
        return {
            "object": "realtime.response",
            "id": plan.id,
            "status": status,
            "status_details": details,
            "output": [item.wire() for item in self.output],
            "conversation_id": self.state.conversation_id,
            "output_modalities": [plan.modality],
            "max_output_tokens": plan.max_output_tokens or "inf",
            "audio": {"output": {"format": plan.output_format.wire, "voice": plan.voice}},
            "usage": usage,
            "metadata": plan.metadata,
        }
