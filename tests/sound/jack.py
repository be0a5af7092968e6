"""A JACK of a test's own, with its dummy driver, which a timer paces: reached through ALSA's plugin by the name `jack`.

It needs no card and no right, and touches no other server: it has a name of its own. Ends with its context.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "jack"  # of the device
RATE_HZ, PERIOD_SAMPLES = 48_000, 256
PLUGINS = ("/usr/lib", "/usr/lib64")
ALSA = """
</usr/share/alsa/alsa.conf>
pcm.jack {
    type jack
    capture_ports { 0 system:capture_1 }
    playback_ports { 0 system:playback_1 }
}
"""


def missing() -> str:
    """What is not installed; empty if all is."""
    found = [name for name in ("jackd", "jack_lsp") if not shutil.which(name)]
    plugin = "libasound_module_pcm_jack.so"
    if not any(next(Path(folder).glob(f"**/alsa-lib/{plugin}"), None) for folder in PLUGINS):
        found.append(plugin)
    return " ".join(found)


@contextmanager
def jack(folder: Path) -> Iterator[dict[str, str]]:
    """Start one; inside, the environment of a program that is to use it."""
    (folder / "asound.conf").write_text(ALSA, encoding="utf-8")
    name = f"antiphon-{os.getpid()}"
    environment = {
        **os.environ,
        "JACK_DEFAULT_SERVER": name,
        "JACK_NO_START_SERVER": "1",
        "ALSA_CONFIG_PATH": str(folder / "asound.conf"),
    }
    command = ["jackd", "--no-realtime", "--no-mlock", "-n", name, "-d", "dummy"]
    command += ["-r", str(RATE_HZ), "-p", str(PERIOD_SAMPLES)]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 15
        while "system:capture_1" not in _ports(environment):
            if time.monotonic() > until or server.poll() is not None:
                raise TimeoutError("JACK did not start")
            time.sleep(0.1)
        yield environment
    finally:
        server.terminate()
        server.wait(10)


def _ports(environment: dict[str, str]) -> str:
    return subprocess.run(["jack_lsp"], env=environment, capture_output=True, text=True, timeout=20, check=False).stdout
