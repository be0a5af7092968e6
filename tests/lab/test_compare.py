"""Two runs: what one is worth against the other, in figures and in words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.lab.runs import large, run, turn

from antiphon.lab.compare import Verdict, as_json, compare, warnings, words
from antiphon.lab.result import Outcome, Run

pytestmark = pytest.mark.unit


def clips(latency_ms: float, *, count: int = 30, name: str = "a", step: float = 10.0, **changes: object) -> Run:
    """A run with a turn for each of `count` clips, each `step` ms slower than the last."""
    turns = tuple(turn(latency_ms + step * place, clip=f"{place}.flac") for place in range(count))
    return run(turns, name=name, **changes)


def test_half_is_half() -> None:
    """On the same clips, twice as fast throughout: the ratio has no width, and the sentence says all of it."""
    slow = clips(1000.0, name="slow")
    fast = run(tuple(replace(one, v2v_ms=(one.v2v_ms or 0) / 2) for one in slow.turns), name="fast")
    report = compare(fast, slow)

    assert [Verdict.FASTER] * 2 == [report.comparisons[0].verdict(percent) for percent in (50, 95)]
    assert [
        "fast's P50 is 0.50 of slow's (0.50-0.50, n=30 and 30, 30 clips in pairs; 570 ms against 1140 ms).",
        "fast's P95 is 0.50 of slow's (0.50-0.50, n=30 and 30, 30 clips in pairs; 640 ms against 1280 ms).",
        "fast cuts in on 0 of 30 turns, slow on 0 of 30: +0.0 points (-11.4 to +11.4): noise.",
    ] == words(report)


def test_slower_is_said() -> None:
    report = compare(clips(2000.0, name="a"), clips(1000.0, name="b"))

    assert report.comparisons[0].verdict(95) is Verdict.SLOWER


def test_noise_is_called_noise() -> None:
    """The same distribution on other clips."""
    a, b = large(seed=1, name="a"), large(seed=2, name="b")
    report = compare(a, b)

    assert report.comparisons[0].verdict(50) is Verdict.NOISE
    assert words(report)[-1].endswith(": noise.")


def test_one_that_never_answers() -> None:
    """An infinite ratio has words instead of figures."""
    a = run(tuple(turn(None, clip=str(place)) for place in range(20)), name="a")
    report = compare(a, clips(100.0, count=20, name="b"))

    assert "a's P95 is infinite, b's is not (never against 280 ms; n=20 and 20, unpaired)." in words(report)


def test_one_without_any_latency() -> None:
    """Every turn cut in: there is nothing to compare, and that is said."""
    a = run(tuple(turn(None, outcome=Outcome.CUT_IN) for _ in range(3)), name="a")
    report = compare(a, clips(100.0, name="b"))

    assert report.comparisons[0].verdict(95) is Verdict.UNKNOWN
    assert "P95 cannot be compared: a has no turn with a latency." in words(report)


def test_few_turns_are_said() -> None:
    assert words(compare(clips(1.0, count=12, name="a"), clips(1.0, count=12, name="b")))[1].endswith(
        "Of 12 turns P95 is nearly the slowest."
    )


def test_kinds_are_compared_apart() -> None:
    both = large(turns=60)
    labels = [comparison.label for comparison in compare(both, both).comparisons]

    assert ["all", "clean", "hesitation", "noisy"] == labels


def test_two_runs_of_one_name_are_told_apart() -> None:
    report = compare(clips(1.0), clips(1.0))

    assert ("a (A)", "a (B)") == (report.a, report.b)


def test_like_runs_need_no_warning() -> None:
    assert [] == warnings(large(seed=1), large(seed=1, speed=0.5))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"machine": {"cpu": "M4"}}, "the machines differ: cpu is EPYC and M4"),
        ({"scenario": "soak"}, "the scenarios differ: single and soak"),
        ({"settings": {"callers": 4}}, "the settings differ: callers is 1 and 4"),
        ({"load": {"steal": 0.05}}, "b is void by its load"),
        ({"turns": (turn(clip="b.flac"),)}, "the clips differ: 1 and 1, of which both have 0"),
    ],
)
def test_what_differs_is_said(changes: dict, complaint: str) -> None:
    a = run((turn(),), name="a", machine={"cpu": "EPYC"})
    b = replace(a, **{"name": "b", **changes})

    assert [complaint] == warnings(a, b)


def test_json_has_no_infinities() -> None:
    a = run(tuple(turn(None, clip=str(place)) for place in range(20)), name="a")
    plain = as_json(compare(a, clips(100.0, count=20, name="b")))

    assert plain == json.loads(json.dumps(plain, allow_nan=False))
    assert plain["comparisons"][0]["percentiles"]["95"]["ratio"] is None
