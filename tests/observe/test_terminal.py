"""The waterfall fits any terminal, with and without colours and fine glyphs."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.observe.turns import answered, unanswered

from antiphon.core.stamps import TurnTimeline
from antiphon.observe.palette import ticks_ms
from antiphon.observe.terminal import ASCII, BLOCKS, glyphs_for, render, show, sum_of_parts
from antiphon.observe.waterfall import layout

pytestmark = pytest.mark.unit

GOLDEN = """\
turn 1  400 ms from the last word to the first sound
                                 │-200     │0 ms      │200      │400
what it waited for                         │█████▓▓▓▓▓▓▓▓██▓▓███▓         400 ms
voice detection silero-v6                  │     ▏              │          <1 ms
recognition whisper-tiny.en ━━━━━          │     ███████▉       │         250 ms
turn end                                   │                ▐██▋│          60 ms
language model smollm2-135…                │             ██████████████   450 ms
voice hibari-heart                         │               ▐▌   │          20 ms
playout                                    │                   ▐███████  1620 ms
100 noticing + 150 hearing + 10 thinking + 40 finishing + 20 voicing
  + 60 waiting + 20 handing over = 400 ms
"""


def printed(timeline: TurnTimeline, width: int, *, encoding: str = "utf-8", terminal: bool = False) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    console = Console(file=file, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None)
    show(layout(timeline), console)
    file.flush()
    return raw.getvalue().decode(encoding)


def test_a_waterfall_of_80_columns_looks_like_this() -> None:
    assert printed(answered(), 80) == GOLDEN


@pytest.mark.parametrize("width", range(60, 201, 7))
@pytest.mark.parametrize("suffix", ["", "-of-a-very-long-name-indeed" * 4, "-模型"])
def test_no_line_is_wider_than_the_terminal(width: int, suffix: str) -> None:
    for timeline in (answered(suffix=suffix), answered(scale=0.01), answered(scale=50), unanswered()):
        for glyphs in (BLOCKS, ASCII):
            lines = render(layout(timeline), width=width, glyphs=glyphs).plain.splitlines()
            assert max(map(cell_len, lines)) <= width


def test_nothing_is_cut_at_60_columns() -> None:
    """The sum goes on in a second line rather than losing its result."""
    assert printed(answered(), 60).rstrip().endswith("= 400 ms")


def test_the_sum_adds_up_as_printed() -> None:
    want = (
        "100 noticing + 150 hearing + 10 thinking + 40 finishing + 20 voicing + 60 waiting + 20 handing over = 400 ms"
    )
    assert want == sum_of_parts(layout(answered()))


def test_parts_that_round_to_nothing_are_left_out() -> None:
    assert sum_of_parts(layout(answered(scale=0.0075))) == "1 noticing + 1 hearing + 1 waiting = 3 ms"
    assert sum_of_parts(layout(answered(scale=0.0))) == "0 ms"


def test_without_a_terminal_there_is_no_escape_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in printed(answered(), 80)
    assert "\x1b[38;2;230;159;0m" in printed(answered(), 80, terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[38" not in printed(answered(), 80, terminal=True)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_encoding_without_blocks_gets_ascii(encoding: str) -> None:
    assert printed(answered(), 80, encoding=encoding).isascii()


def test_an_unknown_encoding_gets_ascii() -> None:
    assert ASCII is glyphs_for("no-such-encoding")
    assert BLOCKS is glyphs_for("utf-8")


def test_a_turn_without_a_reply_says_why() -> None:
    lines = printed(unanswered(), 80).splitlines()
    assert lines[0] == "turn 2  no reply: it got as far as the first chunk of sound, at 320 ms"
    assert not any("=" in line for line in lines)


def test_an_empty_turn_is_one_line() -> None:
    assert len(printed(TurnTimeline(turn=1, marks={}, spans=()), 80).splitlines()) == 1


@pytest.mark.parametrize(
    ("start", "end", "most", "want"),
    [
        (-400.0, 520.0, 5, [-400, -200, 0, 200, 400]),
        (0.0, 3.0, 12, [0, 1, 2, 3]),
        (-100.0, 2.0e9, 3, [0, 983040000, 1966080000]),
        (30.0, 95.0, 4, [40, 60, 80]),
    ],
)
def test_ticks_are_round_and_few(start: float, end: float, most: int, want: list[int]) -> None:
    assert want == ticks_ms(start, end, most=most)
