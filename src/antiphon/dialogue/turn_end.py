"""Is the turn over? Evidence in, a calibrated posterior out, and from that the silence to wait for.

The posterior is a logistic regression per set of evidence at hand: words are always there; the recognizer's own end
probability (with how sure it is of its words, if it tells), the language model's end mass and the prosody judge may be
missing or late. A missing feature is not a zero: each subset has a fit of its own.

The wait follows from what a cut-in costs. If the turn is not over, the pause lasts longer than w with probability
exp(-w / pause_ms); so the risk of speaking into it after w is (1 - p) exp(-w / pause_ms). The wait is the shortest w
that keeps this risk at or below `cut_in_risk`:

    w = pause_ms * ln((1 - p) / cut_in_risk)        within [shortest_wait_ms, longest_wait_ms]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antiphon.core.flow import Certainty, Transcript
    from antiphon.dialogue.settings import TurnSettings

SENTENCE_ENDS = (".", "?", "!", "。", "？", "！", "।", "؟", "۔")
TRAILS_OFF = ("...", "…", ",", "、", "،", "-", "–", "—", ":", ";")
OPINIONS = ("ears", "mass", "prosody")
KINDS = tuple(
    "+".join(("words", *(name for place, name in enumerate(OPINIONS) if number >> place & 1)))
    for number in range(2 ** len(OPINIONS))
)  # every set of evidence there can be, each of which needs a fit
# An order of three words is seldom a whole one; one of twelve mostly is, and more words say no more. One word or two
# are answers as often as beginnings ("Yes, please"): there the count says nothing, and counts like one in between.
FEWEST_WORDS, MOST_WORDS, WORDS_BETWEEN = 3, 12, 8
MOST_PAUSES = 5  # counted of a turn; the first says nothing, for who pauses once is mostly done the next time
LOGIT_BOUND = 8.0  # beyond this a probability says no more than "sure"; it keeps 0 and 1 finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of a pause."""

    text: str  # the words so far, with the recognizer's own marks
    ears: float | None = None  # the recognizer's probability that the sentence ended, 0 to 1
    certainty: Certainty | None = None  # how sure the recognizer is of the words; part of its opinion
    end_mass: float | None = None  # the language model's probability of a sentence end, 0 to 1
    prosody: float | None = None  # the prosody judge's probability of a turn end, 0 to 1
    pauses: int = 0  # earlier ones in this turn, behind which the caller went on

    @classmethod
    def of(
        cls, heard: Transcript, *, end_mass: float | None = None, prosody: float | None = None, pauses: int = 0
    ) -> Evidence:
        """What a recognizer heard, and what others make of it."""
        return cls(
            text=heard.text,
            ears=heard.end_probability,
            certainty=heard.certainty,
            end_mass=end_mass,
            prosody=prosody,
            pauses=pauses,
        )

    @property
    def kind(self) -> str:
        """Which evidence is at hand; names the fit to use."""
        return "+".join(["words", *(name for name, value in self._opinions() if value is not None)])

    def features(self) -> dict[str, float]:
        """The regression's inputs, by name."""
        text = self.text.rstrip()
        trails = text.endswith(TRAILS_OFF)
        values = {
            "closed": float(text.endswith(SENTENCE_ENDS) and not trails),
            "trails": float(trails),
            "length": _length(text),
            "paused": math.log(max(1, min(self.pauses, MOST_PAUSES))),
        }
        values.update({name: logit(value) for name, value in self._opinions() if value is not None})
        if self.ears is not None and self.certainty is not None:
            values["last"] = max(self.certainty.last, -LOGIT_BOUND)
            values["least"] = max(self.certainty.least, -LOGIT_BOUND)
        return values

    def _opinions(self) -> tuple[tuple[str, float | None], ...]:
        return ("ears", self.ears), ("mass", self.end_mass), ("prosody", self.prosody)


@dataclass(frozen=True, slots=True)
class Fit:
    """One logistic regression: log-odds = bias + sum of weight * feature."""

    bias: float
    weights: Mapping[str, float]

    def posterior(self, features: Mapping[str, float]) -> float:
        """The probability that the turn is over."""
        return sigmoid(self.bias + sum(weight * features[name] for name, weight in self.weights.items()))


@dataclass(frozen=True, slots=True)
class TurnEndModel:
    """A fit for each set of evidence."""

    fits: Mapping[str, Fit]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TurnEndModel:
        """Read `{"fits": {kind: {"bias": .., "weights": {..}}}}`.

        Raises:
            CallerError: a kind of evidence has no fit.
        """
        try:
            fits = {kind: Fit(float(fit["bias"]), dict(fit["weights"])) for kind, fit in data["fits"].items()}
        except (KeyError, TypeError, ValueError) as error:
            raise CallerError(f"the turn-end model cannot be read: {error!r}") from error
        missing = set(KINDS) - set(fits)
        if missing:
            raise CallerError(f"the turn-end model has no fit for {sorted(missing)}", hint="fit it again, all kinds")
        return cls(fits)

    @property
    def is_by_voice_alone(self) -> bool:
        """Whether nothing but the tone of voice tells it anything."""
        return not any(fit.weights for kind, fit in self.fits.items() if "prosody" not in kind)

    def posterior(self, evidence: Evidence) -> float:
        """The probability that the turn is over, given all that is known."""
        features = evidence.features()
        fit = self.fits[evidence.kind]
        if not features.keys() >= fit.weights.keys():  # fitted to ears that say how sure they are, and these do not
            evidence = replace(evidence, ears=None)
            features, fit = evidence.features(), self.fits[evidence.kind]
        return fit.posterior(features)


def _length(text: str) -> float:
    count = len(text.split())
    return math.log(1 + (min(count, MOST_WORDS) if count >= FEWEST_WORDS else WORDS_BETWEEN))


def wait_ns(posterior: float, settings: TurnSettings) -> int:
    """How much silence to hear before answering, counted from the last speech sample."""
    risk = max(1.0 - posterior, 1e-9) / settings.cut_in_risk
    wait_ms = settings.pause_ms * math.log(risk)
    wait_ms = min(max(wait_ms, settings.shortest_wait_ms), settings.longest_wait_ms)
    return round(wait_ms * MILLISECOND_NS)


def logit(probability: float) -> float:
    """Log-odds, bounded."""
    if probability <= 0.0:
        return -LOGIT_BOUND
    if probability >= 1.0:
        return LOGIT_BOUND
    return min(max(math.log(probability / (1.0 - probability)), -LOGIT_BOUND), LOGIT_BOUND)


def sigmoid(value: float) -> float:
    """The probability that has these log-odds, without overflow at either end."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    return math.exp(value) / (1.0 + math.exp(value))
