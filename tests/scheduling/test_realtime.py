"""What an audio thread takes of its plan, tried in a process of its own; what is refused is said."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from antiphon.hardware.audio_plan import plan_audio
from antiphon.hardware.facts import Rights
from antiphon.hardware.probe_rights import probe_rights
from antiphon.scheduling import realtime
from antiphon.scheduling.realtime import settle

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="policies are Linux's")]

CHILD = """
import gc, json, os, sys
from antiphon.hardware.audio_plan import AudioPlan
from antiphon.scheduling.realtime import settle
taken = settle(AudioPlan(reasons=(), **json.loads(sys.argv[1])))
nice = os.getpriority(os.PRIO_PROCESS, 0)
policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
print(json.dumps([taken.policy, taken.is_locked, list(taken.refused), policy, nice, gc.isenabled(), taken.text()]))
"""


def settled(**plan):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(plan)], capture_output=True, text=True, check=True, timeout=30
    )
    return json.loads(done.stdout)


def test_without_rights_nothing_is_taken_and_nothing_refused():
    assert ["normal", False, [], 0] == settled(policy="normal")[:4]


def test_garbage_is_never_collected_again():
    assert settled(policy="normal")[5] is False


@pytest.mark.skipif(not probe_rights()[0].fifo_priority, reason="no right to SCHED_FIFO")
def test_fifo_is_taken():
    policy, locked, refused, number, *_ = settled(policy="fifo", priority=20, locks_memory=True)
    assert ("fifo", True, [], 1) == (policy, locked, refused, number)


@pytest.mark.skipif(not probe_rights()[0].deadline, reason="no right to SCHED_DEADLINE")
def test_deadline_is_taken():
    policy, _, refused, number, *_ = settled(policy="deadline", runtime_ns=5_000_000, period_ns=10_000_000)
    assert ("deadline", [], 6) == (policy, refused, number)


def test_what_cannot_be_had_is_said_and_the_next_is_taken(monkeypatch):
    """A deadline longer than its period is refused by every kernel."""
    policy, _, refused, *_, text = settled(policy="deadline", runtime_ns=20_000_000, period_ns=10_000_000)
    assert policy in {"nice", "normal"}
    assert "deadline was refused (EINVAL)" in refused[0] or "EPERM" in refused[0]
    assert "refused" in text


def test_rtkit_is_asked_for_this_thread(monkeypatch):
    """With its number, this process's and the priority; the limit that it wants goes first."""
    asked, limits = [], []
    monkeypatch.setattr(realtime.subprocess, "run", lambda command, **_: asked.append(command))
    monkeypatch.setattr("resource.setrlimit", lambda *limit: limits.append(limit))
    monkeypatch.setattr(realtime.gc, "freeze", lambda: None)
    monkeypatch.setattr(realtime.gc, "disable", lambda: None)
    plan = plan_audio(Rights(rtkit=True, locked_memory_bytes=0), "auto")
    assert "rtkit" == settle(plan).policy
    assert "uint32:20" == asked[0][-1]
    assert limits
