"""What the model wrote and what is said of it; positions of the one are found for positions of the other.

A reply is written in passes: one, and one more after each round of tools. What is said differs from what was written
by markup that is left out and figures that are read out (`think/spoken_form.py`). Positions in what is said are what
the voice and the playout count in; the owner and the history get what was written.
Units: characters. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.think.spoken_form import Spoken


class ReplyText:
    """Of one reply."""

    def __init__(self) -> None:
        self.written = ""
        self.said_chars = 0  # of all that is to be said so far
        self._base = 0  # where the present text begins
        self._pass_starts = [0]
        self._runs: list[tuple[int, int, bool]] = []  # (said up to here, written up to here, letter by letter)
        self._left_out: list[tuple[int, int]] = []  # written, but could not be voiced

    def begin(self, *, is_pass: bool) -> None:
        """Another text begins behind what there is, as a pass of its own or as more of the present one."""
        if self.written and not self.written[-1].isspace():
            self.written += " "
            self._run(1, len(self.written), is_literal=True)
        self._base = len(self.written)
        if is_pass:
            self._pass_starts.append(self._base)

    def write(self, text: str) -> None:
        """The model wrote more."""
        self.written += text

    def say(self, runs: Iterable[Spoken]) -> str:
        """These runs of the present text are to be said; return what they say."""
        said = ""
        for run in runs:
            end = self._base + run.end_chars
            written = self.written[self._written_end() : end]
            self._run(len(run.text), end, is_literal=run.text == written)
            said += run.text
        return said

    def leave_out(self, start_said: int, end_said: int) -> None:
        """What lies between could not be voiced."""
        self._left_out.append((self.written_at(start_said), self.written_at(end_said)))

    def written_at(self, said: int) -> int:
        """How much of the written text has been said once `said` characters have; whole runs, but for literal ones."""
        if said >= self.said_chars:
            return self._written_end()
        at = bisect_right(self._runs, said, key=lambda run: run[0])
        start_said, start_written, _ = self._runs[at - 1] if at else (0, 0, True)
        if said > start_said and self._runs[at][2]:
            return start_written + said - start_said
        while at and start_said == (self._runs[at - 2][0] if at > 1 else 0):
            at -= 1  # what is left out counts as said with what follows it
        return self._runs[at - 1][1] if at else 0

    def between(self, start_said: int, end_said: int) -> str:
        """The written text of that part, without what could not be voiced."""
        return self._kept(self.written_at(start_said), self.written_at(end_said))

    def unheard(self, said: int) -> str:
        """What was written behind that, whether it was voiced or not."""
        return self.written[self.written_at(said) :].strip()

    def passes(self, said: int) -> tuple[str, ...]:
        """What was heard of each pass once `said` characters have been said."""
        end = self.written_at(said)
        starts = [start for start in self._pass_starts if start <= end]
        return tuple(self._kept(start, stop) for start, stop in zip(starts, [*starts[1:], end], strict=True))

    def _run(self, length: int, written_end: int, *, is_literal: bool) -> None:
        self.said_chars += length
        self._runs.append((self.said_chars, written_end, is_literal))

    def _written_end(self) -> int:
        return self._runs[-1][1] if self._runs else 0

    def _kept(self, start: int, end: int) -> str:
        kept, at = "", start
        for gap_start, gap_end in self._left_out:
            kept += self.written[at : max(at, min(gap_start, end))]
            at = max(at, min(gap_end, end))
        return kept + self.written[at:end]
