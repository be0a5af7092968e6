"""A hypothesis and its probabilities in, whether anybody said it, and whether the sentence ended, out.

Moonshine has no token for "no speech" and always writes something: "You" for a slamming door, with a probability of
0.8, and "Thank you for watching." for a hum. Such words are as likely without the sound. So in doubt the words' gain is
taken: their log probability less the one that they have in sounds without words.
Threads: stateless after it is made. What it does not know: turns.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from antiphon.core.flow import HEARING_RATE_HZ, Certainty
from antiphon.hear.agreement import repeats
from antiphon.hear.moonshine_tokens import END

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm
    from antiphon.hear.moonshine_decoder import MoonshineNetwork, Written

# In nats. Words that noise, hum, clicks and a slam at -3 to -60 dBFS gave have a mean gain of up to 0.4, and the first
# one's gain and log probability make -0.1 at most. Of 160 orders, with a menu too, the mean is 2.7 and more. Of twenty
# short answers it is 1.2 and more, or, where words are likely anyway ("Thank you."), 1.3 and more for the first.
_FEW_TOKENS = 6
_MOST_TOKENS = 24  # of a hypothesis that are weighed
_DOUBTFUL_FIRST_LOG = -1.5
_MEAN_GAIN = 0.7
_FIRST_GAIN = 0.7

# Brings the evidence of an end to the scale of Whisper's, to which the posterior of turn ends was fitted, by the means
# of ends and pauses in the odd half of 50 orders with a hesitation. In the other half ends then have a mean logit of
# 3.3 (Whisper 3.7), pauses of 0.1 (0.1).
_END_SCALE = 1.15
_END_SHIFT = -3.1
_SURE = 1e-6


class Judge:
    """What this model writes where nobody speaks is known to it."""

    def __init__(self, network: MoonshineNetwork) -> None:
        self._network = network
        self._nothing = network.encode(_sounds_without_words())

    def is_speech(self, written: Written, text: str) -> bool:
        """Whether somebody said this; takes one more call of the decoder where it is in doubt.

        Raises:
            EngineError: the model failed.
        """
        if not any(letter.isalnum() for letter in text):
            return False
        is_doubtful = (
            len(written.tokens) < _FEW_TOKENS
            or not written.has_ended
            or written.logs[0] < _DOUBTFUL_FIRST_LOG
            or repeats(text)
        )
        if not is_doubtful:
            return True
        gains = self._gains(written)
        return bool(gains.mean() > _MEAN_GAIN or gains[0] + written.logs[0] > _FIRST_GAIN)

    def _gains(self, written: Written) -> Pcm:
        """Of each token, against the sound without words that makes all of them likeliest."""  # (tokens,)
        tokens = [*written.tokens, END] if written.has_ended else written.tokens
        tokens = tokens[:_MOST_TOKENS]
        others = self._network.log_probabilities(self._nothing, tokens)  # (sounds, tokens)
        gains: Pcm = np.array(written.logs[: len(tokens)], np.float32) - others[others.sum(axis=1).argmax()]
        return gains


def end_probability(written: Written, spelled: int) -> float | None:
    """That the sentence ended, from the mass on a closing mark or the end right after the last word.

    Over 50 orders, AUC of true ends against pauses after "a" or "dark": 0.95 with the comma and the end of the text
    among them (as Whisper has), 0.81 without the end, 0.76 with neither.
    """
    if not 0 < spelled < len(written.closing):
        return None
    mass = min(1.0 - _SURE, max(_SURE, written.closing[spelled]))
    return 1.0 / (1.0 + math.exp(-_END_SCALE * math.log(mass / (1.0 - mass)) - _END_SHIFT))


def certainty(written: Written, spelled: int) -> Certainty | None:
    """Of the first `spelled` tokens. Whoever pauses in mid-sentence makes this model guess how it goes on, without
    being sure of it."""
    logs = written.logs[:spelled]
    return Certainty(last=logs[-1], least=min(logs)) if logs else None


def _sounds_without_words() -> Pcm:
    """A second each of silence, two noises and a hum."""  # (sounds, samples)
    rng = np.random.default_rng(0)
    size = HEARING_RATE_HZ
    spectrum = np.fft.rfft(rng.standard_normal(size))
    time_s = np.arange(size) / HEARING_RATE_HZ
    hum = np.sin(2 * np.pi * 120 * time_s * np.arange(1, 6)[:, None]) / np.arange(1, 6)[:, None]  # (harmonics, samples)
    sounds: list[tuple[npt.NDArray[np.float64], float]] = [
        (np.ones(size), 0.0),
        (rng.standard_normal(size), 0.01),
        (np.fft.irfft(spectrum / np.sqrt(np.arange(len(spectrum)) + 1.0)), 0.03),
        (hum.sum(axis=0), 0.01),
    ]
    return np.stack([sound / np.sqrt(np.mean(sound**2)) * level for sound, level in sounds]).astype(np.float32)
