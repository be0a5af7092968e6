"""How exact is it which words have been heard when a reply is cut off?

30 replies go through the chunker and the voice as in a conversation; their pieces are laid end to end as playout does.
For every word, the first sample at which `SpeechPiece.chars_heard` counts it as said is compared with the moment at
which it ends for somebody who only has the sound: Whisper's cross-attention, aligned with the known text.

Regime: the sound alone matters, not how fast it was made, so that load changes nothing. Whisper places words in steps
of 20 ms and has a bias of its own, so the signed median is given beside the absolute one, and where the sound falls
silent at a word's end, our place and Whisper's are both compared with that.
What would falsify it: a median of the absolute difference above 100 ms over the 30 replies.
Positive: we count the word later than Whisper hears it end; negative: earlier, which would put unheard words into the
history.

Usage: python bench/heard_text.py [--voice NAME] [--replies N] [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.resample import resample
from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.hear.mel import COLUMNS_PER_SECOND, HOP_SAMPLES, MelStream
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.lab.machine import fingerprint
from antiphon.models.store import Store
from antiphon.scheduling.lanes import ThreadLane
from antiphon.speak.voices import load_voice
from antiphon.think.chunker import Chunker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import Pcm, SpeechPiece
    from antiphon.speak.synthesizer import Synthesizer

ROOT = Path(__file__).parents[1]
TARGET_MS = 100
REPLIES = (
    "Sure, I can do that for you. Would you like it hot or iced today?",
    "Your total comes to $14.75, and your order will be ready in about eight minutes.",
    "I have booked a table for Dr. Patel at 7:30pm on Friday, March 14th.",
    "The next train to Birmingham leaves from platform 9 at a quarter past six.",
    "I am sorry, we are out of almond milk. Oat, soy and coconut are still here.",
    "That makes three tickets: two adults and one child, all in the front row.",
    "Okay, Margaret. I will send the invoice to your office before the end of the day.",
    "It will be cloudy this morning, with 18 degrees and a little rain after lunch.",
    "You can return it within 30 days, as long as you still have the receipt.",
    "Let me check. Yes, flight 482 to Lisbon is on time and boards at gate B12.",
    "The library opens at nine, closes at five, and stays shut on Sundays and holidays.",
    "I found four Italian restaurants nearby; the closest one is on Jefferson Street.",
    "No problem at all! Your appointment with Samantha has been moved to Tuesday afternoon.",
    "Mount Everest is 8,849 metres high, which makes it the tallest mountain above the sea.",
    "Please turn left at the church, walk two blocks, and you will see the museum.",
    "We close in twenty minutes, so I would suggest that you place your order now.",
    "Your password was changed yesterday. If that was not you, please call us right away.",
    "The recipe needs 250 grams of flour, three eggs, a pinch of salt and some butter.",
    "Alexander Fleming discovered penicillin in 1928, quite by accident, in a London hospital.",
    "I can offer you a room with a view of the lake for $189 a night.",
    "Great choice. The mushroom risotto takes a while, is half an hour all right?",
    "Your parcel left Rotterdam this morning and should arrive between two and four o'clock.",
    "That song was written by Carole King and recorded by James Taylor in 1971.",
    "First remove the cover, then press the small red button until the light goes out.",
    "Hello Victoria, thanks for waiting. Shall we go on with the second question?",
    "The pharmacy on Oak Avenue is open all night and has a drive-through window.",
    "I would rather not guess. A nurse will ring you back within the hour.",
    "Photosynthesis turns sunlight, water and carbon dioxide into sugar and oxygen.",
    "We deliver to Chicago, Denver and Seattle, but not to Honolulu, I am afraid.",
    "Done. I have set an alarm for 6:45 and a reminder to water the plants.",
)
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A written word that both tell about."""

    end_chars: int
    ours_s: float  # from here on it counts as heard
    whisper_s: float  # here it ends for Whisper


async def voiced(voice: Synthesizer, reply: str) -> list[SpeechPiece]:
    """The reply as a conversation would have it said."""
    chunker = Chunker()
    chunks = [chunk for token in re.findall(r"\s*\S+", reply) for chunk in chunker.feed(token)]
    return [piece for chunk in [*chunks, *chunker.finish()] async for piece in voice.speak(chunk)]


def heard_at_s(pieces: Sequence[SpeechPiece], end_chars: int) -> float:
    """The first moment at which the text up to `end_chars` counts as heard; found without looking at the marks."""
    before = 0
    for piece in pieces:
        if piece.chunk.end_chars >= end_chars:
            low, high = 0, len(piece.pcm)
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if piece.chars_heard(middle) >= end_chars else (middle + 1, high)
            return (before + low) / piece.rate_hz
        before += len(piece.pcm)
    raise AssertionError("the pieces do not say the whole reply")


async def whisper_words(recognizer: WhisperRecognizer, pcm: Pcm, reply: str) -> list[tuple[int, float]]:
    """For each written word: where it ends in the text, and when it ends in the sound (16 kHz).

    A word ends where the token after its last letter or digit begins, be it the mark behind it or the next word.
    """
    mel = MelStream(pcm)
    columns = 30 * COLUMNS_PER_SECOND
    encoded = await recognizer.encode(mel.columns(len(pcm), columns))
    closing = " ." if reply[-1].isalnum() else ""
    tokens = recognizer.tokens.encode(f" {reply}{closing}")
    starts_s = await recognizer.token_starts_s(encoded, tokens, columns=-(-len(pcm) // HOP_SAMPLES))
    borders = [len(recognizer.tokens.decode(tokens[:count])) - 1 for count in range(len(tokens) + 1)]
    words = []
    for match in _WORD.finditer(reply):
        last = match.start() + max(place for place, letter in enumerate(match.group()) if letter.isalnum())
        behind = next((index for index in range(len(tokens)) if borders[index] > last), None)
        if behind is not None:
            words.append((match.end(), starts_s[behind]))
    return words


async def measure(voice: Synthesizer, recognizer: WhisperRecognizer, reply: str) -> tuple[list[Word], Pcm]:
    """Both opinions of every word of a reply, and its sound at the voice's rate."""
    pieces = await voiced(voice, reply)
    pcm = np.concatenate([piece.pcm for piece in pieces])
    heard = resample(pcm, voice.rate_hz, HEARING_RATE_HZ)
    words = [
        Word(end_chars=end_chars, ours_s=heard_at_s(pieces, end_chars), whisper_s=whisper_s)
        for end_chars, whisper_s in await whisper_words(recognizer, heard, reply)
    ]
    return words, pcm


def lags_ms(words: Sequence[Word], pcm: Pcm, rate_hz: int) -> list[tuple[float, float]]:
    """Where the sound falls silent for 60 ms or more at a word's end: how much later we, and Whisper, place the end."""
    reach = rate_hz * 150 // 1000  # a silence further off belongs to another word, or lies within this one
    lags = []
    for word, following in pairwise(words):
        ours, whisper, stop = (
            round(moment_s * rate_hz) for moment_s in (word.ours_s, word.whisper_s, following.ours_s)
        )
        first = max(0, ours - reach)
        loud = np.abs(pcm[first:stop]) > 10 ** (-45 / 20)
        edges = np.flatnonzero(np.diff(np.concatenate([[1], loud.astype(np.int8), [1]])))
        gaps = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= rate_hz * 60 // 1000]
        near = [first + int(a) for a, _ in gaps if first + a <= ours + reach]
        if near:
            lags.append(((ours - near[-1]) * 1000 / rate_hz, (whisper - near[-1]) * 1000 / rate_hz))
    return lags


def summary(differences_ms: Sequence[float]) -> dict[str, float | int]:
    """Of signed differences; quantiles are nearest ranks."""
    absolute = sorted(abs(float(each)) for each in differences_ms)
    return {
        "count": len(absolute),
        "median_abs_ms": round(statistics.median(absolute), 1),
        "p90_abs_ms": round(absolute[-(-len(absolute) * 9 // 10) - 1], 1),
        "longest_abs_ms": round(absolute[-1], 1),
        "median_signed_ms": round(float(statistics.median(differences_ms)), 1),
        "early_by_more_than_100_ms": sum(bool(each < -TARGET_MS) for each in differences_ms),
    }


async def run(name: str, replies: Sequence[str]) -> dict[str, object]:
    store = Store()
    lanes = ThreadLane("voice"), ThreadLane("recognizer")
    voice = load_voice(name, store=store, lane=lanes[0], threads=1)
    recognizer = WhisperRecognizer.load(store.locate("whisper-tiny.en"), lane=lanes[1], threads=2)
    per_reply, differences, lags = [], [], []
    for reply in replies:
        words, pcm = await measure(voice, recognizer, reply)
        found = [(word.ours_s - word.whisper_s) * 1000 for word in words]
        differences += found
        lags += lags_ms(words, pcm, voice.rate_hz)
        per_reply.append(summary(found) | {"sound_s": round(len(pcm) / voice.rate_hz, 2), "text": reply})
    recognizer.close()
    voice.close()
    for lane in lanes:
        lane.close()
    medians = sorted(each["median_abs_ms"] for each in per_reply)
    return {
        "schema": "antiphon.heard_text/1",
        "machine": fingerprint(),
        "voice": voice.name,
        "judge": f"{recognizer.name}, cross-attention aligned with the known text, steps of 20 ms",
        "target_median_abs_ms": TARGET_MS,
        "words": summary(differences),
        "reply_medians_ms": {"median": round(statistics.median(medians), 1), "highest": medians[-1]},
        "replies_within_target": sum(each <= TARGET_MS for each in medians),
        "ours_after_silence": summary([ours for ours, _ in lags]) if lags else {},
        "whisper_after_silence": summary([whisper for _, whisper in lags]) if lags else {},
        "replies": per_reply,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voice", default="hibari-heart")
    parser.add_argument("--replies", type=int, default=len(REPLIES))
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "heard_text.json")
    arguments = parser.parse_args()
    result = asyncio.run(run(arguments.voice, REPLIES[: arguments.replies]))
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    del result["replies"], result["machine"]
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
