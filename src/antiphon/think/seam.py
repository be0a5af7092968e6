"""A reply that has begun in, what a prompt holds of it and what of the model's next words is new out.

Most of a model's tokens are a word together with the space before it. Behind a space that stands already a model
writes the space again, or goes on as if within a word. So white space at the end of what was written is kept from the
prompt, left for the model to write once more, and taken off again. Nothing is known of tokens here.

Threads: pure, one reply at a time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNREADABLE = re.compile(r"[\x00\ud800-\udfff]")  # llama.cpp ends a prompt at a NUL, JSON has no lone half


class Seam:
    """Where what comes next joins what was written. With `is_literal` the model gets all that was written."""

    def __init__(self, written: str, *, is_literal: bool = False) -> None:
        bare = written if is_literal else written.rstrip()
        self.held = bare or written  # by the prompt, at its end; white space alone is no word to go on behind
        self._owed = len(written) - len(self.held)  # characters that the model is to write once more

    def join(self, piece: str) -> str | None:
        """What of the model's next text is new; None if the first of it does not join: ask again, literally.

        It joins if white space comes first and a word with it. White space alone is a token of its own: behind it
        the model goes on as well from all that was written, and there the token is not counted twice. Bytes that are
        no character, as a model may well write, are left out.
        """
        piece = piece.replace("\ufffd", "")
        if not self._owed or not piece:
            return piece
        brought = len(piece) - len(piece.lstrip())
        if brought in {0, len(piece)}:
            return None
        owed, self._owed = self._owed, 0
        return piece[min(owed, brought) :]


def readable(written: str, markers: Iterable[str]) -> str:
    """`written` without what no reply of the model's holds and no prompt may: broken `markers`, no NUL, no half pairs.

    All else stays as it was, tags of the model's own included: a changed letter would be read anew.
    """
    for marker in markers:
        written = written.replace(marker, f"{marker[0]} {marker[1:]}")
    return _UNREADABLE.sub(" ", written)
