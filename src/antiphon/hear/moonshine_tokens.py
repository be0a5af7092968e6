"""A vocabulary's file in, the numbers that Moonshine's decoder speaks with out, and its numbers back to text.

The file holds the tokens one after the other, each behind its length in bytes: one byte below 128, else two, of which
the first holds the length's lower seven bits. Tokens are bytes of UTF-8, and may end in mid-character.
Threads: stateless after loading. What it does not know: sound, and the model that speaks these numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import MachineError
from antiphon.hear.word_bias import Spellings
from antiphon.hear.words import is_spelled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGIN = 1  # what the decoder reads first
END = 2  # of the text
_FIRST_TEXT = 3
_SPACE = "\u2581"  # how the vocabulary writes the space that a word begins with
_NO_TEXT = "\ufffd"  # what is left of a character that lacks bytes
_SIGN = b"<<ST_"  # tokens that are no text begin so
_CLOSING = (".", "?", "!", ",")


class MoonshineTokens:
    """The model's vocabulary."""

    def __init__(self, spellings: Sequence[bytes]) -> None:
        is_text = [token >= _FIRST_TEXT and not spelled.startswith(_SIGN) for token, spelled in enumerate(spellings)]
        self._bytes = [spelled if counts else b"" for spelled, counts in zip(spellings, is_text, strict=True)]
        texts = [_text(spelled) for spelled in self._bytes]
        self.spellings = Spellings(texts)
        # The marks that close a sentence or a phrase, and the end of a text without one.
        self.closing = [END, *(token for token, text in enumerate(texts) if text in _CLOSING)]

    def __len__(self) -> int:
        return len(self._bytes)

    @classmethod
    def load(cls, path: Path) -> MoonshineTokens:
        """Read the vocabulary.

        Raises:
            MachineError: the file is missing, or is none such.
        """
        if not path.is_file():
            raise MachineError(f"there is no {path}", hint="fetch the models: antiphon models fetch")
        packed = path.read_bytes()
        spellings: list[bytes] = []
        place = 0
        while place < len(packed):
            size = packed[place]
            place += 1
            if size >= 128 and place < len(packed):
                size += 128 * (packed[place] - 1)
                place += 1
            spellings.append(packed[place : place + size])
            place += size
        if place != len(packed) or len(spellings) <= END:
            raise MachineError(
                f"{path} cannot be read as Moonshine's vocabulary", hint="verify the models: antiphon models verify"
            )
        return cls(spellings)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text, without characters of which bytes are missing; where a word begins it begins with a space."""
        return _text(b"".join(self._bytes[token] for token in tokens))

    def spelled(self, tokens: Sequence[int]) -> int:
        """How many tokens there are up to the end of the last word, the marks behind it left out."""
        for place in range(len(tokens), 0, -1):
            if is_spelled(self.decode(tokens[place - 1 : place])):
                return place
        return 0

    def reaching(self, tokens: Sequence[int], chars: int) -> int:
        """How many of the tokens spell the first `chars` characters of their text."""
        return next(
            (count for count in range(len(tokens) + 1) if len(self.decode(tokens[:count])) >= chars), len(tokens)
        )


def _text(spelled: bytes) -> str:
    return spelled.decode("utf-8", errors="replace").replace(_NO_TEXT, "").replace(_SPACE, " ")
