from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.hear.agreement import Agreement, is_monotonous, repeats, said_again_at

pytestmark = pytest.mark.unit


def test_one_hypothesis_makes_nothing_stable() -> None:
    """What was heard once may be taken back."""
    agreement = Agreement()
    agreement.offer("may I have a")
    assert agreement.stable == ""


def test_two_in_a_row_agree_up_to_the_first_difference() -> None:
    """The common words are stable, spelled as in the newer hypothesis."""
    agreement = Agreement()
    agreement.offer("Can I get a trip?")
    agreement.offer("can I get a triple shot")
    assert agreement.stable == "can I get a"


def test_case_and_marks_do_not_matter_and_no_mark_ends_it() -> None:
    """A comma at the end of the stable text may still become a full stop."""
    agreement = Agreement()
    agreement.offer("give me a medium")
    agreement.offer("Give me, a medium, roast")
    assert agreement.stable == "Give me, a medium"


def test_last_word_of_the_newer_one_may_be_half_a_word() -> None:
    """Both end in "trip", but the caller may be saying "triple"."""
    agreement = Agreement()
    agreement.offer("get a trip")
    agreement.offer("get a trip.")
    assert agreement.stable == "get a"


def test_stable_text_outlives_a_shorter_hypothesis() -> None:
    """Nothing is taken back when the decoder says less than before."""
    agreement = Agreement()
    agreement.offer("a small latte please")
    agreement.offer("a small latte please now")
    agreement.offer("a small latte please")
    assert agreement.stable == "a small latte please"


def test_percent_is_part_of_a_word() -> None:
    """2 and 2% are different orders of milk."""
    agreement = Agreement()
    agreement.offer("with 2 milk now")
    agreement.offer("with 2% milk now")
    assert agreement.stable == "with"


def test_seen_from_further_on() -> None:
    """Settled text is cut off in front, from the stable text and from the hypothesis."""
    agreement = Agreement()
    agreement.offer("one two three four")
    agreement.offer("one two three four")
    rest = agreement.after(len("one two"))
    assert (rest.stable, rest.previous) == ("three", "three four")
    assert agreement.after(len("one two three four")).stable == ""


def test_chinese_is_stable_character_by_character() -> None:
    """Up to the last, which is the edge of the sound; full-width and other marks do not matter."""
    agreement = Agreement()
    agreement.offer("你好,我想要一")
    agreement.offer("你好，我想要一杯咖啡。")
    assert agreement.stable == "你好，我想要一"
    agreement.offer("你好，我想要一杯咖啡。")
    assert agreement.stable == "你好，我想要一杯咖"
    agreement.offer("你好，我想要两杯咖啡")
    assert agreement.previous == "你好，我想要一杯咖啡。"
    agreement.conclude("你好，我想要两杯咖啡。")
    assert (agreement.stable, agreement.previous) == ("你好，我想要", "你好，我想要两杯咖啡。")
    rest = agreement.after(len("你好，"))
    assert (rest.stable, rest.previous) == ("我想要", "我想要两杯咖啡。")


def test_stable_text_ends_behind_the_sign_on_its_last_letter() -> None:
    """A Thai tone mark and a Hindi vowel sign are part of the word."""
    agreement = Agreement()
    for _ in range(2):
        agreement.offer("ก็น้ำแก้ว")
    assert agreement.stable == "ก็น้ำแก้"
    agreement = Agreement()
    agreement.offer("एक कॉफ़ी का")
    agreement.offer("एक कॉफ़ी की बात")
    assert agreement.stable == "एक कॉफ़ी"


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "No,", "no", "b.", "2%", "-", "好的", "好，", "的 ", "ก็"]), max_size=6),
        max_size=8,
    )
)
def test_stable_text_only_grows(tails: list[list[str]]) -> None:
    """Whatever follows the stable text, the next one begins with it, character by character."""
    agreement = Agreement()
    for tail in tails:
        before = agreement.stable
        agreement.offer(" ".join([before, *tail]).strip())
        assert agreement.stable.startswith(before)
        assert agreement.previous.startswith(agreement.stable)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (True, "No, no"),
        (True, "Give me a second. Give me a second"),
        (True, "a drink, drink."),
        (True, "I want a large tea with milk. I want a large"),
        (False, "a small latte and a small mocha"),
        (False, "谢谢，我天天喝咖啡"),
        (True, "不要，不要"),
        (True, "我想要一杯大杯拿铁，好的，我想要一杯大杯拿铁"),
        (False, "我想要一杯咖啡，再要一杯茶"),
        (False, ""),
    ],
)
def test_what_counts_as_a_repetition(expected: bool, text: str) -> None:
    """Words that follow themselves at once, alone or as a phrase, and longer runs that come back."""
    assert expected == repeats(text)


def test_a_hypothesis_that_contradicts_stable_words_is_passed_over() -> None:
    """While the caller speaks, what was told as stable stays, as it was written."""
    agreement = Agreement(stable="a large latte", previous="a large latte with")
    agreement.offer("a small latte with milk")
    assert (agreement.stable, agreement.previous) == ("a large latte", "a large latte with")
    agreement.offer("A large, latte with milk")
    assert agreement.previous == "a large latte with milk"


def test_after_a_pause_the_hypothesis_corrects() -> None:
    """The words that it confirms stay stable, the others go."""
    agreement = Agreement(stable="a large latte", previous="a large latte with")
    agreement.conclude("A large lager with lime.")
    assert (agreement.stable, agreement.previous) == ("A large", "A large lager with lime.")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("Give me a triple shot.", None),
        ("two two two", None),
        ("Give me a triple shot. Give me a triple", len("Give me a triple shot")),
        ("one two three four one two three", None),
        ("我想要一杯咖啡，我想要一杯茶", None),
        ("我想要一杯大杯拿铁。我想要一杯大杯拿", len("我想要一杯大杯拿铁")),
    ],
)
def test_where_words_are_said_again(text: str, at: int | None) -> None:
    """Four words in a row that were said before begin after the word before them."""
    assert said_again_at(text) == at


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (True, "诶诶诶诶诶诶语"),
        (True, "no no no no no no"),
        (False, "no no no"),
        (False, "每天都超过三十五度，朋友带我们去吃"),
    ],
)
def test_a_decoder_that_got_stuck_says_few_words_often(expected: bool, text: str) -> None:
    """Six words at least, of which each comes three times on average."""
    assert expected == is_monotonous(text)
