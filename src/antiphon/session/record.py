"""Stages stamp here; a finished record is a TurnTimeline. Nothing here decides anything."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from antiphon.core.stamps import Mark, Span, Stage, TurnTimeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.core.clock import Clock

MOST_SPANS = 500  # a two-minute turn has about 200 hops; past this only marks are kept


class TurnRecord:
    """The stamps of one turn, while it happens."""

    def __init__(self, turn: int, clock: Clock) -> None:
        self.turn = turn
        self.end_samples = 0  # where its voice ended, once it has paused
        self._clock = clock
        self._marks: dict[Mark, int] = {}
        self._spans: list[Span] = []

    def mark(self, mark: Mark, at_ns: int | None = None) -> None:
        """Stamp a moment, now unless told; the first stamp of a kind stands."""
        self._marks.setdefault(mark, self._clock.now_ns() if at_ns is None else at_ns)

    def add(self, stage: Stage, start_ns: int, end_ns: int, *, model: str = "") -> None:
        """Keep a stage that was timed elsewhere."""
        if len(self._spans) < MOST_SPANS:
            self._spans.append(Span(stage, start_ns, end_ns, model))

    @contextmanager
    def span(self, stage: Stage, model: str = "") -> Iterator[None]:
        """Time the stage that runs inside, also when it fails or is cancelled."""
        start_ns = self._clock.now_ns()
        try:
            yield
        finally:
            self.add(stage, start_ns, self._clock.now_ns(), model=model)

    def joined(self, earlier: TurnRecord) -> TurnRecord:
        """This record with the spans of an earlier part of the same turn in front."""
        self._spans = (earlier._spans + self._spans)[-MOST_SPANS:]
        return self

    def timeline(self) -> TurnTimeline:
        """What was stamped so far."""
        spans = tuple(sorted(self._spans, key=lambda span: span.start_ns))
        return TurnTimeline(turn=self.turn, marks=dict(self._marks), spans=spans)
