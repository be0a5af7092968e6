"""Which tokens are given a bonus, on a vocabulary small enough to be seen whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from antiphon.core.errors import CallerError
from antiphon.hear.moonshine_settings import MoonshineSettings
from antiphon.hear.word_bias import NOWHERE, Spellings, WordBias

pytestmark = pytest.mark.unit

# Neighbours are joined in this order: " i" before "ce", so that "iced" is one token behind a space, and "us" is two.
TEXTS = ["", " ", " i", "ce", "ced", " iced", " I", " Iced", " c", " co", "ff", "ee", " coff", " coffee", "coffee"]
TEXTS += ["us", " t", "ea", " tea", *"aicedofustIC,."]
TOKEN = {text: token for token, text in enumerate(TEXTS)}
SETTINGS = MoonshineSettings(beginning_bonus=2.0, inside_bonus=5.0, ending_bonus=3.0)


def bias(*vocabulary: str, settings: MoonshineSettings = SETTINGS) -> WordBias:
    return WordBias(Spellings(TEXTS), vocabulary, settings)


def bonuses(phrases: WordBias, *written: str) -> dict[str, float]:
    """What is added once these tokens are written, by token, where it is not nothing."""
    places = NOWHERE
    for text in written:
        places = phrases.after(places, TOKEN[text])
    added = phrases.added(np.zeros(len(TEXTS), np.float32), places)
    return {text: float(added[token]) for text, token in TOKEN.items() if added[token]}


def test_a_word_is_spelled_as_the_model_would() -> None:
    """With as few tokens as the joining leaves; a space stands alone where nothing begins with it."""
    spellings = Spellings(TEXTS)
    assert [" iced"] == [TEXTS[token] for token in spellings.spell(" iced")]
    assert [" ", "us"] == [TEXTS[token] for token in spellings.spell(" us")]
    assert [" c", "a"] == [TEXTS[token] for token in spellings.spell(" caf\u00e9")][:2]


def test_a_phrase_begins_where_a_word_does() -> None:
    """At first the tokens that it is spelled with have the smaller bonus, with a capital too; others have none."""
    assert {" iced": 2.0, " Iced": 2.0} == bonuses(bias("iced coffee"))
    assert {" iced": 2.0, " Iced": 2.0} == bonuses(bias("iced coffee"), " tea")


def test_what_fits_but_is_not_how_it_is_spelled_is_not_raised() -> None:
    """ " i" begins "iced" as well as other words."""
    assert " i" not in bonuses(bias("iced coffee"))


def test_a_space_alone_may_begin_a_phrase_but_not_the_text() -> None:
    """And what follows it is the beginning still."""
    phrases = bias("us")
    logits = np.zeros(len(TEXTS), np.float32)
    assert {" ": 2.0} == bonuses(phrases)  # " Us" begins so as well
    assert 0.0 == phrases.added(logits, NOWHERE, is_first=True)[TOKEN[" "]]
    assert 2.0 == bonuses(phrases, " ")["us"]
    assert phrases.is_space(TOKEN[" "])


def test_inside_a_phrase_the_tokens_that_go_on_have_the_larger_bonus() -> None:
    """Those that it is spelled with; between two of these, where another spelling led, all that fit."""
    # " Coffee" begins with a space alone here, for there is no " C".
    assert {" coffee": 5.0, " ": 5.0} == {k: v for k, v in bonuses(bias("Iced-Coffee"), " iced").items() if v == 5.0}
    assert {"ced": 5.0, "ce": 5.0, "c": 5.0, "C": 5.0} == {
        k: v for k, v in bonuses(bias("iced"), " i").items() if v == 5.0
    }
    assert 5.0 == bonuses(bias("iced coffee"), " Iced", " co")["ff"]
    assert 5.0 == bonuses(bias("iced coffee"), " iced", " ")["C"]


def test_a_word_that_left_the_phrase_is_given_nothing() -> None:
    """ " is" is not "iced"; behind it no part of the phrase counts until a word begins anew."""
    assert {" iced": 2.0, " Iced": 2.0} == bonuses(bias("iced coffee"), " i", "s")


def test_a_phrase_that_was_said_is_not_lengthened() -> None:
    """ "coffees" loses what "coffee" gained; a new word or a mark does not."""
    after = bonuses(bias("coffee"), " coffee")
    assert -3.0 == after["s"] == after["a"]
    assert "," not in after
    assert 2.0 == after[" coffee"]


def test_what_was_said_is_not_raised_again() -> None:
    """Neither its beginning nor, once that is said for another phrase, its inside; but what goes on otherwise is."""
    phrases = bias("iced coffee", "iced tea")
    places, been = NOWHERE, set()
    for text in (" iced", " coffee"):
        places = phrases.after(places, TOKEN[text])
        been.update(places)
    logits = np.zeros(len(TEXTS), np.float32)
    assert not np.flatnonzero(phrases.added(logits, places, been) > 0).size
    places = phrases.after(places, TOKEN[" iced"])
    raised = phrases.added(logits, places, been)
    assert (0.0, 5.0) == (raised[TOKEN[" coffee"]], raised[TOKEN[" t"]] + raised[TOKEN[" tea"]])


def test_of_phrases_that_begin_alike_all_go_on() -> None:
    """ "iced tea" and "iced coffee", after "iced"; and "coffee" is raised as inside, for that is more."""
    after = bonuses(bias("iced tea", "iced coffee", "coffee"), " iced")
    assert 5.0 == after[" tea"] == after[" coffee"]


def test_the_places_do_not_depend_on_how_the_text_is_split() -> None:
    """Every way to spell it leads to the same places."""
    phrases = bias("iced coffee", "coffee")
    ways = [
        [" iced", " coffee"],
        [" i", "ced", " co", "ff", "ee"],
        [" iced", " ", "coffee"],
        [" I", "ce", "d", " coff", "ee"],
    ]
    reached = []
    for way in ways:
        places = NOWHERE
        for text in way:
            places = phrases.after(places, TOKEN[text])
        reached.append(set(places))
    assert all(one == other for one, other in itertools.pairwise(reached))
    assert 2 == len(reached[0])


def test_without_vocabulary_or_bonus_nothing_is_added() -> None:
    """Then the search need not even ask."""
    off = MoonshineSettings(beginning_bonus=0.0, inside_bonus=0.0, ending_bonus=0.0)
    assert bias().is_idle
    assert bias("", "  ").is_idle
    assert bias("coffee", settings=off).is_idle
    assert not bias("coffee").is_idle


def test_a_vocabulary_is_bounded_and_the_first_named_stays() -> None:
    """Of a thousand phrases so many as fit; one that is as long as a page is left out."""
    some = bias(*(f"word number {n}" for n in range(1000)), settings=MoonshineSettings(vocabulary_characters=500))
    assert 0 < some.phrases < 1000
    assert len(some._children) <= 500
    assert bias("coffee " * 50).is_idle


def test_a_bonus_out_of_range_is_refused() -> None:
    """Below nothing, or so large that only the vocabulary could be heard."""
    for wrong in ({"inside_bonus": -1.0}, {"beginning_bonus": 21.0}, {"vocabulary_characters": -1}):
        with pytest.raises(CallerError, match=next(iter(wrong))):
            MoonshineSettings(**wrong)
