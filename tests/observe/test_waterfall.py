"""Stamps become rows and parts, and the parts always explain the whole latency."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.stamps import Mark, Span, Stage, TurnTimeline
from antiphon.observe.waterfall import Waterfall, layout, rounded_ms

pytestmark = pytest.mark.unit

MS = 1_000_000
START = 7_000 * MS  # the clock's origin is arbitrary

SPECULATIVE = {
    Mark.SPEECH_ENDED: 0,
    Mark.PAUSE_NOTICED: 96,
    Mark.TRANSCRIBED: 270,
    Mark.FIRST_TOKEN: 280,
    Mark.CHUNK_READY: 320,
    Mark.VOICED: 345,
    Mark.CONFIRMED: 390,
    Mark.FIRST_SOUND: 412,
}


def timeline(marks_ms: dict[Mark, float], *spans: tuple[Stage, float, float]) -> TurnTimeline:
    return TurnTimeline(
        turn=1,
        marks={mark: START + round(at_ms * MS) for mark, at_ms in marks_ms.items()},
        spans=tuple(Span(stage, START + round(start * MS), START + round(end * MS)) for stage, start, end in spans),
    )


def parts(waterfall: Waterfall) -> list[tuple[str, float]]:
    return [(part.word, part.duration_ns / MS) for part in waterfall.parts]


def test_a_drafted_turn_is_cut_at_its_marks() -> None:
    """With a draft ready before the decision, only the rest of the wait counts as waiting."""
    waterfall = layout(timeline(SPECULATIVE))
    want = [
        ("noticing", 96.0),
        ("hearing", 174.0),
        ("thinking", 10.0),
        ("finishing", 40.0),
        ("voicing", 25.0),
        ("waiting", 45.0),
        ("handing over", 22.0),
    ]
    assert want == parts(waterfall)
    assert waterfall.total_ns == 412 * MS
    assert (waterfall.note, waterfall.warning) == ("", False)


def test_a_decision_before_the_draft_costs_nothing() -> None:
    waterfall = layout(timeline({**SPECULATIVE, Mark.CONFIRMED: 200}))
    assert ("waiting", 0.0) in parts(waterfall)
    assert ("handing over", 67.0) in parts(waterfall)


def test_without_speculation_the_wait_is_shown_as_such() -> None:
    """Work that began only after the decision waited for it: 600 ms of silence, then stages of 100 ms each."""
    marks = dict(zip(SPECULATIVE, (0, 40, 700, 750, 800, 900, 600, 910), strict=True))
    waterfall = layout(
        timeline(marks, (Stage.RECOGNISE, 601, 700), (Stage.THINK, 700, 1500), (Stage.SPEAK, 800, 900)),
    )
    want = [
        ("noticing", 40.0),
        ("waiting", 560.0),
        ("hearing", 100.0),
        ("thinking", 50.0),
        ("finishing", 50.0),
        ("voicing", 100.0),
        ("handing over", 10.0),
    ]
    assert want == parts(waterfall)


def test_a_language_model_that_waits_for_the_decision_puts_it_before_the_first_words() -> None:
    marks = dict(zip(SPECULATIVE, (0, 40, 200, 350, 360, 400, 300, 400), strict=True))
    waterfall = layout(timeline(marks, (Stage.RECOGNISE, 41, 200), (Stage.THINK, 300, 500)))
    assert [part.word for part in waterfall.parts][:4] == ["noticing", "hearing", "waiting", "thinking"]
    assert waterfall.parts[2].duration_ns == 100 * MS


def test_the_time_of_a_missing_mark_goes_to_the_next() -> None:
    marks = {mark: at for mark, at in SPECULATIVE.items() if mark not in (Mark.TRANSCRIBED, Mark.CONFIRMED)}
    assert parts(layout(timeline(marks))) == [
        ("noticing", 96.0),
        ("thinking", 184.0),
        ("finishing", 40.0),
        ("voicing", 25.0),
        ("handing over", 67.0),
    ]


def test_a_transcript_older_than_the_end_of_speech_costs_nothing() -> None:
    """A recognizer that was done early leaves no negative part behind."""
    waterfall = layout(timeline({**SPECULATIVE, Mark.PAUSE_NOTICED: 50, Mark.TRANSCRIBED: -80}))
    assert ("hearing", 0.0) in parts(waterfall)
    assert sum(part.duration_ns for part in waterfall.parts) == 412 * MS


@given(
    st.dictionaries(st.sampled_from(list(Mark)), st.integers(-(10**12), 10**12)),
    st.lists(st.tuples(st.sampled_from(list(Stage)), st.integers(-(10**10), 10**10), st.integers(0, 10**10))),
)
def test_parts_add_up_for_any_marks(marks: dict[Mark, int], works: list[tuple[Stage, int, int]]) -> None:
    """No order of stamps gives a negative part or a sum other than the latency, in ns and in rounded ms."""
    spans = tuple(Span(stage, start, start + length) for stage, start, length in works)
    waterfall = layout(TurnTimeline(turn=1, marks=marks, spans=spans))
    assert (waterfall.total_ns is None) == (not waterfall.parts)
    assert (waterfall.total_ns is None) == bool(waterfall.note)
    assert waterfall.end_ms > waterfall.start_ms
    assert all(part.duration_ns >= 0 for part in waterfall.parts)
    if waterfall.total_ns is not None:
        assert marks[Mark.FIRST_SOUND] - marks[Mark.SPEECH_ENDED] == waterfall.total_ns
        assert waterfall.total_ns == sum(part.duration_ns for part in waterfall.parts)
        assert waterfall.rounded_total_ms == sum(part.rounded_ms for part in waterfall.parts)
    for row in waterfall.rows:
        for bar in row.bars:
            assert waterfall.start_ms <= bar.start_ms <= bar.end_ms <= waterfall.end_ms
        for earlier, later in zip(row.bars, row.bars[1:], strict=False):
            assert earlier.end_ms <= later.start_ms


def test_a_turn_without_a_reply_says_how_far_it_got() -> None:
    marks = {mark: SPECULATIVE[mark] for mark in list(Mark)[:4]}
    waterfall = layout(timeline(marks))
    assert (waterfall.total_ns, waterfall.warning, waterfall.parts) == (None, False, ())
    assert waterfall.note == "no reply: it got as far as the first words, at 280 ms"


def test_a_reply_before_the_last_word_is_a_warning_not_a_negative_latency() -> None:
    waterfall = layout(timeline({Mark.SPEECH_ENDED: 0, Mark.FIRST_SOUND: -120}))
    assert (waterfall.total_ns, waterfall.warning) == (None, True)
    assert waterfall.note == "no latency: the reply began 120 ms before the caller's last word ended"


def test_a_reply_without_an_end_of_speech_is_a_warning() -> None:
    waterfall = layout(timeline({Mark.FIRST_SOUND: 100}))
    assert (waterfall.total_ns, waterfall.warning) == (None, True)


def test_nothing_stamped_is_an_empty_waterfall() -> None:
    waterfall = layout(TurnTimeline(turn=3, marks={}, spans=()))
    assert (waterfall.rows, waterfall.parts, waterfall.warning) == ((), (), False)
    assert waterfall.note


def test_bars_are_relative_to_the_last_word_and_cut_to_the_window() -> None:
    """Work from before the pause has negative times; the chart shows the last 300 ms of it and says that it was cut."""
    waterfall = layout(
        timeline(
            SPECULATIVE,
            (Stage.RECOGNISE, -900, -500),
            (Stage.RECOGNISE, -400, -250),
            (Stage.RECOGNISE, 97, 270),
            (Stage.PREFILL, -100, -60),
            (Stage.PLAY, 390, 5000),
        ),
        before_ms=300,
    )
    assert [row.label for row in waterfall.rows] == ["recognition", "reading ahead", "playout"]
    earlier, final = waterfall.rows[0].bars
    assert (earlier.start_ms, earlier.end_ms, earlier.duration_ms) == (-300.0, -250.0, 150.0)
    assert (earlier.goes_on_before, earlier.goes_on_after, earlier.on_critical_path) == (True, False, False)
    assert (final.start_ms, final.end_ms, final.on_critical_path) == (97.0, 270.0, True)
    (prefill,) = waterfall.rows[1].bars
    assert (prefill.start_ms, prefill.end_ms, prefill.on_critical_path) == (-100.0, -60.0, False)
    (play,) = waterfall.rows[2].bars
    assert (True, True, waterfall.end_ms) == (play.goes_on_after, play.on_critical_path, play.end_ms)


def test_overlapping_work_of_one_stage_takes_a_second_row() -> None:
    waterfall = layout(timeline(SPECULATIVE, (Stage.SPEAK, 320, 345), (Stage.SPEAK, 330, 360), (Stage.SPEAK, 345, 370)))
    assert [len(row.bars) for row in waterfall.rows] == [2, 1]


@pytest.mark.parametrize(("ns", "want"), [(499_999, 0), (500_000, 1), (-500_000, 0), (-500_001, -1)])
def test_rounding_goes_to_the_nearest_millisecond(ns: int, want: int) -> None:
    assert want == rounded_ms(ns)
