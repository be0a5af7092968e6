"""Where words and characters begin among tokens that are bytes."""

from __future__ import annotations

import pytest
from tests.hear.byte_tokens import byte_tokens

from antiphon.core.errors import CallerError, MachineError
from antiphon.hear.whisper_tokens import WhisperTokens

pytestmark = pytest.mark.unit


def starts(text: str) -> list[str]:
    """The text, parted before each token that a word begins with."""
    tokens = byte_tokens()
    found = tokens.encode(text)
    borders = [place for place, begins in enumerate(tokens.word_starts(found)) if begins]
    return [tokens.decode(found[a:b]) for a, b in zip(borders, [*borders[1:], len(found)], strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no, no", [" no,", " no"]),
        ("你好，咖啡。", ["你", "好，", "咖", "啡。"]),
        ("我用iPhone", ["我", "用", "iPhone"]),
        ("น้ำแก้ว", ["น้ำ", "แก้", "ว"]),
        ("एक कॉफ़ी।", [" एक", " कॉफ़ी।"]),
    ],
)
def test_words_begin_with_a_space_or_are_characters(text: str, expected: list[str]) -> None:
    """And no border lies within a character, though most of these take three tokens."""
    assert expected == starts(text)


def test_a_character_that_lacks_bytes_is_left_out() -> None:
    """A limit on tokens may cut one; its rest is no text."""
    tokens = byte_tokens()
    whole = tokens.encode("你咖")
    assert ["你咖", "你", "你", "你"] == [tokens.decode(whole[:size]) for size in (4, 3, 2, 1)]
    assert [True, True, False, False] == [tokens.begins_character(token) for token in whole]
    assert [False, False] == tokens.word_starts(whole[2:])


@pytest.mark.parametrize(("text", "spelled"), [("你咖。", "你咖"), ("no no?!", " no no"), ("की।", " की"), ("。", "")])
def test_where_the_last_word_ends(text: str, spelled: str) -> None:
    """Behind the last byte of its last letter or sign, before the marks."""
    tokens = byte_tokens()
    found = tokens.encode(text)
    assert spelled == tokens.decode(found[: tokens.spelled(found)])


def test_vocabulary_is_listed_as_its_script_lists() -> None:
    """With Chinese marks and no spaces where any phrase is Chinese."""
    tokens = byte_tokens()
    assert "你好、咖啡。" == tokens.decode(tokens.hints(["你好", "咖啡"], limit_tokens=100))
    assert " a latte, tea." == tokens.decode(tokens.hints(["a latte", "tea"], limit_tokens=100))
    assert "你好。" == tokens.decode(tokens.hints(["你好", "咖啡"], limit_tokens=5))


def test_marks_that_close_a_sentence() -> None:
    """English: its four. Others: theirs as well; of a full-width mark the first byte, of a danda all; Thai: none."""
    english, chinese = byte_tokens("en"), byte_tokens("zh")
    assert [english.encode("x" + mark)[2:] for mark in ".?!,"] == english.closing_marks
    stop, first = chinese.encode("好。")[1], chinese.encode("好？")[1]
    danda = chinese.encode("好।")[1:]
    assert all(mark in chinese.closing_marks for mark in ([stop], [first], danda))
    assert len(danda) == 3
    assert [] == byte_tokens("th").closing_marks


def test_a_language_that_the_model_lacks() -> None:
    """The setting is named, and the code that was probably meant."""
    with pytest.raises(CallerError, match=r"whisper\.language is zh, but this model knows English only") as caught:
        byte_tokens("zh", is_multilingual=False)
    assert "whisper-base" in str(caught.value.hint)
    with pytest.raises(CallerError, match=r"whisper\.language is cn") as caught:
        byte_tokens("cn")
    assert "did you mean zh?" == caught.value.hint
    with pytest.raises(CallerError, match=r"whisper\.language is ja") as caught:
        byte_tokens("ja")
    assert "ISO 639" in str(caught.value.hint)


def test_a_vocabulary_of_another_kind() -> None:
    """What is no tokenizer of Whisper is refused."""
    from tokenizers import Tokenizer, models

    with pytest.raises(MachineError, match="startoftranscript"):
        WhisperTokens(Tokenizer(models.BPE()), language="en", is_multilingual=False)
