"""What a model writes becomes what a voice says, as it streams."""

from __future__ import annotations

import re
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.errors import CallerError
from antiphon.think.chunker import Chunker
from antiphon.think.spoken_form import SpokenForm, SpokenFormSettings

pytestmark = pytest.mark.unit

PAGE = Path(__file__).parents[2] / "docs" / "spoken-form.md"
ROW = re.compile(r"\| (`+)(.+)\1 \| (.+) \|")


def table():
    """The rows (written, said) of the page that users read."""
    rows = [match.group(2, 3) for line in PAGE.read_text("utf-8").splitlines() if (match := ROW.fullmatch(line))]
    return [tuple(cell.replace("\\|", "|").replace("⏎", "\n") for cell in row) for row in rows]


def runs(pieces, language="en"):
    form = SpokenForm(SpokenFormSettings(language=language))
    return [run for piece in pieces for run in form.feed(piece)] + form.finish()


def said(written, language="en"):
    return "".join(run.text for run in runs([written], language))


def test_the_page_has_its_table():
    """So that the next test cannot pass for want of rows."""
    assert len(table()) > 35


@pytest.mark.parametrize(("written", "expected"), table())
def test_the_page_tells_the_truth(written, expected):
    """Every row of the documentation holds, alone and within a sentence."""
    assert expected == said(written)
    if "\n" not in written and written[0] not in ">-":
        assert f"So, {expected} then." == said(f"So, {written} then.")


ORDINARY = [
    "Sure, a large latte. Anything else?",
    "  Two  spaces,\ta tab\n\nand a paragraph - with a dash — or two… Right?!",
    "“Quoted” (in brackets), it's Ann's; Mr. O'Neil's well-known café, déjà vu: naïve!",
    "Dr. Smith of the U.S. Army met J. R. R. Tolkien at St. Ives.",
    "你好，欢迎光临。今天想喝点什么？３．５元，我有3个苹果。",
    "नमस्ते, आपका स्वागत है। ३ चाय, आप 3 सेब लें।",
    "مرحبا بك في المقهى. ماذا تريد؟ ٣ قهوة و 3 شاي",
    "ขอบคุณครับ น้ำส้ม ๓ แก้ว ค่ำ",
    "여보세요, 커피 한 잔 주세요.",
    "می‌خواهم ක්‍ෂ",
    "...",
    "— !",
    "",
    " \n ",
]


@pytest.mark.parametrize("written", ORDINARY)
def test_ordinary_text_passes_unchanged(written):
    """Of any script, white space and marks included."""
    assert written == said(written)
    assert written == said(written, "de")


@given(st.lists(st.text("aeghlmnoprst", min_size=1, max_size=9), max_size=8).map(" ".join))
def test_words_pass_unchanged(written):
    """Any word of letters that is no abbreviation."""
    assert written == said(written)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("**Note:** it is **$4.75**.", "Note: it is four dollars and seventy-five cents."),
        ("**bold *nested* text**", "bold nested text"),
        ("***all*** __of__ ~~it~~", "all of it"),
        ("an unclosed **star and `tick", "an unclosed star and tick"),
        ("un*frigging*believable", "unfriggingbelievable"),
        ("\\*not bold\\*", "not bold"),
        ("Title\n=====\ntext\n---\nend", "Title\n\ntext\n\nend"),
        ("* * *\nHi", "\nHi"),
        ("### **Deep** ###\nHi", "Deep.\nHi"),
        ("* One!\n  + Two\n• Three\n", "One!\nTwo.\nThree.\n"),
        ("- [ ] open\n- [x] done\n", "open.\ndone.\n"),
        ("2) Tea\n", "two, Tea.\n"),
        ("> > deep\n> text", "deep\ntext"),
        ("a | b\n--|--\nc | d", "a, b.\n\nc, d"),
        ("![a cat](cat.png) and [x](<a b> 'title')", "a cat and x"),
        ("[a][b] and [c] and d[^1].", "a and c and d."),
        ("[open](http://x and more", "open(http://x and more"),
        ("a](b)", "a](b)"),
        ("<p>One<br>two</p><ul><li>x</li><li>y</li></ul>", "\nOne\ntwo\n\nx. y. \n"),
        ("<name> and <!-- note -->so", "name and so"),
        ("AT&amp;T &lt;3", "AT&T less than three"),
        ("~~~\ncode\n~~~\nSo.", "Code left out.\nSo."),
        ("```x = 1``` is it", "x equals one is it"),
        ("```\nnever closed", "Code left out."),
    ],
)
def test_markup(written, expected):
    """It is left out, its words stay; what is never closed says its words too."""
    assert expected == said(written)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Hi 😀", "Hi"),
        ("😀 Hi", " Hi"),
        ("Hi😀there", "Hithere"),
        ("👨‍👩‍👧‍👦 🇯🇵 🏴󠁧󠁢󠁥󠁮󠁧󠁿 👋🏽 ❤️ ☕", ""),
        ("Press 1️⃣ or #️⃣ now", "Press or now"),
        ("好😀的", "好的"),
        ("a\ufffdb\ud800c\x00d", "abcd"),
    ],
)
def test_what_has_no_sound_is_left_out(written, expected):
    """Emoji of any number of code points, and characters that are none."""
    assert expected == said(written)
    assert expected == said(written, "zh")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("$0.99, $1, $1.01, $5.00", "ninety-nine cents, one dollar, one dollar and one cent, five dollars"),
        ("-$5 and $3M and $5-10", "minus five dollars and three million dollars and five to ten dollars"),
        ("$20/month or 5 EUR or 5€.", "twenty dollars per month or five EUR or five euros."),
        ("$1,234.56!", "one thousand two hundred thirty-four dollars and fifty-six cents!"),
        ("12:00, 0:30, 19:00", "twelve o'clock, zero thirty, nineteen hundred"),
        ("at 7:00 pm. Then", "at seven p.m. Then"),
        ("9am-5pm, 7-9 p.m., 10:30-11:15", "nine a.m. to five p.m., seven to nine p.m., ten thirty to eleven fifteen"),
        ("a 16:9 screen", "a sixteen to nine screen"),
        ("2 Dec 2026", "the second of December twenty twenty-six"),
        ("on May 5", "on May fifth"),
        ("I met Jan in Mar.", "I met Jan in Mar."),
        ("05/05/2026", "May fifth, twenty twenty-six"),
        ("2048 bytes in 2009", "two thousand forty-eight bytes in two thousand nine"),
        ("1990-95", "nineteen ninety to ninety-five"),
        ("192.168.1.1", "one nine two dot one six eight dot one dot one"),
        ("Call 555-123-4567.", "Call five five five, one two three, four five six seven."),
        ("+1 555 123 4567", "plus one, five five five, one two three, four five six seven"),
        ("1 km, 0.5 km, a 20 oz cup", "one kilometer, zero point five kilometers, a twenty ounce cup"),
        ("5km/h and 5'11", "five kilometers per hour and five foot eleven"),
        ("-3.5°C ±2", "minus three point five degrees Celsius plus or minus two"),
        ("10 - 3 = 7, pages 3 - 5", "ten minus three equals seven, pages three to five"),
        ("5*3, 2x+3=7, a*b, 4x3", "five times three, two x plus three equals seven, a times b, four by three"),
        ("1 < 2, x >= y, >50%", "one less than two, x greater than or equal to y, more than fifty percent"),
        ("Settings > Sound", "Settings, Sound"),
        ("a 3-year-old, a 5-10-minute walk", "a three-year-old, a five-to-ten-minute walk"),
        ("MP3, H2O, GPT-4, COVID-19, A1B2C3", "MP three, H two O, GPT four, COVID nineteen, A one B two C three"),
        ("4.5/5, 4/5 stars, 2/5", "four point five out of five, four out of five stars, two fifths"),
        ("½ or 1½ cups", "one half or one and one half cups"),
        ("24/7, 50-50, 8/10, 3x, 18+", "twenty-four seven, fifty fifty, eight out of ten, three times, eighteen plus"),
        ("007, zip 02139", "zero zero seven, zip zero two, one three nine"),
        ("C#, C++, Node.js, main.py", "C sharp, C plus plus, Node dot js, main dot py"),
        ("No. 5, no. I vs. you etc. Then", "number five, no. I versus you et cetera. Then"),
        ("4821307755", "four eight two, one three zero, seven seven five five"),
        ("3,4,5 or 6;7", "three, four, five or six, seven"),
        ("9am – 5pm, 10:30 - 9:15, $5 - $10", ("nine a.m. to five p.m., ten thirty to nine fifteen, "
         "five dollars to ten dollars")),
        ("Plan A - I like it, A / B", "Plan A - I like it, A, B"),
        ("5 x 3 cm", "five by three centimeters"),
        ("mid-2024, the mid-1990s, 1st-floor", "mid twenty twenty-four, the mid nineteen nineties, first-floor"),
        ("a 4-in-1, sub-$10 and 9-1-1", "a four-in one, sub ten dollars and nine, one, one"),
        ("x² and/or y_z, A/C, Q&A, ham&eggs", "x squared and or y z, A/C, Q&A, ham and eggs"),
    ],
)  # fmt: skip
def test_figures_and_signs(written, expected):
    """English words, whatever the figures stand for."""
    assert expected == said(written)


@pytest.mark.parametrize(
    ("language", "written", "expected"),
    [
        ("de", "**Tee** kostet 3,50 € 👍", "Tee kostet 3,50 €"),
        ("de", "Siehe example.com/tee", "Siehe example Punkt com Schrägstrich tee"),
        ("fr-FR", "bob@example.org", "bob arobase example point org"),
        ("ja", "example.comへ", "example.comへ"),
        ("ja", "- お茶\n- 水\n", "お茶.\n水.\n"),
        ("es", "1. Té\n```\nx\n```\nYa", "1, Té.\n\nYa"),
        ("de", "5 * 3 und 20%", "5 * 3 und 20%"),
    ],
)
def test_other_languages_keep_their_figures(language, written, expected):
    """Marks, emoji and addresses are handled; figures are the voice's."""
    assert expected == said(written, language)


def test_a_plain_word_is_let_go_with_its_second_letter():
    """The rest of it comes with its end, and nothing else waits."""
    form = SpokenForm()
    fed = [[run.text for run in form.feed(char)] for char in "Sure, a la"]

    assert [[], ["S"], [], [], [], [], ["ure,"], [], [" a"], [" l"]] == fed


def test_runs_tell_what_was_written():
    """Each run's end is a place in the written text, the whole of it at the end."""
    written = "It is **$4.75** for [tea](x.org), ok 👍"
    spoken = runs([written])

    heard = [written[: run.end_chars] for run in spoken if "seventy-five" in run.text]
    assert ["It is **$4.75**"] == heard
    assert len(written) == spoken[-1].end_chars


def test_switched_off_it_passes_everything():
    """As written, word by word."""
    form = SpokenForm(SpokenFormSettings(enabled=False))
    fed = [*form.feed("**a** $5"), *form.finish()]

    assert [("**a**", 5), (" $5", 8)] == [(run.text, run.end_chars) for run in fed]


def test_the_language_is_a_code():
    """Anything else is refused by name."""
    with pytest.raises(CallerError, match="language"):
        SpokenFormSettings(language="English!")


def test_chunks_of_what_is_said_keep_sentences_whole():
    """No word that stands for a figure ends a sentence."""
    chunker = Chunker()
    written = "We close at 7 p.m. on Dec. 2, 2026, e.g. for $4.75. Is that all right with you?"
    chunks = [chunk.text for run in runs([written]) for chunk in chunker.feed(run.text)]
    chunks += [chunk.text for chunk in chunker.finish()]

    assert said(written) == "".join(chunks)
    assert [] == [chunk for chunk in chunks[:-1] if chunk.rstrip().endswith((" p.m.", "example"))]


ONES = "aB I.1249,:-/$%*_`#<>[]()!|&@=+~\\\"'\n\t٣ß한\u200d\ufe0f"
CLUSTERS = ("e\u0301", "👩\u200d👩\u200d👧", "🇯🇵", "1️⃣", "👋🏽", "क्", "षि", "你", "。", "น้ำ", "نَ")
WORDS = (
    " pm",
    " km",
    "```",
    "\n- ",
    "\n1. ",
    "](",
    "<b>",
    "www.",
    ".com",
    "Dec ",
    " million",
    "e.g.",
    "\n|",
    "--",
    "<!--",
)
GRAPHEMES = st.sampled_from([*ONES, *CLUSTERS, *WORDS])


@given(st.lists(GRAPHEMES, max_size=40), st.data(), st.sampled_from(["en", "de", "zh"]))
def test_cuts_make_no_difference_and_nothing_is_lost(graphemes, data, language):
    """Runs depend on the text alone; their ends rise to its length; none begins within a character."""
    written = "".join(graphemes)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=8)))
    pieces = [written[start:end] for start, end in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    spoken = runs(pieces, language)

    assert runs([*written], language) == spoken
    ends = [run.end_chars for run in spoken]
    assert sorted(ends) == ends
    assert [len(written)] == ends[-1:] or not written
    assert "\ufffd" not in "".join(run.text for run in spoken)
    bases = [run.text[0] for run in spoken if run.text]
    if "\u200d" not in graphemes and "\ufe0f" not in graphemes:
        assert [] == [char for char in bases[1:] if unicodedata.category(char)[0] == "M"]


@given(st.text(max_size=200))
def test_no_text_is_an_error(written):
    """Nor does any come out that no file could hold."""
    said(written).encode()


SILENT = {"```\n", "`", "[", "|", "\n", " ", "<!--"}  # nothing comes out, for there is nothing to say


FLOOD_MARKS = (
    "* **a [ ]( < <b_ ` ```\n | -_ _ 1 1- 1x +5 $ 😀 \u0301 你 a a@ a. http:// &amp; \\ <!-- (555)_ 1/ [^ \n -"
)


@pytest.mark.parametrize("flood", [*FLOOD_MARKS.split(" "), " ", "- ", "<b ", "(555) "])
def test_floods_take_linear_time_and_are_let_go(flood):
    """Any mark, over and over; no more than a few thousand characters are held back."""
    form = SpokenForm()
    written = flood * ((100_000 if flood == "*" else 20_000) // len(flood))
    began = time.process_time()
    spoken = form.feed(written)
    ended = spoken[-1].end_chars if spoken else 0

    assert time.process_time() - began < 15
    assert ended == len(written) or len(written) - ended < 6000 or flood in SILENT


def test_a_long_word_is_let_go():
    """Five thousand letters do not wait for their end, and no letter loses its accent."""
    form = SpokenForm()
    spoken = form.feed("e\u0301" * 5000)

    assert len(spoken) > 10
    assert all(run.text[:1] != "\u0301" for run in spoken)
