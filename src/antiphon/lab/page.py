"""Words, figures and tables -> pieces of one HTML page that stands alone: no request leaves it, in either direction.

Every text is escaped here and nowhere else; a `Markup` is what has been. Light and dark follow the reader's system,
and everything fits a phone: tables scroll in themselves. Pure, but for the style and the script beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it shows, and what it is sorted by."""

    shown: str
    key: float | None = None  # None: by its text
    is_number: bool = False
    is_said: bool = False  # a sentence, which may take several lines


def page(title: str, body: Iterable[str]) -> str:
    """The whole page."""
    style, script = _resource("report.css"), _resource("report.js")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + f"\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def text(value: object) -> Markup:
    """Anything as text of the page."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def breakable(name: str) -> Markup:
    """A long name, which may go on in the next line behind each dot and underscore."""
    return Markup(escape(name).replace(".", ".<wbr>").replace("_", "_<wbr>"))


def element(name: str, *inner: object, kind: str = "") -> Markup:
    """An element around texts and markup; `kind` is its class."""
    attribute = f' class="{kind}"' if kind else ""
    return Markup(f"<{name}{attribute}>{''.join(text(part) for part in inner)}</{name}>")


def section(heading: str, *inner: object) -> Markup:
    """A part of the page under its heading."""
    return Markup(f"<section>\n<h2>{escape(heading)}</h2>\n" + "\n".join(text(part) for part in inner) + "\n</section>")


def table(headings: Sequence[str], rows: Iterable[Sequence[str | Cell]], *, is_sortable: bool = False) -> Markup:
    """A table; headings of sortable ones become buttons where scripts run."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    numeric = [bool(cells) and all(row[place].is_number for row in cells) for place in range(len(headings))]
    head = "".join(
        f'<th scope="col"{_number(is_number)}>{escape(heading)}</th>'
        for heading, is_number in zip(headings, numeric, strict=True)
    )
    lines = ["<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in cells]
    kind = ' class="sortable"' if is_sortable else ""
    body = "\n".join(lines)
    return Markup(
        f'<div class="scroll" tabindex="0"><table{kind}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def number(shown: str, key: float | None = None) -> Cell:
    """A figure's cell."""
    return Cell(shown, key, is_number=True)


def definitions(values: Mapping[str, object]) -> Markup:
    """Names and their values, tables inside them as names with a dot."""
    lines = [f"<div><dt>{escape(name)}</dt><dd>{text(value)}</dd></div>" for name, value in flattened(values)]
    return Markup('<dl class="facts">\n' + "\n".join(lines) + "\n</dl>") if lines else Markup("<p>Not known.</p>")


def flattened(values: Mapping[str, object], before: str = "") -> list[tuple[str, str]]:
    """Names and values as text, in order; empty ones are left out."""
    found: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            found += flattened(value, f"{before}{name}.")
        elif shown := _shown(value):
            found.append((f"{before}{name}", shown))
    return found


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _cell(cell: Cell) -> str:
    key = f' data-key="{cell.key:g}"' if cell.key is not None else ""
    kind = ' class="said"' if cell.is_said else _number(cell.is_number)
    return f"<td{kind}{key}>{text(cell.shown)}</td>"


def _number(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _resource(name: str) -> str:
    return files("antiphon.lab").joinpath(name).read_text(encoding="utf-8")
