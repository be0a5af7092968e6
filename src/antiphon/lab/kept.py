"""A reply that was broken off -> how much of it the caller heard, and how much the server says it kept.

Pure. Units: ms of the item's sound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.lab.dialect import Json
    from antiphon.lab.loudspeaker import ItemSound
    from antiphon.lab.sound_format import SoundFormat


@dataclass(slots=True)
class Stop:
    """The caller stopped listening because the server had heard it."""

    at_ns: int
    sound: ItemSound
    kept_ms: float | None = None  # what the server kept; None: it does not say

    @property
    def heard_ms(self) -> float:
        heard = self.sound.samples if self.sound.cut_samples is None else self.sound.cut_samples
        return heard * 1000 / self.sound.rate_hz


def kept_ms(event: Json, item: str, wire_format: SoundFormat) -> float | None:
    """What `conversation.item.truncated` or `.retrieved` says of an item; None: nothing.

    The former tells what was asked for, the latter, if it brings the item's sound, what is there.
    """
    if event["type"] == "conversation.item.truncated":
        end_ms = event.get("audio_end_ms")
        is_meant = event.get("item_id") == item and isinstance(end_ms, (int, float))
        return float(str(end_ms)) if is_meant else None
    found = event.get("item")
    if not isinstance(found, dict) or found.get("id") != item or not isinstance(found.get("content"), list):
        return None
    parts = (part.get("audio") for part in found["content"] if isinstance(part, dict))
    sounds = [sound for sound in parts if isinstance(sound, str)]
    if not sounds:
        return None
    size_bytes = sum(len(sound) * 3 // 4 - sound[-2:].count("=") for sound in sounds)
    return size_bytes / wire_format.encoding.width_bytes * 1000 / wire_format.rate_hz
