"""What the machine did, and what a process used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from antiphon.lab.machine import TICKS_PER_S, _own_ticks, fingerprint, server_usage

pytestmark = pytest.mark.unit


def test_a_fingerprint_names_the_machine_and_the_versions() -> None:
    """As strings and numbers that JSON takes."""
    found = fingerprint()
    assert {"taken", "cpu", "cores", "system", "python", "versions", "commit"} == set(found)
    assert "numpy" in found["versions"]  # type: ignore[operator]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_is_read_by_its_number() -> None:
    """One that is gone says nothing."""
    usage = server_usage(os.getpid())
    assert usage["cpu_s"] > 0
    assert usage["rss_mib"] > 1
    assert {} == server_usage(2**22 + 1)


def test_what_was_started_here_and_waited_for_is_ours() -> None:
    """A server that has ended before the load is told is no other program."""
    busy = "import time\nwhile time.process_time() < 0.06: pass"
    before = _own_ticks(())
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert _own_ticks(()) - before >= 0.05 * TICKS_PER_S
