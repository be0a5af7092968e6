"""Names of modules -> which of them load on this machine, and what stops the others.

The loading happens in a child process: a library that needs instructions which the CPU lacks kills its process, and
must not take the one that asks with it. Threads: blocks for as long as the imports take, up to the given time.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = "\x1e"

# one line for each module, flushed before the next is touched, so that a crash names its cause
_CHILD = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        problem = ""
    except BaseException as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())
    sys.__stdout__.write(f"\\n\\x1e{name}\\t{problem}\\n")
    sys.__stdout__.flush()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """How the import of one module went."""

    module: str
    problem: str  # "" if it loads


def probe_imports(modules: Sequence[str], *, timeout_s: float) -> list[ImportResult]:
    """Import each module in a child process; one that kills the child is named, and the rest are tried in another."""
    results: list[ImportResult] = []
    while len(results) < len(modules):
        left = modules[len(results) :]
        output, end = _import_in_child(left, timeout_s)
        # what a library itself prints has no mark
        lines = [line[1:].partition("\t") for line in output.split("\n") if line.startswith(MARK)]
        results += [
            ImportResult(module=name, problem=problem)
            for expected, (name, _, problem) in zip(left, lines, strict=False)
            if expected == name
        ]
        if len(results) < len(modules):
            results.append(ImportResult(module=modules[len(results)], problem=end or "the import ended its process"))
    return results


def _import_in_child(modules: Sequence[str], timeout_s: float) -> tuple[str, str]:
    """What the child printed, and how it ended if not well."""
    try:
        child = subprocess.run(  # noqa: S603 - our own interpreter and our own text
            [sys.executable, "-c", _CHILD, *modules],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace"), f"not loaded within {timeout_s:g} s"
    except OSError as error:
        return "", f"no child process could be started: {error.strerror}"
    end = f"the import ended its process with signal {-child.returncode}" if child.returncode < 0 else ""
    return child.stdout.decode(errors="replace"), end
