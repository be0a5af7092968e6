"""From evidence to the silence to wait for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError
from antiphon.core.flow import Certainty
from antiphon.dialogue.settings import TurnSettings
from antiphon.dialogue.turn_end import KINDS, Evidence, Fit, TurnEndModel, logit, sigmoid, wait_ns

pytestmark = pytest.mark.unit

SETTINGS = TurnSettings(shortest_wait_ms=100, longest_wait_ms=1200, pause_ms=350, cut_in_risk=0.05)


@pytest.mark.parametrize(
    ("posterior", "wait_ms"),
    [
        (1.0, 100.0),
        (0.99, 100.0),
        (0.9, 350 * math.log(2)),  # risk 0.1 is halved by one mean pause times ln 2
        (0.5, 350 * math.log(10)),
        (0.0, 350 * math.log(20)),
    ],
)
def test_wait_brings_the_risk_of_a_cut_in_down_to_the_budget(posterior: float, wait_ms: float) -> None:
    """The wait is the shortest after which (1 - p) exp(-w / pause) is within the budget."""
    assert wait_ns(posterior, SETTINGS) == round(wait_ms * MILLISECOND_NS)


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_surer_the_shorter(one: float, other: float) -> None:
    """A higher posterior never waits longer, and every wait is within its bounds."""
    low, high = sorted((one, other))
    assert 100 * MILLISECOND_NS <= wait_ns(high, SETTINGS) <= wait_ns(low, SETTINGS) <= 1200 * MILLISECOND_NS


@pytest.mark.parametrize(
    ("text", "closed", "trails"),
    [
        ("A latte, please.", 1.0, 0.0),
        ("Could I have one?", 1.0, 0.0),
        ("I would like a", 0.0, 0.0),
        ("I would like a...", 0.0, 1.0),
        ("With milk,", 0.0, 1.0),
        ("我要一杯拿铁。", 1.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_what_the_final_mark_says(text: str, closed: float, trails: float) -> None:
    """A sentence mark closes, an ellipsis or a comma trails off, and neither says neither."""
    features = Evidence(text=text).features()
    assert (features["closed"], features["trails"]) == (closed, trails)


@pytest.mark.parametrize(
    ("text", "counts_like"),
    [("Yes.", 8), ("No, thanks.", 8), ("May I have", 3), ("a " * 12, 12), ("a " * 30, 12), ("", 8)],
)
def test_what_the_count_of_words_says(text: str, counts_like: int) -> None:
    """Few words are a beginning, but one or two may be an answer; more than twelve say no more than twelve."""
    assert Evidence(text=text).features()["length"] == pytest.approx(math.log(1 + counts_like))


@pytest.mark.parametrize(("pauses", "counts_like"), [(0, 1), (1, 1), (2, 2), (5, 5), (50, 5)])
def test_what_earlier_pauses_say(pauses: int, counts_like: int) -> None:
    """Who has paused twice may pause again; a single pause says nothing."""
    assert Evidence(text="x", pauses=pauses).features()["paused"] == pytest.approx(math.log(counts_like))


def test_how_sure_the_recognizer_is_belongs_to_its_opinion() -> None:
    """Without its end probability nothing of it counts; what is beyond all doubt is bounded."""
    sure = Certainty(last=-0.5, least=-30.0)
    assert Evidence(text="x", certainty=sure).features().keys() == {"closed", "trails", "length", "paused"}
    features = Evidence(text="x", ears=0.5, certainty=sure).features()
    assert (features["last"], features["least"]) == (-0.5, -8.0)


def test_ears_that_do_not_say_how_sure_they_are_are_not_judged_by_those_that_do() -> None:
    """Where the fit wants what they do not tell, the other evidence decides."""
    fits = {kind: Fit(0.0, {"last": 1.0, "ears": 1.0} if "ears" in kind else {"mass": 1.0}) for kind in KINDS}
    fits["words"] = Fit(2.0, {})
    model = TurnEndModel(fits)
    assert model.posterior(Evidence(text="x", ears=0.9)) == pytest.approx(sigmoid(2.0))
    told = Evidence(text="x", ears=0.5, certainty=Certainty(last=-1.0, least=-1.0))
    assert model.posterior(told) == pytest.approx(sigmoid(-1.0))


def test_each_set_of_evidence_has_its_own_fit() -> None:
    """What is missing is not taken for zero: it selects another regression."""
    assert Evidence(text="x").kind == "words"
    assert Evidence(text="x", end_mass=0.5).kind == "words+mass"
    assert Evidence(text="x", prosody=0.5).kind == "words+prosody"
    assert Evidence(text="x", end_mass=0.5, prosody=0.5).kind == "words+mass+prosody"
    assert Evidence(text="x", ears=0.5, end_mass=0.5, prosody=0.5).kind == "words+ears+mass+prosody"
    assert set(KINDS) == {
        "words",
        "words+ears",
        "words+mass",
        "words+prosody",
        "words+ears+mass",
        "words+ears+prosody",
        "words+mass+prosody",
        "words+ears+mass+prosody",
    }


def test_posterior_by_hand() -> None:
    """bias -1 + 2 * closed + 0.5 * logit(0.9) gives sigmoid(1 + 0.5 * ln 9)."""
    fit = Fit(-1.0, {"closed": 2.0, "mass": 0.5})
    features = Evidence(text="Yes.", end_mass=0.9).features()
    assert fit.posterior(features) == pytest.approx(1 / (1 + math.exp(-(1 + 0.5 * math.log(9)))))


def test_certainty_stays_finite() -> None:
    """Probabilities of 0 and 1, and values next to them, give bounded log-odds that sigmoid brings back."""
    assert (logit(0.0), logit(1.0), logit(5e-324)) == (-8.0, 8.0, -8.0)
    assert sigmoid(logit(0.3)) == pytest.approx(0.3)
    assert sigmoid(-1e9) == 0.0
    assert sigmoid(1e9) == 1.0


@pytest.mark.parametrize(
    "data", [{}, {"fits": {"words": {"bias": 0}}}, {"fits": {"words": {"bias": 0, "weights": {}}}}]
)
def test_an_incomplete_model_is_refused(data: dict[str, object]) -> None:
    """A model that cannot judge some evidence is an error at load, not in the middle of a turn."""
    with pytest.raises(CallerError):
        TurnEndModel.from_dict(data)


@pytest.mark.parametrize(
    "bad",
    [
        {"shortest_wait_ms": -1},
        {"longest_wait_ms": 50, "shortest_wait_ms": 100},
        {"cut_in_risk": 0.0},
        {"cut_in_risk": math.nan},
        {"pause_ms": 0},
    ],
)
def test_settings_out_of_range_name_the_field(bad: dict[str, float]) -> None:
    """A wrong setting is refused with its name and a remedy."""
    with pytest.raises(CallerError, match="|".join(bad)):
        TurnSettings(**bad)  # type: ignore[arg-type]
