"""A command cannot hold up whoever asks it, nor flood the report."""

from __future__ import annotations

import sys

import pytest

from antiphon.hardware.child import ChildEnd, run_child

pytestmark = pytest.mark.unit


def python(text: str, *, timeout_s: float = 30) -> ChildEnd:
    return run_child([sys.executable, "-I", "-S", "-c", text], timeout_s=timeout_s, environment={"ADDED": "here"})


def test_output_comes_back() -> None:
    """With what was added to the environment, and without input."""
    end = python("import os, sys; print(os.environ['ADDED'], repr(sys.stdin.read()))")

    assert ChildEnd(output="here ''\n", problem="") == end


def test_warnings_are_no_output() -> None:
    """A library that complains on stderr does not spoil the answer."""
    assert python("import sys; sys.stderr.write('oh'); print(1)") == ChildEnd(output="1\n", problem="")


def test_a_failure_is_told_in_one_line() -> None:
    """Code and words, of which not too many."""
    assert python("print('no\\n driver'); raise SystemExit(9)").problem == "ended with code 9: no driver"
    assert python("import os; os.kill(os.getpid(), 6)").problem == "ended with signal 6"
    assert python("raise SystemExit('no library')").problem == "ended with code 1: no library"
    assert len(python("print('x' * 10**5); raise SystemExit(1)").problem) < 250


def test_a_command_that_never_ends_is_given_up() -> None:
    """In the time given."""
    assert python("while True: pass", timeout_s=0.3).problem == "no answer within 0.3 s"


def test_a_command_that_is_not_there_is_a_problem() -> None:
    """And no error."""
    assert run_child(["/nowhere/tool"], timeout_s=1).problem.startswith("cannot be started: ")
