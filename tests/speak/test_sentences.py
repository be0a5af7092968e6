"""What a voice says in one go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.speak.sentences import spans

pytestmark = pytest.mark.unit


def parts(text: str, longest: int = 120) -> list[str]:
    return [text[start:end] for start, end in spans(text, longest=longest)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One moment. It is here!\nReally? Yes", ["One moment. ", "It is here!\n", "Really? ", "Yes"]),
        ("Dr. Smith met J. S. Bach, Mrs. Hall and No. 5.", ["Dr. Smith met J. S. Bach, Mrs. Hall and No. 5."]),
        ("It costs $5.20 at 3 p.m. today.", ["It costs $5.20 at 3 p.m. today."]),
        ("\u201cFine!\u201d ... \U0001f642 Okay.", ["\u201cFine!\u201d ", "... \U0001f642 Okay."]),
        ("\u597d\u7684\u3002\u8bf7\u7a0d\u7b49\uff01", ["\u597d\u7684\u3002", "\u8bf7\u7a0d\u7b49\uff01"]),
        ("... Well", ["... Well"]),
        ("First\nSecond", ["First\n", "Second"]),
    ],
)
def test_sentences_are_said_one_by_one(text: str, expected: list[str]) -> None:
    """Marks end them, titles, initials and numbers do not; what has nothing to say goes with its neighbour."""
    assert expected == parts(text)
    assert text == "".join(parts(text))


@pytest.mark.parametrize("text", ["", " ", "...", "\u2014\n", "\U0001f642"])
def test_nothing_to_say(text: str) -> None:
    assert [] == parts(text)


def test_a_long_sentence_breaks_at_a_clause_then_at_a_word() -> None:
    """A comma far enough in is the place, without one a space; a word stays whole, a script without spaces does not."""
    assert ["one two three, ", "four five"] == parts("one two three, four five", longest=20)
    assert ["one two three four ", "five"] == parts("one two three four five", longest=20)
    assert ["one ", f"{'a' * 25} ", "two"] == parts(f"one {'a' * 25} two", longest=20)
    assert ["\u597d" * 20, "\u597d" * 5] == parts("\u597d" * 25, longest=20)


@given(st.text(alphabet="ab .,!?\n\u3002\u597dDr\U0001f642", max_size=120), st.integers(5, 40))
def test_spans_lie_end_to_end(text: str, longest: int) -> None:
    """Together they are the text, and each has something to say; none if there is nothing."""
    found = spans(text, longest=longest)

    assert bool(found) == any(map(str.isalnum, text))
    if found:
        assert [0, *(end for _, end in found)] == [*(start for start, _ in found), len(text)]
        assert all(any(map(str.isalnum, text[start:end])) for start, end in found)
