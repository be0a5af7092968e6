"""What can be left out, by name."""

from __future__ import annotations

import pytest

from antiphon.config import load
from antiphon.core.errors import CallerError
from antiphon.mechanisms import MECHANISMS, settings_without

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_has_a_setting_that_turns_it_off(name: str) -> None:
    """Its off value is a setting that exists and differs from the default."""
    default = load(environment={}, folders=()).config
    assert load(sets=settings_without([name]), environment={}, folders=()).config != default


def test_names_may_be_listed() -> None:
    config = load(sets=settings_without(["prefill,prosody"]), environment={}, folders=()).config
    assert (config.turn.read_ahead, config.models.prosody) == (False, "")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(CallerError, match="did you mean 'speculation'"):
        settings_without(["speculatoin"])
