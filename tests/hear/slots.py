"""What is heard of a turn, and whether an order was: a slot counts when its words occur in the transcript."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import soundfile
from tests.hear.sounds import frames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from antiphon.core.flow import Pcm, Transcript
    from antiphon.hear.recognizer import Recognizer

# The card of a cafe, as a barista's agent would give it to the recognizer.
MENU = [
    *("espresso", "latte", "cappuccino", "americano", "mocha", "macchiato", "flat white", "drip coffee"),
    *("house coffee", "iced coffee", "single shot", "double shot", "triple shot", "light roast", "medium roast"),
    *("dark roast", "small", "medium", "large", "eight ounce", "twelve ounce", "sixteen ounce", "twenty ounce"),
    *("whole milk", "skim milk", "soy milk", "almond milk", "cream", "brown sugar"),
]

_SAME = {
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "eight": "8",
    "ten": "10",
    "twelve": "12",
    "sixteen": "16",
    "twenty": "20",
    "oz": "ounce",
    "ounces": "ounce",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One clip of the corpus, brought to where its speech lies."""

    name: str
    kind: str
    pcm: Pcm
    start_samples: int  # of the speech
    end_samples: int
    pauses: Sequence[tuple[int, int]]  # inside the turn
    slots: Mapping[str, str]


def orders(folder: Path, kind: str) -> list[Order]:
    """All clips of one kind."""
    found = []
    for line in (folder / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] != kind:
            continue
        pcm, rate_hz = soundfile.read(folder / entry["file"], dtype="float32")
        found.append(
            Order(
                name=entry["file"],
                kind=kind,
                pcm=pcm,
                start_samples=round(entry["speech_start_s"] * rate_hz),
                end_samples=round(entry["speech_end_s"] * rate_hz),
                pauses=[(round(a * rate_hz), round(b * rate_hz)) for a, b in entry["inner_pauses_s"]],
                slots=entry["slots"],
            )
        )
    return found


def words(text: str) -> list[str]:
    """The words as they are compared: numbers as digits, one spelling of an ounce."""
    text = text.lower().replace("%", " percent ")
    text = re.sub(r"(\d+)\s*(?:oz|ounces?)\b", r"\1 ounce", text)
    return [_SAME.get(word, word) for word in re.findall(r"[a-z0-9]+", text)]


def heard(slot: str, text: str) -> bool:
    """Whether all words of the slot occur."""
    return set(words(slot)) <= set(words(text))


def loops(text: str) -> bool:
    """Whether some run of up to eight words stands three times in a row."""
    said = words(text)
    return any(
        said[start : start + size] == said[start + size : start + 2 * size] == said[start + 2 * size : start + 3 * size]
        for size in range(1, 9)
        for start in range(len(said) - 3 * size + 1)
    )


def transcript(recognizer: Recognizer, pcm: Pcm, vocabulary: Sequence[str] = ()) -> Transcript:
    """What a turn of just this sound says."""

    async def listen() -> Transcript:
        heard = recognizer.open(vocabulary)
        heard.begin(0)
        for frame in frames(pcm):
            heard.feed(frame)
        return await heard.transcribe(len(pcm), final=True)

    return asyncio.run(listen())


def said(recognizer: Recognizer, pcm: Pcm, vocabulary: Sequence[str] = ()) -> list[str]:
    return words(transcript(recognizer, pcm, vocabulary).text)
