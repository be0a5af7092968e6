"""The vocabulary's file, and text from its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from antiphon.core.errors import MachineError
from antiphon.hear.moonshine_tokens import MoonshineTokens

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

SPELLINGS = [b"<unk>", b"<s>", b"</s>", "▁caf".encode(), b"\xc3", b"\xa9", b".", "▁".encode(), b"x" * 300]
SPELLINGS += [b"<<ST_0>>", b"!"]


def packed(spellings: list[bytes]) -> bytes:
    lengths = [bytes([len(s)]) if len(s) < 128 else bytes([len(s) % 128 + 128, len(s) // 128]) for s in spellings]
    return b"".join(length + spelled for length, spelled in zip(lengths, spellings, strict=True))


def test_a_file_is_read(tmp_path: Path) -> None:
    """Long tokens too, whose length takes two bytes."""
    (tmp_path / "tokenizer.bin").write_bytes(packed(SPELLINGS))
    tokens = MoonshineTokens.load(tmp_path / "tokenizer.bin")
    assert len(SPELLINGS) == len(tokens)
    assert "x" * 300 == tokens.decode([8])


def test_text_is_put_together_from_bytes() -> None:
    """A character of two tokens is whole, half of it is nothing, and what is no text is none."""
    tokens = MoonshineTokens(SPELLINGS)
    assert " café." == tokens.decode([3, 4, 5, 6])
    assert " caf" == tokens.decode([3, 4])
    assert "" == tokens.decode([0, 1, 2, 9])


def test_where_the_last_word_ends() -> None:
    """Marks and spaces behind it are left out."""
    tokens = MoonshineTokens(SPELLINGS)
    assert 1 == tokens.spelled([3, 6, 7])
    assert 0 == tokens.spelled([6, 7])
    assert [2, 6, 10] == tokens.closing
    assert 2 == tokens.reaching([7, 3, 6], 5)


@pytest.mark.parametrize("content", [b"", b"\x05ab", packed(SPELLINGS)[:-1], b"\x80"])
def test_what_is_no_vocabulary_is_an_error_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    """Empty, or cut off."""
    (tmp_path / "tokenizer.bin").write_bytes(content)
    with pytest.raises(MachineError, match="verify"):
        MoonshineTokens.load(tmp_path / "tokenizer.bin")
    with pytest.raises(MachineError, match="fetch"):
        MoonshineTokens.load(tmp_path / "none.bin")
