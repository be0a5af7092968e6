"""--require: a list in, a finding for each figure out."""

from __future__ import annotations

import pytest
from tests.lab.runs import run, turn

from antiphon.core.errors import CallerError
from antiphon.lab.requirements import Requirement, judge, parse
from antiphon.lab.result import Outcome

pytestmark = pytest.mark.unit


def test_the_list_is_read() -> None:
    """Latencies in ms, counts, shares, and kinds before a colon; white space and dashes do not matter."""
    assert (
        Requirement(name="p95", limit=320.0, is_share=False),
        Requirement(name="cut_ins", limit=0.02, is_share=True),
        Requirement(name="silent", limit=0.0, is_share=False, kind="noisy"),
        Requirement(name="slots", limit=0.9, is_share=True),
    ) == parse(" p95=320, cut-ins = 2%,noisy:silent=0 ,slots=90%,")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "names nothing"),
        ("p95", "'p95' has no value"),
        ("p96=3", "no figure 'p96'"),
        ("p95=fast", "p95 is 'fast'"),
        ("p95=-1", "p95 is '-1'"),
        ("p95=nan", "p95 is 'nan'"),
        ("p95=5%", "p95 is '5%'"),
        ("cut_ins=", "cut_ins is ''"),
        ("slots=90", "slots is '90'"),
        ("p95=1,p95=2", "names p95 twice"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, complaint: str) -> None:
    with pytest.raises(CallerError, match=complaint):
        parse(text)


def test_a_misspelt_figure_gets_the_nearest() -> None:
    with pytest.raises(CallerError) as caught:
        parse("cutins=2")

    assert "did you mean 'cut_ins'?" == caught.value.hint


def test_findings() -> None:
    """At the limit is met; a silent turn breaks the maximum; slots want at least."""
    turns = (
        turn(100.0, slots={"a": "b"}, slots_heard=1),
        turn(300.0, slots={"a": "b"}),
        turn(None, outcome=Outcome.CUT_IN),
        turn(None, kind="noisy"),
    )
    findings = judge(run(turns), parse("p50=300,max=5000,cut_ins=1,silent=0,clean:silent=0"))
    more = judge(run(turns), parse("cut_ins=25%,slots=0.5,word_errors=1"))

    assert [
        (True, "300 ms"),
        (False, "never"),
        (True, "1 of 4 turns"),
        (False, "1 of 4 turns"),
        (True, "0 of 3 turns"),
    ] == [(finding.is_met, finding.seen) for finding in findings]
    assert [(True, "1 of 4 turns"), (True, "50.0%"), (False, "not measured")] == [
        (finding.is_met, finding.seen) for finding in more
    ]


def test_nothing_measured_is_not_met() -> None:
    """A run in which nobody was answered keeps to nothing."""
    findings = judge(run(), parse("p95=99999,cut_ins=5"))

    assert [False, False] == [finding.is_met for finding in findings]


def test_refused_turns_are_counted() -> None:
    [finding] = judge(run((turn(), turn(None, outcome=Outcome.REFUSED))), parse("refused=0"))

    assert (False, "1 of 2 turns") == (finding.is_met, finding.seen)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(CallerError, match="shouted is no kind"):
        judge(run((turn(),)), parse("shouted:p95=1"))


def test_it_is_shown_as_it_was_written() -> None:
    assert ["p95=320", "noisy:cut_ins=2%"] == [str(item) for item in parse("p95=320,noisy:cut_ins=2%")]
