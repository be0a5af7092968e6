"""A command -> what it wrote, or why it came to nothing, within a time that it cannot stretch.

A broken driver can hold its caller inside the kernel, where not even a kill reaches it; such a child is left behind
after a second rather than waited for. Threads: blocks up to the time given and that second. Units: seconds.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LAST_WAIT_S = 1.0
MOST_PROBLEM_CHARACTERS = 200  # of what a failed command says; it ends up in one line of a report


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a child process ended."""

    output: str  # to stdout; "" if there is a problem
    problem: str  # "" if it ended well


def run_child(command: Sequence[str], *, timeout_s: float, environment: Mapping[str, str] | None = None) -> ChildEnd:
    """Run a command without input; `environment` is added to ours."""
    try:
        child = subprocess.Popen(  # noqa: S603 - our own commands, and no `with`, which would wait without limit
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, ValueError) as error:
        return ChildEnd(output="", problem=f"cannot be started: {error}")
    try:
        written, complaint = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _give_up(child)
        return ChildEnd(output="", problem=f"no answer within {timeout_s:g} s")
    if child.returncode == 0:
        return ChildEnd(output=written.decode(errors="replace"), problem="")
    end = f"signal {-child.returncode}" if child.returncode < 0 else f"code {child.returncode}"
    said = " ".join((written + b" " + complaint).decode(errors="replace").split())[:MOST_PROBLEM_CHARACTERS]
    return ChildEnd(output="", problem=f"ended with {end}{': ' if said else ''}{said}")


def _give_up(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    try:
        child.wait(LAST_WAIT_S)
    except subprocess.TimeoutExpired:
        return
    finally:
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
