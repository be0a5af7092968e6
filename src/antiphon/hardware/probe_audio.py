"""This machine -> its ways to hear and to be heard: ALSA's devices, and the sockets of sound servers.

Only looks at files: no library is loaded, no device opened, and no socket connected to, since that would start a
server which the system keeps for later. So a socket may be one that a dead server left. Linux alone; elsewhere
nothing is told. Never fails.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.hardware.facts import AudioDevice
from antiphon.hardware.kernel_files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CARD = re.compile(r"^ *(\d+) \[.*?\]: .*? - (.*)$")  # ` 0 [PCH            ]: HDA-Intel - HDA Intel PCH`
MOST_DEVICES = 256  # a machine that shows more is not a place to list them


def probe_audio(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> tuple[AudioDevice, ...]:
    """Devices first, in the kernel's order, then servers."""
    if sys.platform != "linux":
        return ()
    return (*tuple(_alsa(root))[:MOST_DEVICES], *_servers(root, environment))


def _alsa(root: Path) -> Iterator[AudioDevice]:
    folder = root / "proc" / "asound"
    cards = {int(found[1]): found[2] for line in _lines(folder / "cards") if (found := CARD.match(line))}
    for line in _lines(folder / "pcm"):  # `00-03: HDMI 0 : HDMI 0 : playback 1`
        place, *cells = [cell.strip() for cell in line.split(":")]
        card, _, device = place.partition("-")
        if not (card.isdecimal() and device.isdecimal() and cells):
            continue
        ways = {cell.split()[0] for cell in cells[1:] if cell}
        name = cells[0] or f"device {int(device)}"
        yield AudioDevice(
            name=f"{cards.get(int(card), f'card {int(card)}')}: {name}",
            system="alsa",
            can_capture="capture" in ways,
            can_play="playback" in ways,
        )


def _servers(root: Path, environment: Mapping[str, str]) -> Iterator[AudioDevice]:
    """A server offers both ways; whether a microphone is behind it, only the server could tell."""
    number = os.getuid() if hasattr(os, "getuid") else 0
    own = root / environment.get("XDG_RUNTIME_DIR", f"/run/user/{number}").lstrip("/")
    places = {
        "pipewire": [own / "pipewire-0", root / "run" / "pipewire" / "pipewire-0"],
        "pulse": [own / "pulse" / "native", root / "run" / "pulse" / "native"],
        "jack": [*_jack_sockets(root / "dev" / "shm", number), *_jack_sockets(own, number)],
    }
    names = {"pipewire": "PipeWire", "pulse": "PulseAudio", "jack": "JACK"}
    for system, sockets in places.items():
        if any(_is_socket(place) for place in sockets):
            yield AudioDevice(name=names[system], system=system, can_capture=True, can_play=True)


def _jack_sockets(folder: Path, number: int) -> list[Path]:
    """`jack_default_1000_0`: the server's name and the user's number."""
    try:
        return sorted(folder.glob(f"jack_*_{number}_*"))
    except OSError:
        return []


def _is_socket(place: Path) -> bool:
    try:
        return stat.S_ISSOCK(place.stat().st_mode)
    except (OSError, ValueError):
        return False


def _lines(file: Path) -> list[str]:
    return read_text(file).splitlines()
