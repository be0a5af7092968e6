"""The default model's replies, held to the checks of bench/reply_quality.py."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.model, pytest.mark.slow]

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(BENCH))  # for its own imports
    try:
        spec = importlib.util.spec_from_file_location("reply_quality", BENCH / "reply_quality.py")
        module = sys.modules["reply_quality"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(BENCH))


@pytest.mark.timeout(400)  # thirty replies; 40 s on two idle cores, twice that on busy ones
def test_the_default_model_makes_sense(bench):
    """A default that talks nonsense is seen before a caller hears it."""
    _, replies = asyncio.run(bench.replies_of([]))

    judged = bench.judge(replies)

    assert judged["pass_all"] >= bench.DEFAULT_FLOOR, judged["pass"]


@pytest.mark.parametrize(
    ("question", "reply", "check"),
    [
        (0, "", "not empty"),
        (0, "Paris is the capital of", "ends as a sentence"),
        (0, "**Paris** is the capital.", "no markup"),
        (0, "I am Paris. I am Paris.", "no loop"),
        (0, "巴黎 Paris.", "in the question's language"),
        (0, "As an AI, I like Paris.", "no stock phrase"),
        (0, "What is the capital of France?", "no copy of the question"),
        (0, f"Paris {' '.join(f'is{index}' for index in range(60))} it.", "short enough to be said"),
        (0, "It is London.", "key word"),
    ],
)
def test_each_check_sees_what_it_is_for(bench, question, reply, check):
    """And lets a plain right answer pass."""
    assert not bench.CHECKS[check](reply, bench.QUESTIONS[question])
    assert bench.CHECKS[check]("It is Paris.", bench.QUESTIONS[question])
