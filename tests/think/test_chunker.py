"""How a streamed reply becomes chunks."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.errors import CallerError
from antiphon.think.chunker import Chunker, ChunkerSettings

pytestmark = pytest.mark.unit

SENTENCES = ChunkerSettings(small_first=False)
SMALL = ChunkerSettings()
REPLIES = {
    "Chinese": ("你好，欢迎光临。", "今天想喝点什么？", "我们有咖啡和茶！", "请慢慢看。"),
    "Japanese": (
        "いらっしゃいませ。",
        "ご注文は何になさいますか？",
        "コーヒーがおすすめです！",
        "少々お待ちください。",
    ),
    "Hindi": ("नमस्ते, आपका स्वागत है। ", "आप क्या लेंगे? ", "हमारे पास चाय है। ", "धन्यवाद।"),
    "Arabic": ("مرحبا بك في المقهى. ", "ماذا تريد أن تشرب؟ ", "لدينا قهوة وشاي! ", "شكرا لك."),
    "Urdu": ("خوش آمدید۔ ", "آپ کیا لیں گے؟ ", "ہمارے پاس چائے ہے۔ ", "شکریہ۔"),
    "full width": ("Ａ４は３．５元です。", "本当？！", "はい。", "以上です。"),
}


def chunks(text: str, settings: ChunkerSettings = SENTENCES) -> list[str]:
    return [chunk.text for chunk in run([*text], settings)]


def run(pieces, settings=SMALL):
    chunker = Chunker(settings)
    out = [chunk for piece in pieces for chunk in chunker.feed(piece)]
    return out + chunker.finish()


def test_prices_and_decimals_are_left_whole():
    """A full stop between digits ends nothing, however the text was streamed."""
    assert ["Tea is $4.75 and water 0.5 litre. ", "Done."] == chunks("Tea is $4.75 and water 0.5 litre. Done.")


@pytest.mark.parametrize("language", REPLIES)
def test_sentences_end_at_the_marks_of_other_scripts(language):
    """Four sentences are four chunks, and the first is out with the first letter of the second."""
    sentences = REPLIES[language]
    assert [*sentences] == chunks("".join(sentences))

    chunker = Chunker(SENTENCES)
    assert [] == chunker.feed(sentences[0])
    assert [sentences[0]] == [chunk.text for chunk in chunker.feed(sentences[1][0])]


@pytest.mark.parametrize(
    "whole",
    [
        "It costs 1,000 yen or 4.75 dollars at 9:30 sharp.",
        "Use version 3.11.2 from https://example.com/a.b?c=d.e or mail jo.doe@example.com today.",
        "Dr. Smith and Mrs. Jones of St. Ives met approx. Five people, e.g. J. K. Rowling, i.e. No. 5.",
        "The U.S. Army opens at 9 a.m. on Jan. 5 vs. Feb. 6.",
        "See fig. 2, vol. 3, p. 7 and so on etc. for more.",
        "Wait... what is it… then?",
        '"Really?" he asked.',
        "1. First.",
        "I use Node.js and a .com address.",
    ],
)
def test_a_mark_within_a_sentence_does_not_end_it(whole):
    """Numbers, times, versions, addresses, abbreviations, initials and trailing dots are left whole."""
    assert [f"{whole} ", "Next."] == chunks(f"{whole} Next.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No. I can't.", ["No. ", "I can't."]),
        ("He said “Go.” Then he left.", ["He said “Go.” ", "Then he left."]),
        ("We open at 9 a.m. Come in.", ["We open at 9 a.m. ", "Come in."]),
        ("It was in 2020. Then more.", ["It was in 2020. ", "Then more."]),
        ("What?! Yes!! OK.", ["What?! ", "Yes!! ", "OK."]),
        ("One.\nTwo\nThree", ["One.\n", "Two\n", "Three"]),
        ("Great! 😀 Next one.", ["Great! ", "😀 Next one."]),
        ("Great!😀 Next one.", ["Great!😀 ", "Next one."]),
        ("ok. sure.", ["ok. ", "sure."]),
        ("**Bold.** Next.", ["**Bold.** ", "Next."]),
    ],
)
def test_sentences_end_where_they_should(text, expected):
    """The mark, its closing quotes and the white space after it belong to the sentence."""
    assert expected == chunks(text)


@pytest.mark.parametrize("text", ["", " ", "...", " \n— 😀", "?!", "\u200d"])
def test_a_reply_that_says_nothing_is_no_chunk(text):
    """Only marks, white space or emoji: nothing to speak."""
    assert [] == chunks(text)
    assert [] == chunks(text, SMALL)


def test_what_says_nothing_joins_its_neighbour():
    """No chunk is without a letter or digit."""
    assert ["... \n 😀Fine. ", "— 9 …"] == chunks("... \n 😀Fine. — 9 …")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Of course, a large latte is on its way.", "Of course, "),
        ("Your large latte with oat milk will be ready soon.", "Your large latte "),
        ("Sure, I can do that for you in a minute.", "Sure, I can do that "),
        ("The price of the large one is 4.75 dollars for you.", "The price of the large "),
        ("We have a lot of them.", "We have a lot "),
        ("Yes. I can make that for you right away.", "Yes. I can make "),
        ("好的，我马上为您准备一杯大杯拿铁。", "好的，"),
    ],
)
def test_the_first_chunk_is_small(text, first):
    """It ends at the first mark, or behind a few words of which the last does not want the next one."""
    assert first == chunks(text, SMALL)[0]


@pytest.mark.parametrize("speed", [1.5, 2.0, 2.5, 5.0])
def test_no_chunk_keeps_the_listener_waiting(speed):
    """At the stated speed of the voice, each chunk is there before the ones before it have been spoken."""
    text = "Of course, " + "the large latte with oat milk that you have ordered is almost ready now " * 4
    spoken = made = 0.0
    for chunk in run([text], ChunkerSettings(voice_speed=speed)):
        if chunk.index:
            made += len(chunk.text) / speed
            assert made <= spoken
        spoken += len(chunk.text)


def test_a_long_sentence_is_cut_at_a_clause():
    """No chunk is longer than allowed as long as there is somewhere to cut."""
    text = "this is one part of a sentence that has many, " * 12
    out = chunks(text, ChunkerSettings(small_first=False, longest=100))

    assert max(map(len, out)) <= 100
    assert all(chunk.endswith(", ") for chunk in out)


def test_a_word_is_never_cut():
    """An address longer than a chunk may be stays whole."""
    url = "https://example.com/" + "a.b/" * 30
    assert ["See ", f"{url} ", "now."] == chunks(f"See {url} now.", ChunkerSettings(small_first=False, longest=40))


def test_a_runaway_without_borders_is_cut():
    """Text without any border ends up in chunks of bounded length."""
    assert max(map(len, chunks("a" * 5000))) <= 1001


TEXT = st.text(alphabet=st.sampled_from("ab I.J,!? \n\"')(。，？ก你かな1234$:;…-—e\u0301👩\u200d🇯🇵।؟ن"), max_size=120)


@given(TEXT, st.data(), st.sampled_from([SMALL, SENTENCES, ChunkerSettings(longest=20)]))
def test_any_split_gives_the_same_chunks_and_loses_nothing(text, data, settings):
    """Chunks depend on the text alone, lie end to end, and each says something; the last one is marked."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    out = run(pieces, settings)

    assert run([*text], settings) == out
    if any(map(str.isalnum, text)):
        assert text == "".join(chunk.text for chunk in out)
    else:
        assert [] == out
    assert [*range(len(out))] == [chunk.index for chunk in out]
    assert all(any(map(str.isalnum, chunk.text)) for chunk in out)
    assert [False] * (len(out) - 1) + [True] * bool(out) == [chunk.is_last for chunk in out]
    position = 0
    for chunk in out:
        assert position == chunk.start_chars
        assert position == 0 or chunk.text[0] not in "\u0301\u200d"
        position = chunk.end_chars


def test_settings_out_of_range_are_refused():
    """The message names the field."""
    with pytest.raises(CallerError, match="longest"):
        ChunkerSettings(longest=0)


@pytest.mark.parametrize(
    "whole",
    [
        "It is 3.14, or $4.75, or 1,000.50, or 1,234,567 in all.",
        "At 7:30 p.m. we met.",
        "Version v1.2.3 came before 2.0.",
        "The Ph.D. students, a.k.a. Bob and Ann, met the U.K. team.",
        "J. R. R. Tolkien and M. Dupont wrote so.",
        "The plan z. B. heute, d. h. jetzt, gilt.",
        "Wait.. what, then... well… fine.",
        "So go to www.example.co.uk/a.b?c=d.e or mail a.b@example.org now.",
        "Take 5 oz. of tea or approx. 10 min. of rest.",
        "डॉ. शर्मा यहाँ हैं।",
    ],
)
def test_what_looks_like_an_end_is_none(whole):
    """Figures, halves of the day, degrees, initials, ellipses and addresses are left whole."""
    assert [f"{whole} ", "Next."] == chunks(f"{whole} Next.")


@pytest.mark.parametrize(
    "sentences",
    [
        ("ሰላም። ", "እንዴት ነህ፧ ", "ደህና።"),
        ("ខ្ញុំសុខសប្បាយ។", "អរគុណ៕", "លាហើយ។"),
        ("မင်္ဂလာပါ။ ", "ဟုတ်ကဲ့။"),
        ("བཀྲ་ཤིས། ", "བདེ་ལེགས།"),
        ("ठीक है॥ ", "हाँ।"),
        ("“你好。”", "他说。", "（再见。）"),
    ],
    ids=["Amharic", "Khmer", "Burmese", "Tibetan", "Hindi", "Chinese"],
)
def test_more_scripts_end_their_sentences_with_marks_of_their_own(sentences):
    """Each sentence is a chunk, with the closing marks that follow it."""
    assert [*sentences] == chunks("".join(sentences))


@pytest.mark.parametrize("text", ["ขอบคุณที่มาร้านของเราวันนี้ครับ " * 12, "អរគុណដែលបានមកហាងរបស់យើង" * 12], ids=["Thai", "Khmer"])
def test_scripts_without_marks_and_spaces_are_cut_in_time(text):
    """No chunk is far longer than allowed, and none begins with a vowel sign."""
    out = chunks(text, SMALL)

    assert text == "".join(out)
    assert max(map(len, out)) <= 200
    assert all(unicodedata.category(chunk[0])[0] != "M" for chunk in out)
