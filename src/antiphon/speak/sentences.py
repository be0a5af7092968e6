"""A chunk's text in, the spans of it that a voice says in one go out: its sentences, long ones broken up.

For voices without rules of their own. Spans lie end to end and together are the text; each has something to say.
Units: int characters of the text. What it does not know: how text sounds.
"""

from __future__ import annotations

import re

_END = re.compile(r"(?:[.!?…]+[\"'”’)\]]*\s+|[。！？]+[”’」』）]*\s*|\s*\n\s*)")
# A full stop after these ends no sentence; nor does one after a single capital, as in "J. S. Bach".
_TITLE = re.compile(r"(?:^|\W)(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|[A-Z])\.\s+$")
_CLAUSE = re.compile(r"[,;:—]\s+|[，、；：]")
_SPACE = re.compile(r"\s+")
_LAST_BREAK = re.compile(r"(?s).*(?:\s|[\u3040-\u30ff\u3400-\u9fff])")  # scripts without spaces break anywhere
_EARLIEST = 3  # a third of the longest: a clause that ends before it is too short to stop after


def spans(text: str, *, longest: int) -> list[tuple[int, int]]:
    """(start, end) of each; none if the text has nothing to say."""
    borders = [0]
    for match in _END.finditer(text):
        follows = text[match.end() : match.end() + 1]
        if follows.islower() or _TITLE.search(text[: match.end()]):
            continue
        borders += _cuts(text, borders[-1], match.end(), longest)
    borders += _cuts(text, borders[-1], len(text), longest)
    found: list[tuple[int, int]] = []
    start = 0
    for end in borders[1:]:
        if any(map(str.isalnum, text[start:end])):
            found.append((start, end))
            start = end
    if found:
        found[-1] = (found[-1][0], len(text))
    return found


def _cuts(text: str, start: int, end: int, longest: int) -> list[int]:
    """Where `text[start:end]` is broken so that nothing is longer than `longest`, `end` among them."""
    cuts = []
    while end - start > longest:
        window = text[start : start + longest]
        clauses = [match.end() for match in _CLAUSE.finditer(window) if match.end() * _EARLIEST > longest]
        if clauses:
            start += clauses[-1]
        elif match := _LAST_BREAK.search(window):
            start += match.end()
        else:  # a word of that length stays whole
            behind = _SPACE.search(text, start + longest, end)
            start = behind.end() if behind else end
        cuts.append(start)
    return cuts if cuts and cuts[-1] == end else [*cuts, end]
