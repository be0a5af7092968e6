"""Shapes and words on a page of paper -> an image with smooth edges.

Units: "points", of which one is two pixels of the image. Threads: a canvas belongs to one.
Shapes are drawn at twice the image's size and averaged down, because Pillow does not smooth edges itself; words
are drawn afterwards, at the image's size, because Pillow does smooth those, and better.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from PIL import Image, ImageColor, ImageDraw, ImageFont

if TYPE_CHECKING:
    from collections.abc import Sequence

SCALE = 2  # pixels of the image to a point: sharp on a high-density screen
OVERSAMPLING = 2

Anchor = Literal["lm", "mm", "rm"]  # left, middle or right, and the line's middle


@lru_cache(maxsize=32)
def font(size: float) -> ImageFont.FreeTypeFont:
    """The font that Pillow carries, `size` points high."""
    loaded = ImageFont.load_default(size * SCALE)
    assert isinstance(loaded, ImageFont.FreeTypeFont)  # the bitmap font is for Pillow without FreeType: no wheel is
    return loaded


def width_of(words: str, size: float) -> float:
    """How wide `words` will be, points."""
    return font(size).getlength(words) / SCALE


def shortened(words: str, size: float, room: float) -> str:
    """`words`, cut with an ellipsis if they are wider than `room` points."""
    if width_of(words, size) <= room:
        return words
    while words and width_of(words + "...", size) > room:
        words = words[:-1]
    return words.rstrip() + "..." if words else ""


def mixed(colour: str, other: str, share: float) -> str:
    """`colour` with `share` of `other` in it, as a hex code."""
    pairs = zip(ImageColor.getrgb(colour), ImageColor.getrgb(other), strict=True)
    return "#" + "".join(f"{round(mine * (1 - share) + theirs * share):02x}" for mine, theirs in pairs)


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on `colour` (the luma of ITU-R BT.601, as in grey-scale television)."""
    red, green, blue = ImageColor.getrgb(colour)[:3]
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < 128 else "#1a1a1a"


class Canvas:
    """One piece of paper."""

    def __init__(self, width: int, height: int, background: str) -> None:
        self._zoom = SCALE * OVERSAMPLING
        self._paper = Image.new("RGB", (width * self._zoom, height * self._zoom), background)
        self._pen = ImageDraw.Draw(self._paper)
        self._words: list[tuple[tuple[float, float], str, float, str, Anchor]] = []

    def box(self, left: float, top: float, right: float, bottom: float, *, fill: str, radius: float = 0.0) -> None:
        """A filled box; nothing where it is thinner than the finest line that can be drawn."""
        zoom = self._zoom
        corners = (left * zoom, top * zoom, right * zoom - 1, bottom * zoom - 1)  # Pillow fills the last pixel too
        if corners[2] < corners[0] or corners[3] < corners[1]:
            return
        self._pen.rounded_rectangle(corners, min(radius, (right - left) / 2) * zoom, fill)

    def line(self, points: Sequence[tuple[float, float]], *, fill: str, width: float = 1.0) -> None:
        scaled = [(x * self._zoom, y * self._zoom) for x, y in points]
        self._pen.line(scaled, fill, round(width * self._zoom))

    def polygon(self, points: Sequence[tuple[float, float]], *, fill: str) -> None:
        if len(points) > 2:
            self._pen.polygon([(x * self._zoom, y * self._zoom) for x, y in points], fill)

    def words(self, at: tuple[float, float], words: str, *, size: float, fill: str, anchor: Anchor = "lm") -> None:
        """Words that lie over all shapes, wherever those were drawn."""
        self._words.append((at, words, size, fill, anchor))

    def image(self) -> Image.Image:
        """The finished page."""
        page = self._paper.reduce(OVERSAMPLING)
        pen = ImageDraw.Draw(page)
        for (x, y), words, size, fill, anchor in self._words:
            pen.text((x * SCALE, y * SCALE), words, fill, font(size), anchor=anchor)
        return page
