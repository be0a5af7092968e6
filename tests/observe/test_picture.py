"""The picture is a PNG of the promised size, with the palette's colours where they belong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from PIL import Image, ImageColor
from tests.observe.turns import answered, unanswered

from antiphon.core.errors import CallerError
from antiphon.observe import picture
from antiphon.observe.palette import PALETTE
from antiphon.observe.picture import Sound, draw
from antiphon.observe.waterfall import Colour, layout

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

ROWS = 6
BLOCK = (
    picture.HEADER_HEIGHT
    + picture.GAP_HEIGHT
    + picture.PATH_HEIGHT
    + ROWS * picture.ROW_HEIGHT
    + picture.AXIS_HEIGHT
    + picture.SUM_HEIGHT
    + picture.BLOCK_SPACE
)
FRAME = picture.TITLE_HEIGHT + picture.LEGEND_HEIGHT
PATH_TOP = picture.TITLE_HEIGHT + picture.HEADER_HEIGHT + picture.GAP_HEIGHT


def opened(path: Path) -> Image.Image:
    with Image.open(path) as image:
        image.load()
    assert image.format == "PNG"
    return image


def test_every_turn_adds_a_block_at_two_pixels_a_point(tmp_path: Path) -> None:
    for turns in (1, 3):
        path = tmp_path / f"{turns}.png"
        draw([layout(answered(turn=turn)) for turn in range(1, turns + 1)], path)
        assert (2 * picture.WIDTH, 2 * (FRAME + turns * BLOCK)) == opened(path).size


def test_the_critical_path_has_the_parts_colours_in_order(tmp_path: Path) -> None:
    path = tmp_path / "timeline.png"
    draw([layout(answered())], path)
    image = opened(path)
    y = 2 * (PATH_TOP + 6)  # inside the bar, above its numbers
    seen = [image.getpixel((x, y)) for x in range(image.width)]
    solid = [colour for colour in PALETTE.values() if ImageColor.getrgb(colour) in seen]
    first = {colour: seen.index(ImageColor.getrgb(colour)) for colour in solid}
    order = [Colour.NOTICE, Colour.HEAR, Colour.THINK, Colour.SPEAK, Colour.JUDGE, Colour.PLAY]
    assert [PALETTE[colour] for colour in order] == sorted(first, key=first.__getitem__)


def test_the_gap_is_a_band_as_wide_as_the_critical_path(tmp_path: Path) -> None:
    """Below the first row the band runs from 0 ms to the first sound and nowhere else."""
    path = tmp_path / "timeline.png"
    draw([layout(answered())], path)
    image = opened(path)
    path_y = 2 * (PATH_TOP + 6)
    gap_y = 2 * (PATH_TOP + picture.PATH_HEIGHT + ROWS * picture.ROW_HEIGHT - 1)
    gap = [x for x in range(image.width) if image.getpixel((x, gap_y)) == ImageColor.getrgb(picture.GAP)]
    notice = [x for x in range(image.width) if image.getpixel((x, path_y)) == ImageColor.getrgb(PALETTE[Colour.NOTICE])]
    hear = [x for x in range(image.width) if image.getpixel((x, path_y)) == ImageColor.getrgb(PALETTE[Colour.HEAR])]
    assert abs(gap[0] - notice[0]) <= 4
    assert abs((gap[-1] - gap[0]) - (notice[-1] - notice[0]) * 4) <= 16  # 400 ms against 100 ms
    assert abs((hear[-1] - hear[0]) / (notice[-1] - notice[0]) - 1.5) < 0.05


def test_sound_adds_two_strips_and_shows_where_it_is_loud(tmp_path: Path) -> None:
    path = tmp_path / "timeline.png"
    loud = [(float(ms), 1.0) for ms in range(-300, 1, 10)]
    odd = [(410.0, float("nan")), (450.0, 7.0), (500.0, -1.0)]
    draw([layout(answered())], path, sounds={1: Sound(caller=loud, reply=odd)})
    image = opened(path)
    assert image.height == 2 * (FRAME + BLOCK + 2 * picture.STRIP_HEIGHT + 8)
    y = 2 * (PATH_TOP + picture.STRIP_HEIGHT // 2 - 8)
    caller = [x for x in range(image.width) if image.getpixel((x, y)) == ImageColor.getrgb(picture.CALLER)]
    assert caller
    assert all(image.getpixel((x, y)) != ImageColor.getrgb(picture.CALLER) for x in range(caller[-1] + 4, image.width))


def test_long_names_tiny_spans_and_missing_replies_can_be_drawn(tmp_path: Path) -> None:
    turns = [
        answered(suffix="-long" * 40),
        answered(scale=0.001),
        answered(scale=0.0),
        answered(scale=80),
        unanswered(),
    ]
    for index, timeline in enumerate(turns):
        draw([layout(timeline)], tmp_path / f"{index}.png")
    draw([layout(timeline) for timeline in turns], tmp_path / "all.png", title="A title " * 40)
    assert opened(tmp_path / "all.png").height > 2 * 4 * BLOCK


def test_of_a_long_conversation_the_last_turns_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "MOST_TURNS", 2)
    path = tmp_path / "timeline.png"
    draw([layout(answered(turn=turn)) for turn in range(5)], path)
    assert opened(path).height == 2 * (FRAME + 2 * BLOCK)


def test_no_turn_and_no_folder_are_the_callers_errors(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="no turn"):
        draw([], tmp_path / "timeline.png")
    with pytest.raises(CallerError, match="cannot be written"):
        draw([layout(answered())], tmp_path / "missing" / "timeline.png")


def test_a_drawn_turn_does_not_depend_on_the_clocks_origin(tmp_path: Path) -> None:
    timeline = answered()
    moved = replace(
        timeline,
        marks={mark: at + 10**15 for mark, at in timeline.marks.items()},
        spans=tuple(
            replace(span, start_ns=span.start_ns + 10**15, end_ns=span.end_ns + 10**15) for span in timeline.spans
        ),
    )
    draw([layout(timeline)], tmp_path / "a.png")
    draw([layout(moved)], tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
