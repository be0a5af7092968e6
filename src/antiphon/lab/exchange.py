"""The server's events during one turn of the caller's -> its replies, what it heard, and when each thing came.

Pure: time comes in. Bounds: an exchange lasts as long as a turn, and keeps of each reply's sound only when it was
audible; of events of one kind the first or the last, of errors and replies the first few.
Units: ns of the clock. What it does not know: the line, other turns.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.lab.loudspeaker import ItemSound

if TYPE_CHECKING:
    from antiphon.lab.dialect import Json
    from antiphon.lab.kept import Stop
    from antiphon.lab.loudspeaker import Loudspeaker
    from antiphon.lab.microphone import Said
    from antiphon.lab.sound_format import SoundFormat

MOST_REPLIES = 50  # of one turn; what goes beyond is heard, but not counted
MOST_ERRORS = 3
MOST_ITEMS = 100
MOST_ERROR_CHARS = 200
COMMITTED = "input_audio_buffer.committed"
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
_TURN_EVENTS = {
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    COMMITTED,
    TRANSCRIBED,
}


@dataclass(slots=True)
class Reply:
    """One response."""

    name: str
    opened_ns: int  # its first event
    sounds: dict[str, ItemSound] = field(default_factory=dict)  # by item
    texts: dict[str, str] = field(default_factory=dict)
    first_sound_ns: int | None = None  # its first delta, audible or not
    ended_ns: int | None = None
    status: str = ""
    failure: str = ""

    @property
    def first_ns(self) -> int | None:
        """When its first audible sample is heard."""
        return min((ns for sound in self.sounds.values() if (ns := sound.first_ns) is not None), default=None)

    @property
    def last_ns(self) -> int | None:
        """When its last audible sample has been heard."""
        return max((ns for sound in self.sounds.values() if (ns := sound.last_ns) is not None), default=None)


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One turn, and what came of it."""

    said: Said
    over: tuple[Reply, ...] = ()  # replies that the caller talks over on purpose
    replies: dict[str, Reply] = field(default_factory=dict)
    items: dict[str, dict[str, int]] = field(default_factory=dict)  # that the turn became: (event, when) of each
    transcripts: dict[str, str] = field(default_factory=dict)  # by item
    stages_ms: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    stop: Stop | None = None
    talked_over_ns: int | None = None  # the caller spoke again, and a server that fell silent was right to
    lost: str = ""  # the line, and why

    @property
    def came_ns(self) -> dict[str, int]:
        """When the turn's events came; an utterance that was split is committed twice, and its last item counts.

        A cough behind it is no part of the turn: an item that was never committed, or one without words to which
        nothing was replied.
        """
        came: dict[str, int] = {}
        some_are_committed = any(COMMITTED in events for events in self.items.values())
        for item, events in self.items.items():
            if (COMMITTED in events or not some_are_committed) and not self._is_cough(item, events):
                came |= events
        return came

    def _is_cough(self, item: str, events: dict[str, int]) -> bool:
        if self.transcripts.get(item, "?").strip():
            return False
        since_ns = min(events.values())
        return not any(reply.opened_ns >= since_ns for reply in self.replies.values())

    @property
    def broken_off(self) -> ItemSound | None:
        """The last sound of what was talked over, if the server did not bring it to its end."""
        sounds = [sound for reply in self.over if reply.status != "completed" for sound in reply.sounds.values()]
        return sounds[-1] if sounds else None

    def is_known(self, event: Json) -> bool:
        """Whether an event tells more of a reply or of an item that began in this exchange."""
        if event["type"] in _TURN_EVENTS:
            return event.get("item_id") in self.items
        return _reply_name(event) in self.replies

    def take(self, event: Json, at_ns: int, speaker: Loudspeaker, wire_format: SoundFormat) -> None:
        """One event of the server's; whatever it holds, this does not raise."""
        kind = event["type"]
        if kind in _TURN_EVENTS:
            item = str(event.get("item_id"))
            if item in self.items or len(self.items) < MOST_ITEMS:
                self.items.setdefault(item, {})[kind] = at_ns
        if kind == TRANSCRIBED:
            if len(self.transcripts) < MOST_ITEMS:
                self.transcripts[str(event.get("item_id"))] = str(event.get("transcript") or "")
        elif kind == "error":
            self.add_error(event.get("error"))
        elif kind.startswith("response.") and (reply := self._reply(event, at_ns)) is not None:
            _tell(reply, event, at_ns, speaker, wire_format)

    def take_stages(self, event: Json) -> None:
        """The server's own stamps of the turn."""
        stages = event.get("stages")
        for name, ms in stages.items() if isinstance(stages, dict) else ():
            if isinstance(ms, (int, float)) and len(self.stages_ms) < MOST_ITEMS:
                self.stages_ms[str(name)] = float(ms)

    def add_error(self, error: object) -> None:
        """What an `error` event says, cut short."""
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(shown_error(error))

    def _reply(self, event: Json, at_ns: int) -> Reply | None:
        name = _reply_name(event)
        if name not in self.replies and len(self.replies) < MOST_REPLIES:
            self.replies[name] = Reply(name, at_ns)
        return self.replies.get(name)

    @property
    def active(self) -> list[Reply]:
        """Replies that go on."""
        return [reply for reply in self.replies.values() if reply.ended_ns is None]

    @property
    def audible(self) -> list[Reply]:
        """Replies of which something is heard, the earliest first."""
        heard = [(ns, reply) for reply in self.replies.values() if (ns := reply.first_ns) is not None]
        return [reply for _, reply in sorted(heard, key=lambda pair: pair[0])]

    @property
    def answer(self) -> Reply | None:
        """The first reply that is heard after the true end and stands; of a cut-in too, the one that comes later."""
        heard = (reply for reply in self.audible if (reply.first_ns or 0) >= self.said.spoken_ns)
        return next((reply for reply in heard if not self._is_taken_back(reply)), None)

    def _is_taken_back(self, reply: Reply) -> bool:
        """Whether the server cancelled a reply that nobody talked over: it had answered half of the turn, say."""
        if reply.status != "cancelled":
            return False
        return self.talked_over_ns is None or (reply.ended_ns or 0) < self.talked_over_ns


def shown_error(error: object) -> str:
    """Code and message of an `error` event, in one line."""
    if not isinstance(error, dict):
        return "error"
    words = (str(error.get(name) or "") for name in ("code", "type", "message"))
    code, kind, message = words
    return f"{code or kind or 'error'}: {message}"[:MOST_ERROR_CHARS]


def _reply_name(event: Json) -> str:
    inner = event.get("response")
    name = inner.get("id") if isinstance(inner, dict) else event.get("response_id")
    return str(name or event.get("item_id") or "")


def _tell(reply: Reply, event: Json, at_ns: int, speaker: Loudspeaker, wire_format: SoundFormat) -> None:
    item = str(event.get("item_id") or reply.name)
    match event["type"]:
        case "response.output_audio.delta":
            if reply.first_sound_ns is None:
                reply.first_sound_ns = at_ns
            if item not in reply.sounds and len(reply.sounds) < MOST_ITEMS:
                reply.sounds[item] = ItemSound(item, wire_format)
            if (sound := reply.sounds.get(item)) is not None:
                speaker.push(sound, _bytes(event.get("delta")), at_ns)
        case "response.output_audio_transcript.delta" | "response.output_text.delta":
            reply.texts[item] = reply.texts.get(item, "") + str(event.get("delta") or "")
        case "response.output_audio_transcript.done" | "response.output_text.done":
            told = event.get("transcript") or event.get("text")
            reply.texts[item] = str(told or reply.texts.get(item, ""))
        case "response.done":
            _end(reply, event, at_ns)
        case _:
            pass


def _end(reply: Reply, event: Json, at_ns: int) -> None:
    inner = event.get("response")
    told = inner if isinstance(inner, dict) else {}
    reply.ended_ns = at_ns
    reply.status = str(told.get("status") or "completed")
    for sound in reply.sounds.values():
        sound.finish()
    if reply.status == "failed":
        details = told.get("status_details")
        reply.failure = shown_error(details.get("error") if isinstance(details, dict) else None)


def _bytes(delta: object) -> bytes:
    try:
        return b64decode(delta) if isinstance(delta, str) else b""
    except (binascii.Error, ValueError):
        return b""
