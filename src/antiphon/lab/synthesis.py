"""A number and a seed -> what callers of a synthetic corpus say and how, and the sound of it around a voice's speech.

The same seed gives the same script, pauses and noise. A hesitation is a pause put behind a word that no turn ends
with; the speech around it was spoken fluently, with neither lengthening nor fillers, so it is easier to tell than a
real one. Noise is coloured: its power falls with the frequency to the power of 0 (white), 1 (pink) or 2 (brown).
Units: samples, seconds, dB. Pure. What it does not know: voices and files.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.level import audible_span, fade, window_dbfs
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import Pcm

CLEAN, HESITATION, NOISY = "clean", "hesitation", "noisy"
KINDS = (CLEAN, HESITATION, NOISY)
MOST_LINES = 10_000
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.3, 1.0
LEAD_S, TAIL_S = 0.4, 2.0
ROOM_DBFS = -60.0
COLOURS = (0, 1, 2)
SEAM_MS = 10.0  # of fading on either side of a pause
DIP_BEFORE_S, DIP_AFTER_S = 0.1, 0.03  # around a word's end, where a cut is looked for; voices tell ends rather late
DIP_WINDOW_MS = 10.0

CANNOT_END = frozenset(
    ("a", "an", "and", "at", "by", "for", "from", "in", "is", "my", "of", "on", "or", "our", "the", "to", "with")
)
_SIZES = ("a small", "a medium", "a large", "a twelve ounce", "a twenty ounce")
_DRINKS = ("latte", "cappuccino", "mocha", "iced coffee", "drip coffee", "black tea", "hot chocolate")
_MILKS = ("whole milk", "skim milk", "oat milk", "almond milk", "soy milk")
_EXTRAS = ("two sugars", "brown sugar", "a double shot", "some cream", "a little cinnamon", "no sugar")
_PLACES = (
    "the library",
    "the museum",
    "the old harbour",
    "the main station",
    "the airport",
    "the town hall",
    "the park",
)
_DAYS = ("Monday", "Wednesday", "Saturday", "Sunday", "a public holiday")
_THINGS = ("a table", "a taxi", "a room", "an appointment", "a guided tour")
_TEMPLATES = (
    "I would like {size} {drink} with {milk} and {extra}.",
    "Can I get {size} {drink} with {milk}?",
    "Please make me {size} {drink} with {extra}.",
    "One {drink} with {milk} and {extra} for my friend.",
    "What time does {place} open on {day}?",
    "How do I get from {place} to {other}?",
    "Is there a bus from {place} to {other} on {day}?",
    "I want to book {thing} for {people} people on {day}.",
    "Could you tell me the price of {thing} for {people} people?",
    "Where is the nearest cafe to {place}?",
)
_PEOPLE = ("two", "three", "four", "six", "eight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What is said, and how."""

    text: str
    kind: str
    pause_after: int | None  # characters of the text behind which there is a pause
    pause_s: float
    colour: int  # of the noise
    noise_seed: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A line's sound, and the truth about it."""

    pcm: Pcm
    speech_start_s: float
    speech_end_s: float
    inner_pauses_s: tuple[tuple[float, float], ...]


def script(count: int, *, seed: int, kinds: Sequence[str] = KINDS) -> list[Line]:
    """`count` lines, the kinds in turn; fewer lines are the beginning of more.

    Raises:
        CallerError: too many or too few, or an unknown kind.
    """
    if not 1 <= count <= MOST_LINES:
        raise CallerError(f"{count} recordings are asked for", hint=f"use 1 to {MOST_LINES}")
    if unknown := [kind for kind in kinds if kind not in KINDS] or (not kinds and ["none"]):
        raise CallerError(f"kind {unknown[0]!r} cannot be synthesised", hint=f"there are {', '.join(KINDS)}")
    return [_line(number, seed, kinds[number % len(kinds)]) for number in range(count)]


def _line(number: int, seed: int, kind: str) -> Line:
    chance = random.Random(f"{seed}/{number}")  # noqa: S311 - a choice, no secret
    place, other = chance.sample(_PLACES, 2)
    text = chance.choice(_TEMPLATES).format(
        size=chance.choice(_SIZES),
        drink=chance.choice(_DRINKS),
        milk=chance.choice(_MILKS),
        extra=chance.choice(_EXTRAS),
        place=place,
        other=other,
        day=chance.choice(_DAYS),
        thing=chance.choice(_THINGS),
        people=chance.choice(_PEOPLE),
    )
    pause_s = round(chance.uniform(SHORTEST_PAUSE_S, LONGEST_PAUSE_S), 2)
    after = chance.choice(pause_places(text))
    colour = chance.choice(COLOURS)
    is_hesitant = kind == HESITATION
    return Line(
        text=text,
        kind=kind,
        pause_after=after if is_hesitant else None,
        pause_s=pause_s if is_hesitant else 0.0,
        colour=colour,
        noise_seed=(seed % 2**32, number),
    )


def pause_places(text: str) -> list[int]:
    """Behind which characters a speaker may hesitate: words that no turn ends with, the first one left out."""
    places, position = [], 0
    for number, word in enumerate(text.split()):
        position = text.index(word, position) + len(word)
        if number and word.casefold() in CANNOT_END:
            places.append(position)
    return places


def recorded(line: Line, speech: Pcm, word_end: int | None, rate_hz: int, *, snr_db: float) -> Recorded:
    """The line in its room: `speech` is what the voice said, `word_end` the sample where the pause's word ends.

    Raises:
        CallerError: nothing is audible.
    """
    start, end = audible_span(speech, rate_hz)
    if end <= start:
        raise CallerError("the voice said nothing that can be heard", hint="choose another voice")
    pauses: list[tuple[int, int]] = []
    if word_end is not None:
        cut = quietest(speech, word_end, rate_hz)
        length = round(line.pause_s * rate_hz)
        speech = with_pause(speech, cut, length, rate_hz)
        pauses = [(cut, cut + length)]
        end += length
    lead, tail = round(LEAD_S * rate_hz), round(TAIL_S * rate_hz)
    spoken = speech[start:end]
    pcm = np.concatenate([np.zeros(lead, np.float32), spoken, np.zeros(tail, np.float32)])
    level_db = _power_db(spoken, rate_hz) - snr_db if line.kind == NOISY else ROOM_DBFS
    noise = coloured_noise(len(pcm), line.colour, line.noise_seed)
    pcm = np.clip(pcm + noise * 10 ** (level_db / 20), -1.0, 1.0).astype(np.float32)
    return Recorded(
        pcm=pcm,
        speech_start_s=lead / rate_hz,
        speech_end_s=round((lead + end - start) / rate_hz, 4),
        inner_pauses_s=tuple(
            (round((lead + first - start) / rate_hz, 4), round((lead + last - start) / rate_hz, 4))
            for first, last in pauses
        ),
    )


def quietest(speech: Pcm, word_end: int, rate_hz: int) -> int:
    """The middle of the quietest window around a word's end."""
    first = max(0, word_end - round(DIP_BEFORE_S * rate_hz))
    levels = window_dbfs(speech[first : word_end + round(DIP_AFTER_S * rate_hz)], rate_hz, DIP_WINDOW_MS)
    if not len(levels):
        return min(word_end, len(speech))
    return min(first + round((int(np.argmin(levels)) + 0.5) * DIP_WINDOW_MS * rate_hz / 1000), len(speech))


def with_pause(speech: Pcm, cut: int, length: int, rate_hz: int) -> Pcm:
    """Silence of `length` samples at `cut`, its seams faded."""
    before = fade(speech[:cut], rate_hz, in_ms=0, out_ms=SEAM_MS)
    behind = fade(speech[cut:], rate_hz, in_ms=SEAM_MS, out_ms=0)
    return np.concatenate([before, np.zeros(length, np.float32), behind])


def coloured_noise(samples: int, colour: int, seed: tuple[int, int]) -> Pcm:
    """Noise of power 1 (0 dBFS); `colour` is the exponent."""
    white = np.random.default_rng(seed).standard_normal(samples)
    spectrum = np.fft.rfft(white)
    spectrum[0] = 0.0
    spectrum[1:] /= np.arange(1, len(spectrum)) ** (colour / 2)
    noise = np.fft.irfft(spectrum, samples)
    scaled: Pcm = (noise / np.sqrt(np.mean(noise**2))).astype(np.float32)
    return scaled


def _power_db(pcm: Pcm, rate_hz: int) -> float:
    """Of the speech without its pauses: of the windows within 30 dB of the loudest."""
    levels = window_dbfs(pcm, rate_hz, 20)
    loud = levels[levels > levels.max() - 30]
    return float(10 * np.log10(np.mean(10 ** (loud / 10))))
