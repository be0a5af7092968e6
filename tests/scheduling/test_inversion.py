"""A lock between processes of unequal urgency turns their order around, unless it inherits; ours share none."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from tests.scheduling.inversion import BUSY_NS, HELD_NS

import antiphon
from antiphon.hardware.probe_rights import probe_rights

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="policies are Linux's")]

SOURCE = Path(antiphon.__file__).parent
BORDER = (
    *sorted((SOURCE / "exchange").glob("*.py")),
    SOURCE / "audio" / "timeline.py",
    *(
        SOURCE / "audio" / "card" / f"{name}.py"
        for name in ("alsa", "lanes", "loop", "paced", "process", "timer", "tuning")
    ),
)
LOCKS = {
    "Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier", "Event", "Queue", "SimpleQueue",
    "multiprocessing", "queue", "lockf", "flock", "pthread_mutex_lock", "futex",
}  # fmt: skip


def waited_ns(protocol):
    command = [sys.executable, "-m", "tests.scheduling.inversion", protocol]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=20)
    return int(done.stdout)


@pytest.mark.skipif(probe_rights()[0].fifo_priority < 30, reason="no right to SCHED_FIFO up to 30")
@pytest.mark.timeout(30)
def test_a_plain_lock_turns_urgency_around_and_an_inheriting_one_does_not():
    """The urgent one waits for one that has nothing to do with it; with inheritance, for the holder alone."""
    assert waited_ns("none") > BUSY_NS
    assert HELD_NS / 2 < waited_ns("inherit") < BUSY_NS / 2


@pytest.mark.parametrize("path", BORDER, ids=lambda path: path.stem)
def test_what_runs_in_the_audio_process_names_no_lock(path):
    """What it shares with the conversation is two rings and their bells."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
    assert not names & LOCKS
