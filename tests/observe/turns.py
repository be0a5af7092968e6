"""Turns that the renderers' tests draw."""

from __future__ import annotations

from antiphon.core.stamps import Mark, Span, Stage, TurnTimeline

MS = 1_000_000


def answered(*, turn: int = 1, scale: float = 1.0, suffix: str = "") -> TurnTimeline:
    """A drafted turn, 400 ms at `scale` 1; `suffix` lengthens the models' names."""

    def at(ms: float) -> int:
        return 5_000 * MS + round(ms * scale * MS)

    marks = dict(zip(Mark, map(at, (0, 100, 250, 260, 300, 320, 380, 400)), strict=True))
    spans = (
        Span(Stage.VAD, at(99.6), at(100), "silero-v6" + suffix),
        Span(Stage.RECOGNISE, at(-300), at(-200), "whisper-tiny.en" + suffix),
        Span(Stage.RECOGNISE, at(100), at(250), "whisper-tiny.en" + suffix),
        Span(Stage.THINK, at(250), at(700), "smollm2-135m-instruct-q4_1" + suffix),
        Span(Stage.SPEAK, at(300), at(320), "hibari-heart" + suffix),
        Span(Stage.JUDGE, at(320), at(380)),
        Span(Stage.PLAY, at(380), at(2000)),
    )
    return TurnTimeline(turn=turn, marks=marks, spans=spans)


def unanswered() -> TurnTimeline:
    """The same turn, cut short before a decision."""
    whole = answered()
    marks = {mark: at for mark, at in whole.marks.items() if mark not in (Mark.CONFIRMED, Mark.FIRST_SOUND)}
    return TurnTimeline(turn=2, marks=marks, spans=whole.spans[:5])
