"""Entries -> manifest.jsonl, which makes a folder of sound a corpus. Threads: blocks on the disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import CallerError, MachineError
from antiphon.lab.clips import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def refuse_if_there(folder: Path, *, force: bool) -> None:
    """Raises CallerError if the folder has a manifest, which may be somebody's work, and `force` is not set."""
    if (folder / MANIFEST).exists() and not force:
        raise CallerError(f"{folder / MANIFEST} is there already", hint="--force replaces it")


def write_manifest(folder: Path, entries: Iterable[Mapping[str, Any]]) -> Path:
    """Write it as a whole, a line for each entry, and return its path.

    Raises:
        MachineError: it cannot be written.
    """
    path = folder / MANIFEST
    half = folder / f"{MANIFEST}.part"
    lines = [json.dumps(entry, ensure_ascii=False, allow_nan=False) for entry in entries]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        half.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        half.replace(path)
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error.strerror}", hint="name another folder") from error
    return path
