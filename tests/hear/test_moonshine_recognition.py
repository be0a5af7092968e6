"""How a full window is parted: where, and which of its words go with which part."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from tests.hear.doubles import SECOND, PitchMoonshine, spoken, text_of
from tests.hear.sounds import frames, white

from antiphon.hear.agreement import Agreement
from antiphon.hear.moonshine import loop_at
from antiphon.hear.moonshine_recognition import MoonshineRecognition, PcmStream, border_samples, parted

if TYPE_CHECKING:
    from antiphon.hear.moonshine import MoonshineRecognizer
    from antiphon.hear.word_bias import WordBias

pytestmark = pytest.mark.unit

WORDS = (50, 60, 45, 70, 55, 65, 40)


@pytest.mark.parametrize("quiet_s", [6.2, 10.0, 14.0])
def test_a_window_is_parted_where_it_is_quietest(quiet_s: float) -> None:
    """A pause of 0.12 s in noise is found, wherever a border may lie."""
    pcm = white(-30, 16.0)
    pcm[round(quiet_s * SECOND) :][: round(0.12 * SECOND)] = 0.0
    assert abs(border_samples(pcm) / SECOND - quiet_s - 0.06) < 0.02


def test_a_pause_too_early_or_too_late_is_no_border() -> None:
    """Before 6 s it is not worth it, and at the edge words are not whole."""
    pcm = white(-30, 16.0)
    for quiet_s in (5.0, 15.0):
        pcm[round(quiet_s * SECOND) :][: round(0.12 * SECOND)] = 0.0
    assert 6.0 <= border_samples(pcm) / SECOND <= 14.5


@pytest.mark.parametrize(
    ("stable", "previous", "first", "expected"),
    [
        # nothing was known: what the part says counts
        ("", "", "One two.", ("One two.", "", "")),
        # stable words lie on both sides: they stay as they were written
        ("one two three four", "one two three four five", "One, two.", ("one two", "three four", "three four five")),
        # the part reaches beyond what is stable, and knows better what comes there
        ("one two", "one two tree four", "One two three.", ("one two three.", "", "four")),
        ("one two", "one two", "One two three.", ("one two three.", "", "")),
        # the part heard one of the stable words otherwise: they stay
        ("one two three four", "one two three four five", "one to", ("one two", "three four", "three four five")),
        # the part heard nothing: all is still to come
        ("one two", "one two three", "", ("", "one two", "one two three")),
    ],
)
def test_words_are_divided_by_what_the_part_says(
    stable: str, previous: str, first: str, expected: tuple[str, str, str]
) -> None:
    """(settled, stable in the rest, the rest)."""
    settled, rest = parted(Agreement(stable=stable, previous=previous), first)
    assert expected == (settled, rest.stable, rest.previous)


def test_the_last_hypothesis_is_the_next_ones_guess() -> None:
    """Of the same window; behind a border there is none."""

    async def listen() -> list[int]:
        double = PitchMoonshine()
        heard = MoonshineRecognition(cast("MoonshineRecognizer", double), cast("WordBias", None))
        heard.begin(0)
        for frame in frames(spoken(*WORDS, *WORDS, *WORDS), size_samples=1600):
            heard.feed(frame)
        for end_s in (3, 5, 15, 20):
            transcribed = await heard.transcribe(end_s * SECOND, final=False)
        assert text_of(*WORDS, *WORDS, *WORDS[:6]) == transcribed.text
        return [len(call.prefix) for call in double.calls]

    assert [0, 3, 5, 15, 0] == asyncio.run(listen())


def test_what_was_foreseen_is_not_heard_again() -> None:
    """To the same place; what the turn says so far is as it was, and sound that came since is heard anew."""

    async def listen() -> None:
        double = PitchMoonshine()
        heard = MoonshineRecognition(cast("MoonshineRecognizer", double), cast("WordBias", None))
        heard.begin(0)
        for frame in frames(spoken(*WORDS), size_samples=1600):
            heard.feed(frame)
        await heard.transcribe(2 * SECOND, final=False)
        await heard.foresee(3 * SECOND)
        assert 2 == len(double.calls)
        final = await heard.transcribe(3 * SECOND, final=True)
        assert (2, text_of(*WORDS[:3])) == (len(double.calls), final.text)
        await heard.transcribe(4 * SECOND, final=True)
        assert 3 == len(double.calls)

    asyncio.run(listen())


def test_sound_grows_and_is_dropped() -> None:
    """What is left is what was fed, less what was dropped; a view taken before keeps its sound."""
    stream = PcmStream()
    pcm = np.arange(1000, dtype=np.float32)
    for start in range(0, 1000, 90):
        stream.feed(pcm[start : start + 90])
    before = stream.pcm
    stream.drop(300)
    stream.feed(pcm[:50])
    assert [*range(300, 1000), *range(50)] == stream.pcm.tolist()
    assert pcm.tolist() == before.tolist()
    assert 750 == len(stream)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("I want a latte", None),
        ("no, no, and no", None),
        ("a small latte s s s s s s s s", "a small latte s"),
        ("with milk and sugar with milk and sugar with milk and sugar", "with milk and sugar"),
        ("tea to go, to go. To go to go to go to", "tea to go"),
        ("with Al-la-la-la-la-na", "with Al-la"),
        ("a drip crop crop crop crap c", "a drip crop"),
    ],
)
def test_where_a_loop_begins(text: str, kept: str | None) -> None:
    """What is said again is left out, its first time stays."""
    end = loop_at(text, times=3)
    assert kept == (None if end is None else text[:end])
