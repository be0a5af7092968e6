"""What leaving something out was worth, on made-up runs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from tests.lab.runs import run, turn

from antiphon.lab.ablation import WITH_ALL, as_json, groups, show_worths, subset, words, worths
from antiphon.lab.clips import Clip
from antiphon.lab.result import Outcome, Run

pytestmark = pytest.mark.unit


def clip(name: str) -> Clip:
    return Clip(name=name, path=Path(name), kind="clean", speech_start_s=0, speech_end_s=1)


def of(name: str, factor: float, *, cut_ins: int = 0) -> Run:
    """Twenty clips of 400 to 590 ms times a factor, and some cut-ins."""
    turns = [turn(factor * (400 + 10 * number), clip=f"{number}.wav") for number in range(20)]
    cut = [turn(None, clip=f"c{number}.wav", outcome=Outcome.CUT_IN) for number in range(cut_ins)]
    return run((*turns, *cut), name=name)


def test_each_thing_is_compared_with_the_run_beside_it() -> None:
    """The twentieth of twenty in order is number 19 for P95: 580 ms; twice that without it is a ratio of 2."""
    first = {WITH_ALL: of(WITH_ALL, 1.0), "a": of("a", 2.0), "b": of("b", 1.0, cut_ins=2)}
    second = {WITH_ALL: of(WITH_ALL, 3.0), "c": of("c", 1.5)}
    a, b, c = worths([first, second])

    assert ["a", "b", "c"] == [a.name, b.name, c.name]
    assert [2.0, 1.0, 0.5] == [worth.compared.ratios[95].value for worth in (a, b, c)]  # type: ignore[union-attr]
    assert (
        "Without a P95 is 2.00 (2.00-2.00) of what it is with it: 1160 ms against 580 ms, cut-ins 0 against 0 of 20; "
        "replies are slower without it."
    ) == words(a)
    assert "cut-ins 2 against 0 of 20; noise." in words(b)
    assert "replies are faster without it" in words(c)


def test_it_is_told_to_programs_and_people() -> None:
    """The costliest first."""
    found = worths([{WITH_ALL: of(WITH_ALL, 1.0), "a": of("a", 1.1), "b": of("b", 2.0)}])
    console = Console(file=io.StringIO(), width=200)
    show_worths(found, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    told = as_json(found, {"made_by": "x"})["mechanisms"]

    assert shown.index("\nb ") < shown.index("\na ")
    assert {"ms": [1160.0, 580.0], "ratio": 2.0, "interval": [2.0, 2.0], "is_paired": True, "verdict": "slower"} == (
        told[1]["percentiles"]["95"]
    )


def test_nothing_measured_is_said() -> None:
    (worth,) = worths([{WITH_ALL: run(), "a": run()}])

    assert "a: nothing was measured." == words(worth)


def test_the_subset_is_the_same_whatever_the_corpus_gains() -> None:
    """Of more clips, those that were chosen before stay unless a new one's hash lies before theirs."""
    few = [clip(f"{number}.wav") for number in range(20)]
    chosen = {one.name for one in subset(few, 5)}
    more = {one.name for one in subset([*few[::-1], clip("new.wav")], 5)}

    assert 5 == len(chosen)
    assert 4 <= len(chosen & more)


def test_groups_leave_room_for_the_whole() -> None:
    assert [("a", "b"), ("c",)] == groups(["a", "b", "c"], 3)
    assert [("a",), ("b",)] == groups(["a", "b"], 2)
