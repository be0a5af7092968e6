"""The conversation's strip: what is where on it, and that nothing unusual breaks it."""

from __future__ import annotations

import pytest
from PIL import ImageColor

from antiphon.core.errors import CallerError
from antiphon.observe import conversation as strip
from antiphon.observe.conversation import CallerTurn, Conversation, OurReply, ToolUse, draw_conversation
from antiphon.observe.picture import GAP, WARNING, WIDTH

pytestmark = pytest.mark.unit

TURN = CallerTurn(start_ms=500, end_ms=2000, text="A latte, please.", decided_ms=2300, sound_ms=2500)
REPLY = OurReply(start_ms=2500, end_ms=4500, heard="Coming up.")


def talk(**changes: object) -> Conversation:
    given = {"length_ms": 10_000.0, "turns": (TURN,), "replies": (REPLY,)}
    return Conversation(**{**given, **changes})


def columns(conversation: Conversation, colour: str) -> list[int]:
    """Where, in points from the left, the colour lies in the row (title and legend left out)."""
    image = draw_conversation(conversation)
    wanted = ImageColor.getrgb(colour)
    rows = image.crop((0, 2 * 50, image.width, image.height - 2 * strip.LEGEND))
    pixels = rows.load()
    return sorted({x // 2 for x in range(rows.width) for y in range(0, rows.height, 2) if pixels[x, y] == wanted})


def test_the_silence_lies_where_it_was() -> None:
    """From the last word to the first sound, on the scale of the axis."""
    band = columns(talk(), GAP)
    scale = (strip.RIGHT - strip.LEFT) / 10_000
    assert abs(band[0] - (strip.LEFT + 2000 * scale)) <= 2
    assert abs(band[-1] - (strip.LEFT + 2500 * scale)) <= 2


def test_a_cut_is_marked_where_the_reply_ended() -> None:
    cut = OurReply(start_ms=2500, end_ms=4500, heard="Coming", unheard="up.", is_cut=True)
    scale = (strip.RIGHT - strip.LEFT) / 10_000
    marked = columns(talk(replies=(cut,)), WARNING)
    assert abs(marked[0] - (strip.LEFT + 4500 * scale)) <= 2
    assert not columns(talk(), WARNING)


def test_tools_add_a_row_each_while_their_words_would_touch() -> None:
    one = ToolUse(start_ms=2100, end_ms=2400, name="price_of")
    two = ToolUse(start_ms=2150, end_ms=2300, name="points", failed=True)
    heights = [draw_conversation(talk(tools=tools)).height for tools in ((), (one,), (one, two))]
    assert [2 * strip.TOOL_ROW] * 2 == [heights[1] - heights[0], heights[2] - heights[1]]


def test_a_long_conversation_has_rows_and_the_last_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strip, "MOST_ROWS", 3)
    heights = [draw_conversation(talk(length_ms=seconds * 1000.0)).height for seconds in (25, 59, 89, 900)]
    assert heights[0] < heights[1] < heights[2] == heights[3]


def test_odd_values_can_be_drawn() -> None:
    """Long words, many tools, turns without an end, levels that are none, all at the right edge or the same moment."""
    turns = [
        CallerTurn(start_ms=9990, end_ms=9999, text="x" * 500),
        CallerTurn(start_ms=9990, end_ms=9995, text="word " * 200, decided_ms=9999),
        CallerTurn(start_ms=0, end_ms=-50, text="", decided_ms=0, sound_ms=20_000),
    ]
    replies = [
        OurReply(start_ms=9999, end_ms=9999, heard="", unheard="never " * 90, is_cut=True, soft=((9999, 9999),)),
        OurReply(start_ms=1, end_ms=2, heard="y" * 300, silent=((0.0, 99_999.0),)),
    ]
    tools = [ToolUse(start_ms=9000.0 + place, end_ms=9800, name="tool" * 40) for place in range(9)]
    levels = [(0.0, float("nan")), (10.0, 7.0), (20.0, -1.0), (1e9, 0.5)]
    made = draw_conversation(
        Conversation(length_ms=10_000, turns=turns, replies=replies, tools=tools, caller=levels, ours=levels),
        title="A title " * 40,
    )
    assert 2 * WIDTH == made.width


@pytest.mark.parametrize("length_ms", [0.0, -1.0, float("nan"), float("inf")])
def test_no_length_is_the_callers_error(length_ms: float) -> None:
    with pytest.raises(CallerError, match="no conversation"):
        draw_conversation(Conversation(length_ms=length_ms))


def test_words_wrap_into_the_room_and_end_in_an_ellipsis() -> None:
    lines = strip._wrapped("one two three four five six seven eight nine ten", "eleven", 70.0)
    assert strip.LINES == len(lines)
    assert lines[-1][-1][0].endswith("...")
    heard, unheard = strip._wrapped("one", "two", 500.0)[0]
    assert ("one", strip.INK) == heard
    assert (" two", strip.UNHEARD) == unheard
