"""A corpus -> its turns, each with the pauses in it and the one behind it.

Reads what `clips.py` reads, and of each entry `inner_pauses_s`, a list of [from, to], and `synthetic`.
Units: seconds of the clip. Threads: reading blocks on the disk.
What it does not know: sound. Whether a pause is where the manifest says is the manifest's business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import CallerError
from antiphon.lab.clips import MANIFEST, choose, read_corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from antiphon.lab.clips import Clip

MOST_PAUSES = 1000  # in one clip; more is no turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Silence in a turn, or behind it."""

    start_s: float
    end_s: float  # infinite behind the turn

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """A clip and its pauses; the last one is the end of the turn."""

    clip: Clip
    pauses: tuple[Pause, ...]
    synthetic: str = ""  # the voice, where no human speaks


def read_turns(
    folder: Path | None, *, kinds: Iterable[str] = (), limit: int | None = None, seed: int = 0
) -> list[RecordedTurn]:
    """The corpus's turns, chosen as for a run; None means the few that come along.

    Raises:
        CallerError: the corpus cannot be read, or a pause lies outside its turn.
    """
    clips = choose(read_corpus(folder), kinds=kinds, limit=limit, seed=seed)
    entries = _entries(folder)
    return [_turn(clip, entries[clip.name]) for clip in clips]


def _entries(folder: Path | None) -> Mapping[str, Mapping[str, Any]]:
    """Every entry by its file; `read_corpus` has found them sound."""
    if folder is None:
        text = resources.files("antiphon").joinpath("assets/clips.json").read_text(encoding="utf-8")
        return {entry["file"]: entry for entry in json.loads(text)["clips"]}
    lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    return {entry["file"]: entry for entry in map(json.loads, filter(str.strip, lines))}


def _turn(clip: Clip, entry: Mapping[str, Any]) -> RecordedTurn:
    listed = entry.get("inner_pauses_s") or []
    hint = "inner_pauses_s is a list of [from, to] in seconds, in order, between speech_start_s and speech_end_s"
    if not isinstance(listed, list) or len(listed) > MOST_PAUSES or not all(map(_is_span, listed)):
        raise CallerError(f"{clip.name}: inner_pauses_s is no list of pauses", hint=hint)
    borders = [clip.speech_start_s, *(float(second) for span in listed for second in span), clip.speech_end_s]
    if any(later < earlier for earlier, later in pairwise(borders)):
        raise CallerError(f"{clip.name}: a pause lies outside the turn, or two overlap", hint=hint)
    pauses = tuple(Pause(start_s=float(start), end_s=float(end)) for start, end in listed)
    voice = str(entry.get("voice") or "unnamed") if entry.get("synthetic") else ""
    return RecordedTurn(clip=clip, pauses=(*pauses, Pause(start_s=clip.speech_end_s, end_s=inf)), synthetic=voice)


def _is_span(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(
            isinstance(second, (int, float)) and not isinstance(second, bool) and isfinite(second) for second in value
        )
        and value[0] < value[1]
    )
