"""Pieces of a reply in as the model writes them, chunks out in which it is spoken.

Chunks lie end to end and together are the reply, white space included; each has something to say. A chunk is handed
out when the first letter or digit behind it has come, so that marks and white space are never left over, the last
one is known as such, and no mark is judged before what follows it. How the text was cut into pieces makes no
difference.

The first chunk is small, so that speech can begin early: it ends at the first clause or sentence mark, or after a
few words. What comes after it must be ready before it has been spoken. A voice that speaks `voice_speed` times
faster than real time needs n / voice_speed for a chunk of length n. Chunk k is therefore held to

    (voice_speed - 1) * (length of all chunks before it) + (length of the first)

which is what has been played when the chunk's sound must be there, less what its forerunners took to make. Lengths
are in Latin letters; a Han character counts as four of them, for that is how long it lasts.
What it does not know: how text sounds, and markup, which it leaves as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from antiphon.core.errors import check_range
from antiphon.core.flow import TextChunk
from antiphon.think.borders import Border, border_before, is_speakable, is_unspaced

_HAN_LETTERS = 4  # about 230 ms against 60 ms for a Latin letter
_KANA_LETTERS = 2
_LETTER_GRACE = 2  # times the limit, before a script without spaces is cut within what may be a word
_RUNAWAY = 4  # times `longest`: text that long without any border is cut where it stands


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkerSettings:
    """How large chunks are. Without `small_first` they are sentences, cut only where longer than `longest`.

    Raises:
        CallerError: a value is out of its range; the message names the field.
    """

    small_first: Annotated[bool, "end the first chunk early, so that speech can begin"] = True
    first_least_words: Annotated[int, "as many words end the first chunk where they may"] = 3
    first_most_words: Annotated[int, "and as many wherever they stand"] = 6
    first_least: Annotated[int, "letters; what is shorter is joined to what follows, or a pause would follow it"] = 8
    voice_speed: Annotated[float, "the voice is at least so many times faster than real time"] = 2.0
    longest: Annotated[int, "letters, about 12 s"] = 200

    def __post_init__(self) -> None:
        check_range("first_least_words", self.first_least_words, 1, 50)
        check_range("first_most_words", self.first_most_words, self.first_least_words, 50)
        check_range("first_least", self.first_least, 1, 100)
        check_range("voice_speed", self.voice_speed, 1, 1000)
        check_range("longest", self.longest, 20, 2000)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A place where the chunk at hand can end."""

    at: int
    kind: Border
    words: int  # of the chunk, up to there


class Chunker:
    """For one reply."""

    def __init__(self, settings: ChunkerSettings | None = None) -> None:
        self._settings = settings or ChunkerSettings()
        self._text = ""
        self._lengths = [0]  # of the text up to each character
        self._start = 0  # where the chunk at hand begins
        self._first_speakable: int | None = None  # of the chunk at hand
        self._candidates: list[_Candidate] = []
        self._words = 0
        self._first_length = 0
        self._index = 0

    def feed(self, piece: str) -> list[TextChunk]:
        """Take the reply's next characters; return the chunks that are complete with them."""
        return [chunk for char in piece for chunk in self._take(char)]

    def finish(self) -> list[TextChunk]:
        """The reply is complete: return the last chunk, or nothing if the reply said nothing."""
        if self._first_speakable is None:
            return []
        return [self._cut(len(self._text), is_last=True)]

    def _take(self, char: str) -> list[TextChunk]:
        at = len(self._text)
        self._text += char
        self._lengths.append(self._lengths[-1] + _length(char))
        kind = border_before(self._text, at) if at > self._start else Border.NONE
        if kind is Border.NONE and self._is_runaway(at, char):
            kind = Border.LETTER
        if kind is not Border.NONE and self._first_speakable is not None:
            self._words += kind > Border.LETTER
            self._candidates.append(_Candidate(at, kind, self._words))
        if not is_speakable(char):
            return []
        if self._first_speakable is None:
            self._first_speakable = at
        return self._ripe_chunks(at)

    def _ripe_chunks(self, newest: int) -> list[TextChunk]:
        """Cut for as long as the text at hand holds a whole chunk; `newest` is speakable and stays behind."""
        chunks = []
        while (end := self._choose_end()) is not None:
            chunks.append(self._cut(end, is_last=False))
            self._first_speakable = next(i for i in range(end, newest + 1) if is_speakable(self._text[i]))
            self._candidates = [one for one in self._candidates if one.at > self._first_speakable]
        return chunks

    def _choose_end(self) -> int | None:
        first = self._settings.small_first and self._index == 0
        if first and (end := self._first_end()) is not None:
            return end
        limit = self._limit()
        for candidate in self._candidates:
            if candidate.kind is Border.SENTENCE and not (first and self._is_short(candidate)):
                return candidate.at if self._length_at(candidate) <= limit else self._best_within(limit)
        return self._best_within(limit) if self._lengths[-1] - self._lengths[self._start] > limit else None

    def _first_end(self) -> int | None:
        """Where a small first chunk ends: at its first mark, or behind a word that does not want the next one."""
        settings = self._settings
        long = [one for one in self._candidates if one.kind > Border.LETTER and not self._is_short(one)]
        for one in long:
            if one.kind >= Border.CLAUSE or (one.kind is Border.WORD and one.words >= settings.first_least_words):
                return one.at
        if not long or long[-1].words < settings.first_most_words:
            return None
        return max(long, key=lambda one: (one.kind, one.at)).at

    def _is_short(self, candidate: _Candidate) -> bool:
        return self._length_at(candidate) < self._settings.first_least

    def _best_within(self, limit: int) -> int | None:
        """The best of the places up to `limit`, a late one before an early one; beyond it the first; None without any.

        A clause's end counts as best from a third of the limit on: earlier it would leave a scrap.
        """
        length = self._lengths[-1] - self._lengths[self._start]
        usable = [one for one in self._candidates if one.kind > Border.LETTER or length > _LETTER_GRACE * limit]
        inside = [one for one in usable if self._length_at(one) <= limit]
        if not inside:
            return usable[0].at if usable else None
        worth = [one for one in inside if one.kind < Border.CLAUSE or self._length_at(one) * 3 >= limit] or inside
        return max(worth, key=lambda one: (one.kind, one.at)).at

    def _limit(self) -> int:
        settings = self._settings
        if not settings.small_first or self._index == 0:
            return settings.longest
        said = self._lengths[self._start]
        return min(settings.longest, int((settings.voice_speed - 1) * said + self._first_length))

    def _length_at(self, candidate: _Candidate) -> int:
        return self._lengths[candidate.at] - self._lengths[self._start]

    def _is_runaway(self, at: int, char: str) -> bool:
        since = self._candidates[-1].at if self._candidates else self._start
        long = self._lengths[at] - self._lengths[since] > _RUNAWAY * self._settings.longest
        return long and char.isalnum() and self._text[at - 1].isalnum()

    def _cut(self, end: int, *, is_last: bool) -> TextChunk:
        chunk = TextChunk(
            text=self._text[self._start : end], index=self._index, start_chars=self._start, is_last=is_last
        )
        if self._index == 0:
            self._first_length = self._lengths[end]
        said = next((one.words for one in self._candidates if one.at == end), self._words)
        self._candidates = [_Candidate(o.at, o.kind, o.words - said) for o in self._candidates if o.at > end]
        self._words = max(0, self._words - said)
        self._start, self._index, self._first_speakable = end, self._index + 1, None
        return chunk


def _length(char: str) -> int:
    """How long `char` takes to say, in Latin letters."""
    if not is_unspaced(char):
        return 1
    return _KANA_LETTERS if "\u3040" <= char <= "\u30ff" else _HAN_LETTERS
