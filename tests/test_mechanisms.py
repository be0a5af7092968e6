"""What can be left out, by name."""

from __future__ import annotations

import pytest

from antiphon.config import load
from antiphon.core.errors import CallerError
from antiphon.mechanisms import MECHANISMS, settings_without

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_has_a_setting_that_turns_it_off(name: str) -> None:
    """Its off value is a setting that exists, and makes a difference."""
    on = load(environment={}, folders=()).config
    assert load(sets=settings_without([name]), environment={}, folders=()).config != on


def test_what_is_off_may_be_left_out_all_the_same() -> None:
    off = load(sets=("models.quick_recognizer=",), environment={}, folders=()).config
    assert off == load(sets=settings_without(["two-pass"]), environment={}, folders=()).config


def test_names_may_be_listed() -> None:
    config = load(sets=settings_without(["prefill,prosody"]), environment={}, folders=()).config
    assert (config.turn.read_ahead, config.models.prosody) == (False, "")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(CallerError, match="did you mean 'speculation'"):
        settings_without(["speculatoin"])
