"""What was computed for a pause -> a file that a later evaluation reads it from.

An entry's key is a digest of everything that its value depends on: the detector's version and the sound. So nothing is
ever out of date, only of no use. At most MOST_ENTRIES are kept, the oldest go first; a file that cannot be read is
forgotten. What was said is no part of it. Threads: one evaluation's; `save` blocks on the disk.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.core.flow import Pcm

MOST_ENTRIES = 50_000  # pauses; some 20 MB
LARGEST_BYTES = 256 * 1024 * 1024
SCHEMA = "antiphon.turn_end_memory/1"


class Memory:
    """Values by key; lost at the end unless it has a file."""

    def __init__(self, path: Path | None = None, *, most: int = MOST_ENTRIES) -> None:
        self._path = path
        self._most = most
        self._entries: dict[str, Any] = _read(path) if path else {}
        self._is_changed = False

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Any:
        """The value; None if there is none. What is used stays longest."""
        if key in self._entries:
            self._entries[key] = self._entries.pop(key)
        return self._entries.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a value that JSON can hold."""
        self._entries.pop(key, None)
        while len(self._entries) >= self._most:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = value
        self._is_changed = True

    def save(self) -> None:
        """Write the file, if there is one and anything is new.

        Raises:
            MachineError: it cannot be written.
        """
        if self._path is None or not self._is_changed:
            return
        half = self._path.with_name(f"{self._path.name}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            half.write_text(json.dumps({"schema": SCHEMA, "entries": self._entries}), encoding="utf-8")
            half.replace(self._path)
        except OSError as error:
            hint = "name another folder with --out"
            raise MachineError(f"{self._path} cannot be written: {error.strerror}", hint=hint) from error
        self._is_changed = False


def key_of(version: str, pcm: Pcm, *more: object) -> str:
    """A key for what follows from this sound and these values."""
    digest = sha256(f"{version}\n{more!r}\n".encode())
    digest.update(pcm.tobytes())
    return digest.hexdigest()[:32]


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return {}
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(plain, dict) or plain.get("schema") != SCHEMA or not isinstance(plain.get("entries"), dict):
        return {}
    return dict(plain["entries"])
