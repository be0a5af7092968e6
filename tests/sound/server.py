"""A PipeWire of a test's own, in folders of its own: a microphone that says what is played into it, and a loudspeaker.

It needs no card and no user's session; nothing outside its folder is touched. Ends with its context.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NEEDED = ("dbus-daemon", "pipewire", "wireplumber", "pw-cli", "pw-cat", "pw-link")
NODES = """
context.properties = {
    default.clock.rate = 48000
    default.clock.quantum = 256
    default.clock.min-quantum = 128
}
context.objects = [
    { factory = adapter args = { factory.name = support.null-audio-sink node.name = microphone
        media.class = Audio/Source/Virtual audio.position = [ MONO ] priority.session = 2000 } }
    { factory = adapter args = { factory.name = support.null-audio-sink node.name = loudspeaker
        media.class = Audio/Sink audio.position = [ FL FR ] priority.session = 2000 } }
]
"""


def missing() -> str:
    """What is not installed; empty if all is."""
    return " ".join(name for name in NEEDED if not shutil.which(name))


class Server:
    """A running one."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "XDG_RUNTIME_DIR": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "PIPEWIRE_RUNTIME_DIR": str(folder),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={folder}/bus",
            "PIPEWIRE_DEBUG": "1",
        }

    def call(self, *words: str) -> str:
        """One of its tools' output."""
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen:
        """A tool, or a program, that uses it."""
        return subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def say(self, clip: Path) -> subprocess.Popen:
        """Play a file into the microphone; ends with it."""
        name = f"caller-{time.monotonic_ns()}"
        player = self.start(
            "pw-cat", "--playback", "--target", "0", "--properties", f"{{ node.name = {name} }}", str(clip)
        )
        self.connect(f"{name}:output_", "microphone:input_")
        return player

    def record(self, file: Path) -> subprocess.Popen:
        """Write what the loudspeaker is given into a file, until it is terminated."""
        name = f"listener-{time.monotonic_ns()}"
        recorder = self.start(
            "pw-cat", "--record", "--target", "0", "--rate", "48000", "--channels", "1",
            "--properties", f"{{ node.name = {name} }}", str(file),
        )  # fmt: skip
        self.connect("loudspeaker:monitor_", f"{name}:input_")
        return recorder

    def connect(self, outputs: str, inputs: str, *, within_s: float = 10.0) -> None:
        """Every port that begins so to every one that begins so, once both are there."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            out = [line for line in self.call("pw-link", "-o").splitlines() if line.startswith(outputs)]
            into = [line for line in self.call("pw-link", "-i").splitlines() if line.startswith(inputs)]
            if out and into:
                for port in out:
                    for other in into:
                        self.call("pw-link", port, other)
                return
            time.sleep(0.05)
        raise TimeoutError(f"no ports {outputs} or {inputs}")


@contextmanager
def pipewire(folder: Path) -> Iterator[Server]:
    """Start one in an empty folder with a short name, for sockets lie in it; wait until its nodes are there."""
    folder.chmod(0o700)
    settings = folder / "config" / "pipewire" / "pipewire.conf.d"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "nodes.conf").write_text(NODES, encoding="utf-8")
    server = Server(folder)
    address = server.environment["DBUS_SESSION_BUS_ADDRESS"]  # the session manager does not start without a bus
    children = [server.start("dbus-daemon", "--session", "--nofork", f"--address={address}"), server.start("pipewire")]
    try:
        _until(lambda: (folder / "pipewire-0").exists() and (folder / "bus").exists())
        children.append(server.start("wireplumber"))
        _until(lambda: "microphone:capture_" in server.call("pw-link", "-o"))
        _until(lambda: "loudspeaker:playback_" in server.call("pw-link", "-i"))
        yield server
    finally:
        for child in reversed(children):
            child.terminate()
            child.wait(10)


def _until(is_so: Callable[[], bool], within_s: float = 15.0) -> None:
    until = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError("PipeWire did not start")
        time.sleep(0.05)
