"""Words in scripts with spaces and without."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.hear.words import is_spelled, joined, needs_no_space, tail, words

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't, with 2% milk!", ["dont", "with", "2%", "milk"]),
        ("你好，我想要。", ["你", "好", "我", "想", "要"]),
        ("我用iPhone叫了2杯", ["我", "用", "iphone", "叫", "了", "2", "杯"]),
        ("コーヒーを、ください", ["コ", "ー", "ヒ", "ー", "を", "く", "だ", "さ", "い"]),
        ("か\u3099っこう", ["か\u3099", "っ", "こ", "う"]),
        ("น้ำแก้ว", ["น้ำ", "แก้", "ว"]),
        ("ကျွန်", ["ကျွ", "န်"]),
        ("ខ្មែរ", ["ខ្មែ", "រ"]),
        ("मुझे कॉफ़ी चाहिए।", ["मुझे", "कॉफ़ी", "चाहिए"]),
        ("커피 한 잔", ["커피", "한", "잔"]),
        ("هل لديك قهوة؟", ["هل", "لديك", "قهوة"]),
        ("Straße, Ärger", ["strasse", "ärger"]),
        ("…、。?!", []),
        ("", []),
    ],
)
def test_what_the_words_of_a_text_are(text: str, expected: list[str]) -> None:
    """A character where the script has no spaces, with the signs on it; else what spaces part, without marks."""
    assert expected == [word.key for word in words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a latte, please.", ["a", "latte", "please"]), ("两杯，谢谢。", ["两", "杯", "谢", "谢"]), ("कॉफ़ी।", ["कॉफ़ी"])],
)
def test_a_word_lies_where_it_says(text: str, expected: list[str]) -> None:
    """From its first letter to its last, or to the sign on that."""
    assert expected == [text[word.start : word.end] for word in words(text)]


@given(st.text(alphabet="aé 2%'，。你好々ーかガｶﾞ\u3099กั้แำကျွ្មក्षि\u200d\ufe00", max_size=24))
def test_words_neither_overlap_nor_end_before_a_sign(text: str) -> None:
    """Whatever comes: in order, and no border between a letter without spaces and a sign that is written on it."""
    found = list(words(text))
    assert all(earlier.end <= later.start for earlier, later in pairwise(found))
    assert all(text[word.end] not in "\u3099ัำ้" for word in found if word.is_character and word.end < len(text))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a latte", "please", "a latte please"),
        ("你好，", "我想要", "你好，我想要"),
        ("一杯", "两杯", "一杯两杯"),
        ("我用", "iPhone", "我用iPhone"),
        ("น้ำ", "แก้ว", "น้ำแก้ว"),
        ("커피", "한 잔", "커피 한 잔"),
        ("", "好", "好"),
        ("好", "", "好"),
    ],
)
def test_texts_are_joined_as_their_script_has_it(before: str, after: str, expected: str) -> None:
    """With a space, or without."""
    assert expected == joined(before, after)


@pytest.mark.parametrize(
    ("text", "chars", "expected"),
    [
        ("one two three", 99, "one two three"),
        ("one two three", 8, "three"),
        ("one two three", 10, "two three"),
        ("one two three", 3, ""),
        ("我想要一杯", 3, "一杯"),
    ],
)
def test_the_tail_of_a_text_has_no_half_word(text: str, chars: int, expected: str) -> None:
    """What may be half a word in front is left out."""
    assert expected == tail(text, chars)


def test_what_is_spelled_and_what_needs_no_space() -> None:
    """A sign belongs to a letter, a mark to none."""
    assert [True, True, False, False] == [is_spelled(text) for text in ("好", "ी", "。", " …")]
    assert [True, True, False, False] == [needs_no_space(text) for text in ("好的", "แก้ว", " 好", "good")]
