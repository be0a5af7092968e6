"""A folder of recorded speech -> the clips that are said, each with the truth about it.

A corpus is sound files and `manifest.jsonl`, a JSON object per line: `file`, `kind`, `speech_start_s`, `speech_end_s`
(first and last speech sample), and optionally `slots`, `text` (what is said, word for word) and `inner_pauses_s`.
Without the true end of speech a latency has no beginning, so a folder of mere sound files is refused.
Units: seconds in the manifest, samples at the file's own rate in memory. Threads: reading blocks on the disk.
What it does not know: how clips are said.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MANIFEST = "manifest.jsonl"
SOUNDS = (".wav", ".flac", ".ogg", ".mp3")
MOST_CLIPS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """Something that a caller says."""

    name: str  # the file's, relative to the corpus
    path: Path
    kind: str
    speech_start_s: float
    speech_end_s: float
    slots: Mapping[str, str] = field(default_factory=dict)
    text: str = ""  # word for word; empty: not known


def read_corpus(folder: Path | None) -> tuple[Clip, ...]:
    """All clips of a corpus in the manifest's order; None means the few that come along.

    Raises:
        CallerError: no such folder, no manifest, or an entry that says too little or contradicts itself.
    """
    if folder is None:
        return _bundled()
    if not folder.is_dir():
        raise CallerError(f"there is no folder {folder}", hint="name the folder that holds manifest.jsonl")
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise _without_manifest(folder)
    try:
        lines = manifest.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"{manifest} cannot be read", hint="it must be a text file in UTF-8") from error
    clips = tuple(
        _read_entry(_parsed(line, manifest, number), folder, f"{manifest}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    )
    if not clips or len(clips) > MOST_CLIPS:
        raise CallerError(f"{manifest} lists {len(clips)} clips", hint=f"use 1 to {MOST_CLIPS}")
    return clips


def choose(clips: Sequence[Clip], *, kinds: Iterable[str] = (), limit: int | None = None, seed: int = 0) -> list[Clip]:
    """The clips of these kinds (none named: all), shuffled by the seed, at most `limit`; the same for the same inputs.

    A smaller limit gives the beginning of what a larger one gives.

    Raises:
        CallerError: a kind that no clip has.
    """
    wanted, known = set(kinds), {clip.kind for clip in clips}
    if missing := sorted(wanted - known):
        raise CallerError(f"no clip is of kind {missing[0]!r}", hint=f"the corpus has {', '.join(sorted(known))}")
    chosen = sorted((clip for clip in clips if not wanted or clip.kind in wanted), key=lambda clip: clip.name)
    random.Random(seed).shuffle(chosen)  # noqa: S311 - an order, no secret
    return chosen[:limit]


def _bundled() -> tuple[Clip, ...]:
    folder = Path(str(resources.files("antiphon").joinpath("assets")))
    entries = json.loads((folder / "clips.json").read_text(encoding="utf-8"))["clips"]
    return tuple(_read_entry(entry, folder, "clips.json") for entry in entries)


def _without_manifest(folder: Path) -> CallerError:
    sounds = sum(1 for path in folder.iterdir() if path.suffix.lower() in SOUNDS)
    if not sounds:
        return CallerError(f"{folder} holds no {MANIFEST}", hint="name a folder with a manifest and its sound files")
    hint = f"write {MANIFEST}: per file a line with file, kind, speech_start_s and speech_end_s"
    return CallerError(f"{folder} holds {sounds} sound files, but no {MANIFEST} that says where speech ends", hint=hint)


def _parsed(line: str, manifest: Path, number: int) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CallerError(f"{manifest}, line {number} is no JSON", hint="write one object per line") from error


def _read_entry(entry: object, folder: Path, where: str) -> Clip:
    if not isinstance(entry, dict):
        raise CallerError(f"{where} is no JSON object", hint="write one object per line")
    name, slots = entry.get("file"), entry.get("slots") or {}
    if not isinstance(name, str) or not name or not isinstance(slots, dict):
        raise CallerError(f"{where}: `file` must be a name and `slots` an object", hint="see docs/lab.md")
    start_s, end_s = _seconds(entry, "speech_start_s", where), _seconds(entry, "speech_end_s", where)
    if not 0 <= start_s < end_s:
        raise CallerError(f"{where}: speech goes from {start_s} to {end_s} s", hint="it must end after it starts")
    path = folder / name
    if not path.is_file():
        raise CallerError(f"{where}: there is no file {path}", hint="the manifest's names are relative to its folder")
    return Clip(
        name=name,
        path=path,
        kind=str(entry.get("kind") or "speech"),
        speech_start_s=start_s,
        speech_end_s=end_s,
        slots={str(key): str(value) for key, value in slots.items()},
        text=str(entry.get("text") or ""),
    )


def _seconds(entry: Mapping[str, object], name: str, where: str) -> float:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise CallerError(f"{where}: `{name}` is missing or no number", hint="give it in seconds")
    return float(value)
