"""A measurement that is broken off takes its server along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

MEASUREMENT = """
import asyncio
from antiphon.lab.own_server import cancelled_by_sigterm

async def child(name):
    with cancelled_by_sigterm():
        try:
            if name == "outer":
                await child("inner")
            else:
                print("ready", flush=True)
                await asyncio.sleep(60)
        finally:
            print("ended", name, flush=True)

asyncio.run(child("outer"))
"""


@pytest.mark.unit
@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_sigterm_ends_every_block_in_order() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", MEASUREMENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert "ended inner\nended outer\n" == process.communicate(timeout=20)[0]
    assert 0 != process.returncode
