"""The tools of one agent."""

from __future__ import annotations

import pytest

from antiphon.act.tool import tool
from antiphon.act.toolbelt import MOST_TOOLS, Toolbelt
from antiphon.core.errors import CallerError

pytestmark = pytest.mark.unit


@tool
def one() -> None:
    """First."""


@tool
def two() -> None:
    """Second."""


def test_tools_are_found_by_name():
    """In the order given; an unknown name is none."""
    belt = Toolbelt([two, one])

    assert (two.spec, one.spec) == belt.specs
    assert (one, None) == (belt.find("one"), belt.find("three"))
    assert 2 == len(belt)


def test_two_of_one_name_are_refused():
    """The model could not tell them apart."""
    with pytest.raises(CallerError, match="two tools are called one"):
        Toolbelt([one, two, one])


def test_a_bare_function_is_refused():
    """The hint says what is missing."""
    with pytest.raises(CallerError, match="put @tool above"):
        Toolbelt([lambda: None])


def test_too_many_are_refused():
    """No model reads that many."""
    with pytest.raises(CallerError, match="too many"):
        Toolbelt([tool(name=f"t{index}")(lambda: None) for index in range(MOST_TOOLS + 1)])
