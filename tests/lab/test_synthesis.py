"""Synthetic callers: what they say, where they hesitate, and in what room."""

from __future__ import annotations

import numpy as np
import pytest

from antiphon.audio.level import dbfs
from antiphon.core.errors import CallerError
from antiphon.lab.synthesis import (
    CANNOT_END,
    KINDS,
    Line,
    coloured_noise,
    pause_places,
    quietest,
    recorded,
    script,
    with_pause,
)

pytestmark = pytest.mark.unit

RATE_HZ = 16_000


def line(kind: str = "clean", **changes: object) -> Line:
    values = {"text": "A large latte.", "kind": kind, "pause_after": None, "pause_s": 0.0, "colour": 1}
    return Line(**{**values, "noise_seed": (1, 2), **changes})


def voice(seconds: float = 1.0) -> np.ndarray:
    return (0.3 * np.sin(2 * np.pi * 200 * np.arange(round(seconds * RATE_HZ)) / RATE_HZ)).astype(np.float32)


def test_the_same_seed_says_the_same() -> None:
    """And more lines begin with the same ones."""
    assert script(20, seed=3) == script(50, seed=3)[:20]
    assert script(20, seed=3) != script(20, seed=4)


def test_kinds_come_in_turn_and_hesitations_have_their_place() -> None:
    """Behind a word that no turn ends with, 0.3 to 1.0 s long; the others have none."""
    lines = script(300, seed=1)
    assert [*KINDS] * 100 == [each.kind for each in lines]
    for each in lines:
        if each.kind != "hesitation":
            assert (None, 0.0) == (each.pause_after, each.pause_s)
            continue
        said = each.text[: each.pause_after].split()
        assert said[-1].casefold() in CANNOT_END
        assert len(said) > 1
        assert each.text[each.pause_after] == " "
        assert 0.3 <= each.pause_s <= 1.0


def test_a_turn_never_ends_where_one_may_hesitate() -> None:
    """The places of a sentence, by hand; the first word is none."""
    text = "A taxi to the park with a friend."
    assert ["to", "the", "with", "a"] == [text[:place].rsplit(maxsplit=1)[-1] for place in pause_places(text)]


@pytest.mark.parametrize(("count", "kinds"), [(0, KINDS), (10_001, KINDS), (3, ["odd"]), (3, [])])
def test_what_cannot_be_made_is_refused(count: int, kinds: list[str]) -> None:
    """Before anything is spoken."""
    with pytest.raises(CallerError):
        script(count, seed=0, kinds=kinds)


def test_a_clip_has_room_before_and_behind() -> None:
    """0.4 s and 2.0 s, at -60 dBFS; the speech lies where the manifest says."""
    found = recorded(line(), voice(), None, RATE_HZ, snr_db=10)
    assert (0.4, pytest.approx(1.4, abs=0.002), ()) == (
        found.speech_start_s,
        found.speech_end_s,
        found.inner_pauses_s,
    )
    assert pytest.approx(3.4, abs=0.002) == len(found.pcm) / RATE_HZ
    assert pytest.approx(-60, abs=2) == dbfs(found.pcm[: round(0.39 * RATE_HZ)])


def test_a_hesitation_lies_where_the_manifest_says() -> None:
    """The room goes on in it, and the speech ends so much later."""
    hesitant = line("hesitation", pause_after=7, pause_s=0.5)
    found = recorded(hesitant, voice(), RATE_HZ // 2, RATE_HZ, snr_db=10)
    ((start_s, end_s),) = found.inner_pauses_s
    assert (pytest.approx(0.5), pytest.approx(1.9, abs=0.002)) == (end_s - start_s, found.speech_end_s)
    inside = found.pcm[round((start_s + 0.001) * RATE_HZ) : round((end_s - 0.001) * RATE_HZ)]
    assert pytest.approx(-60, abs=2) == dbfs(inside)
    assert dbfs(found.pcm[round((start_s - 0.05) * RATE_HZ) : round(start_s * RATE_HZ)]) > -30


def test_noise_has_the_ratio_that_was_asked_for() -> None:
    """A sine of -13.5 dBFS at 10 dB over the noise."""
    found = recorded(line("noisy", colour=0), voice(), None, RATE_HZ, snr_db=10)
    assert pytest.approx(dbfs(voice()) - 10, abs=0.3) == dbfs(found.pcm[round(1.5 * RATE_HZ) :])


@pytest.mark.parametrize(("colour", "fall_db"), [(0, 0.0), (1, 3.0), (2, 6.0)])
def test_noise_falls_by_its_colour(colour: int, fall_db: float) -> None:
    """So many dB for each octave, at a power of 1 in all."""
    noise = coloured_noise(2**18, colour, (1, 2))
    power = np.abs(np.fft.rfft(noise)) ** 2
    low, high = power[8192:12_000].mean(), power[16_384:24_000].mean()
    assert pytest.approx(fall_db, abs=0.3) == 10 * np.log10(low / high)
    assert pytest.approx(0.0, abs=0.01) == dbfs(noise)
    assert np.array_equal(noise, coloured_noise(2**18, colour, (1, 2)))


def test_a_cut_is_made_where_it_is_quiet() -> None:
    """Near the word's end as the voice told it, which may be a little late."""
    speech = voice()
    speech[7000:7400] *= 0.01
    assert 7000 <= quietest(speech, 8000, RATE_HZ) <= 7400


def test_a_pause_is_silence_with_soft_seams() -> None:
    """Of the length that was asked for."""
    paused = with_pause(voice(), 8000, 4800, RATE_HZ)
    assert len(voice()) + 4800 == len(paused)
    assert 0.0 == np.abs(paused[8000:12_800]).max()
    assert abs(float(paused[7999])) < 0.01


def test_a_voice_that_says_nothing_is_refused() -> None:
    """It has no end."""
    with pytest.raises(CallerError, match="nothing that can be heard"):
        recorded(line(), np.zeros(16_000, np.float32), None, RATE_HZ, snr_db=10)
