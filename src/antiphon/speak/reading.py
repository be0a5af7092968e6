"""Words with their phonemes in, utterances that a voice can say in one go out.

Units: phonemes as the ids of the voice's alphabet, positions in int characters of the chunk's text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word as it is read, the marks that touch it included."""

    ids: tuple[int, ...]  # never empty
    sounding: int  # how many of the ids come up to the last that is no mark; 0 for marks alone
    said: int | None  # chars of the chunk that are said with it; None in the midst of a longer reading
    ends_clause: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """What the model is asked for in one go."""

    start: int  # chars of the chunk before it
    ids: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]  # (ids said at a word's end, chars of the chunk said by then)


def utterances(words: Sequence[Word], *, start: int, space_id: int, longest: int) -> list[Utterance]:
    """A sentence that begins at `start`, in utterances of at most `longest` ids.

    A sentence that is too long breaks after a clause, without one after a word. Only a word that is itself too long,
    and a reading that stands for one written word, stay whole. Utterances without a sound are left out.
    """
    result = []
    for run in _runs(words, longest):
        if any(word.sounding for word in run):
            result.append(_utterance(run, start, space_id))
        start = next((word.said for word in reversed(run) if word.said is not None), start)
    return result


def _utterance(run: Sequence[Word], start: int, space_id: int) -> Utterance:
    ids: list[int] = []
    ends = []
    for word in run:
        if ids:
            ids.append(space_id)
        if word.sounding and word.said is not None:
            ends.append((len(ids) + word.sounding, word.said))
        ids += word.ids
    return Utterance(start=start, ids=tuple(ids), ends=tuple(ends))


def _runs(words: Sequence[Word], longest: int) -> list[list[Word]]:
    runs = []
    run: list[Word] = []
    for word in words:
        while run and _length([*run, word]) > longest and (cut := _cut(run)):
            runs.append(run[:cut])
            run = run[cut:]
        run.append(word)
    return [*runs, run] if run else runs


def _length(run: Sequence[Word]) -> int:
    """Ids of the run, the spaces between its words included."""
    return sum(len(word.ids) for word in run) + len(run) - 1


def _cut(run: Sequence[Word]) -> int:
    """How many words of `run` to say first; 0 if it cannot be broken."""
    places = [count for count, word in enumerate(run, 1) if word.said is not None]
    clauses = [count for count in places if run[count - 1].ends_clause]
    return max(clauses or places, default=0)
